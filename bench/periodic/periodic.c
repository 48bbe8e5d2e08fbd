// SPDX-License-Identifier: GPL-2.0-only
/*
 * A thread that wakes up at fixed times to do a little work, beside busy loops: sound,
 * frames of a screen, a control loop.
 *
 * periodic MS PERIOD_US PERCENT NICE LOOPS
 *
 * For MS: every PERIOD_US it is due, and works for PERCENT of that by a speed that is
 * measured before. Beside it are LOOPS on each CPU, COUNTxNICE, COUNTxidle (SCHED_IDLE),
 * or COUNTxmix (nice 0, 19, SCHED_IDLE, 10 in turns). Nothing is pinned.
 *
 * Prints how late its work began, after when it was due (p50, p99, longest), and how many
 * periods in a hundred were over before its work was done (missed). Who is late for one is
 * due for the next all the same, so who falls behind is later and later.
 */
#define _GNU_SOURCE
#include <sched.h>
#include "../histogram.h"
#include "../threads.h"

enum {
	MIN_PERIOD_US = 100,
	MAX_PERIOD_US = 1000000,
	MAX_MS = 600000,
	MAX_PER_CPU = 64,
	MIX = 20, /* beyond the nice values */
	IDLE = 21,
	TRY_STEPS = 2000000,
};

static const int mix[] = { 0, 19, IDLE, 10 };

static uint64_t period_ns, steps;
static unsigned long nr_periods;
static int own_nice;
static struct histogram late;
static unsigned long nr_missed;

static void *loop_main(void *arg)
{
	int kind = *(int *)arg;
	struct sched_param param = { 0 };

	if (kind == IDLE && sched_setscheduler(0, SCHED_IDLE, &param))
		fail("sched_setscheduler");
	if (kind < MIX)
		set_nice(kind);
	begin_together();
	while (phase() != OVER)
		work(100);
	return NULL;
}

/* The loops alone would leave it no time of its own before it is what is measured. */
static void *periodic_main(void *arg)
{
	struct timespec due_at;
	unsigned long i;
	uint64_t due;

	(void)arg;
	set_nice(own_nice);
	begin_together();
	due = now_ns();
	for (i = 0; i < nr_periods; i++) {
		due += period_ns;
		due_at = (struct timespec){ due / NS_PER_S, due % NS_PER_S };
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due_at, NULL) == EINTR)
			;
		histogram_add(&late, now_ns() - due);
		work(steps);
		nr_missed += now_ns() > due + period_ns;
	}
	return NULL;
}

/* Steps in a microsecond, on the CPU where this is and at the speed that it has by then. */
static double measure_speed(void)
{
	uint64_t before;

	work(TRY_STEPS);
	before = cpu_ns();
	work(TRY_STEPS);
	return (double)TRY_STEPS * NS_PER_US / (cpu_ns() - before);
}

static int parse_loops(const char *text, long *nr)
{
	char *count = strdup(text), *kind = count ? strchr(count, 'x') : NULL;
	int parsed;

	if (!kind) {
		fprintf(stderr, "periodic: %s is not COUNTxKIND\n", text);
		exit(2);
	}
	*kind++ = '\0';
	*nr = number(count, 0, MAX_PER_CPU);
	if (!strcmp(kind, "idle"))
		parsed = IDLE;
	else if (!strcmp(kind, "mix"))
		parsed = MIX;
	else
		parsed = number(kind, -20, 19);
	free(count);
	return parsed;
}

int main(int argc, char **argv)
{
	long nr_cpus = sysconf(_SC_NPROCESSORS_ONLN), nr, i;
	pthread_t *loops, periodic;
	int *kinds, kind;

	if (argc != 6) {
		fprintf(stderr, "usage: periodic MS PERIOD_US PERCENT NICE LOOPS\n");
		return 2;
	}
	period_ns = number(argv[2], MIN_PERIOD_US, MAX_PERIOD_US) * NS_PER_US;
	nr_periods = number(argv[1], 1, MAX_MS) * 1000000ull / period_ns;
	if (!nr_periods)
		wrong("no period is over in that time: give it more");
	steps = measure_speed() * period_ns / NS_PER_US * number(argv[3], 1, 99) / 100;
	own_nice = number(argv[4], -20, 19);
	kind = parse_loops(argv[5], &nr);
	nr *= nr_cpus;
	loops = allocate(nr + 1, sizeof(*loops));
	kinds = allocate(nr + 1, sizeof(*kinds));
	expect_threads(nr + 2);
	for (i = 0; i < nr; i++) {
		kinds[i] = kind == MIX ? mix[i / nr_cpus % (sizeof(mix) / sizeof(*mix))] : kind;
		start_thread(&loops[i], loop_main, &kinds[i]);
	}
	start_thread(&periodic, periodic_main, NULL);
	begin_together();
	join_thread(periodic);
	atomic_store(&current_phase, OVER);
	for (i = 0; i < nr; i++)
		join_thread(loops[i]);
	print_us("late_", "p50", percentile_ns(&late, 0.5));
	print_us("late_", "p99", percentile_ns(&late, 0.99));
	print_us("late_", "longest", late.longest_ns);
	printf("missed %.1f %% lower\n", 100.0 * nr_missed / nr_periods);
	return 0;
}
