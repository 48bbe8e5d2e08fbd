/* SPDX-License-Identifier: GPL-2.0-only */
/* Operations: CPUs that come and go. */
#ifndef __FREQLOCK_HOTPLUG_BPF_H
#define __FREQLOCK_HOTPLUG_BPF_H

#include "freqlock.bpf.h"

void freqlock_cpu_online(unsigned long long *ctx);
void freqlock_cpu_offline(unsigned long long *ctx);
int fl_hotplug_init(void);

#endif /* __FREQLOCK_HOTPLUG_BPF_H */
