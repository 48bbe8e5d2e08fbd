/* SPDX-License-Identifier: MIT */
/*
 * What the pages that scx_freqlock keeps for programs have in common (cpus_page.h,
 * speeds_page.h): how one is mapped, and how it is known that somebody writes it.
 */
#ifndef FREQLOCK_PAGE_H
#define FREQLOCK_PAGE_H

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The first words of each page. */
struct fl_page_head {
	uint32_t magic;
	uint32_t version;
};

/* The page of @size bytes, or NULL: ENOENT without one, EPROTO if it is another one. */
static inline const void *fl_page_open(const char *path, size_t size, uint32_t magic,
				       uint32_t version)
{
	const struct fl_page_head *head = MAP_FAILED;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	int error;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st)) {
		errno = EPROTO;
		if ((uint64_t)st.st_size >= size)
			head = (const struct fl_page_head *)mmap(NULL, size, PROT_READ, MAP_SHARED,
								 fd, 0);
	}
	error = errno;
	close(fd);
	errno = error;
	if (head == MAP_FAILED)
		return NULL;
	if (head->magic != magic || head->version != version) {
		munmap((void *)head, size);
		errno = EPROTO;
		return NULL;
	}
	return head;
}

/* True if a page that is written every @period ns was so within three of these and @grace_ms. */
static inline int fl_page_is_fresh(const uint64_t *period, const uint64_t *updated,
				   uint64_t grace_ms)
{
	uint64_t every = __atomic_load_n(period, __ATOMIC_RELAXED);
	uint64_t at = __atomic_load_n(updated, __ATOMIC_RELAXED);
	struct timespec ts;
	uint64_t now;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	now = (uint64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
	return every && now < at + 3 * every + grace_ms * 1000000ull;
}

#endif /* FREQLOCK_PAGE_H */
