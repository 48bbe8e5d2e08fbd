// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program that reads the page of CPUs to count on, by nothing but its header, and
 * processes to be listed there. Each prints one line of name=value pairs.
 *
 *   cpus await pid=P|cgroup=ID field=cpus least=0 most=4000
 *					until the figure of P, in thousandths, is between
 *   cpus await-stale			what is mapped now is written no more
 *   cpus consistent n=N		looks N times at a page that is written meanwhile
 *   cpus spin threads=4			threads that work, until it is killed
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdbool.h>
#include "cpus_page.h"
#include "timing.h"

/* Longest wait for something that a working scheduler does at once. */
#define PATIENCE_NS (40ull * 1000000000)
#define LOOK_US     2000

static const struct fl_cpus_page *page;

static void open_page(void)
{
	page = fl_cpus_open();
	if (!page)
		die("%s: %s", FL_CPUS_PATH, strerror(errno));
}

static void print_figures(const struct fl_cpus_figures *f)
{
	long quota = f->quota == FL_CPUS_NO_QUOTA ? -1 : (long)f->quota;

	printf("affinity=%u quota=%ld neighbours=%u cpus=%u ran=%u waited=%u throttled=%u\n",
	       f->affinity, quota, f->neighbours, f->cpus, f->ran, f->waited, f->throttled);
}

static long field_of(const struct fl_cpus_figures *f, const char *name)
{
	if (!strcmp(name, "affinity"))
		return f->affinity;
	if (!strcmp(name, "quota"))
		return f->quota == FL_CPUS_NO_QUOTA ? -1 : (long)f->quota;
	if (!strcmp(name, "neighbours"))
		return f->neighbours;
	if (!strcmp(name, "ran"))
		return f->ran;
	if (!strcmp(name, "throttled"))
		return f->throttled;
	if (!strcmp(name, "cpus"))
		return f->cpus;
	die("no figure is called %s", name);
}

/* Of the process or cgroup that is asked for; an error of the page's. */
static int look(struct fl_cpus_figures *figures)
{
	struct fl_cpus_process process;
	struct fl_cpus_cgroup cgroup;
	int error;

	if (param("cgroup", NULL)) {
		error = fl_cpus_of_cgroup(page, number("cgroup", 0), &cgroup);
		*figures = cgroup.figures;
	} else {
		error = fl_cpus_of_process(page, number("pid", getpid()), &process);
		*figures = process.figures;
	}
	return error;
}

static void cmd_await(void)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS;
	long least = number("least", 0), most = number("most", 1000000), last = -1, value;
	const char *name = param("field", "cpus");
	struct fl_cpus_figures figures = {};
	int error;

	open_page();
	do {
		error = look(&figures);
		if (!error) {
			value = field_of(&figures, name);
			/* Twice in a row, since one period may be anything. */
			if (value >= least && value <= most && last >= least && last <= most) {
				print_figures(&figures);
				return;
			}
			last = value;
		}
		sleep_us(LOOK_US + page->period / 1000);
	} while (clock_ns(CLOCK_MONOTONIC) < end);
	die("%s is %ld, not %ld to %ld (%s)", name, last, least, most, strerror(error));
}

static void cmd_await_stale(void)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS;
	struct fl_cpus_process me;

	open_page();
	printf("mapped=1\n");
	fflush(stdout);
	while (fl_cpus_of_process(page, getpid(), &me) != ESTALE) {
		if (clock_ns(CLOCK_MONOTONIC) > end)
			die("the page does not get old");
		sleep_us(LOOK_US);
	}
	printf("stale=1\n");
}

static bool is_least(const struct fl_cpus_figures *f)
{
	uint32_t least = f->affinity < f->quota ? f->affinity : f->quota;

	if (f->neighbours < least)
		least = f->neighbours;
	return f->cpus == least;
}

/* Own entry, again and again, and whether the page is in order. */
static void cmd_consistent(void)
{
	long n = number("n", 10000), wrong = 0, versions = 0, tries;
	static struct fl_cpus_page copy;
	struct fl_cpus_process me;
	uint64_t seq, last = 0;

	open_page();
	for (tries = 0; tries < n || versions < 10; tries++) {
		if (fl_cpus_of_process(page, getpid(), &me) == 0)
			wrong += me.pid != (uint32_t)getpid() || !is_least(&me.figures);
		seq = __atomic_load_n(&page->seq, __ATOMIC_ACQUIRE);
		memcpy(&copy, page, sizeof(copy));
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if ((seq & 1) || page->seq != seq)
			continue;
		versions += seq != last;
		last = seq;
		for (uint32_t i = 0; i < copy.nr_processes; i++) {
			wrong += !is_least(&copy.process[i].figures);
			wrong += i && copy.process[i - 1].pid >= copy.process[i].pid;
		}
	}
	printf("wrong=%ld versions=%ld processes=%u\n", wrong, versions, copy.nr_processes);
}

static void *spinner(void *arg)
{
	(void)arg;
	for (;;)
		;
	return NULL;
}

static void cmd_spin(void)
{
	long threads = number("threads", 4);
	pthread_t thread;

	for (long i = 1; i < threads; i++)
		if (pthread_create(&thread, NULL, spinner, NULL))
			die("pthread_create: %s", strerror(errno));
	printf("pid=%d\n", getpid());
	fflush(stdout);
	spinner(NULL);
}

static const struct {
	const char *name;
	void (*run)(void);
} commands[] = {
	{ "await", cmd_await },
	{ "await-stale", cmd_await_stale },
	{ "consistent", cmd_consistent },
	{ "spin", cmd_spin },
};

int main(int argc, char **argv)
{
	params = argv + argc;
	if (argc > 1)
		params = argv + 2;
	for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(*commands); i++) {
		if (!strcmp(argv[1], commands[i].name)) {
			commands[i].run();
			return 0;
		}
	}
	die("usage: cpus COMMAND [NAME=VALUE...], see the head of cpus.c");
}
