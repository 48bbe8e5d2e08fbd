/* SPDX-License-Identifier: GPL-2.0-only */
/* Folders of cgroups, for the loads of tests. */
#ifndef FREQLOCK_TEST_GROUPS_H
#define FREQLOCK_TEST_GROUPS_H

#include <sys/stat.h>
#include "tasks.h"

static inline void write_file(const char *folder, const char *name, const char *text)
{
	char path[512];
	FILE *file = NULL;

	if (snprintf(path, sizeof(path), "%s/%s", folder, name) < (int)sizeof(path))
		file = fopen(path, "w");
	if (!file || fputs(text, file) == EOF || fclose(file))
		die("%s: %s", path, strerror(errno));
}

/* The folder of the cgroup that the test is to use. */
static inline const char *dir(void)
{
	const char *path = param("dir", NULL);

	if (!path)
		die("dir= is missing");
	return path;
}

static inline void move_to(const char *folder, pid_t pid)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", pid);
	write_file(folder, "cgroup.procs", text);
}

static inline void enter(const char *folder)
{
	move_to(folder, getpid());
}

#endif /* FREQLOCK_TEST_GROUPS_H */
