/* SPDX-License-Identifier: GPL-2.0-only */
/* Tasks that were put aside go on: which may not wait, and where the others go. */
#include "freqlock.bpf.h"
#include "aside.bpf.h"
#include "alone.bpf.h"
#include "kick.bpf.h"
#include "place.bpf.h"
#include "queue.bpf.h"
#include "policy/deadline.h"

/* linux/sched/signal.h, SIGNAL_GROUP_EXIT: a macro, so not among the kernel's types. */
#define GROUP_EXITS 4

/*
 * True if @p was preempted as it read under RCU, for which it has to come to an end soon. The
 * current task does so here in any case: the kernel has it begin with that to call a BPF program.
 */
static bool reads_under_rcu(struct task_struct *p)
{
	return bpf_core_field_exists(p->rcu_read_lock_nesting) &&
	       BPF_CORE_READ(p, rcu_read_lock_nesting) > (bpf_get_current_task_btf() == p);
}

/*
 * True if @p is not to be put aside: others wait for it, or it dies, and gives its memory back
 * and does nothing else.
 */
__noinline bool fl_must_go_on(struct task_struct *p __arg_trusted)
{
	return (p->flags & PF_EXITING) || (BPF_CORE_READ(p, signal, flags) & GROUP_EXITS) ||
	       reads_under_rcu(p);
}

/* Where @p goes, which is let go: to an idle CPU, or to the queue of its own. */
__noinline u64 fl_aside_goal(struct task_struct *p __arg_trusted,
			     struct task_ctx *tctx __arg_nonnull, u64 now)
{
	s32 cpu = scx_bpf_task_cpu(p), idle;

	/* The kernel finds it another CPU (fl_drain()). */
	if (READ_ONCE(fl_cpu(cpu)->offline))
		return SCX_DSQ_LOCAL_ON | cpu;
	idle = fl_claim_idle(p, fl_policy(tctx)->mode, cpu, now);
	return idle >= 0 ? SCX_DSQ_LOCAL_ON | idle : fl_queue(cpu);
}

/* Its place in the queue @goal, on the clock of its CPU. */
__noinline u64 fl_aside_key(struct task_ctx *tctx __arg_nonnull, u64 goal)
{
	return fl_cpu(goal)->vclock + vtime_charge(fl_request(tctx), tctx->weight);
}

/* A task came to @goal: who is to take it from there is told. */
__noinline int fl_aside_went(u64 goal, u64 now)
{
	if (goal & SCX_DSQ_LOCAL_ON) {
		fl_came(goal & (FL_MAX_CPUS - 1), now);
		fl_kick(goal & (FL_MAX_CPUS - 1), SCX_KICK_IDLE);
		return 0;
	}
	fl_cpu(goal)->released = true;
	fl_cpu(goal)->arrivals++;
	fl_came(goal, now);
	fl_mark_work(goal);
	/* It may have gone idle since it was looked at. */
	if (!fl_is_busy(goal))
		fl_kick(goal, SCX_KICK_IDLE);
	return 0;
}
