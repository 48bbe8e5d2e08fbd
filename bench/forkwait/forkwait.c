// SPDX-License-Identifier: GPL-2.0-only
/*
 * A chain of short processes: fork, exec, a fixed amount of work, wait; the
 * case of papers/002. Each child is this program again, so that the whole cost
 * of exec is in it.
 *
 * forkwait SECONDS CHAINS STEPS
 *
 * CHAINS independent chains run at once, each for SECONDS. Printed are the
 * mean and the 99th percentile of one link of a chain.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../common.h"

enum { MAX_LINKS = 1 << 20 };

struct chain {
	uint32_t nr_links;
	uint32_t link_ns[MAX_LINKS];
};

static void fail(const char *what)
{
	fprintf(stderr, "forkwait: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void one_link(char *steps)
{
	char *argv[] = { "forkwait", "work", steps, NULL };
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
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		fprintf(stderr, "forkwait: a child failed with status %#x\n", status);
		exit(1);
	}
}

static void run_chain(struct chain *chain, uint64_t until, char *steps)
{
	uint64_t start = now_ns();

	while (start < until && chain->nr_links < MAX_LINKS) {
		uint64_t end;

		one_link(steps);
		end = now_ns();
		chain->link_ns[chain->nr_links++] = end - start < UINT32_MAX ? end - start :
									       UINT32_MAX;
		start = end;
	}
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void report(const struct chain *chains, uint64_t nr_chains)
{
	uint64_t nr = 0, sum = 0, i, j;
	uint32_t *all;

	for (i = 0; i < nr_chains; i++)
		nr += chains[i].nr_links;
	if (nr == 0) {
		fprintf(stderr, "forkwait: not one link was finished\n");
		exit(1);
	}
	all = calloc(nr, sizeof(*all));
	if (!all)
		fail("memory");
	nr = 0;
	for (i = 0; i < nr_chains; i++) {
		for (j = 0; j < chains[i].nr_links; j++) {
			all[nr++] = chains[i].link_ns[j];
			sum += chains[i].link_ns[j];
		}
	}
	qsort(all, nr, sizeof(*all), by_value);
	printf("mean %.1f us lower\n", sum / 1e3 / nr);
	printf("p99 %.1f us lower\n", all[(nr * 99 + 99) / 100 - 1] / 1e3);
	free(all);
}

int main(int argc, char **argv)
{
	uint64_t nr_chains, until, i;
	struct chain *chains;

	if (argc == 3 && strcmp(argv[1], "work") == 0) {
		work(strtoull(argv[2], NULL, 10));
		return 0;
	}
	if (argc != 4) {
		fprintf(stderr, "usage: forkwait SECONDS CHAINS STEPS\n");
		return 2;
	}
	nr_chains = strtoull(argv[2], NULL, 10);
	chains = mmap(NULL, nr_chains * sizeof(*chains), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (chains == MAP_FAILED)
		fail("memory");
	until = now_ns() + strtoull(argv[1], NULL, 10) * 1000000000ull;
	for (i = 0; i < nr_chains; i++) {
		pid_t pid = fork();

		if (pid < 0)
			fail("fork");
		if (pid == 0) {
			run_chain(&chains[i], until, argv[3]);
			_exit(0);
		}
	}
	for (i = 0; i < nr_chains; i++) {
		int status;

		if (wait(&status) < 0)
			fail("wait");
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
			return 1;
	}
	report(chains, nr_chains);
	return 0;
}
