/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which queue a CPU takes its next task from: its own by deadline, then, when
 * it would idle, the nearest CPU that has one to spare; and, when it is busy,
 * now and then the longest queue near it.
 */
#include "freqlock.bpf.h"

/* A busy CPU looks at this many others, nearest first. */
#define BALANCE_CPUS 16
/* So many tasks of a queue are looked at for one that waits for too long, ... */
#define RESCUE_TASKS 64
/* ... so often in the time that is too long. */
#define RESCUE_LOOKS 4

/* Tasks parked at @cpu; the look into the queue is saved where none can be. */
u32 fl_nr_parked(s32 cpu)
{
	struct cpu_ctx *cctx = fl_cpu(cpu);
	s32 n;

	if (!cctx->parked)
		return 0;
	n = scx_bpf_dsq_nr_queued(fl_park(cpu));
	if (n <= 0) {
		cctx->parked = false;
		return 0;
	}
	return n;
}

/* Deadline of the first task of a CPU's two queues, FL_NONE if both are empty. */
u64 fl_head_deadline(s32 cpu)
{
	struct task_struct *p;
	u64 deadline = FL_NONE;

	p = __COMPAT_scx_bpf_dsq_peek(fl_queue(cpu));
	if (p)
		deadline = p->scx.dsq_vtime;
	if (!fl_nr_parked(cpu))
		return deadline;
	p = __COMPAT_scx_bpf_dsq_peek(fl_park(cpu));
	if (p && (deadline == FL_NONE || vtime_before(p->scx.dsq_vtime, deadline)))
		deadline = p->scx.dsq_vtime;
	return deadline;
}

/* The earliest of the CPU's own tasks, parked or not. */
bool fl_take_own(s32 cpu)
{
	struct task_struct *open, *parked;

	if (!fl_nr_parked(cpu))
		return scx_bpf_dsq_move_to_local(fl_queue(cpu), 0);

	open = __COMPAT_scx_bpf_dsq_peek(fl_queue(cpu));
	parked = __COMPAT_scx_bpf_dsq_peek(fl_park(cpu));
	if (open && parked && vtime_before(open->scx.dsq_vtime, parked->scx.dsq_vtime) &&
	    scx_bpf_dsq_move_to_local(fl_queue(cpu), 0))
		return true;
	return scx_bpf_dsq_move_to_local(fl_park(cpu), 0) ||
	       scx_bpf_dsq_move_to_local(fl_queue(cpu), 0);
}

/*
 * Timers may be late, most of all in a virtual machine: take the first of the
 * tasks parked at @from if its bound is over. If another came to be the first
 * meanwhile, that one is moved before its bound, which costs it its warm CPU.
 */
static bool steal_parked(s32 from, u64 now)
{
	struct task_ctx *tctx;
	struct task_struct *p;

	if (!fl_cpu(from)->parked)
		return false;
	p = __COMPAT_scx_bpf_dsq_peek(fl_park(from));
	tctx = p ? fl_task(p) : NULL;
	if (!tctx || now <= tctx->park_until || !scx_bpf_dsq_move_to_local(fl_park(from), 0))
		return false;
	tctx->park_until = 0;
	fl_count(park_stolen);
	return true;
}

/* @cpu would idle: take a task from the nearest CPU that has one queued. */
bool fl_steal(s32 cpu)
{
	struct cpu_order *order;
	u64 now = scx_bpf_now();
	u32 key = cpu, i;

	order = bpf_map_lookup_elem(&cpu_orders, &key);
	if (!order)
		return false;
	bpf_for(i, 0, order->nr) {
		s32 from = order->cpu[i & (FL_MAX_CPUS - 1)];

		/*
		 * queued_work is raised before the task is inserted, so a queue
		 * that shows none has none, or one whose CPU is about to kick an
		 * idle CPU for it.
		 */
		if (from == cpu || !READ_ONCE(fl_cpu(from)->queued_work))
			continue;
		if (steal_parked(from, now))
			return true;
		if (!scx_bpf_dsq_move_to_local(fl_queue(from), 0))
			continue;
		if (i < order->first[FL_SAME_LLC])
			fl_count(steal_core);
		else if (i < order->first[FL_SAME_NODE])
			fl_count(steal_llc);
		else if (i < order->first[FL_FAR])
			fl_count(steal_node);
		else
			fl_count(steal_far);
		return true;
	}
	return false;
}

/*
 * @cpu is busy, its task's slice is over: if another queue is longer by two or
 * more, take one of its tasks; if it is longer by one, only when its first task
 * has waited for long, so that the tasks of unequal queues take turns at being
 * the one too many.
 */
bool fl_balance(s32 cpu, u64 now)
{
	struct cpu_ctx *cctx = fl_cpu(cpu);
	s32 own, longest = 0, from = -1;
	struct cpu_order *order;
	struct task_struct *p;
	struct task_ctx *tctx;
	u32 key = cpu, i;

	if (now < cctx->next_balance)
		return false;
	cctx->next_balance = now + tunables.balance_us * FL_USEC;

	order = bpf_map_lookup_elem(&cpu_orders, &key);
	if (!order)
		return false;
	own = scx_bpf_dsq_nr_queued(fl_queue(cpu)) + fl_nr_parked(cpu);
	bpf_for(i, 0, BALANCE_CPUS) {
		s32 other, n;

		if (i >= order->nr)
			break;
		other = order->cpu[i & (FL_MAX_CPUS - 1)];
		if (other == cpu || !READ_ONCE(fl_cpu(other)->queued_work))
			continue;
		n = scx_bpf_dsq_nr_queued(fl_queue(other));
		if (n > longest) {
			longest = n;
			from = other;
		}
	}
	if (from < 0 || longest <= own)
		return false;
	if (longest > own + 1) {
		if (!scx_bpf_dsq_move_to_local(fl_queue(from), 0))
			return false;
		fl_count(balance);
		return true;
	}
	p = __COMPAT_scx_bpf_dsq_peek(fl_queue(from));
	tctx = p ? fl_task(p) : NULL;
	if (!tctx || now - tctx->waiting_since < tunables.rotate_us * FL_USEC)
		return false;
	if (!scx_bpf_dsq_move_to_local(fl_queue(from), 0))
		return false;
	fl_count(rotate);
	return true;
}

/*
 * Shares of CPU time by weight let a task of nice 19 wait for 23 s beside one of
 * nice -20, longer than the kernel's watchdog does: run one that waits for too long.
 */
bool fl_rescue(s32 cpu, u64 now)
{
	u64 starves = tunables.starve_ms * 1000 * FL_USEC;
	struct cpu_ctx *cctx = fl_cpu(cpu);
	struct task_struct *p;
	struct task_ctx *tctx;
	u32 seen = 0;

	cctx->next_rescue = now + starves / RESCUE_LOOKS;
	bpf_for_each(scx_dsq, p, fl_queue(cpu), 0) {
		if (++seen > RESCUE_TASKS)
			break;
		tctx = fl_task(p);
		if (!tctx || now - tctx->waiting_since < starves ||
		    !scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0))
			continue;
		/* What others had before it is not held against it the next time. */
		if (vtime_before(cctx->vclock, tctx->vtime))
			tctx->vtime = cctx->vclock;
		fl_count(rescued);
		return true;
	}
	return false;
}
