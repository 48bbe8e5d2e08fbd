/* SPDX-License-Identifier: MIT */
/*
 * What thread.rs keeps of each thread: in the memory that a thread has from its start (the
 * "initial-exec" model), which is found by an addition. A program that loads the library while it
 * runs has 1.6 KB of that to spare by glibc's default; this wants 80 bytes.
 */
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
};

_Static_assert(sizeof(struct thread) == 72 + sizeof(void *), "as in thread.rs");

static _Thread_local struct thread self __attribute__((tls_model("initial-exec"))) = {
	.hint.version = 1,
};

const struct thread *freqlock_thread(void)
{
	return &self;
}
