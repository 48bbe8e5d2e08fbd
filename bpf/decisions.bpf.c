/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records what only our own scheduler knows: programs on its functions, so that it has no
 * code for that, and nothing to pay where nobody records. The agent loads this object once
 * for each program of the scheduler, with those of the programs here whose function the
 * other one has: a function is there once for each that calls it.
 *
 * What a program here is called, says which event it writes: record_KIND, or
 * record_KIND__WHERE. Arguments that point somewhere are plain numbers to the verifier, so what
 * they point to is read as any memory of the kernel is. The layout of that must be the
 * scheduler's: the agent compares it.
 */
#include "freqlock.bpf.h"
#include "decision.bpf.h"
#include "policy/graph.h"
#include "record.bpf.h"
#include "weighed.bpf.h"

char _license[] SEC("license") = "GPL";

/* For the agent, before load. */
const volatile u32 task_ctx_size = sizeof(struct task_ctx);
const volatile u32 placement_size = sizeof(struct placement);

static u64 arg_of(void *ctx, u32 number)
{
	u64 value = 0;

	bpf_get_func_arg(ctx, number, &value);
	return value;
}

static u64 result_of(void *ctx)
{
	u64 value = 0;

	bpf_get_func_ret(ctx, &value);
	return value;
}

static u32 pid_of(u64 task)
{
	return fl_cast((const struct task_struct *)task)->pid;
}

static u64 both(u32 high, u32 low)
{
	return (u64)high << 32 | low;
}

/* A member of a struct of ours. */
#define read(at, type, member)                                                \
	({                                                                    \
		typeof(((type *)0)->member) value = {};                       \
		bpf_probe_read_kernel(&value, sizeof(value),                  \
				      (void *)(at) + offsetof(type, member)); \
		value;                                                        \
	})

/* fl_freq_tick(cpu, now): the speed. */
SEC("?fexit/fl_freq_tick")
int record_tick(u64 *ctx)
{
	record(FL_TRACE_tick, (u32)bpf_get_current_pid_tgid(), (u32)result_of(ctx));
	return 0;
}

/* fl_place(p, tctx, pl): the CPU. What is read of @pl is read at once: each read is a call. */
SEC("?fexit/fl_place")
int record_place(u64 *ctx)
{
	u64 head[__builtin_offsetof(struct placement, now) / sizeof(u64)] = {};
	const struct placement *pl = (const void *)head;
	s32 cpu = result_of(ctx);
	u32 why;

	bpf_probe_read_kernel(head, sizeof(head), (void *)arg_of(ctx, 2));
	why = pl->mode & REC_PLACE_MODE;
	if (pl->idle)
		why |= REC_PLACE_IDLE;
	if (pl->park)
		why |= REC_PLACE_PARK;
	if (pl->hold)
		why |= REC_PLACE_SET;
	if (pl->prev_cpu == cpu)
		why |= REC_PLACE_PREV;
	if (pl->fork)
		why |= REC_PLACE_FORK;
	record(FL_TRACE_place, pid_of(arg_of(ctx, 0)), both(why, cpu));
	return 0;
}

/* fl_claim_big(p, from, now): the CPU, idle, or none. */
SEC("?fexit/fl_claim_big")
int record_place__big(u64 *ctx)
{
	s32 cpu = result_of(ctx);

	if (cpu >= 0)
		record(FL_TRACE_place, pid_of(arg_of(ctx, 0)),
		       both(REC_PLACE_BIG | REC_PLACE_IDLE, cpu));
	return 0;
}

/* fl_bandwidth_throttle(p, tctx, enq_flags, now): whether it was. */
SEC("?fexit/fl_bandwidth_throttle")
int record_throttle(u64 *ctx)
{
	if ((u8)result_of(ctx))
		record(FL_TRACE_throttle, pid_of(arg_of(ctx, 0)),
		       read(arg_of(ctx, 1), struct task_ctx, throttled_by));
	return 0;
}

/* fl_slot_of(w, hash), where a wait begins: the lock's slot, or none. */
SEC("?fexit/fl_slot_of")
int record_lock_wait(u64 *ctx)
{
	s32 slot = result_of(ctx);

	if (slot >= 0)
		record(FL_TRACE_lock_wait, pid_of(arg_of(ctx, 0)),
		       both(arg_of(ctx, 1) >> 16, slot));
	return 0;
}

/* fl_holds_add(hctx, slot, self), as another begins to wait, or as it is given to @self. */
SEC("?fentry/fl_holds_add")
int record_lock_hold(u64 *ctx)
{
	record(FL_TRACE_lock_hold, arg_of(ctx, 2) >> 32, (u32)arg_of(ctx, 1));
	return 0;
}

/* fl_lock_end(wctx, self, handoff, now): of a task that waits, or does not. */
static void lock_end(u64 *ctx, bool handoff, enum fl_trace kind)
{
	u32 edge;

	if ((bool)arg_of(ctx, 2) != handoff)
		return;
	edge = read(arg_of(ctx, 0), struct task_ctx, edge);
	if (edge)
		record(kind, arg_of(ctx, 1) >> 32,
		       both((u32)bpf_get_current_pid_tgid(), edge_slot(edge)));
}

SEC("?fentry/fl_lock_end")
int record_handoff(u64 *ctx)
{
	lock_end(ctx, true, FL_TRACE_handoff);
	return 0;
}

SEC("?fentry/fl_lock_end")
int record_lock_left(u64 *ctx)
{
	lock_end(ctx, false, FL_TRACE_lock_left);
	return 0;
}

/* fl_hold_deadline(tctx, self, cpu, now): its deadline, which its waiters may make earlier. */
SEC("?fexit/fl_hold_deadline")
int record_boost(u64 *ctx)
{
	if (result_of(ctx) != read(arg_of(ctx, 0), struct task_ctx, deadline))
		record(FL_TRACE_boost, arg_of(ctx, 1) >> 32, (u32)arg_of(ctx, 2));
	return 0;
}

/* fl_turn_ends(cpu). */
SEC("?fentry/fl_turn_ends")
int record_slice_end(u64 *ctx)
{
	u32 cpu = arg_of(ctx, 0);
	bool here = cpu == bpf_get_smp_processor_id();

	record(FL_TRACE_slice_end, here ? (u32)bpf_get_current_pid_tgid() : 0, cpu);
	return 0;
}

/* fl_spin_tick(p, tctx, cpu, now): whether it spins. */
SEC("?fexit/fl_spin_tick")
int record_spinner(u64 *ctx)
{
	if ((u8)result_of(ctx))
		record(FL_TRACE_spinner, pid_of(arg_of(ctx, 0)), 0);
	return 0;
}

/* fl_account_waited(wctx, self, handoff, now): the end of a wait, an inversion or none. */
SEC("?fentry/fl_account_waited")
int record_inversion(u64 *ctx)
{
	u64 wctx = arg_of(ctx, 0), now = arg_of(ctx, 3), since, us;
	u64 holder = read(wctx, struct task_ctx, inversion).holder;

	if (!holder)
		return 0;
	since = read(wctx, struct task_ctx, edge_since);
	us = now > since ? (now - since) / FL_USEC : 0;
	record(FL_TRACE_inversion, arg_of(ctx, 1) >> 32,
	       both(us < (u32)-1 ? us : (u32)-1, holder >> 32));
	return 0;
}

/* fl_place(p, tctx, pl) and fl_place_again(p, pl) begin: whose decision it is. */
static int begins(u64 *ctx)
{
	struct deciding *it = deciding();

	if (it)
		it->pid = pid_of(arg_of(ctx, 0));
	return 0;
}

SEC("?fentry/fl_place")
int record_weigh__place(u64 *ctx)
{
	return begins(ctx);
}

SEC("?fentry/fl_place_again")
int record_weigh__again(u64 *ctx)
{
	return begins(ctx);
}

/* fl_prev_is_best(pid, pl): whether a woken task goes back without a look at others. */
SEC("?fexit/fl_prev_is_best")
int record_weigh__back(u64 *ctx)
{
	struct deciding *it = deciding();
	struct placement *pl;
	struct cpu_ctx *prev;
	u32 flags;

	if (!it || !(u8)result_of(ctx))
		return 0;
	pl = &it->pl;
	bpf_probe_read_kernel(pl, sizeof(*pl), (void *)arg_of(ctx, 1));
	prev = element(at_cpu_ctxs, struct cpu_ctx, pl->prev_cpu);
	if (!prev)
		return 0;
	flags = flags_of(pl) | REC_DECIDES_BACK;
	/* A look says for how long it holds. */
	if (prev->back.until != pl->now + FREQ_STEP_NS)
		return record_decision(it->pid, pl, flags | REC_DECIDES_AGAIN, 0);
	record_decision(it->pid, pl, flags, 1);
	return record_candidate(it->pid, pl->prev_cpu, AUTO_PREV << 1 | true, pl->now);
}

/* fl_choose(pl) begins. */
SEC("?fentry/fl_choose")
int record_weigh(u64 *ctx)
{
	struct deciding *it = deciding();
	struct auto_choice *choice;
	u32 why, nr = 0;

	if (!it)
		return 0;
	choice = &it->pl.choice;
	bpf_probe_read_kernel(&it->pl, sizeof(it->pl), (void *)arg_of(ctx, 0));
	for (why = 0; why < NR_AUTO; why++)
		nr += choice->cpu[why] >= 0;
	record_decision(it->pid, &it->pl, flags_of(&it->pl), nr);
	for (why = 0; why < NR_AUTO; why++) {
		if (choice->cpu[why] >= 0)
			record_candidate(it->pid, choice->cpu[why], why << 1 | choice->idle[why],
					 it->pl.now);
	}
	return 0;
}

/* fl_choose(pl): the candidate, or none. */
SEC("?fexit/fl_choose")
int record_chosen(u64 *ctx)
{
	struct deciding *it = deciding();
	struct auto_choice *choice;

	if (!it)
		return 0;
	choice = &it->pl.choice;
	bpf_probe_read_kernel(choice, sizeof(*choice),
			      (void *)(arg_of(ctx, 0) + offsetof(struct placement, choice)));
	record(FL_TRACE_chosen, it->pid, both(choice->best_why, choice->best));
	return 0;
}
