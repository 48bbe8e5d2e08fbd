/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A fault on purpose (--test-drop): tasks of one name are never queued, so that the
 * kernel's watchdog finds one and ends the scheduler. For tests of that end.
 */
#ifndef __FREQLOCK_DROP_BPF_H
#define __FREQLOCK_DROP_BPF_H

#include "freqlock.bpf.h"

const volatile bool drops_tasks;
const volatile char dropped_comm[FL_COMM];

/* Without --test-drop the verifier leaves this out. */
static __always_inline bool is_dropped(struct task_struct *p)
{
	char comm[FL_COMM];

	if (!drops_tasks)
		return false;
	bpf_probe_read_kernel(comm, sizeof(comm), p->comm);
	return !bpf_strncmp(comm, sizeof(comm), (const char *)dropped_comm);
}

#endif /* __FREQLOCK_DROP_BPF_H */
