/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scx_freqlock: the policy in one page, then what a CPU does: which task it picks, and
 * what begins and ends with that. How a task gets its CPU is wake.bpf.c's, how it comes to
 * be ours life.bpf.c's.
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
 *    a busy one now and then from a longer queue (queue.bpf.c). A task that waits
 *    for too long runs out of turn (late.bpf.c).
 * 6. How fast each CPU is now is known from counters or guessed from how
 *    recently it was busy (freq.bpf.c); how long bursts are, and how soon a
 *    task leaves its CPU after it forked or woke another, is learned as tasks
 *    run (learn.bpf.c).
 * 7. A task that holds a lock for which others wait inherits the best waiter's
 *    weight and deadline, is not preempted, and runs on the CPU that a waiter left
 *    (lock.bpf.c, donate.bpf.c), all within bounds; with --pi-ipc also a task for whose
 *    answer another one waits (answer.bpf.c). One that holds locks for longer than its
 *    share is held back, if the knob lock_debt_us says so (debt.bpf.c).
 *
 * A task has no context only if init_task's allocation failed; it is counted, and
 * scheduled without one. Nothing here waits, and every loop has a bound. When the
 * agent dies, the kernel takes every task back.
 */
#include "freqlock.bpf.h"
#include "account.bpf.h"
#include "alone.bpf.h"
#include "answer.bpf.h"
#include "bandwidth.bpf.h"
#include "cgroup.bpf.h"
#include "choose.bpf.h"
#include "clock.bpf.h"
#include "context.bpf.h"
#include "debt.bpf.h"
#include "donate.bpf.h"
#include "dump.bpf.h"
#include "edge.bpf.h"
#include "freq.bpf.h"
#include "hint.bpf.h"
#include "hotplug.bpf.h"
#include "kick.bpf.h"
#include "late.bpf.h"
#include "learn.bpf.h"
#include "life.bpf.h"
#include "neighbours.bpf.h"
#include "park.bpf.h"
#include "preempt.bpf.h"
#include "queue.bpf.h"
#include "spin.bpf.h"
#include "wake.bpf.h"
#include "policy/deadline.h"
#include "policy/learn.h"

char _license[] SEC("license") = "GPL";

UEI_DEFINE(uei);

const volatile u32 abi_version = FL_ABI_VERSION;
const volatile u32 nr_cpus = 1;
const volatile bool capacity_differs;
const volatile bool isolates;
const volatile bool partial;
const volatile bool sees_locks;
const volatile bool sees_answers;
const volatile bool tickless;
const volatile bool tickless_cpus[FL_MAX_CPUS];
const volatile bool reports_tasks = true;
const volatile bool adapts;
const volatile bool displaces;
const volatile bool shares_cgroups;

/* Written by the agent before it is loaded, and when CPUs come and go. */
volatile u32 nr_present;
volatile bool smt_present;
volatile struct cpu_topo cpu_topo[FL_MAX_CPUS];
volatile struct cpu_group cpu_groups[FL_MAX_GROUPS];
volatile u32 nr_groups;

/* Written by the agent before it is loaded. */
volatile struct tunables tunables;
volatile u32 freq_source = FL_FREQ_recency;
/* By the number of active cores less one; all 0: not known, nothing is lost. */
volatile u32 turbo[FL_MAX_CPUS];

u64 tick_ns;

struct cpu_ctx cpu_ctxs[FL_MAX_CPUS];
struct cpu_stats cpu_stats[FL_MAX_CPUS];
struct group_work group_works[FL_MAX_GROUPS];

/*
 * True if the CPU asks for a task although one of a higher class is about to run there: up to
 * 6.18 it does where it was idle until now. What it took would lie in its local queue behind
 * that one, which nobody would be told (rt.bpf.c). With --partial alone: a real-time task
 * has the CPU for a moment, a normal one may have it for good.
 */
static __always_inline bool is_about_to_be_taken(s32 cpu)
{
	struct rq *rq;

	if (!partial || !displaces)
		return false;
	rq = bpf_per_cpu_ptr(&runqueues, cpu);
	return rq && rq->nr_running > rq->scx.nr_running;
}

static __always_inline void take_any(s32 cpu)
{
	if (!fl_take_own(cpu) && !fl_steal(cpu))
		fl_cpu(cpu)->was_idle = true;
}

void BPF_STRUCT_OPS(freqlock_dispatch, s32 cpu, struct task_struct *prev)
{
	struct cpu_ctx *cctx = fl_cpu(cpu);
	bool wakee = cctx->wakee;
	u64 now, head, ran, left = 0, rest = 0, keep;
	struct task_ctx *tctx;
	bool alone = false;

	if (is_about_to_be_taken(cpu)) {
		if (READ_ONCE(cctx->queued_work))
			fl_park_arm(cpu, scx_bpf_now(), FL_TAKEN_LOOK_NS);
		return;
	}
	cctx->wakee = false;
	if (cctx->late && fl_take_late(cpu, scx_bpf_now(), wakee))
		return;
	if (!prev || !(prev->scx.flags & SCX_TASK_QUEUED)) {
		if (fl_is_called(cpu) && fl_run_holder(cpu, scx_bpf_now()))
			return;
		/* Tasks that all sleep before their slices are over are balanced here. */
		if (!wakee && cctx->last_stop >= cctx->next_balance &&
		    fl_balance(cpu, cctx->last_stop, 0))
			return;
		take_any(cpu);
		return;
	}

	/* @prev used up its slice and wants to go on. */
	now = scx_bpf_now();
	tctx = fl_task(prev);
	if (fl_is_tickless(cpu)) {
		alone = fl_alone_end(cpu, now);
		/* No tick did so. */
		if (fl_is_awaited(cpu)) {
			fl_look_for_late(cpu, now);
			fl_call_idle(cpu, now);
		}
	}
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
	if (tctx &&
	    (fl_is_held_back(tctx) || (fl_is_limited() && !fl_bandwidth_go_on(prev, tctx, now)))) {
		/* Enqueued as well, and put aside. */
		take_any(cpu);
		return;
	}
	if (tctx && tctx->run_start) {
		vtime_run(tctx, now);
		ran = elapsed(tctx->run_start, now);
		left = request_left(tctx->request, ran, fl_slice(tctx));
		/* Cut short by a kick that was meant for the task before it. */
		if (left && !wakee)
			rest = ran < cctx->running_rest ? cctx->running_rest - ran : 0;
	}
	/*
	 * Neither the task that preempts @prev nor @prev in the midst of its turn is to wait for
	 * another one that comes in its stead.
	 */
	if (!wakee && !left && fl_balance(cpu, now, tctx ? tctx->served : 0))
		return;
	head = fl_head_deadline(cpu);
	if (tctx && tctx->run_start) {
		left = left ?: fl_slice(tctx);
		tctx->request = ran + left;
	}
	if (left && head != FL_NONE) {
		tctx->deadline = vtime_deadline(tctx->vtime, rest, left, tctx->weight);
		if (fl_holds(tctx))
			tctx->deadline = fl_hold_deadline(tctx, fl_self(prev, tctx), cpu, now);
		/* An idle one that is preempted gives way, whatever it is owed. */
		if (!vtime_before(tctx->deadline, head) || (wakee && tctx->idles)) {
			if (fl_take_own(cpu))
				return;
		}
	}
	fl_count(keep_running);
	if (left) {
		fl_cpu(cpu)->running_deadline = vtime_deadline(tctx->vtime, 0, left, tctx->weight);
		if (!fl_cpu(cpu)->boosted)
			vclock_advance(tctx, cpu);
	}
	left = left ?: fl_slice(tctx);
	if (tctx && fl_is_granted(tctx))
		left = bandwidth_turn(tctx->granted, left);
	cctx->turn_ends = 0;
	if (tctx && fl_is_tickless(cpu) && !fl_is_granted(tctx) && !fl_is_awaited(cpu)) {
		/* If its ticks go on, it is enqueued, to begin anew without. */
		if (alone) {
			scx_bpf_task_set_slice(prev, left);
			fl_alone_begin(prev, tctx, cpu);
		}
		return;
	}
	scx_bpf_task_set_slice(prev, left);
	if ((head != FL_NONE || (tctx && fl_is_granted(tctx))) &&
	    (fl_is_tickless(cpu) || slice_misses_ticks(left, tick_ns)))
		fl_end_turn(cpu, now, left);
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
	cctx->boosted = false;
	cctx->followed = false;
	if (!still) {
		cctx->leave_at = 0;
		cctx->running_away = tctx ? tctx->away : 0;
		cctx->running_slice = fl_slice(NULL);
		cctx->running_weight = WEIGHT_NICE_0;
		cctx->running_idles = false;
		cctx->running_since = now;
		cctx->running = p->pid;
		cctx->spinner = 0;
	}
	if (!tctx)
		return;

	queued_remove(tctx);
	if (tctx->vtime_cpu != cpu) {
		tctx->vtime -= vtime_charge(cctx->credit, tctx->weight);
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
	cctx->running_idles = tctx->idles;
	/* It ran on while another CPU changed it, and is charged for that as well. */
	if (!still)
		tctx->charged_at = now;
	tctx->run_start = tctx->charged_at;
	tctx->spin.behind = 0;
	fl_wait_stale(p, tctx, now);
	if (fl_holds(tctx))
		cctx->running_deadline = fl_hold_running(tctx, fl_self(p, tctx), cpu, now);
	/* A boosted task's own vtime may be far ahead of the clock. */
	if (!cctx->boosted)
		vclock_advance(tctx, cpu);

	if (tctx->flags & (FL_TASK_PREDICTED | FL_TASK_TO_IDLE))
		fl_learn_wait(tctx, cpu, now);
	if (reports_tasks && !still)
		fl_account_picked(tctx, cpu, now);
	if (tctx->park_until) {
		if (now <= tctx->park_until)
			fl_count(park_ran);
		else
			fl_count(park_late);
		fl_park_over(tctx, cpu, now);
	}
	fl_cgroup_picked(tctx, now);
	if (fl_is_limited())
		fl_bandwidth_begin(p, tctx, cpu, now);
	tctx->waited_since = tctx->waiting_since;
	tctx->waiting_since = 0;
	tctx->flags = 0;
	tctx->big_cpu = -1;
	if (fl_is_tickless(cpu))
		fl_alone_begin(p, tctx, cpu);
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
		if (reports_tasks)
			fl_account_run(tctx, now, speed);
		if (fl_is_tickless(cpu))
			fl_alone_tick(p, tctx, cpu, now);
		fl_follow_context(p, tctx);
		fl_cgroup_weigh(p, tctx, now);
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
	wctx = waiting ? fl_task(waiting) : NULL;
	if (!wctx)
		return;
	in = fl_preempts_in(wctx, cpu, false, now);
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

/* A task of a higher class has the CPU: what waits for it in the local queue is queued again. */
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

/* linux/sched.h, TASK_DEAD: a macro, so not among the kernel's types. */
#define STATE_DEAD 0x80

/* True if @p, which stops, has done its last. */
static __always_inline bool is_dead(struct task_struct *p)
{
	return p->__state & STATE_DEAD;
}

/*
 * True if @p, which stops and is not runnable, goes to sleep or is dead. Else somebody changes
 * its class, nice value or affinity, for which the kernel takes a running task off its CPU
 * and puts it back at once, on whatever CPU that somebody is. A state alone says nothing:
 * a task sets it while it still runs.
 */
static __always_inline bool goes_to_sleep(struct task_struct *p)
{
	return bpf_get_current_task_btf() == p && p->__state;
}

void BPF_STRUCT_OPS(freqlock_stopping, struct task_struct *p, bool runnable)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = fl_cpu(cpu);
	struct task_ctx *tctx = fl_task(p);
	u64 now = scx_bpf_now(), ran;
	u32 speed = fl_freq_stopping(cpu, now);
	bool sleeps = !runnable && goes_to_sleep(p);

	if (fl_is_tickless(cpu))
		fl_alone_end(cpu, now);
	/* A task that is being changed will run on in a moment. */
	if (runnable || sleeps)
		fl_cpu_left(cctx, now);
	if (runnable && fl_is_changing(cctx))
		fl_kick(cpu, SCX_KICK_IDLE);
	if (!tctx || !tctx->run_start)
		return;

	if (fl_hint(tctx)) {
		if (runnable)
			fl_hint_preempted(p, tctx);
		else if (sleeps)
			fl_hint_sleep(tctx, fl_self(p, tctx));
	}
	if (sees_locks && (tctx->holds || tctx->boosted_at))
		fl_hold_stops(tctx, fl_self(p, tctx), now, runnable);
	if (sleeps) {
		if (sees_locks && tctx->wait_owner && !is_dead(p))
			fl_lock_sleep(p, tctx);
		fl_answer_sleep(p, tctx, now);
		cctx->waits_edge = tctx->edge;
	}
	if (reports_tasks)
		fl_account_run(tctx, now, speed);
	if (neighbours_period)
		fl_neighbour_ran(p, tctx, cpu, now);
	tctx->waiting_since = sleeps ? 0 : now;
	if (runnable)
		tctx->stats.preempted++;
	ran = elapsed(tctx->run_start, now);
	tctx->run_start = 0;
	vtime_run(tctx, now);
	if (fl_is_granted(tctx))
		fl_bandwidth_end(p, tctx, now);
	owe_turn(tctx, cctx, ran, !sleeps);
	tctx->ran += ran;
	tctx->work += work_of(ran, speed);
	tctx->request = sleeps ? 0 : request_left(tctx->request, ran, fl_slice(tctx));
	if (runnable && ran >= fl_slice(tctx) / 2)
		tctx->flags |= FL_TASK_HAD_TURN;
	if (runnable || sleeps)
		fl_learn_stop(p, tctx, now, runnable);
	if (runnable)
		displace(p, tctx);
	if (sleeps) {
		if (spin_watched(&tctx->spin))
			fl_spin_sleep(tctx);
		vtime_sleep(tctx);
		fl_cgroup_count(tctx, 0, now);
		if (reports_tasks && is_dead(p))
			fl_account_exit(p, tctx);
	}
}

s32 BPF_STRUCT_OPS_SLEEPABLE(freqlock_init)
{
	u32 cpu;
	int err;

	begin_ticks();
	fl_spin_init();
	fl_hotplug_init();
	err = fl_cgroup_init();
	if (err) {
		scx_bpf_error("cannot set up cgroups: %d", err);
		return err;
	}
	err = fl_bandwidth_init();
	if (err) {
		scx_bpf_error("cannot set up quotas of cgroups: %d", err);
		return err;
	}
	err = fl_debt_init();
	if (err) {
		scx_bpf_error("cannot set up lock debts: %d", err);
		return err;
	}
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
