/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * No task starves. Shares of CPU time by weight let a task of nice 19 wait for 23 s
 * beside one of nice -20, and each of many tasks for as long as a round of them
 * takes. So a queued task runs within starve_ms, whatever its weight and however
 * many there are:
 *
 * 1. Where a round of all runnable tasks would take more than a quarter of starve_ms,
 *    turns are shorter, down to TURN_LEAST_NS.
 * 2. Each CPU looks through its queue eight times in starve_ms, by a timer, and
 *    moves tasks that waited for half of starve_ms to its queue of late tasks, in
 *    order of waiting.
 * 3. Late tasks have every other turn, and every turn while one has waited for three
 *    quarters of starve_ms. Such a turn is short, so that it costs the others little.
 *
 * That holds for some 4000 tasks on a CPU (starve_ms / 2 / TURN_LEAST_NS at 4 s), as many
 * as are looked through.
 */
#include "freqlock.bpf.h"
#include "late.bpf.h"
#include "drain.bpf.h"
#include "kick.bpf.h"
#include "policy/deadline.h"

/* Tasks scanned per queue for a starved one, from the latest deadline on. */
#define LOOK_TASKS 4096

struct turn_timer {
	struct bpf_timer timer;
	struct fl_alarm alarm;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FL_MAX_CPUS);
	__type(key, u32);
	__type(value, struct turn_timer);
} turn_timers SEC(".maps");

struct look_timer {
	struct bpf_timer timer;
	u32 seen; /* in this look; kept here so that the verifier does not unroll it */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FL_MAX_CPUS);
	__type(key, u32);
	__type(value, struct look_timer);
} look_timers SEC(".maps");

static u64 starves_ns(void)
{
	return tunables.starve_ms * 1000 * FL_USEC;
}

/* Since when @tctx, which is queued, waits: turns that were none did not end that. */
static u64 waits_since(const struct task_ctx *tctx)
{
	return tctx->owed_since ?: tctx->waiting_since;
}

/*
 * Move tasks that waited for long from the queue of a CPU to that of its late
 * tasks. Thousands take a while: in ops.dispatch the task that is picked then would
 * pay for it, always the same one; here the running task does, and look_ns accounts
 * for it.
 */
static int look(void *map, u32 *key, struct look_timer *t)
{
	s32 cpu = *key;
	struct cpu_ctx *cctx = fl_cpu(cpu);
	u64 now = scx_bpf_now(), starves = starves_ns(), since;
	struct task_struct *p;
	struct task_ctx *tctx;

	t->seen = 0;
	bpf_rcu_read_lock();
	bpf_for_each(scx_dsq, p, fl_queue(cpu), SCX_DSQ_ITER_REV) {
		if (++t->seen > LOOK_TASKS)
			break;
		tctx = fl_task(p);
		if (!tctx)
			continue;
		since = waits_since(tctx);
		if (!is_late(since, now, starves))
			continue;
		/*
		 * Before it is moved, since it may run elsewhere as soon as that is done. If
		 * it is taken before that, it has one short turn for nothing.
		 */
		tctx->late = true;
		scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, since);
		if (scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, fl_late(cpu), 0))
			fl_count(late);
	}
	bpf_rcu_read_unlock();
	/* What the CPU clears just now, as it saw none, the next look sets again. */
	if (scx_bpf_dsq_nr_queued(fl_late(cpu)) > 0)
		cctx->late = true;
	/* See fl_drain(). */
	if (READ_ONCE(cctx->offline))
		fl_drain(cpu);
	cctx->look_ns += scx_bpf_now() - now;
	return 0;
}

/*
 * @p is to wait on @cpu. If it is late already, it had a turn that was none: a task of a
 * higher class took the CPU just then, or soon after. It is not to wait for the next look
 * as well, lest looks and those turns keep in step. True if it is in the queue of the late.
 */
bool fl_still_late(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
		   s32 cpu, u64 now, u64 enq_flags)
{
	u64 since = waits_since(tctx);

	if (!is_late(since, now, starves_ns()))
		return false;
	tctx->late = true;
	scx_bpf_dsq_insert_vtime(p, fl_late(cpu), fl_request(tctx), since, enq_flags);
	/* If the CPU clears this before the insert takes effect, the next look sets it. */
	fl_cpu(cpu)->late = true;
	fl_count(late);
	return true;
}

/* A tick of @cpu while a task waits there. */
int fl_look_for_late(s32 cpu, u64 now)
{
	struct cpu_ctx *cctx = fl_cpu(cpu);
	struct look_timer *t;
	u32 key = cpu;

	if (now < cctx->next_look)
		return 0;
	cctx->next_look = now + starves_ns() / LATE_LOOKS;
	t = bpf_map_lookup_elem(&look_timers, &key);
	return t ? fl_timer_start(&t->timer, 1) : -ENOENT;
}

/* Run the task that has waited longest on @cpu, where one may be late, if it has the turn. */
bool fl_take_late(s32 cpu, u64 now, bool wakee)
{
	struct cpu_ctx *cctx = fl_cpu(cpu);
	struct task_struct *p;

	p = __COMPAT_scx_bpf_dsq_peek(fl_late(cpu));
	if (!p) {
		cctx->late = false;
		return false;
	}
	if (!late_goes_first(p->scx.dsq_vtime, now, starves_ns(), cctx->late_ran || wakee)) {
		cctx->late_ran = false;
		return false;
	}
	if (!scx_bpf_dsq_move_to_local(fl_late(cpu), 0))
		return false;
	cctx->late_ran = true;
	fl_count(rescued);
	return true;
}

/* True if a timer is to end a turn of @ns on @cpu, which begins. */
static bool wants_timer(s32 cpu, u64 ns)
{
	if (fl_is_tickless(cpu))
		return fl_is_awaited(cpu);
	/* It may be over before there is a tick. */
	return slice_misses_ticks(ns, tick_ns) && fl_nr_running(cpu) > 1;
}

/*
 * @p begins to run on @cpu. How long for, is its request; one that was late has no debt,
 * as what others had before it is not held against it the next time.
 */
int fl_turn(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull, s32 cpu,
	    u64 now)
{
	struct cpu_ctx *cctx = fl_cpu(cpu);
	u64 request = fl_request(tctx), turn;

	turn = turn_length(request, fl_nr_running(cpu), starves_ns());
	if (tctx->late) {
		tctx->late = false;
		turn = lesser(turn, TURN_LATE_NS);
		if (vtime_before(cctx->vclock, tctx->vtime))
			tctx->vtime = cctx->vclock;
	}
	tctx->request = turn;
	cctx->turn_ends = 0;
	cctx->look_ns = 0;
	if (turn != request)
		scx_bpf_task_set_slice(p, turn);
	else if (!wants_timer(cpu, turn))
		return 0;
	return fl_end_turn(cpu, now, turn);
}

/*
 * The turn of the task that runs on @cpu ends in @left ns, unless it does so sooner. Called
 * where a task waits and no tick comes at about that time. Another CPU may do so at the
 * same moment: then the later of both ends may be what counts, no later than the slice's.
 *
 * Most turns end by themselves before that, and to set a timer costs as much as a switch of
 * tasks does. So one that is set stays so, and one that fires early is set again.
 */
int fl_end_turn(s32 cpu, u64 now, u64 left)
{
	struct cpu_ctx *cctx = fl_cpu(cpu);
	u64 ends = READ_ONCE(cctx->turn_ends);
	struct turn_timer *t;
	u32 key = cpu;

	if (ends && (s64)(ends - now - left) <= 0)
		return 0;
	t = bpf_map_lookup_elem(&turn_timers, &key);
	if (!t)
		return -ENOENT;
	ends = now + left;
	/* As a barrier: either a firing timer sees the end, or this sees that it has fired. */
	__sync_lock_test_and_set(&cctx->turn_ends, ends);
	return fl_timer_arm(&t->timer, &t->alarm, ends, now);
}

/* The turn of the task on @cpu is over. Not inlined: `record` sees it here. */
__noinline int fl_turn_ends(s32 cpu)
{
	fl_cpu(cpu)->turn_ends = 0;
	fl_kick(cpu, SCX_KICK_PREEMPT);
	return 0;
}

/* Too late by a moment is not too early for the turn that was meant. */
#define TURN_SLACK_NS (50 * FL_USEC)

static int turn_over(void *map, u32 *key, struct turn_timer *t)
{
	struct cpu_ctx *cctx = fl_cpu(*key);
	u64 now = fl_timer_now(&t->alarm), ends;

	/* Another task may run meanwhile, whose turn ends later, or with a tick. */
	ends = READ_ONCE(cctx->turn_ends);
	if (!ends)
		return 0;
	if (now + TURN_SLACK_NS >= ends)
		return fl_turn_ends(*key);
	fl_timer_set(&t->timer, &t->alarm, ends, now);
	return 0;
}

/* Longer than tasks of ours wait for each other; RCU's patience is 21 s, the watchdog's 30. */
#define STARVED_MOST_NS (10000000 * FL_USEC)

/*
 * Of --partial, where the kernel reserves no CPU time for us: each task that got no CPU for that
 * long, and waits at one that a higher class has. It may have been displaced while it read
 * under RCU, and then all that waits for RCU waits for it, the end of any scheduler
 * included. The agent makes normal tasks of those.
 */
SEC("?iter/task")
int starved_tasks(struct bpf_iter__task *ctx)
{
	struct task_struct *p = ctx->task;
	struct task_ctx *tctx = p ? fl_task(p) : NULL;
	u32 pid;

	if (!tctx || p->policy != POLICY_EXT || !tctx->waiting_since ||
	    elapsed(tctx->waiting_since, scx_bpf_now()) <
		    lesser(2 * starves_ns(), STARVED_MOST_NS) ||
	    !fl_is_taken(scx_bpf_task_cpu(p)))
		return 0;
	pid = p->pid;
	bpf_seq_write(ctx->meta->seq, &pid, sizeof(pid));
	return 0;
}

/* From ops.init, as the timers of parked tasks are. */
int fl_late_init(u32 cpu)
{
	struct turn_timer *turn = bpf_map_lookup_elem(&turn_timers, &cpu);
	struct look_timer *t = bpf_map_lookup_elem(&look_timers, &cpu);
	int err;

	if (!turn || !t)
		return -ENOENT;
	bpf_timer_init(&turn->timer, &turn_timers, CLOCK_MONOTONIC);
	err = bpf_timer_set_callback(&turn->timer, turn_over);
	if (err)
		return err;
	bpf_timer_init(&t->timer, &look_timers, CLOCK_MONOTONIC);
	return bpf_timer_set_callback(&t->timer, look);
}
