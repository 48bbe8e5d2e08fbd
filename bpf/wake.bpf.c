/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A task needs a CPU: which one (as place.bpf.c says), in which of its queues, and whether
 * it preempts the task that runs there (preempt.bpf.c).
 */
#include "freqlock.bpf.h"
#include "wake.bpf.h"
#include "account.bpf.h"
#include "alone.bpf.h"
#include "answer.bpf.h"
#include "bandwidth.bpf.h"
#include "cgroup.bpf.h"
#include "clock.bpf.h"
#include "context.bpf.h"
#include "debt.bpf.h"
#include "decision.bpf.h"
#include "donate.bpf.h"
#include "drop.bpf.h"
#include "edge.bpf.h"
#include "kick.bpf.h"
#include "late.bpf.h"
#include "learn.bpf.h"
#include "park.bpf.h"
#include "place.bpf.h"
#include "placement.bpf.h"
#include "preempt.bpf.h"
#include "queue.bpf.h"
#include "spin.bpf.h"
#include "warm.bpf.h"
#include "policy/deadline.h"
#include "policy/graph.h"
#include "policy/modes.h"

/* @p is the next to run on @cpu, and is not enqueued. */
static void run_next(struct task_struct *p, struct task_ctx *tctx, s32 cpu, u64 now)
{
	/* Until it runs, others see by this that the CPU is taken. */
	queued_add(tctx, cpu);
	fl_came(cpu, now);
	vtime_join(tctx, cpu);
	/*
	 * Not LOCAL_ON: should @cpu go offline this moment, the kernel takes another
	 * one, for which it may have to change the affinity of @p.
	 */
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, fl_slice(tctx), 0);
}

/*
 * True if a task that is sent to an idle CPU goes through the queue of that CPU. Up to 6.18
 * nothing brings back what lies in a local queue as a task of a higher class takes the idle
 * CPU (rt.bpf.c). With --partial that is every other wake-up, and may last for seconds; from
 * the queue other CPUs take it.
 */
static bool goes_by_queue(void)
{
	return partial && displaces;
}

/* True if the task that wakes another one on @cpu says that it leaves that CPU to it. */
static bool follows(const struct placement *pl, s32 cpu)
{
	return cpu == pl->this_cpu && pl->from_task && (pl->wake_flags & SCX_WAKE_SYNC);
}

/*
 * True if nothing is to be decided once it has left: no other task is there, and, where a CPU
 * is idle, it usually leaves sooner than that one would be running. Now and then it is to be
 * seen whether this CPU has less to do than others: then it is not true.
 */
static bool leaves_soon(const struct placement *pl)
{
	struct cpu_ctx *cctx = fl_cpu(pl->this_cpu);

	if (fl_nr_running(pl->this_cpu) != 1)
		return false;
	if (pl->park)
		return pl->leave_ns <= fl_idle_exit(pl->this_cpu, pl->now);
	return pl->now < cctx->next_balance;
}

s32 BPF_STRUCT_OPS(freqlock_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct task_ctx *tctx = fl_task(p);
	u64 now = scx_bpf_now();
	struct placement *pl;
	s32 cpu, last = prev_cpu;

	if (!tctx) {
		fl_count(no_ctx);
		return prev_cpu;
	}
	if (is_dropped(p))
		return prev_cpu;
	/* It stays if it is bound there, as if it were bound to that CPU alone. */
	if (fl_is_isolated(prev_cpu)) {
		last = fl_place_apart(p, prev_cpu);
		if (last < 0)
			return prev_cpu;
	}
	fl_follow_context(p, tctx);
	fl_cgroup_weigh(p, tctx, now);
	/* It is not to run now, and takes no idle CPU: enqueue puts it aside. */
	if (fl_is_limited() && fl_bandwidth_refuses(p, tctx, now))
		return prev_cpu;
	pl = begin_placement(fl_policy(tctx)->mode, last, now);
	pl->wake_flags = wake_flags;
	pl->fork = wake_flags & SCX_WAKE_FORK;
	if (pl->fork)
		fl_count(fork);
	else
		fl_count(wake);

	pl->from_task = fl_is_busy(pl->this_cpu) && fl_from_task() && !fl_is_isolated(pl->this_cpu);
	fl_answer_woken(p, tctx, pl->now);
	if (fl_edge(tctx))
		fl_lock_woken(p, tctx, pl->now);
	if (mode_has(pl->mode, PREDICTS)) {
		fl_learn_back(tctx, pl->now);
		if (pl->from_task)
			pl->leave_ns = fl_learn_event(p, tctx, pl->now, wake_flags);
	}
	if (!fl_allowed(p, last))
		pl->prev_cpu = fl_allowed(p, pl->this_cpu) ? pl->this_cpu :
							     (s32)bpf_cpumask_first(fl_cpus(p));

	tctx->flags &= ~(FL_TASK_PARK | FL_TASK_PREDICTED | FL_TASK_TO_IDLE | FL_TASK_FOLLOWS |
			 FL_TASK_HELD);
	tctx->flags |= FL_TASK_ASKED;
	tctx->waiting_since = pl->now;
	cpu = place(p, tctx, pl);
	if (reports_tasks)
		fl_account_placed(tctx, cpu == prev_cpu, pl->idle, pl->park);

	if (mode_has(pl->mode, PREDICTS)) {
		tctx->flags |= FL_TASK_PREDICTED | (pl->idle ? FL_TASK_TO_IDLE : 0);
		tctx->predicted_wait = shorter(pl->wait_ns, ~0U);
	}
	if (pl->park)
		park_until(tctx, pl);
	if (pl->hold)
		tctx->flags |= FL_TASK_HELD;
	if (pl->idle) {
		if (goes_by_queue())
			tctx->flags |= FL_TASK_SENT;
		else
			run_next(p, tctx, cpu, now);
	} else if (follows(pl, cpu)) {
		if (leaves_soon(pl)) {
			fl_cpu(cpu)->followed = true;
			run_next(p, tctx, cpu, now);
		} else {
			tctx->flags |= FL_TASK_FOLLOWS;
		}
	} else if (!pl->park && (!partial || pl->from_task) && (tctx->flags & FL_TASK_HANDOFF) &&
		   fl_cpu(pl->this_cpu)->boosted && fl_allowed(p, pl->this_cpu)) {
		/* What runs here runs in the stead of its waiters: @p takes the CPU back. */
		cpu = pl->this_cpu;
	}
	return cpu;
}

/* @p comes to be enqueued: the flags and the context by which that is decided. */
static __always_inline void begin_enqueue(struct task_struct *p, struct task_ctx *tctx,
					  u64 enq_flags, u64 now)
{
	if (enq_flags & SCX_ENQ_REENQ)
		tctx->flags |= FL_TASK_DISPLACED;
	if (tctx->flags & FL_TASK_DISPLACED)
		fl_count(displaced);
	/* If it was asked where, that was a moment ago. */
	if (!(tctx->flags & FL_TASK_ASKED)) {
		fl_follow_context(p, tctx);
		fl_cgroup_weigh(p, tctx, now);
	}
}

/* @p waits from now on, if it did not before, and no longer for a lock. */
static __always_inline void begin_wait(struct task_struct *p, struct task_ctx *tctx, u64 enq_flags,
				       u64 now)
{
	/*
	 * It may wait already: since it was asked where, since it last ran, or in the local
	 * queue from which a task of a higher class drove it.
	 */
	if (!tctx->waiting_since)
		tctx->waiting_since = now;
	fl_cgroup_count(tctx, tctx->own_weight, now);
	if (sees_answers && (enq_flags & SCX_ENQ_WAKEUP) && !(tctx->flags & FL_TASK_ASKED))
		fl_answer_woken(p, tctx, now);
	count_unasked(p, tctx, enq_flags);
	/* select_cpu is not asked for a task that may run on one CPU only. */
	if (fl_edge(tctx) && (enq_flags & SCX_ENQ_WAKEUP))
		fl_lock_woken(p, tctx, now);
}

/* @p's deadline on the clock of @cpu. True if it is urgent: others wait for what it does. */
static __always_inline bool settle_deadline(struct task_struct *p, struct task_ctx *tctx, s32 cpu,
					    bool arrives, u64 now)
{
	bool urgent = tctx->flags & FL_TASK_HANDOFF;
	u64 own;

	/*
	 * A task whose slice is over continues from where it is, with no credit to
	 * bound; but giving way earns no more of it than sleep does.
	 */
	if (arrives || tctx->vtime_cpu != cpu || tctx->spin.behind)
		vtime_join(tctx, cpu);
	set_deadline(tctx, fl_request(tctx));
	if (urgent && tctx->handed_level)
		tctx->deadline = vtime_deadline(tctx->vtime, burst_rest(tctx), fl_request(tctx),
						weight_of_level(tctx->handed_level));
	if (tctx->spin.behind)
		tctx->deadline = fl_spin_deadline(tctx, cpu);
	if (!fl_holds(tctx))
		return urgent;
	own = tctx->deadline;
	tctx->deadline = fl_hold_deadline(tctx, fl_self(p, tctx), cpu, now);
	if (tctx->deadline == own)
		return urgent;
	fl_count(boosted);
	return true;
}

/* True if @p goes into its CPU's local queue, ahead of all that wait for that CPU. */
static __always_inline bool goes_first(const struct task_struct *p, u64 enq_flags)
{
	/* The kernel's own work for one CPU: what it does is waited for by others. */
	if ((p->flags & PF_KTHREAD) && p->nr_cpus_allowed == 1 && (enq_flags & SCX_ENQ_WAKEUP)) {
		fl_count(enq_kthread);
		return true;
	}
	/* If the kernel brings it back from there, that CPU is busy and looks here by itself. */
	if (!(enq_flags & SCX_ENQ_REENQ) && fl_cannot_kick()) {
		fl_count(enq_unplugged);
		return true;
	}
	return false;
}

static __always_inline void insert_parked(struct task_struct *p, struct task_ctx *tctx, s32 cpu,
					  u64 enq_flags, u64 now)
{
	tctx->flags &= ~FL_TASK_PARK;
	fl_cpu(cpu)->parked = true;
	scx_bpf_dsq_insert_vtime(p, fl_park(cpu), fl_request(tctx), tctx->deadline, enq_flags);
	fl_park_arm(cpu, now, tctx->park_until > now ? tctx->park_until - now : 1);
	/* It went idle since it was looked at: nothing else will wake it for this. */
	if (!fl_is_busy(cpu))
		fl_kick(cpu, SCX_KICK_IDLE);
}

static __always_inline void insert_queued(struct task_struct *p, struct task_ctx *tctx, s32 cpu,
					  u64 enq_flags, u64 now)
{
	fl_count(enq_queue);
	if ((enq_flags & SCX_ENQ_WAKEUP) || !fl_still_late(p, tctx, cpu, now, enq_flags))
		scx_bpf_dsq_insert_vtime(p, fl_queue(cpu), fl_request(tctx), tctx->deadline,
					 enq_flags);
}

/*
 * @p was queued on @cpu; an idle CPU is to take it. One may have gone idle after it found this
 * queue empty. One that does so between this look and its own going idle is found by the next
 * tick of the CPU on which the task waits, or by a timer where a task of a higher class runs.
 * With --partial such tasks come and go all the time, and may take both CPUs before they look
 * here: so the timer is set wherever none of ours runs. The insert takes effect as enqueue
 * returns, and kicks are sent after that, when interrupts are on again: who is woken here finds
 * the task.
 */
static __always_inline void wake_another(struct task_struct *p, struct task_ctx *tctx, u64 mode,
					 s32 cpu, u64 now)
{
	s32 idle = fl_claim_idle(p, mode, cpu, now);

	if (idle >= 0)
		fl_kick(idle, SCX_KICK_IDLE);
	if (partial) {
		if (!fl_is_busy(cpu))
			fl_park_arm(cpu, now, FL_TAKEN_LOOK_NS);
	} else if (idle < 0 && ((tctx->flags & FL_TASK_DISPLACED) || fl_is_taken(cpu))) {
		fl_park_arm(cpu, now, FL_TAKEN_LOOK_NS);
	}
}

/*
 * Queued on @cpu it waits for CPUs of the warm set, which take it as they go idle; the timer of
 * parked tasks calls others when it waited for long.
 */
static __always_inline void wait_in_set(struct task_ctx *tctx, s32 cpu, u64 now)
{
	tctx->flags &= ~FL_TASK_HELD;
	fl_cpu(cpu)->holds = true;
	fl_park_arm(cpu, now, warm_wait_ns);
}

/* True if select_cpu has claimed @cpu for @p, and left it to this to queue it there. */
static __always_inline bool go_where_sent(struct task_struct *p, struct task_ctx *tctx, s32 cpu,
					  u64 now, u64 enq_flags)
{
	if (!(tctx->flags & FL_TASK_SENT))
		return false;
	tctx->flags &= ~FL_TASK_SENT;
	return go_on(p, tctx, cpu, now, enq_flags);
}

/*
 * Where there are CPUs without ticks: true if @p goes to the local queue of @cpu. The last task on
 * such a CPU begins anew there, so that the kernel sees its slice (alone.bpf.c), for which
 * some kernels want a kick (hotplug.bpf.c). And one that exits, as the kernel does elsewhere
 * without asking: it would wait behind a turn that never ends.
 */
static __always_inline bool goes_local(const struct task_struct *p, s32 cpu, u64 enq_flags)
{
	if ((enq_flags & SCX_ENQ_LAST) && fl_is_tickless(cpu)) {
		fl_kick(cpu, SCX_KICK_IDLE);
		return true;
	}
	return p->flags & PF_EXITING;
}

void BPF_STRUCT_OPS(freqlock_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tctx = fl_task(p);
	s32 cpu = scx_bpf_task_cpu(p);
	u64 now = scx_bpf_now(), in = FL_NONE, mode;
	bool arrives, urgent, pinned;

	if (!tctx) {
		fl_count(no_ctx);
		fl_came(cpu, now);
		scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, fl_slice(NULL), enq_flags);
		return;
	}
	if (is_dropped(p))
		return;
	begin_enqueue(p, tctx, enq_flags, now);
	mode = fl_policy(tctx)->mode;
	if (tctx->big_cpu >= 0 && go_big(p, tctx, now, enq_flags))
		return;
	arrives = (enq_flags & SCX_ENQ_WAKEUP) || (tctx->flags & FL_TASK_FORKED);
	begin_wait(p, tctx, enq_flags, now);
	if (fl_is_limited() && fl_bandwidth_throttle(p, tctx, enq_flags, now))
		return;
	if (fl_is_held_back(tctx) && fl_debt_hold_back(p, tctx, enq_flags, now))
		return;
	if (partial && go_where_sent(p, tctx, cpu, now, enq_flags))
		return;
	fl_came(cpu, now);
	if (tickless && goes_local(p, cpu, enq_flags)) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, fl_request(tctx), enq_flags);
		return;
	}
	urgent = settle_deadline(p, tctx, cpu, arrives, now);
	if (arrives)
		in = decide_preemption(p, tctx, cpu, urgent, now);
	pinned = fl_is_pinned(p);
	if (!arrives && mode_has(mode, PREDICTS) && !pinned &&
	    place_again(p, tctx, cpu, enq_flags, now))
		return;
	if (goes_first(p, enq_flags)) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, fl_request(tctx),
				   enq_flags | (in == 0 ? SCX_ENQ_PREEMPT : 0));
		return;
	}
	queued_add(tctx, cpu);
	fl_mark_work(cpu);
	if (tctx->flags & FL_TASK_PARK) {
		insert_parked(p, tctx, cpu, enq_flags, now);
		return;
	}
	insert_queued(p, tctx, cpu, enq_flags, now);
	call_cpu(cpu, in, now);
	if (tctx->flags & FL_TASK_HELD) {
		wait_in_set(tctx, cpu, now);
		return;
	}
	if (!pinned && !fl_is_isolated(cpu))
		wake_another(p, tctx, mode, cpu, now);
}
