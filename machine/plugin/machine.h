/* SPDX-License-Identifier: GPL-2.0-only */
/* The simulated machine's main loop: who runs, for how long, and what time it is. */
#ifndef FREQLOCK_MACHINE_MACHINE_H
#define FREQLOCK_MACHINE_MACHINE_H

#include "model.h"

/* What happens inside the running CPU's translated code. */
void machine_pause(void);
void machine_switch(uint64_t task);
/* Which CPU runs, or -1. */
int machine_cpu(void);
/* The present time of the running CPU; what it did so far is charged to it. */
uint64_t machine_now(void);
/* End the guest with that status; nothing runs after it. */
void machine_end(uint8_t status);

/*
 * What the running CPU has done, in 1/MODEL_ONE of an instruction: translated
 * code adds to it, and calls machine_limit() when it has come to the limit.
 */
#define MACHINE_LIMIT (1ull << 30)
extern uint64_t machine_done;
void machine_limit(void);

/*
 * Take over the calling thread, which is QEMU's only CPU thread and holds its
 * lock. Does not return.
 */
void machine_run(void) __attribute__((noreturn));
/* Why the machine cannot be taken over, as a sentence, or NULL. */
const char *machine_prepare(struct model *m);

/* How far the machine got, for the record. */
uint64_t machine_guest_ns(void);
uint64_t machine_idle_skipped_ns(void);

#endif /* FREQLOCK_MACHINE_MACHINE_H */
