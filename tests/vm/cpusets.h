/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a load changes by files of the kernel: cpusets of cgroups of its own, which are made and
 * taken back, and CPUs, which it turns on and off.
 */
#ifndef FREQLOCK_TEST_CPUSETS_H
#define FREQLOCK_TEST_CPUSETS_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>
#include "timing.h"

enum { GROUPS = 2 };

static char hierarchy[64], group[GROUPS][128];
static bool mounted;

static inline bool write_file(const char *dir, const char *name, const char *text)
{
	char path[256];
	bool written;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY);
	if (fd < 0)
		return false;
	written = write(fd, text, strlen(text)) > 0;
	close(fd);
	return written;
}

static inline bool find_cpusets(void)
{
	strcpy(hierarchy, "/sys/fs/cgroup");
	if (access("/sys/fs/cgroup/cgroup.procs", F_OK)) {
		strcpy(hierarchy, "/tmp/churn.XXXXXX");
		mounted = mkdtemp(hierarchy) && !mount("none", hierarchy, "cgroup2", 0, NULL);
	}
	if (!write_file(hierarchy, "cgroup.subtree_control", "+cpuset"))
		return false;
	for (int i = 0; i < GROUPS; i++) {
		snprintf(group[i], sizeof(group[i]), "%s/churn-%d-%d", hierarchy, getpid(), i);
		if (mkdir(group[i], 0755))
			die("%s: %s", group[i], strerror(errno));
	}
	return true;
}

static inline void leave_cpusets(void)
{
	for (int i = 0; i < GROUPS; i++)
		/* Who was killed is in it a little longer. */
		for (int tries = 0; group[i][0] && rmdir(group[i]) && tries < 100; tries++)
			sleep_us(20000);
	if (mounted && !umount2(hierarchy, MNT_DETACH))
		rmdir(hierarchy);
}

static inline bool turn(int cpu, const char *on)
{
	char dir[64];

	snprintf(dir, sizeof(dir), "/sys/devices/system/cpu/cpu%d", cpu);
	return write_file(dir, "online", on);
}

#endif /* FREQLOCK_TEST_CPUSETS_H */
