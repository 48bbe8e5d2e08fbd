/* SPDX-License-Identifier: GPL-2.0-only */
/* Which CPU may send kicks. */
#include "freqlock.bpf.h"
#include "kick.bpf.h"

/* A CPU finds this of itself as soon as it takes no interrupts (native_cpu_disable() on x86). */
__noinline bool fl_is_unplugged(s32 cpu)
{
	const struct cpumask *online = scx_bpf_get_online_cpumask();
	bool unplugged = !bpf_cpumask_test_cpu(cpu, online);

	scx_bpf_put_cpumask(online);
	return unplugged;
}
