/* SPDX-License-Identifier: GPL-2.0-only */
/* An operation: what the dump of the kernel's state says of a CPU. */
#ifndef __FREQLOCK_DUMP_BPF_H
#define __FREQLOCK_DUMP_BPF_H

#include "freqlock.bpf.h"

void freqlock_dump_cpu(unsigned long long *ctx);

#endif /* __FREQLOCK_DUMP_BPF_H */
