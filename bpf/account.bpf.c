/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is reported of each task (taskstats.h), of priority inversions, and of CPUs.
 *
 * A task's figures are in its context, so that nothing is looked up to count. They
 * are written by the CPU that has the task, or by the holder of its run queue's
 * lock; holds and boosts, by the task itself. The agent reads them with the
 * iterator below while that goes on: each figure for itself is right, and two of
 * them may be an event apart. When a task exits, its figures leave through a ring
 * buffer, and where that is full, they are added up for the machine.
 *
 * An inversion is a task's wait for a lock that a task of lesser weight holds; or,
 * where the holder waits for a lock itself, that such a task is at the end of the
 * chain. A chain that grows later is not looked at again: the task that makes it
 * grow weighs as much as those that wait for it already, so that its wait is the
 * inversion. The holder's time is read while it runs elsewhere, and may be off by
 * what it ran since its CPU counted last, a tick.
 *
 * With --adapt, what all tasks of a policy did is added up as well, per CPU: the
 * agent looks several times a second, and going through the tasks would cost it more
 * than this does the tasks.
 */
#include "freqlock.bpf.h"
#include "account.bpf.h"
#include "cgroup.bpf.h"
#include "freq.bpf.h"
#include "graph.bpf.h"
#include "kick.bpf.h"
#include "place.bpf.h"
#include "policy/balance.h"
#include "policy/graph.h"
#include "policy/learn.h"
#include "policy/profile.h"

/* Below this share of full speed time counts as slow. */
#define SLOW_BELOW (3 * FL_FULL_SPEED / 4)

/* Bytes of the buffers. */
enum {
	EXITS_ROOM = 1 << 20,
	INVERSIONS_ROOM = 1 << 18,
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, EXITS_ROOM);
} exits SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, INVERSIONS_ROOM);
} inversions SEC(".maps");

/* By where the policy stands; one entry only without --adapt. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, FL_MAX_POLICIES);
	__type(key, u32);
	__type(value, struct fl_done);
} done_by_policy SEC(".maps");

struct fl_task_stats exits_lost;
u64 inversion_slot[FL_PROFILE_SLOTS];
u64 inversion_off_ns;

/*
 * Where what @tctx does is added up; NULL without --adapt. An interrupt between load
 * and store may lose an addition, as it may a count.
 */
static __always_inline struct fl_done *done_of(const struct task_ctx *tctx)
{
	u32 policy = tctx->policy;

	return adapts ? bpf_map_lookup_elem(&done_by_policy, &policy) : NULL;
}

/*
 * A woken or forked task was given a CPU: the one that it, or its parent, had last; an
 * idle one; or one to wait for on purpose.
 */
int fl_account_placed(struct task_ctx *tctx __arg_nonnull, bool kept, bool idle, bool park)
{
	tctx->stats.woken++;
	tctx->stats.to_same += kept;
	tctx->stats.to_idle += idle;
	tctx->stats.to_wait += park;
	return 0;
}

/* @tctx begins to run on @cpu. */
int fl_account_picked(struct task_ctx *tctx __arg_nonnull, s32 cpu, u64 now)
{
	struct fl_task_stats *stats = &tctx->stats;
	/* Of one that ran as the scheduler started it is not known. */
	u64 waited = tctx->waiting_since ? elapsed(tctx->waiting_since, now) : 0;
	u64 let_go = fl_throttled_until(tctx, now), throttled;
	struct fl_done *done = done_of(tctx);

	if (let_go) {
		throttled = shorter(waited, elapsed(tctx->waiting_since, let_go));
		waited -= throttled;
		stats->throttled += throttled;
	}
	if (done)
		done->wait += waited;
	stats->wait += waited;
	stats->picked++;
	stats->migrated += tctx->ran_on >= 0 && tctx->ran_on != cpu;
	tctx->ran_on = cpu;
	tctx->counted_at = now;
	return 0;
}

/* @tctx has run until @now, at @speed (0..1024). */
int fl_account_run(struct task_ctx *tctx __arg_nonnull, u64 now, u32 speed)
{
	struct fl_task_stats *stats = &tctx->stats;
	u64 ran = elapsed(tctx->counted_at, now), work = work_of(ran, speed);
	struct fl_done *done = done_of(tctx);

	if (done) {
		done->run += ran;
		done->work += tctx->spin.spinning ? 0 : work;
	}
	tctx->counted_at = now;
	stats->run += ran;
	stats->work += work;
	if (speed < SLOW_BELOW)
		stats->slow += ran;
	if (tctx->spin.spinning)
		stats->spin += ran;
	return 0;
}

/* Time that @tctx has had on a CPU until @now. */
static u64 ran_until(const struct task_ctx *tctx, u64 now)
{
	u64 at = tctx->counted_at;

	return tctx->stats.run + (tctx->run_start ? elapsed(at, now) : 0);
}

/* @inv begins if @hctx, which is @holder, has a lesser level. */
static bool inversion_begins(struct inversion *inv, const struct task_ctx *hctx, u64 holder,
			     u64 now)
{
	if (inv->level <= hctx->level)
		return false;
	inv->holder = holder;
	inv->holder_ran = ran_until(hctx, now);
	inv->holder_level = hctx->level;
	return true;
}

/* @wctx begins to wait for @lock, which @hctx holds; at which level, stands there already. */
int fl_account_waits(struct task_ctx *wctx __arg_nonnull, struct task_ctx *hctx __arg_nonnull,
		     u64 holder, u64 lock, u64 now)
{
	struct inversion *inv = &wctx->inversion;
	struct task_ctx *lctx = NULL;
	struct task_struct *last;

	wctx->edge_since = now;
	inv->holder = 0;
	inv->lock = lock;
	if (inversion_begins(inv, hctx, holder, now) || !hctx->edge)
		return 0;
	holder = chain_end(lock_slots, hctx->edge);
	last = fl_task_of(holder, &lctx);
	if (!last)
		return 0;
	inversion_begins(inv, lctx, holder, now);
	bpf_task_release(last);
	return 0;
}

static s32 nice_of_level(u32 level)
{
	return LEVEL_NICE_19 + 19 - (s32)level;
}

/* Wakes the agent when half of the buffer is used, if it can; else it looks now and then. */
static u64 wakeup_flags(void *ring, u64 size)
{
	if (bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) > size / 2 && !fl_cannot_kick())
		return BPF_RB_FORCE_WAKEUP;
	return BPF_RB_NO_WAKEUP;
}

/* Name and process of the task that fl_self() called @self; what is gone stays 0. */
static void name(u64 self, u32 *pid, u32 *tgid, char *comm)
{
	struct task_struct *p = bpf_task_from_pid(self >> 32);

	*pid = self >> 32;
	*tgid = 0;
	if (!p)
		return;
	*tgid = p->tgid;
	bpf_probe_read_kernel_str(comm, FL_COMM, p->comm);
	bpf_task_release(p);
}

/* The wait of @wctx, an inversion, is over after @length ns. */
static void report_inversion(struct task_ctx *wctx, u64 self, u64 length, u64 off, u32 end)
{
	struct inversion *inv = &wctx->inversion;
	struct fl_inversion *e = bpf_ringbuf_reserve(&inversions, sizeof(*e), 0);

	if (!e) {
		fl_count(inversion_lost);
		return;
	}
	fl_count(inversion_reported);
	e->at = bpf_ktime_get_ns();
	e->length = length;
	e->holder_off = off;
	e->lock = inv->lock;
	e->end = end;
	e->waiter_nice = nice_of_level(inv->level);
	e->holder_nice = nice_of_level(inv->holder_level);
	e->waiter_comm[0] = e->holder_comm[0] = 0;
	name(self, &e->waiter, &e->waiter_tgid, e->waiter_comm);
	name(inv->holder, &e->holder, &e->holder_tgid, e->holder_comm);
	bpf_ringbuf_submit(e, wakeup_flags(&inversions, INVERSIONS_ROOM));
}

/* The inversion of @wctx is over, by @end: how long it was, and its holder off CPU. */
static void inversion_over(struct task_ctx *wctx, u64 self, u64 now, u32 end)
{
	struct inversion *inv = &wctx->inversion;
	struct task_ctx *hctx = NULL;
	struct task_struct *h = fl_task_of(inv->holder, &hctx);
	u64 length = elapsed(wctx->edge_since, now), ran = 0, off;
	struct fl_done *done = done_of(wctx);

	if (h) {
		ran = ran_until(hctx, now) - inv->holder_ran;
		bpf_task_release(h);
	}
	off = length - lesser(ran, length);
	fl_count(inversion);
	wctx->stats.inversions++;
	wctx->stats.inversion += length;
	if (done)
		done->inversion += length;
	__sync_fetch_and_add(&inversion_slot[in_range(profile_slot(length), FL_PROFILE_SLOTS)], 1);
	__sync_fetch_and_add(&inversion_off_ns, off);
	if (length >= tunables.inversion_us * FL_USEC)
		report_inversion(wctx, self, length, off, end);
	inv->holder = 0;
}

/* The wait of @wctx is over. With @handoff: the current task gave it the lock. */
int fl_account_waited(struct task_ctx *wctx __arg_nonnull, u64 self, bool handoff, u64 now)
{
	struct task_struct *waker = bpf_get_current_task_btf();
	struct task_ctx *ctx = fl_task(waker);
	u64 holder = wctx->inversion.holder;
	u32 end = FL_END_GAVE_UP;

	wctx->stats.lock_waits++;
	wctx->stats.lock_wait += elapsed(wctx->edge_since, now);
	if (!holder)
		return 0;
	if (handoff)
		end = ctx && fl_self(waker, ctx) == holder ? FL_END_HANDED : FL_END_PASSED;
	inversion_over(wctx, self, now, end);
	return 0;
}

static void fill_record(struct fl_task_record *r, struct task_struct *p,
			const struct task_ctx *tctx)
{
	r->start = p->start_boottime;
	r->process_start = fl_cast(p)->group_leader->start_boottime;
	r->cgroup = fl_cgroup_id(p);
	r->pid = p->pid;
	r->tgid = p->tgid;
	r->nice = nice_of_level(tctx->level);
	r->uid = BPF_CORE_READ(p, real_cred, uid.val);
	bpf_probe_read_kernel_str(r->comm, FL_COMM, p->comm);
	bpf_probe_read_kernel_str(r->process, FL_COMM, fl_cast(p)->group_leader->comm);
	r->stats = tctx->stats;
}

/* True if it is none of ours, and never was: with --partial most tasks are not. */
static bool is_others(const struct task_ctx *tctx)
{
	return partial && !tctx->stats.picked;
}

static void add_lost(const struct fl_task_stats *stats)
{
#define TASK_STAT(name, unit, desc) __sync_fetch_and_add(&exits_lost.name, stats->name);
#include "taskstats.h"
#undef TASK_STAT
}

/* @p exits, and what is known of it goes with it. */
int fl_account_exit(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull)
{
	struct fl_task_record *r;

	if (tctx->reported || is_others(tctx))
		return 0;
	tctx->reported = true;
	r = bpf_ringbuf_reserve(&exits, sizeof(*r), 0);
	if (!r) {
		fl_count(exit_lost);
		add_lost(&tctx->stats);
		return 0;
	}
	fl_count(exit_reported);
	fill_record(r, p, tctx);
	bpf_ringbuf_submit(r, wakeup_flags(&exits, EXITS_ROOM));
	return 0;
}

/* Every task, one record after the other. */
SEC("iter/task")
int task_records(struct bpf_iter__task *ctx)
{
	struct task_struct *p = ctx->task;
	struct task_ctx *tctx = p ? fl_task(p) : NULL;
	struct fl_task_record r = {};

	/* A zombie was reported already. */
	if (!tctx || tctx->reported || is_others(tctx))
		return 0;
	fill_record(&r, p, tctx);
	/* What it ran since its CPU counted last is not known to be slow or fast. */
	r.stats.run = ran_until(tctx, scx_bpf_now());
	bpf_seq_write(ctx->meta->seq, &r, sizeof(r));
	return 0;
}

struct fl_cpu_state cpu_states[FL_MAX_CPUS];

/* Run by the agent: what each CPU does now. */
SEC("syscall")
int look_at_cpus(void *ctx)
{
	u64 now = scx_bpf_now();
	u32 cpu;

	bpf_for(cpu, 0, nr_cpus) {
		struct fl_cpu_state *state = &cpu_states[in_range(cpu, FL_MAX_CPUS)];
		struct cpu_ctx *cctx = fl_cpu(cpu);

		state->speed = fl_speed(cpu, now);
		state->util = cctx->util;
		state->running = cctx->running;
		state->warm = fl_is_warm(cpu, now);
		state->queued = queued_ns(cctx->queued_work);
	}
	return 0;
}
