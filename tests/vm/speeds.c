// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program that reads the page of speeds by its header and by libfreqlock. Each line of
 * its input is the number of a CPU, to which it goes, and which it answers with one line of
 * name=value pairs. It has the same page mapped for as long as it lives.
 */
#define _GNU_SOURCE
#include <err.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include "freqlock.h"
#include "speeds_page.h"

int main(void)
{
	const struct fl_speeds_page *page = fl_speeds_open();
	cpu_set_t cpus;
	char line[16];
	int cpu;

	while (fgets(line, sizeof(line), stdin)) {
		cpu = atoi(line);
		CPU_ZERO(&cpus);
		CPU_SET(cpu, &cpus);
		if (sched_setaffinity(0, sizeof(cpus), &cpus))
			err(2, "CPU %d", cpu);
		printf("is_big=%d speed=%d\n", freqlock_is_big(),
		       page ? fl_speeds_of_cpu(page, cpu) : -1);
		fflush(stdout);
	}
	return 0;
}
