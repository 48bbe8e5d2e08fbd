/* SPDX-License-Identifier: GPL-2.0-only */
/* Memory that a load shares with the processes that it makes. */
#ifndef FREQLOCK_TEST_SHARE_H
#define FREQLOCK_TEST_SHARE_H

#include <sys/mman.h>
#include "params.h"

/* As many @bytes, all 0. */
static inline void *share(size_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	return memory;
}

#endif /* FREQLOCK_TEST_SHARE_H */
