/* SPDX-License-Identifier: MIT */
/*
 * What thread.rs keeps of each thread: in the memory that a thread has from its start (the
 * "initial-exec" model), which is found by an addition. A program that loads the library while it
 * runs has 1.6 KB of that to spare by glibc's default; this wants 88 bytes.
 */
#include <stddef.h>
#include <stdint.h>

/* struct fl_hint of bpf/hint.h. */
struct hint_words {
	uint32_t version;
	int32_t owner;
	uint64_t holds;
	uint64_t waits_for;
};

struct thread {
	uint32_t tid;
	const void *held;
	struct hint_words hint;
	uint64_t shown;
	uint64_t epoch_window;
	uint64_t wait_window;
	uint64_t wait_unit;
	uint32_t in_epoch;
	const void *slice;
};

_Static_assert(sizeof(struct thread) == 72 + 2 * sizeof(void *), "as in thread.rs");

static _Thread_local struct thread self __attribute__((tls_model("initial-exec"))) = {
	.hint.version = 1,
};

const struct thread *freqlock_thread(void)
{
	return &self;
}

/* glibc's, from 2.35 on: where the area is, from the thread's pointer on; 0 bytes: there is none.
 */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

const void *freqlock_rseq(size_t least)
{
	char *thread = NULL;

	if (!&__rseq_size || !&__rseq_offset || __rseq_size < least)
		return NULL;
#if defined(__x86_64__)
	__asm__("movq %%fs:0, %0" : "=r"(thread));
#elif defined(__aarch64__)
	__asm__("mrs %0, tpidr_el0" : "=r"(thread));
#endif
	return thread ? thread + __rseq_offset : NULL;
}
