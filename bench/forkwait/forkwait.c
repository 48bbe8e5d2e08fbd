// SPDX-License-Identifier: GPL-2.0-only
/*
 * A chain of short processes: fork, exec, a fixed amount of work, wait; the
 * case of Carver et al., "Fork/Wait and Multicore Frequency Scaling", PLOS 2019. Each child is this
 * program again, so that the whole cost of exec is in it.
 *
 * forkwait SECONDS CHAINS STEPS HOGS
 *
 * CHAINS independent chains run at once, each for SECONDS, beside HOGS busy processes.
 * Printed are the mean and the 99th percentile of one link of a chain.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "../common.h"
#include "../histogram.h"

static void one_link(char *steps)
{
	char *argv[] = { program_invocation_short_name, "work", steps, NULL };
	int status;
	pid_t pid = fork();

	if (pid < 0)
		fail("fork");
	if (pid == 0) {
		execv("/proc/self/exe", argv);
		_exit(127);
	}
	if (waitpid(pid, &status, 0) != pid)
		fail("waitpid");
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		wrong("a child failed");
}

static void run_chain(struct histogram *links, uint64_t until, char *steps)
{
	uint64_t start = now_ns();

	while (start < until) {
		uint64_t end;

		one_link(steps);
		end = now_ns();
		histogram_add(links, end - start);
		start = end;
	}
}

static pid_t begin_hog(void)
{
	pid_t pid = fork();

	if (pid < 0)
		fail("fork");
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		work(1000);
}

static void end_hogs(const pid_t *hogs, unsigned int nr)
{
	while (nr--) {
		kill(hogs[nr], SIGKILL);
		waitpid(hogs[nr], NULL, 0);
	}
}

/* Have all chains ended well? Hogs do not end by themselves. */
static bool await_chains(unsigned int nr)
{
	bool well = true;

	while (nr--) {
		int status;

		if (wait(&status) < 0)
			fail("wait");
		well &= WIFEXITED(status) && WEXITSTATUS(status) == 0;
	}
	return well;
}

static void report(const struct histogram *chains, unsigned int nr_chains)
{
	struct histogram *all = allocate(1, sizeof(*all));
	unsigned int i;

	for (i = 0; i < nr_chains; i++)
		histogram_merge(all, &chains[i]);
	if (all->nr == 0)
		wrong("not one link was finished");
	print_us("", "mean", mean_ns(all));
	print_us("", "p99", percentile_ns(all, 0.99));
	free(all);
}

int main(int argc, char **argv)
{
	struct histogram *chains; /* of each one's links, shared by all */
	unsigned int nr_chains, nr_hogs, i;
	uint64_t until;
	pid_t *hogs;
	bool well;

	if (argc == 3 && strcmp(argv[1], "work") == 0) {
		work(number(argv[2], 1, LONG_MAX));
		return 0;
	}
	if (argc != 5) {
		fprintf(stderr, "usage: forkwait SECONDS CHAINS STEPS HOGS\n");
		return 2;
	}
	nr_chains = number(argv[2], 1, MAX_THREADS);
	number(argv[3], 1, LONG_MAX);
	nr_hogs = number(argv[4], 0, MAX_THREADS);
	chains = mmap(NULL, nr_chains * sizeof(*chains), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (chains == MAP_FAILED)
		fail("memory");
	hogs = allocate(nr_hogs + 1, sizeof(*hogs));
	for (i = 0; i < nr_hogs; i++)
		hogs[i] = begin_hog();
	until = now_ns() + number(argv[1], 1, MAX_SECONDS) * NS_PER_S;
	for (i = 0; i < nr_chains; i++) {
		pid_t pid = fork();

		if (pid < 0)
			fail("fork");
		if (pid == 0) {
			run_chain(&chains[i], until, argv[3]);
			_exit(0);
		}
	}
	well = await_chains(nr_chains);
	end_hogs(hogs, nr_hogs);
	free(hogs);
	if (!well)
		return 1;
	report(chains, nr_chains);
	return 0;
}
