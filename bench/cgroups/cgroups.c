// SPDX-License-Identifier: GPL-2.0-only
/*
 * A tree of cgroups with processes in it: how close each group is to its share.
 *
 * cgroups SECONDS CPUS TREE[,TREE...]
 *
 * TREE: WEIGHT[MEMBER,...], where WEIGHT is that of cpu.weight, or idle, and a MEMBER is a TREE
 * again or some processes: COUNT, COUNTxNICE, COUNTp, pinned to the first CPUs one after the
 * other, or COUNTsPERCENT, sleepers that want so much of a CPU and wake up every 10 ms.
 * All run on the first CPUS of those that this program may use. Prints the largest relative
 * difference, in per cent, between what a group used (by its cpu.stat) and what it should
 * have.
 *
 * That is max-min fair by weight, from the top of the tree down: of what a group has,
 * its members share by their weights, none more than it can use: a process no more than a CPU,
 * or what it sleeps for; those pinned to one CPU not more than that together (Bertsekas and
 * Gallager, "Data Networks", 1992, section 6.5.2). Processes beside groups, and groups with
 * cpu.idle, are not compared: these have what is left.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "../cpus.h"

enum { MAX_CPUS = 64, MAX_GROUPS = 256, MAX_PROCESSES = 1024, PERIOD_NS = 10 * 1000 * 1000 };

static struct group {
	char path[256];
	int parent; /* -1 the root */
	double weight;
	bool idle, leaf;
	double cap, ideal; /* CPUs */
	int pinned[MAX_CPUS];
	uint64_t before, got; /* us */
} groups[MAX_GROUPS];

static int nr_groups, nr_processes, cpus[MAX_CPUS];
static long nr_cpus;
static pid_t pids[MAX_PROCESSES], creator;
static const char *base = "/sys/fs/cgroup";

static void __attribute__((noreturn)) refuse(const char *at)
{
	fprintf(stderr, "cgroups: what is %s? A tree is WEIGHT[MEMBER,...]\n", at);
	exit(2);
}

static void write_file(const char *folder, const char *name, const char *text)
{
	char path[320];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		fail(path);
	close(fd);
}

static uint64_t used_us(const struct group *g)
{
	char path[320], line[128];
	unsigned long long us = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/cpu.stat", g->path);
	file = fopen(path, "r");
	if (!file)
		fail(path);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "usage_usec %llu", &us) == 1)
			break;
	fclose(file);
	return us;
}

/* Begun in the group's own folder, and never seen elsewhere. */
static void start_process(const struct group *g, int nice, int cpu, int percent)
{
	char pid[16];
	uint64_t next, from;
	cpu_set_t set;
	int i;

	if (nr_processes == MAX_PROCESSES)
		wrong("too many processes");
	pids[nr_processes] = fork();
	if (pids[nr_processes] < 0)
		fail("fork");
	if (pids[nr_processes++])
		return;
	signal(SIGTERM, SIG_DFL);
	snprintf(pid, sizeof(pid), "%d", getpid());
	write_file(g->path, "cgroup.procs", pid);
	CPU_ZERO(&set);
	for (i = 0; i < nr_cpus; i++)
		if (cpu < 0 || cpu == i)
			CPU_SET(cpus[i], &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fail("sched_setaffinity");
	set_nice(nice);
	if (!percent)
		for (;;)
			work(1000);
	for (next = now_ns();; next += PERIOD_NS) {
		from = cpu_ns();
		while (cpu_ns() - from < (uint64_t)PERIOD_NS / 100 * percent)
			work(100);
		if (now_ns() < next + PERIOD_NS)
			sleep_ns(next + PERIOD_NS - now_ns());
		else
			next = now_ns() - PERIOD_NS;
	}
}

static int value(char **at, int min, int max)
{
	char *end;
	long n = strtol(*at, &end, 10);

	if (end == *at || n < min || n > max)
		refuse(*at);
	*at = end;
	return n;
}

/* The processes that begin at @at, COUNT and what is behind it. */
static void parse_processes(char **at, struct group *g)
{
	int count = value(at, 1, MAX_PROCESSES), nice = 0, percent = 0, i;
	bool pinned = false;

	if (**at == 'x') {
		++*at;
		nice = value(at, -20, 19);
	} else if (**at == 's') {
		++*at;
		percent = value(at, 1, 99);
	} else if (**at == 'p') {
		++*at;
		pinned = true;
	}
	for (i = 0; i < count; i++) {
		int cpu = pinned ? i % nr_cpus : -1;

		if (!pinned || !g->pinned[cpu]++)
			g->cap += percent ? percent / 100.0 : 1;
		start_process(g, nice, cpu, percent);
	}
}

static void set_path(struct group *g, const char *above)
{
	char path[sizeof(g->path)];

	if (snprintf(path, sizeof(path), "%s/g%d", above, nr_groups) >= (int)sizeof(path))
		wrong("too many levels");
	strcpy(g->path, path);
}

/* The members that begin at @at, up to the end of this list. */
static void parse(char **at, int parent)
{
	for (;;) {
		struct group *g;
		char *ahead = *at;
		bool idle = !strncmp(ahead, "idle[", 5);
		char weight[16];

		while (isdigit((unsigned char)*ahead))
			ahead++;
		if (!idle && *ahead != '[') {
			if (parent < 0)
				refuse(*at);
			parse_processes(at, &groups[parent]);
			groups[parent].leaf = true;
		} else {
			if (nr_groups == MAX_GROUPS)
				wrong("too many groups");
			g = &groups[nr_groups];
			g->parent = parent;
			g->idle = idle;
			g->weight = idle ? 0.3 : value(at, 1, 10000);
			set_path(g, parent < 0 ? base : groups[parent].path);
			if (parent >= 0)
				write_file(groups[parent].path, "cgroup.subtree_control", "+cpu");
			if (mkdir(g->path, 0755))
				fail(g->path);
			snprintf(weight, sizeof(weight), "%d", (int)g->weight);
			if (idle)
				write_file(g->path, "cpu.idle", "1");
			else
				write_file(g->path, "cpu.weight", weight);
			*at = strchr(*at, '[') + 1;
			parse(at, nr_groups++);
			if (**at != ']')
				refuse(*at);
			++*at;
		}
		if (**at != ',')
			return;
		++*at;
	}
}

static double cap_of(int group)
{
	double cap = groups[group].cap;
	int i;

	for (i = group + 1; i < nr_groups; i++)
		if (groups[i].parent == group)
			cap += cap_of(i);
	return cap < nr_cpus ? cap : nr_cpus;
}

/* Share out @room among the children of @parent: see above. */
static void share_out(int parent, double room)
{
	bool fixed[MAX_GROUPS] = {}, changed;
	double weight, left;
	int i;

	do {
		changed = false;
		weight = 0;
		left = room;
		for (i = 0; i < nr_groups; i++) {
			if (groups[i].parent != parent)
				continue;
			if (fixed[i])
				left -= groups[i].ideal;
			else
				weight += groups[i].weight;
		}
		for (i = 0; i < nr_groups; i++) {
			if (groups[i].parent != parent || fixed[i])
				continue;
			groups[i].ideal = left * groups[i].weight / weight;
			if (groups[i].ideal > cap_of(i)) {
				groups[i].ideal = cap_of(i);
				fixed[i] = changed = true;
			}
		}
	} while (changed);
	for (i = 0; i < nr_groups; i++)
		if (groups[i].parent == parent && !groups[i].leaf)
			share_out(i, groups[i].ideal);
}

static void clean_up(void)
{
	int i, tries;

	/* Only who made them. */
	if (getpid() != creator)
		return;
	for (i = 0; i < nr_processes; i++)
		kill(pids[i], SIGKILL);
	while (wait(NULL) > 0)
		;
	for (i = nr_groups - 1; i >= 0; i--)
		for (tries = 0; rmdir(groups[i].path) && errno == EBUSY && tries < 1000; tries++)
			sleep_ns(NS_PER_US * 1000);
}

int main(int argc, char **argv)
{
	uint64_t ns, elapsed;
	double worst = 0;
	char *at;
	int i;

	if (argc != 4) {
		fprintf(stderr, "usage: cgroups SECONDS CPUS TREE[,TREE...]\n");
		return 2;
	}
	ns = number(argv[1], 1, MAX_SECONDS) * (uint64_t)NS_PER_S;
	nr_cpus = number(argv[2], 1, MAX_CPUS);
	first_cpus(cpus, nr_cpus);
	creator = getpid();
	atexit(clean_up);
	write_file(base, "cgroup.subtree_control", "+cpu");
	at = argv[3];
	parse(&at, -1);
	if (*at)
		refuse(at);
	share_out(-1, nr_cpus);
	/* They begin one after the other. */
	sleep_ns(NS_PER_S / 5);
	for (i = 0; i < nr_groups; i++)
		groups[i].before = used_us(&groups[i]);
	elapsed = now_ns();
	sleep_ns(ns);
	for (i = 0; i < nr_groups; i++)
		groups[i].got = used_us(&groups[i]) - groups[i].before;
	elapsed = now_ns() - elapsed;
	for (i = 0; i < nr_groups; i++) {
		double got = (double)groups[i].got * 1000 / elapsed, off;

		if (getenv("CGROUPS_VERBOSE"))
			fprintf(stderr, "%s: %.3f CPUs, ideal %.3f\n", groups[i].path, got,
				groups[i].ideal);
		if (groups[i].idle)
			continue;
		off = got / groups[i].ideal - 1;
		if (off < 0)
			off = -off;
		if (off > worst)
			worst = off;
	}
	printf("unfair %.2f %% lower\n", worst * 100);
	return 0;
}
