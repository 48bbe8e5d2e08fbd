/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scx_freqlock: the policy in one page, then its sched_ext operations in the
 * order in which a task meets them.
 *
 * 1. Every CPU has a queue, ordered by virtual deadline (policy/deadline.h).
 *    Each CPU's virtual clock is its own; a task that changes CPU takes its lag
 *    with it, so a busy CPU and a quiet one need not agree on the time.
 * 2. A forked or woken task is given a CPU by the mode in force (place.bpf.c):
 *    if that is idle, it runs there at once; if not, it queues there, or is
 *    parked there when the mode wants it to wait for just this CPU.
 * 3. A parked task is left alone by other CPUs, but not for long: a timer moves
 *    it to an idle CPU when its wait is over (park.bpf.c).
 * 4. A waking task preempts a running one when its deadline is earlier by a
 *    margin. Short bursts get early deadlines, long sleep gets bounded credit.
 * 5. A CPU with nothing to do takes from the nearest queue that has something;
 *    a busy one now and then from a longer queue (queue.bpf.c). Who waits for too
 *    long runs out of turn (late.bpf.c).
 * 6. How fast each CPU is now is known from counters or guessed from how
 *    recently it was busy (freq.bpf.c); how long bursts are, and how soon a
 *    task leaves its CPU after it forked or woke another, is learned as tasks
 *    run (learn.bpf.c).
 * 7. A task that holds a lock for which others wait is queued on the best
 *    waiter's terms, is left to run, and runs on the CPU that a waiter left
 *    (lock.bpf.c, donate.bpf.c), all within bounds.
 *
 * A task without a context, which can only be if memory ran out at its birth,
 * is scheduled plainly and counted. Nothing here waits, and every loop has a
 * bound. When the agent dies, the kernel takes every task back.
 */
#include "freqlock.bpf.h"
#include "clock.bpf.h"
#include "drop.bpf.h"
#include "placement.bpf.h"

char _license[] SEC("license") = "GPL";

UEI_DEFINE(uei);

const volatile u32 abi_version = FL_ABI_VERSION;
const volatile u32 nr_cpus = 1;
const volatile bool capacity_differs;
const volatile bool sees_locks;
const volatile bool tells_tasks = true;
const volatile bool adapts;
const volatile bool displaces;

/* Written by the agent before it is loaded, and when CPUs come and go. */
volatile u32 nr_present;
volatile bool smt_present;
volatile struct cpu_topo cpu_topo[FL_MAX_CPUS];
volatile struct cpu_group cpu_groups[FL_MAX_GROUPS];
volatile u32 nr_groups;

/* Written by the agent before it is loaded. */
volatile struct tunables tunables;
volatile u32 freq_source = FL_FREQ_RECENCY;
/* By the number of active cores less one; all 0: not known, nothing is lost. */
volatile u32 turbo[FL_MAX_CPUS];

u64 tick_ns;

struct cpu_ctx cpu_ctxs[FL_MAX_CPUS];
struct cpu_stats cpu_stats[FL_MAX_CPUS];
struct group_work group_works[FL_MAX_GROUPS];

/* See that @p has the knobs of its context, if something can have changed that. */
static __always_inline void follow_context(struct task_struct *p, struct task_ctx *tctx)
{
	u32 version = contexts_version;

	if (version_nr(version) || tctx->context_version != version)
		fl_context_look(p, tctx);
}

/*
 * As under Linux's own, tasks of SCHED_BATCH and SCHED_IDLE that wake up preempt nobody. A
 * waker that leaves its CPU to @p does so sooner by itself; if it lied, a tick finds it out.
 */
static bool may_preempt(const struct task_struct *p, const struct task_ctx *tctx)
{
	return p->policy != POLICY_BATCH && p->policy != POLICY_IDLE &&
	       !(tctx->flags & FL_TASK_FOLLOWS);
}

/*
 * In how many ns a task of @deadline and @weight that waits on @cpu preempts the running
 * one, FL_NONE: not at all. A task is left to run for a while: what it was woken for is often
 * done by then. But not while it holds up others: @urgent.
 */
static u64 preempts_in(s32 cpu, u64 deadline, u64 weight, bool urgent, u64 now)
{
	struct cpu_ctx *cctx = fl_cpu(cpu);
	u64 ran = now - cctx->running_since, left;

	if (idle_gives_way(cctx->running_weight, weight) && !cctx->donated)
		return 0;
	if (!deadline_preempts(deadline, cctx->running_deadline,
			       tunables.preempt_margin_us * FL_USEC) ||
	    (sees_locks && fl_hold_spares(cpu, weight, now)))
		return FL_NONE;
	/* Who runs on others' terms has had what it was picked for when those are over. */
	if (urgent || cctx->donated)
		return 0;
	left = protected_ns(tunables.preempt_after_us * FL_USEC, fl_nr_running(cpu),
			    cctx->running_weight, weight, cctx->running_slice);
	/* The end of its slice comes anyway. */
	if (left >= cctx->running_slice)
		return FL_NONE;
	return left > ran ? left - ran : 0;
}

/* @p is the next to run on @cpu, and is not enqueued. */
static void run_next(struct task_struct *p, struct task_ctx *tctx, s32 cpu)
{
	/* Until it runs, others see by this that the CPU is taken. */
	queued_add(tctx, cpu);
	vtime_join(tctx, cpu);
	tctx->deadline = vtime_deadline(tctx->vtime, burst_rest(tctx), fl_slice(tctx),
					tctx->weight);
	/*
	 * Not LOCAL_ON: should @cpu go offline this moment, the kernel takes another
	 * one, for which it may have to change the affinity of @p.
	 */
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, fl_slice(tctx), 0);
}

s32 BPF_STRUCT_OPS(freqlock_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct task_ctx *tctx = fl_task(p);
	struct placement *pl;
	s32 cpu;

	if (!tctx) {
		fl_count(no_ctx);
		return prev_cpu;
	}
	if (is_dropped(p))
		return prev_cpu;
	follow_context(p, tctx);
	pl = begin_placement(fl_policy(tctx)->mode, prev_cpu, scx_bpf_now());
	pl->wake_flags = wake_flags;
	pl->fork = wake_flags & SCX_WAKE_FORK;
	if (pl->fork)
		fl_count(fork);
	else
		fl_count(wake);

	pl->from_task = fl_is_busy(pl->this_cpu) && fl_from_task();
	if (fl_edge(tctx))
		fl_lock_woken(p, tctx, pl->now);
	if (pl->mode == FL_MODE_AUTO) {
		fl_learn_back(tctx, pl->now);
		if (pl->from_task)
			pl->leave_ns = fl_learn_event(p, tctx, pl->now, wake_flags);
	}
	if (!fl_allowed(p, prev_cpu))
		pl->prev_cpu = fl_allowed(p, pl->this_cpu) ? pl->this_cpu :
							     (s32)bpf_cpumask_first(p->cpus_ptr);

	tctx->flags &= ~(FL_TASK_PARK | FL_TASK_PREDICTED | FL_TASK_TO_IDLE | FL_TASK_FOLLOWS);
	tctx->flags |= FL_TASK_ASKED;
	tctx->waiting_since = pl->now;
	cpu = place(p, tctx, pl);
	if (tells_tasks)
		fl_account_placed(tctx, cpu == prev_cpu, pl->idle, pl->park);

	if (pl->mode == FL_MODE_AUTO) {
		tctx->flags |= FL_TASK_PREDICTED;
		tctx->predicted_wait = pl->wait_ns;
	}
	if (pl->idle) {
		tctx->flags |= FL_TASK_TO_IDLE;
		run_next(p, tctx, cpu);
	} else if (pl->park) {
		park_until(tctx, pl);
	} else if ((tctx->flags & FL_TASK_HEIR) && fl_cpu(pl->this_cpu)->donated &&
		   fl_allowed(p, pl->this_cpu)) {
		/* What runs here does so in the stead of those who waited: @p has it back. */
		cpu = pl->this_cpu;
	} else if (cpu == pl->this_cpu && pl->from_task && (wake_flags & SCX_WAKE_SYNC)) {
		/*
		 * With nobody else there, nothing is to be decided once the waker leaves; but
		 * now and then, whether the CPU has less to do than others.
		 */
		if (fl_nr_running(cpu) == 1 && pl->now < fl_cpu(cpu)->next_balance) {
			fl_cpu(cpu)->followed = true;
			run_next(p, tctx, cpu);
		} else {
			tctx->flags |= FL_TASK_FOLLOWS;
		}
	}
	return cpu;
}

void BPF_STRUCT_OPS(freqlock_enqueue, struct task_struct *p, u64 enq_flags)
{
	s32 cpu = scx_bpf_task_cpu(p), idle;
	struct cpu_ctx *cctx = fl_cpu(cpu);
	struct task_ctx *tctx = fl_task(p);
	u64 now = scx_bpf_now(), own, in = FL_NONE;
	bool arrives, preempts, urgent, pinned;
	u64 mode;

	if (!tctx) {
		fl_count(no_ctx);
		scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, fl_slice(NULL), enq_flags);
		return;
	}
	if (is_dropped(p))
		return;
	if (enq_flags & SCX_ENQ_REENQ)
		tctx->flags |= FL_TASK_DISPLACED;
	if (tctx->flags & FL_TASK_DISPLACED)
		fl_count(displaced);
	/* If it was asked where, that was a moment ago. */
	if (!(tctx->flags & FL_TASK_ASKED))
		follow_context(p, tctx);
	mode = fl_policy(tctx)->mode;
	if (tctx->big_cpu >= 0 && go_big(p, tctx, enq_flags))
		return;
	arrives = (enq_flags & SCX_ENQ_WAKEUP) || (tctx->flags & FL_TASK_FORKED);
	/*
	 * It may wait already: since it was asked where, since it last ran, or in the local
	 * queue from which a task of a higher class drove it.
	 */
	if (!tctx->waiting_since)
		tctx->waiting_since = now;
	count_unasked(p, tctx, enq_flags);
	/* select_cpu is not asked for a task that may run on one CPU only. */
	if (fl_edge(tctx) && (enq_flags & SCX_ENQ_WAKEUP))
		fl_lock_woken(p, tctx, now);
	/*
	 * A task whose slice is over goes on from where it is, with no credit to
	 * bound; but giving way earns no more of it than sleep does.
	 */
	if (arrives || tctx->vtime_cpu != cpu || tctx->spin.behind)
		vtime_join(tctx, cpu);
	tctx->deadline = vtime_deadline(tctx->vtime, burst_rest(tctx), fl_request(tctx),
					tctx->weight);
	if (tctx->spin.behind)
		tctx->deadline = fl_spin_deadline(tctx, cpu);
	urgent = tctx->flags & FL_TASK_HEIR;
	if (fl_holds(tctx)) {
		own = tctx->deadline;
		tctx->deadline = fl_hold_deadline(tctx, fl_self(p, tctx), cpu, now);
		if (tctx->deadline != own) {
			fl_count(donate);
			urgent = true;
		}
	}
	if (arrives && fl_is_busy(cpu) && (may_preempt(p, tctx) || urgent))
		in = cctx->spinner == p->tgid ?
			     0 :
			     preempts_in(cpu, tctx->deadline, tctx->weight, urgent, now);
	preempts = in == 0;
	pinned = fl_is_pinned(p);
	if (!arrives && mode == FL_MODE_AUTO && !pinned &&
	    place_again(p, tctx, cpu, enq_flags, now))
		return;

	/* The kernel's own work for this CPU: what it does is waited for by others. */
	if ((p->flags & PF_KTHREAD) && p->nr_cpus_allowed == 1 && (enq_flags & SCX_ENQ_WAKEUP)) {
		fl_count(enq_kthread);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, fl_request(tctx),
				   enq_flags | (preempts ? SCX_ENQ_PREEMPT : 0));
		return;
	}

	queued_add(tctx, cpu);
	fl_mark_work(cpu);
	if (tctx->flags & FL_TASK_PARK) {
		tctx->flags &= ~FL_TASK_PARK;
		cctx->parked = true;
		scx_bpf_dsq_insert_vtime(p, fl_park(cpu), fl_request(tctx), tctx->deadline,
					 enq_flags);
		fl_park_arm(cpu, now, tctx->park_until > now ? tctx->park_until - now : 1);
		/* It went idle since it was looked at: nobody else will wake it for this. */
		if (!fl_is_busy(cpu))
			scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
		return;
	}

	fl_count(enq_queue);
	if ((enq_flags & SCX_ENQ_WAKEUP) || !fl_still_late(p, tctx, cpu, now, enq_flags))
		scx_bpf_dsq_insert_vtime(p, fl_queue(cpu), fl_request(tctx), tctx->deadline,
					 enq_flags);
	if (preempts) {
		fl_count(preempt_wake);
		/* A dispatch that comes before this insert forgets it: it may balance then. */
		cctx->wakee = true;
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	} else if (in != FL_NONE) {
		fl_count(preempt_later);
		cctx->wakee = true;
		fl_end_turn(cpu, now, in);
	} else if (!fl_is_busy(cpu)) {
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	}
	/*
	 * A CPU may have gone idle after it found this queue empty. One that
	 * does so between this look and its own going idle is found by the next
	 * tick of the CPU on which the task waits, or by a timer where a real-time
	 * task runs. The insert takes effect as this returns, and kicks are sent
	 * after that, when interrupts are on again: who is woken here finds the task.
	 */
	if (!pinned) {
		idle = fl_claim_idle(p, mode, cpu, now);
		if (idle >= 0)
			scx_bpf_kick_cpu(idle, SCX_KICK_IDLE);
		else if ((tctx->flags & FL_TASK_DISPLACED) || fl_is_taken(cpu))
			fl_park_arm(cpu, now, FL_TAKEN_LOOK_NS);
	}
}

void BPF_STRUCT_OPS(freqlock_dispatch, s32 cpu, struct task_struct *prev)
{
	struct cpu_ctx *cctx = fl_cpu(cpu);
	bool wakee = cctx->wakee;
	u64 now, head, ran, left = 0, keep;
	struct task_ctx *tctx;

	cctx->wakee = false;
	if (cctx->late && fl_take_late(cpu, scx_bpf_now(), wakee))
		return;
	if (!prev || !(prev->scx.flags & SCX_TASK_QUEUED)) {
		if (fl_is_called(cpu) && fl_run_holder(cpu, scx_bpf_now()))
			return;
		/* Tasks that all sleep before their slices are over are balanced here. */
		if (!wakee && cctx->last_stop >= cctx->next_balance &&
		    fl_balance(cpu, cctx->last_stop, false, 0))
			return;
		if (!fl_take_own(cpu))
			fl_steal(cpu);
		return;
	}

	/* @prev used up its slice and wants to go on. */
	now = scx_bpf_now();
	tctx = fl_task(prev);
	if (tctx && fl_edge(tctx))
		cctx->waits_edge = tctx->edge;
	if (fl_is_called(cpu) && fl_run_holder(cpu, now))
		return;
	if (tctx && fl_spin_give_way(prev, tctx, cpu))
		return;
	/* With its slice left at 0 it is enqueued, even if there is no other task. */
	if (tctx && tctx->big_cpu >= 0) {
		fl_take_own(cpu);
		return;
	}
	if (tctx && fl_holds(tctx)) {
		keep = fl_hold_keep(tctx, fl_self(prev, tctx), cpu, now);
		if (keep) {
			scx_bpf_task_set_slice(prev, keep);
			return;
		}
	}
	if (tctx && tctx->run_start)
		vtime_run(tctx, now);
	/* Who preempts @prev is not to wait for another task that comes in its stead. */
	if (!wakee && fl_balance(cpu, now, true, tctx ? tctx->served : 0))
		return;
	head = fl_head_deadline(cpu);
	if (tctx && tctx->run_start) {
		ran = now - tctx->run_start;
		left = request_left(tctx->request, ran, fl_slice(tctx)) ?: fl_slice(tctx);
		tctx->request = ran + left;
	}
	if (left && head != FL_NONE) {
		tctx->deadline = vtime_deadline(tctx->vtime, 0, left, tctx->weight);
		if (fl_holds(tctx))
			tctx->deadline = fl_hold_deadline(tctx, fl_self(prev, tctx), cpu, now);
		/* One of SCHED_IDLE that is preempted gives way, whatever it is owed. */
		if (!vtime_before(tctx->deadline, head) || (wakee && tctx->weight <= WEIGHT_IDLE)) {
			if (fl_take_own(cpu))
				return;
		}
	}
	fl_count(keep_running);
	if (left) {
		fl_cpu(cpu)->running_deadline = vtime_deadline(tctx->vtime, 0, left, tctx->weight);
		if (!fl_cpu(cpu)->donated)
			vclock_advance(tctx, cpu);
	}
	scx_bpf_task_set_slice(prev, left ?: fl_slice(tctx));
}

void BPF_STRUCT_OPS(freqlock_running, struct task_struct *p)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = fl_cpu(cpu);
	struct task_ctx *tctx = fl_task(p);
	u64 now = scx_bpf_now();
	/* It was changed, and runs on. */
	bool still = cctx->running == p->pid;

	fl_freq_running(cpu, now);
	cctx->donated = false;
	cctx->followed = false;
	if (!still) {
		cctx->leave_at = 0;
		cctx->running_away = tctx ? tctx->away : 0;
		cctx->running_slice = fl_slice(NULL);
		cctx->running_weight = WEIGHT_NICE_0;
		cctx->running_since = now;
		cctx->running = p->pid;
		cctx->spinner = 0;
	}
	if (!tctx)
		return;

	queued_remove(tctx);
	if (tctx->vtime_cpu != cpu) {
		tctx->vtime -= cctx->credit;
		vtime_join(tctx, cpu);
	}
	cctx->credit = 0;
	if (still) {
		tctx->request = fl_request(tctx);
	} else {
		fl_turn(p, tctx, cpu, now);
		cctx->running_slice = tctx->request;
		cctx->running_rest = burst_rest(tctx);
	}
	cctx->running_deadline = vtime_deadline(tctx->vtime, burst_rest(tctx), tctx->request,
						tctx->weight);
	cctx->running_weight = tctx->weight;
	tctx->run_start = now;
	tctx->charged_at = now;
	tctx->spin.behind = 0;
	fl_wait_stale(p, tctx, now);
	if (fl_holds(tctx))
		cctx->running_deadline = fl_hold_running(tctx, fl_self(p, tctx), cpu, now);
	/* Who runs on others' terms may be far ahead of the clock by its own. */
	if (!cctx->donated)
		vclock_advance(tctx, cpu);

	fl_learn_wait(tctx, cpu, now);
	if (tells_tasks && !still)
		fl_account_picked(tctx, cpu, now);
	tctx->waited_since = tctx->waiting_since;
	tctx->waiting_since = 0;
	if (tctx->park_until) {
		if (now <= tctx->park_until)
			fl_count(park_ran);
		else
			fl_count(park_late);
		tctx->park_until = 0;
	}
	tctx->flags = 0;
	tctx->big_cpu = -1;
}

void BPF_STRUCT_OPS(freqlock_tick, struct task_struct *p)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct task_ctx *tctx = fl_task(p), *wctx;
	struct cpu_ctx *cctx = fl_cpu(cpu);
	struct task_struct *waiting;
	u64 now = scx_bpf_now(), in;
	u32 speed;

	speed = fl_freq_tick(cpu, now);
	if (tctx) {
		if (tells_tasks)
			fl_account_run(tctx, now, speed);
		follow_context(p, tctx);
		if (fl_spin_tick(p, tctx, cpu, now))
			tctx->request = 0;
	}
	if (tctx && fl_hint(tctx) && fl_hint_tick(p, tctx))
		scx_bpf_task_set_slice(p, 0);
	/* It did not leave; unless others wait for it as well. */
	if (cctx->followed && !(tctx && fl_holds(tctx)))
		scx_bpf_task_set_slice(p, 0);

	waiting = __COMPAT_scx_bpf_dsq_peek(fl_queue(cpu));
	if (!waiting && !cctx->late)
		return;
	learn_tick(now);
	fl_mark_work(cpu);
	fl_look_for_late(cpu, now);
	/* A short turn is ended by its timer: it may have begun a moment ago. */
	if (!cctx->turn_ends) {
		if (cctx->late || slice_over(p->scx.slice))
			scx_bpf_task_set_slice(p, 0);
		else if (slice_wants_timer(p->scx.slice, tick_ns))
			fl_end_turn(cpu, now, p->scx.slice);
	}
	/* See the end of enqueue. */
	fl_call_idle(cpu, now);
	if (!waiting)
		return;
	wctx = fl_task(waiting);
	in = preempts_in(cpu, waiting->scx.dsq_vtime, wctx ? wctx->weight : 0, false, now);
	if (!in) {
		fl_count(preempt_tick);
		scx_bpf_task_set_slice(p, 0);
	} else if (in != FL_NONE) {
		fl_end_turn(cpu, now, in);
	}
}

/*
 * Up to Linux 6.18 (rt.bpf.c): a task that stops before its slice is over gives way to a
 * higher class. Left alone, the kernel would put it into the local queue, and pass it over
 * as ops.cpu_release asks for what is there: BPF programs may keep the current task from
 * migrating while they run, and 6.14 to 6.17 leave such a task where it is. Without a slice
 * it is enqueued instead.
 */
static __always_inline void displace(struct task_struct *p, struct task_ctx *tctx)
{
	if (!displaces || !p->scx.slice)
		return;
	tctx->flags |= FL_TASK_DISPLACED;
	scx_bpf_task_set_slice(p, 0);
}

/* A task of a higher class has the CPU: what waits for it in the local queue is queued anew. */
void BPF_STRUCT_OPS(freqlock_cpu_release, s32 cpu, struct scx_cpu_release_args *args)
{
	scx_bpf_reenqueue_local();
}

/* Without this, the kernel would end the slice by itself. */
bool BPF_STRUCT_OPS(freqlock_yield, struct task_struct *from, struct task_struct *to)
{
	struct task_ctx *tctx = fl_task(from);

	if (tctx) {
		fl_spin_yield(from, tctx, scx_bpf_now());
		tctx->request = 0;
	}
	scx_bpf_task_set_slice(from, 0);
	return false;
}

void BPF_STRUCT_OPS(freqlock_stopping, struct task_struct *p, bool runnable)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = fl_cpu(cpu);
	struct task_ctx *tctx = fl_task(p);
	u64 now = scx_bpf_now(), ran;
	u32 speed = fl_freq_stopping(cpu, now);
	bool sleeps = !runnable && fl_sleeps(p);

	/* Who is changed will run on in a moment. */
	if (runnable || sleeps)
		fl_cpu_left(cctx, now);
	if (!tctx || !tctx->run_start)
		return;

	if (fl_hint(tctx)) {
		if (runnable)
			fl_hint_preempted(p, tctx);
		else if (sleeps)
			fl_hint_sleep(tctx, fl_self(p, tctx));
	}
	if (sees_locks && (tctx->holds || tctx->donated_at))
		fl_hold_stops(tctx, fl_self(p, tctx), now, runnable);
	if (sleeps) {
		if (sees_locks && tctx->wait_owner && !fl_is_dead(p))
			fl_lock_sleep(p, tctx);
		cctx->waits_edge = tctx->edge;
	}
	if (tells_tasks)
		fl_account_run(tctx, now, speed);
	if (neighbours_period)
		fl_neighbour_ran(p, tctx, cpu, now);
	tctx->waiting_since = sleeps ? 0 : now;
	if (runnable)
		tctx->stats.preempted++;
	ran = now - tctx->run_start;
	tctx->run_start = 0;
	vtime_run(tctx, now);
	owe_turn(tctx, cctx, ran, !sleeps);
	tctx->ran += ran;
	tctx->work += work_of(ran, speed);
	tctx->request = sleeps ? 0 : request_left(tctx->request, ran, fl_slice(tctx));
	if (runnable || sleeps)
		fl_learn_stop(p, tctx, now, runnable);
	if (runnable)
		displace(p, tctx);
	if (sleeps) {
		fl_spin_sleep(tctx);
		vtime_sleep(tctx);
		if (tells_tasks && fl_is_dead(p))
			fl_account_exit(p, tctx);
	}
}

s32 BPF_STRUCT_OPS_SLEEPABLE(freqlock_init)
{
	u32 cpu;
	int err;

	begin_ticks();
	fl_spin_init();
	bpf_for(cpu, 0, nr_cpus) {
		err = scx_bpf_create_dsq(fl_queue(cpu), -1);
		if (!err)
			err = scx_bpf_create_dsq(fl_park(cpu), -1);
		if (!err)
			err = scx_bpf_create_dsq(fl_late(cpu), -1);
		if (!err)
			err = fl_park_init(cpu);
		if (!err)
			err = fl_late_init(cpu);
		if (err) {
			scx_bpf_error("cannot set up CPU %u: %d", cpu, err);
			return err;
		}
	}
	return 0;
}

void BPF_STRUCT_OPS(freqlock_exit, struct scx_exit_info *ei)
{
	UEI_RECORD(uei, ei);
}

SCX_OPS_DEFINE(freqlock_ops,
	       .select_cpu	= (void *)freqlock_select_cpu,
	       .enqueue		= (void *)freqlock_enqueue,
	       .dispatch	= (void *)freqlock_dispatch,
	       .running		= (void *)freqlock_running,
	       .tick		= (void *)freqlock_tick,
	       .yield		= (void *)freqlock_yield,
	       .stopping	= (void *)freqlock_stopping,
	       .cpu_release	= (void *)freqlock_cpu_release,
	       .set_weight	= (void *)freqlock_set_weight,
	       .init_task	= (void *)freqlock_init_task,
	       .exit_task	= (void *)freqlock_exit_task,
	       .enable		= (void *)freqlock_enable,
	       .disable		= (void *)freqlock_disable,
	       .cpu_online	= (void *)freqlock_cpu_online,
	       .cpu_offline	= (void *)freqlock_cpu_offline,
	       .dump_cpu	= (void *)freqlock_dump_cpu,
	       .init		= (void *)freqlock_init,
	       .exit		= (void *)freqlock_exit,
	       .flags		= SCX_OPS_ENQ_LAST,
	       .timeout_ms	= 30000,
	       .name		= "freqlock");
