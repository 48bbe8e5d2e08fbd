// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cgroups that change all the time. Prints what it saw as one line of name=value pairs and judges
 * nothing.
 *
 *   groups storm dir= ms=4000
 *	below dir a cgroup of weight 100, and one of weight 300 with two below it, all with
 *	loops on CPU 1. Meanwhile, as fast as they can: one writes the weight of the first, 100 and
 *	101, one moves a loop between the two, one makes and removes cgroups with a process, and
 *	one gives one cgroup a quota and takes it back. What both groups used, in thousandths of a
 *	CPU, how often each happened, and for how long a loop did not run at most, in us
 */
#define _GNU_SOURCE
#include "groups.h"

enum { NR_LOOPS = 6, WARM_US = 1000 * 1000 };

static struct board {
	volatile uint64_t writes, moves, makes, quotas;
	volatile uint64_t last[NR_LOOPS], gap[NR_LOOPS];
	volatile bool counts;
} *board;

static pid_t loops[NR_LOOPS];

static const char *below(const char *name)
{
	static char path[4][256];
	static int at;
	char *p = path[at++ % 4];

	snprintf(p, sizeof(path[0]), "%s/%s", dir(), name);
	return p;
}

static void make(const char *name, const char *weight, bool inner)
{
	if (mkdir(below(name), 0755))
		die("%s: %s", below(name), strerror(errno));
	write_file(below(name), "cpu.weight", weight);
	if (inner)
		write_file(below(name), "cgroup.subtree_control", "+cpu");
}

/* The first half are in one group, the others in both below the other one. */
static void loop(int i)
{
	enter(below(i < NR_LOOPS / 2 ? "a" : i % 2 ? "b/x" : "b/y"));
	pin(0, 1);
	for (;;) {
		uint64_t now = clock_ns(CLOCK_MONOTONIC), last = board->last[i];

		if (board->counts && last && now - last > board->gap[i])
			board->gap[i] = now - last;
		board->last[i] = now;
		for (volatile int spin = 0; spin < 2000; spin++)
			;
	}
}

static void writer(int i)
{
	int fd;

	(void)i;
	pin(0, 2);
	fd = open(below("a/cpu.weight"), O_WRONLY);
	for (;; board->writes++)
		if (pwrite(fd, board->writes % 2 ? "100" : "101", 3, 0) != 3)
			die("%s: %s", below("a/cpu.weight"), strerror(errno));
}

static void mover(int i)
{
	pin(0, 3);
	for (;; board->moves++)
		move_to(below(board->moves % 2 ? "b/x" : "b/y"), loops[i]);
}

static void inhabitant(int i)
{
	(void)i;
	enter(below("made"));
}

static void maker(int i)
{
	(void)i;
	pin(0, 0);
	for (;; board->makes++) {
		make("made", "50", false);
		reap(spawn(inhabitant, 0));
		if (rmdir(below("made")))
			die("%s: %s", below("made"), strerror(errno));
	}
}

static void limiter(int i)
{
	(void)i;
	pin(0, 3);
	for (;; board->quotas++)
		write_file(below("limited"), "cpu.max",
			   board->quotas % 2 ? "max 100000" : "1000 1000000");
}

static uint64_t used_us(const char *name)
{
	char path[300];
	unsigned long us;
	FILE *file;

	snprintf(path, sizeof(path), "%s/cpu.stat", below(name));
	file = fopen(path, "r");
	if (!file || fscanf(file, "usage_usec %lu", &us) != 1)
		die("%s: %s", path, strerror(errno));
	fclose(file);
	return us;
}

static void storm(void)
{
	void (*const storms[])(int) = { writer, mover, maker, limiter };
	enum { NR_STORMS = sizeof(storms) / sizeof(*storms) };
	long ms = number("ms", 4000);
	uint64_t a, b, gap = 0;
	pid_t pids[NR_STORMS];

	board = share(sizeof(*board));
	make("a", "100", false);
	make("b", "300", true);
	make("b/x", "100", false);
	make("b/y", "100", false);
	make("limited", "100", false);
	for (int i = 0; i < NR_LOOPS; i++)
		loops[i] = spawn(loop, i);
	for (int i = 0; i < NR_STORMS; i++)
		pids[i] = spawn(storms[i], NR_LOOPS - 1);
	sleep_us(WARM_US);
	board->counts = true;
	board->writes = board->moves = board->makes = board->quotas = 0;
	a = used_us("a");
	b = used_us("b");
	sleep_us(ms * 1000);
	printf("a=%lu b=%lu writes=%lu moves=%lu makes=%lu quotas=%lu", (used_us("a") - a) / ms,
	       (used_us("b") - b) / ms, board->writes, board->moves, board->makes, board->quotas);
	for (int i = 0; i < NR_STORMS; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	for (int i = 0; i < NR_LOOPS; i++) {
		gap = board->gap[i] > gap ? board->gap[i] : gap;
		kill(loops[i], SIGKILL);
		waitpid(loops[i], NULL, 0);
	}
	printf(" gap=%lu\n", gap / 1000);
	rmdir(below("made"));
	if (rmdir(below("limited")) || rmdir(below("b/x")) || rmdir(below("b/y")) ||
	    rmdir(below("b")) || rmdir(below("a")))
		die("rmdir: %s", strerror(errno));
}

int main(int argc, char **argv)
{
	static const struct command commands[] = { { "storm", storm }, {} };

	return run_command("groups", commands, argc, argv);
}
