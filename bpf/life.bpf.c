/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How a task comes to be ours, what its weight is, and how it leaves: to another class, or
 * for good.
 */
#include "freqlock.bpf.h"
#include "life.bpf.h"
#include "account.bpf.h"
#include "cgroup.bpf.h"
#include "clock.bpf.h"
#include "context.bpf.h"
#include "edge.bpf.h"
#include "spin.bpf.h"

static u32 next_cookie;

void BPF_STRUCT_OPS(freqlock_set_weight, struct task_struct *p, u32 weight)
{
	struct task_ctx *tctx = fl_task(p);

	if (tctx)
		fl_weigh(p, tctx);
}

/* Sleepable, so that it can wait for memory: else forks fail where that is short. */
s32 BPF_STRUCT_OPS_SLEEPABLE(freqlock_init_task, struct task_struct *p,
			     struct scx_init_task_args *args)
{
	struct task_ctx *tctx, *parent;

	tctx = bpf_task_storage_get(&task_ctxs, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!tctx)
		return -ENOMEM;
	tctx->cookie = __sync_fetch_and_add(&next_cookie, 1);
	tctx->queued_cpu = -1;
	tctx->vtime_cpu = FL_ASLEEP;
	tctx->park_target = -1;
	tctx->child_cpu = -1;
	tctx->big_cpu = -1;
	tctx->ran_on = -1;
	fl_weigh(p, tctx);
	if (!args->fork)
		return 0;

	/*
	 * A child starts at its parent's vtime, and as if it had got what its parent got recently:
	 * forking gains no CPU time.
	 */
	tctx->flags = FL_TASK_FORKED;
	parent = fl_task(bpf_get_current_task_btf());
	if (parent) {
		tctx->vtime = parent->vtime;
		tctx->vtime_cpu = parent->vtime_cpu;
		tctx->served = parent->served;
		tctx->served_at = parent->served_at;
	}
	return 0;
}

void BPF_STRUCT_OPS(freqlock_enable, struct task_struct *p)
{
	struct task_ctx *tctx = fl_task(p);

	if (tctx)
		fl_weigh(p, tctx);
}

/* @p leaves for another scheduling class, or for good. */
void BPF_STRUCT_OPS(freqlock_disable, struct task_struct *p)
{
	struct cpu_ctx *cctx = fl_cpu(scx_bpf_task_cpu(p));
	struct task_ctx *tctx = fl_task(p);

	/* It runs, and continues in the other class. */
	if (cctx->running == p->pid)
		fl_cpu_left(cctx, scx_bpf_now());
	if (tctx) {
		queued_remove(tctx);
		fl_wait_leaves(p, tctx);
		fl_spin_sleep(tctx);
		vtime_sleep(tctx);
		fl_cgroup_count(tctx, 0, scx_bpf_now());
		tctx->request = 0;
		tctx->waiting_since = 0;
		tctx->owed_since = 0;
	}
}

/*
 * Also called for every task when the scheduler ends; those are not reported. One
 * that dies here was reported as it stopped: this comes when its memory is freed.
 */
void BPF_STRUCT_OPS(freqlock_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	struct task_ctx *tctx = fl_task(p);

	if (!tctx)
		return;
	fl_wait_leaves(p, tctx);
	fl_cgroup_leave(tctx, scx_bpf_now());
	if (reports_tasks && (p->flags & PF_EXITING))
		fl_account_exit(p, tctx);
}
