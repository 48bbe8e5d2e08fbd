// SPDX-License-Identifier: MIT
/*
 * Writes a page of speeds as the C header has it.
 *
 * page FILE PERIOD_MS SPEED...
 */
#include <stdlib.h>
#include "speeds_page.h"

static struct fl_speeds_page page = {
	.magic = FL_SPEEDS_MAGIC,
	.version = FL_SPEEDS_VERSION,
	.least = FL_SPEEDS_FULL,
};

int main(int argc, char **argv)
{
	struct timespec now;
	int fd;

	clock_gettime(CLOCK_MONOTONIC, &now);
	page.updated = (uint64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	page.period = strtoul(argv[2], NULL, 10) * 1000000;
	for (int cpu = 0; cpu < argc - 3; cpu++) {
		uint32_t speed = strtoul(argv[cpu + 3], NULL, 10);

		page.speed[cpu] = speed;
		if (speed < page.least)
			page.least = speed;
		if (speed > page.most)
			page.most = speed;
	}
	fd = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0644);
	return write(fd, &page, sizeof(page)) != sizeof(page);
}
