// SPDX-License-Identifier: GPL-2.0-only
/*
 * Writes a page of CPUs as the header has it: page FILE CGROUP CPUS PID RAN WAITED.
 * All CPUs are in thousandths. The page is fresh for 15 s of a period of 5 s, and 2 s more.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cpus_page.h"

static struct fl_cpus_page page;

int main(int argc, char **argv)
{
	struct timespec ts;
	FILE *file;

	if (argc != 7)
		return 2;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	page.magic = FL_CPUS_MAGIC;
	page.version = FL_CPUS_VERSION;
	page.seq = 2;
	page.updated = (uint64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
	page.period = 5000000000ull;
	page.nr_cgroups = 1;
	page.cgroup[0].id = strtoull(argv[2], NULL, 0);
	page.cgroup[0].figures.cpus = atoi(argv[3]);
	page.cgroup[0].figures.quota = FL_CPUS_NO_QUOTA;
	page.nr_processes = 1;
	page.process[0].pid = atoi(argv[4]);
	page.process[0].cgroup = page.cgroup[0].id;
	page.process[0].figures.ran = atoi(argv[5]);
	page.process[0].figures.waited = atoi(argv[6]);
	/* In its place, if it is there: programs have it open. */
	file = fopen(argv[1], "r+b");
	if (!file)
		file = fopen(argv[1], "wb");
	return !file || fwrite(&page, sizeof(page), 1, file) != 1 || fclose(file);
}
