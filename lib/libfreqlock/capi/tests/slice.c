/* SPDX-License-Identifier: MIT */
/*
 * Each thread asks for more time by its own area of restartable sequences while it holds a lock.
 * The areas are this program's: of libc's, this kernel may not say that it has the extension.
 */
#include <assert.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include "freqlock.h"

/* As in <linux/rseq.h>. */
static _Thread_local struct {
	uint32_t before[4], flags, node_id, mm_cid;
	uint8_t request, granted;
	uint16_t reserved;
	uint8_t more[32];
} area __attribute__((aligned(64)));

enum { AVAILABLE = 1 << 4, ENABLED = 1 << 5 };

/* In place of libc's. */
ptrdiff_t __rseq_offset;
unsigned int __rseq_size = sizeof(area);

static freqlock_t lock = FREQLOCK_INIT;

static void *use(void *flags)
{
	int asks = flags != NULL;

	area.flags = (uintptr_t)flags;
	assert(freqlock_lock(&lock) == 0);
	assert(area.request == asks);
	assert(freqlock_unlock(&lock) == 0);
	assert(area.request == 0);
	return NULL;
}

int main(void)
{
	void *const flags[] = { NULL, (void *)(AVAILABLE | ENABLED) };

	/* The same in all threads. */
	__rseq_offset = (char *)&area - (char *)__builtin_thread_pointer();
	for (int i = 0; i < 4; i++) {
		pthread_t thread;

		assert(pthread_create(&thread, NULL, use, flags[i % 2]) == 0);
		assert(pthread_join(thread, NULL) == 0);
	}
	__rseq_size = 20;
	area.flags = AVAILABLE | ENABLED;
	assert(freqlock_lock(&lock) == 0 && area.request == 0);
	return freqlock_unlock(&lock);
}
