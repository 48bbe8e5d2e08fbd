/* SPDX-License-Identifier: GPL-2.0-only */
/* Which tasks are not to be put aside. */
#include "freqlock.bpf.h"
#include "aside.bpf.h"

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
