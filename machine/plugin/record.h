/* SPDX-License-Identifier: GPL-2.0-only */
/* What a run leaves behind: a file of JSON lines, and its end in case of doubt. */
#ifndef FREQLOCK_MACHINE_RECORD_H
#define FREQLOCK_MACHINE_RECORD_H

#include "model.h"

struct record_totals {
	uint64_t guest_ns;
	uint64_t host_ns;
	uint64_t idle_skipped_ns;
};

/* False, with errno set: the file cannot be made. */
bool record_open(const char *path);
void record_speed(uint32_t cpu, uint64_t now, uint32_t speed);
void record_state(uint32_t cpu, uint64_t now, bool busy);
void record_mark(const char *name, uint64_t value, uint64_t now, uint64_t host_ns);
/* Write what is known at the end; false: some of it did not get to the file. */
bool record_close(const struct model *m, const struct record_totals *totals);

#endif /* FREQLOCK_MACHINE_RECORD_H */
