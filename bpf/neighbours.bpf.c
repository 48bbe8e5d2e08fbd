/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What ran on each CPU in the last period, and what would have: the agent makes the
 * page of CPUs to count on from it (lib/cpus_page.h).
 *
 * Each CPU has a ledger with a bank of entries, one a process, for the period that
 * goes on, and one for the period before. What a task ran, and what it had waited
 * until then, for a CPU or a quota, is entered as it stops, so that a task that runs costs one
 * search of at most LEDGER_TRIES entries; whatever finds no room goes to the bank's last entry, so
 * that sums stay right. An entry carries the period that it is of: nothing is cleared.
 *
 * The agent ends a period by look_at_neighbours. One word says when the period began
 * and which bank it has, so that both change at once. What runs or waits at that
 * moment is entered by the look, in a third bank of its own, up to the end; a task
 * that stops later enters what came after it.
 *
 * Races, none of which lasts longer than its period: a CPU that read the old word may
 * write to the old bank while the agent reads that, a task that stops between the
 * change of the word and the look at its CPU loses what it did since it was picked, and
 * one that is picked then may be taken for the one before. Banks of a CPU are written
 * under the lock of its run queue, so never by two at once; the third, by the agent alone.
 */
#include "freqlock.bpf.h"
#include "neighbours.bpf.h"
#include "cgroup.bpf.h"
#include "bandwidth.bpf.h"
#include "policy/deadline.h"
#include "policy/lock.h"

#define LEDGER_TRIES 4
/* Tasks scanned per queue. */
#define LEDGER_QUEUE 64

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, FL_MAX_CPUS);
	__type(key, u32);
	__type(value, struct fl_ledger);
} ledgers SEC(".maps");

volatile u64 neighbours_period;
struct fl_period period_over;

/* Times of the period @word are counted from here. */
static u64 period_start(u64 word)
{
	return word & ~1ULL;
}

static struct fl_ledger *ledger_of(u32 cpu)
{
	return bpf_map_lookup_elem(&ledgers, &cpu);
}

/* The kernel's threads count as one process, 0. */
static u32 process_of(const struct task_struct *p)
{
	return p->flags & PF_KTHREAD ? 0 : p->tgid;
}

static void begin_entry(struct fl_ledger_entry *e, struct task_struct *p, u32 tgid, u64 period)
{
	e->tgid = tgid;
	e->start = fl_cast(p)->group_leader->start_boottime;
	e->cgroup = fl_cgroup_id(p);
	e->ran = e->waited = e->throttled = e->claim = 0;
	barrier();
	e->period = period;
}

static struct fl_ledger_entry *find_entry(struct fl_ledger_bank *bank, struct task_struct *p,
					  u64 period)
{
	u32 tgid = process_of(p), hash = fl_mix(tgid, 0), i;
	struct fl_ledger_entry *e;

	for (i = 0; i < LEDGER_TRIES; i++) {
		e = &bank->entry[in_range(hash + i, FL_LEDGER_SLOTS)];
		if (e->period != period) {
			begin_entry(e, p, tgid, period);
			return e;
		}
		if (e->tgid == tgid)
			return e;
	}
	fl_count(neighbour_rest);
	e = &bank->rest;
	if (e->period != period)
		begin_entry(e, p, 0, period);
	return e;
}

/*
 * Up to @now, within @period, @p did what its context says: it runs since its run_start,
 * and had waited before that, first for a quota if it was throttled; or it waits.
 */
int fl_neighbour_enter(struct fl_ledger_bank *bank __arg_nonnull,
		       struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
		       u64 period, u64 now)
{
	u64 start = period_start(period), picked = tctx->run_start, until = picked ?: now;
	u64 since = picked ? tctx->waited_since : tctx->waiting_since;
	u64 let_go = picked ? tctx->throttled_until : fl_throttled_until(tctx, now);
	u64 ran = 0, waited = 0, throttled;
	struct fl_ledger_entry *e;

	if (since)
		waited = elapsed(greater(since, start), until);
	throttled = lesser(waited, elapsed(greater(since, start), let_go));
	waited -= throttled;
	if (picked)
		ran = elapsed(greater(picked, start), now);
	if (!ran && !waited && !throttled)
		return 0;
	e = find_entry(bank, p, period);
	e->ran += ran;
	e->waited += waited;
	e->throttled += throttled;
	e->claim += (ran + waited + throttled) * tctx->weight / WEIGHT_NICE_0;
	return 0;
}

/* @p stops on @cpu. */
int fl_neighbour_ran(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
		     s32 cpu, u64 now)
{
	struct fl_ledger *ledger = ledger_of(cpu);
	u64 period = neighbours_period;

	if (ledger && period)
		fl_neighbour_enter(period & 1 ? &ledger->odd : &ledger->even, p, tctx, period, now);
	return 0;
}

/* What runs on @cpu at the end of @period. */
static void look_at_running(struct fl_ledger *ledger, u32 cpu, u64 period, u64 now)
{
	struct cpu_ctx *cctx = fl_cpu(cpu);
	struct task_struct *p = bpf_task_from_pid(cctx->running);
	struct task_ctx *tctx;

	if (!p)
		return;
	tctx = fl_task(p);
	if (tctx && tctx->run_start)
		fl_neighbour_enter(&ledger->look, p, tctx, period, now);
	bpf_task_release(p);
}

/* What waits in @queue at the end of @period, each entered on the CPU that it had. */
__noinline int fl_look_at_queue(u64 queue, u64 period, u64 now)
{
	struct fl_ledger *ledger;
	struct task_struct *p;
	struct task_ctx *tctx;
	u32 seen = 0;

	bpf_rcu_read_lock();
	bpf_for_each(scx_dsq, p, queue, 0) {
		if (seen++ >= LEDGER_QUEUE)
			break;
		tctx = fl_task(p);
		ledger = ledger_of(scx_bpf_task_cpu(p));
		if (tctx && ledger)
			fl_neighbour_enter(&ledger->look, p, tctx, period, now);
	}
	bpf_rcu_read_unlock();
	return 0;
}

/* What waits for quotas. */
static void look_at_throttled(u64 period, u64 now)
{
	u32 slot;

	bpf_for(slot, 0, fl_is_limited() ? FL_MAX_SHARES : 0) {
		if (READ_ONCE(fl_limit(slot)->waits))
			fl_look_at_queue(fl_throttled(slot), period, now);
	}
}

/*
 * Run by the agent: one period is over, another begins. The agent writes 0 to the word
 * where it wants none; the next call is the first again.
 */
SEC("syscall")
int look_at_neighbours(void *ctx)
{
	u64 now = scx_bpf_now(), period = neighbours_period;
	struct fl_ledger *ledger;
	u32 cpu;

	neighbours_period = (now & ~1ULL) | (~period & 1);
	period_over.word = period;
	period_over.length = period ? now - period_start(period) : 0;
	if (!period)
		return 0;
	bpf_for(cpu, 0, nr_cpus) {
		ledger = ledger_of(cpu);
		if (!ledger)
			break;
		look_at_running(ledger, cpu, period, now);
		fl_look_at_queue(fl_queue(cpu), period, now);
		fl_look_at_queue(fl_park(cpu), period, now);
	}
	look_at_throttled(period, now);
	return 0;
}

/* Every process but the kernel's own threads, one record after the other. */
SEC("iter/task")
int process_records(struct bpf_iter__task *ctx)
{
	struct fl_process_record r = { .weight = WEIGHT_NICE_0 };
	struct task_struct *p = ctx->task;
	struct task_ctx *tctx;

	if (!p || p->pid != p->tgid || (p->flags & PF_KTHREAD))
		return 0;
	/* All of its threads have exited; its parent has not waited for it yet. */
	if (!BPF_CORE_READ(p, signal, live.counter))
		return 0;
	tctx = fl_task(p);
	if (tctx)
		r.weight = tctx->weight;
	r.pid = p->pid;
	r.start = p->start_boottime;
	r.cgroup = fl_cgroup_id(p);
	bpf_seq_write(ctx->meta->seq, &r, sizeof(r));
	return 0;
}
