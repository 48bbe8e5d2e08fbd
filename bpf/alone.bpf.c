/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CPUs without ticks, those of nohz_full. The kernel stops a CPU's tick as a task begins to run
 * there whose slice is infinite, and starts it again as one begins whose slice is not.
 *
 * 1. A task that begins to run where nobody waits has an infinite slice. One that is alone
 *    only later begins anew at the end of its slice: as the last task it is enqueued, and goes
 *    to the local queue.
 * 2. Who comes to such a CPU, by whatever way, ends that (fl_came()): the turn ends when one of the
 *    slices would have that the task had were there ticks, by the timer of turns. So the
 *    clock and the deadline of the running task are as they would be then.
 * 3. On these CPUs a timer ends each turn for which somebody waits: up to 6.18 the kernel leaves
 *    the tick stopped if a task with a finite slice begins where the CPU idled.
 *
 * What ticks do elsewhere, once a second another CPU's tick does for a task that is alone, with
 * the run queue of this one locked: its time on the CPU goes into its figures, its cgroup's and
 * its CPU's speed, and it follows its context and its cgroup's weight. That tick is not the
 * task's: it sees no registers and no memory of it. So a spinner that is alone is not found, nor
 * what a task reports of its locks while it runs; what it holds is read as it loses
 * its CPU. Late tasks and idle CPUs to be called are looked for as turns end. Balancing is
 * done by the others: the task that is alone takes none, and leaves by no means.
 *
 * A task is counted where it is to wait before it is inserted, and alone_since is looked at
 * after that; the CPU sets alone_since before it looks whether any is counted. So one of both sees
 * the other. What is moved to the local queue without being counted is so under the lock of the
 * run queue, which the CPU has as it looks.
 */
#include "freqlock.bpf.h"
#include "alone.bpf.h"
#include "clock.bpf.h"
#include "late.bpf.h"
#include "policy/deadline.h"

/* @p begins to run on @cpu, or runs on: true if it has that for itself. */
bool fl_alone_begin(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
		    s32 cpu)
{
	struct cpu_ctx *cctx = fl_cpu(cpu);

	/* It stops at once, has a grant of time, or the kernel itself puts others there. */
	if (!p->scx.slice || tctx->granted_by || fl_is_changing(cctx))
		return false;
	tctx->request = fl_slice(tctx);
	cctx->running_slice = tctx->request;
	cctx->alone_vtime = tctx->vtime;
	__sync_lock_test_and_set(&cctx->alone_since, tctx->charged_at);
	if (fl_is_awaited(cpu)) {
		cctx->alone_since = 0;
		return false;
	}
	scx_bpf_task_set_slice(p, SCX_SLICE_INF);
	fl_count(alone);
	return true;
}

/*
 * The task that has @cpu for itself does so no more, if one does: the clock stands where its
 * present slice began. Of several that find it so at once, one is told.
 */
bool fl_alone_end(s32 cpu, u64 now)
{
	struct cpu_ctx *cctx = fl_cpu(cpu);
	u64 since = __sync_lock_test_and_set(&cctx->alone_since, 0), vtime;

	if (!since)
		return false;
	cctx->slice_since = slice_began(since, now, cctx->running_slice);
	vtime = cctx->alone_vtime + vtime_charge(cctx->slice_since - since, cctx->running_weight);
	if (vtime_before(cctx->vclock, vtime))
		cctx->vclock = vtime;
	if (!cctx->boosted)
		cctx->running_deadline = vtime +
					 vtime_charge(cctx->running_slice, cctx->running_weight);
	return true;
}

/* A task came to @cpu: what runs there is to end its turn. */
int fl_alone_disturb(s32 cpu, u64 now)
{
	struct cpu_ctx *cctx = fl_cpu(cpu);
	u64 ran = 0;

	if (fl_alone_end(cpu, now)) {
		ran = elapsed(cctx->slice_since, now);
		fl_count(disturbed);
	} else if (!fl_is_busy(cpu)) {
		return 0;
	}
	return fl_end_turn(cpu, now, cctx->running_slice - lesser(ran, cctx->running_slice));
}

/* A tick of @cpu, which runs @p: another CPU's, if that has been alone. */
int fl_alone_tick(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull, s32 cpu,
		  u64 now)
{
	if (!fl_alone_end(cpu, now))
		return 0;
	vtime_run(tctx, now);
	/* A task came in this moment, and ends the turn; or none did that was seen. */
	if (!fl_alone_begin(p, tctx, cpu))
		scx_bpf_task_set_slice(p, 0);
	return 0;
}
