/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The quotas of cgroups as they stand in the kernel, cpu.max and cpu.max.burst of version 2 and
 * cpu.cfs_quota_us and so on of version 1 alike: all kernels keep them in struct task_group, so
 * that neither ops of the kernel nor the agent are needed for them. From Linux 6.17 on one without
 * CONFIG_CFS_BANDWIDTH keeps them for sched_ext alone.
 */
#include "freqlock.bpf.h"
#include "limit.bpf.h"

struct limit_ctx limits[FL_MAX_SHARES];
volatile u32 nr_limited;

/* The cgroup in @slot has no quota any more. What is throttled its timer lets go. */
int fl_limit_forget(u32 slot)
{
	struct limit_ctx *c = fl_limit(slot);

	if (c->b.quota && __sync_lock_test_and_set(&c->b.quota, 0))
		__sync_fetch_and_sub(&nr_limited, 1);
	return 0;
}

/*
 * True if the cgroup in @slot has its quota in full, or none: only then it may be forgotten, or
 * tasks that leave it and come back would have it anew.
 */
bool fl_limit_is_open(u32 slot)
{
	const struct bandwidth *b = &fl_limit(slot)->b;
	u64 n = bandwidth_periods(b->refill_at, scx_bpf_now(), b->period);

	return !b->quota ||
	       b->left + bandwidth_refill(b->left, n, b->quota, b->burst) >= (s64)b->quota;
}

/* The quota, period and burst, ns, of @tg; a quota of 0 is none. */
static struct bandwidth kernels_limit(struct task_group *tg)
{
	struct bandwidth b = {};

	if (bpf_core_field_exists(tg->cfs_bandwidth)) {
		b.quota = bandwidth_quota(BPF_CORE_READ(tg, cfs_bandwidth.quota));
		b.period = BPF_CORE_READ(tg, cfs_bandwidth.period);
		b.burst = BPF_CORE_READ(tg, cfs_bandwidth.burst);
	} else if (bpf_core_field_exists(tg->scx.bw_quota_us)) {
		b.quota = bandwidth_quota(bandwidth_ns(BPF_CORE_READ(tg, scx.bw_quota_us)));
		b.period = bandwidth_ns(BPF_CORE_READ(tg, scx.bw_period_us));
		b.burst = bandwidth_ns(BPF_CORE_READ(tg, scx.bw_burst_us));
	}
	b.period = bandwidth_period(b.period);
	return b;
}

/* Take over the quota that @task_group, of @slot, has now. Nothing is gained by writing it anew. */
int fl_limit_read(u32 slot, u64 task_group)
{
	struct bandwidth b = kernels_limit((struct task_group *)task_group);
	struct limit_ctx *c = fl_limit(slot);
	u64 now = scx_bpf_now(), before;

	if (!b.quota)
		return fl_limit_forget(slot);
	c->b.period = b.period;
	c->b.burst = b.burst;
	before = __sync_lock_test_and_set(&c->b.quota, b.quota);
	if (before == b.quota)
		return 0;
	if (before) {
		c->b.refill_at = bandwidth_sooner(c->b.refill_at, now, c->b.period);
		__sync_fetch_and_add(&c->b.left,
				     -bandwidth_excess(READ_ONCE(c->b.left), b.quota, b.burst));
		return 0;
	}
	c->b.refill_at = now + c->b.period;
	c->b.left = b.quota;
	c->waits = false;
	__sync_fetch_and_add(&nr_limited, 1);
	return 0;
}
