/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CPUs that go and come while the scheduler runs. Queues, timers and contexts exist for
 * all CPUs that can ever come, and the kernel moves a timer whose CPU goes.
 *
 * A CPU goes: from the moment at which it is no longer active, the kernel puts what
 * becomes runnable there into the CPU's local queue without asking, pushes the tasks of that
 * queue to CPUs that stay, which enqueues them there, and asks for nothing. Of what waits
 * in our queues it knows nothing. It tells us only after an RCU grace period, for which one of
 * those tasks may be needed, and waits until nothing is runnable on the CPU. So
 * from before until it tells, a timer puts all of that into the local queue too; busy CPUs
 * may not come to take it, and no other CPU may take a task that is bound to this one.
 *
 * What is bound to a CPU that goes or comes, cpuhp/N before all, runs there meanwhile. When its
 * slice ends and it is the only one, the kernel puts it into the local queue, since
 * we want to see the last task, and may idle all the same until something else
 * wakes the CPU (seen on 6.16; later releases of 6.12 do not). So ops.stopping has
 * the CPU look again.
 *
 * The last that a CPU does with interrupts off for good is to wake who waits for its end.
 * Its kicks are lost (fl_cannot_kick()), so that task goes to the local queue of its CPU, where
 * the kernel itself has that CPU look.
 *
 * A CPU comes: where the others are is in the agent's order of them, where this one is the
 * agent finds out a moment later. Until then it is far from all others, and the last that
 * they take tasks from.
 */
#include "freqlock.bpf.h"
#include "hotplug.bpf.h"
#include "drain.bpf.h"
#include "kick.bpf.h"
#include "park.bpf.h"

/* From ops.init, which no CPU that comes or goes can overtake. */
int fl_hotplug_init(void)
{
	u32 cpu;

	bpf_for(cpu, 0, nr_cpus)
		fl_cpu(cpu)->offline = fl_is_unplugged(cpu);
	return 0;
}

/* True if a step of the kernel's is the one that makes a CPU active or inactive. */
static bool is_activity(int step)
{
	return step == (int)bpf_core_enum_value(enum cpuhp_state, CPUHP_AP_ACTIVE);
}

/* @cpu is about to take a step on its way to @target. */
SEC("tp_btf/cpuhp_enter")
int BPF_PROG(cpu_steps, unsigned int cpu, int target, int step)
{
	if (!is_activity(step) || target >= step)
		return 0;
	fl_cpu(cpu)->going = true;
	fl_park_arm(cpu, scx_bpf_now(), 1);
	return 0;
}

/* Done, or not: then it stays. */
SEC("tp_btf/cpuhp_exit")
int BPF_PROG(cpu_stepped, unsigned int cpu, int state, int step)
{
	if (is_activity(step))
		fl_cpu(cpu)->going = false;
	return 0;
}

void BPF_STRUCT_OPS(freqlock_cpu_offline, s32 cpu)
{
	fl_count(cpu_went);
	fl_cpu(cpu)->offline = true;
	fl_drain(cpu);
}

static void order_append(struct cpu_order *order, s32 cpu)
{
	u32 nr = order->nr;

	if (nr >= FL_MAX_CPUS)
		return;
	order->cpu[nr & (FL_MAX_CPUS - 1)] = cpu;
	order->first[FL_NR_DISTANCES] = nr + 1;
	order->nr = nr + 1;
}

/*
 * @cpu, of which the agent does not know, is far from all others. Should the agent write
 * orders at the same time, one may lack a CPU or have it twice until it looks again.
 */
__noinline int fl_order_newcomer(s32 cpu)
{
	u32 key = cpu, other;
	struct cpu_order *own = bpf_map_lookup_elem(&cpu_orders, &key), *order;

	if (!own)
		return 0;
	own->nr = 0;
	order_append(own, cpu);
	bpf_for(other, 0, nr_cpus) {
		if (other == key || !fl_topo(other)->present || fl_is_isolated(other))
			continue;
		order_append(own, other);
		order = bpf_map_lookup_elem(&cpu_orders, &other);
		if (order)
			order_append(order, cpu);
	}
	return 0;
}

/* Nothing is asked of us about this CPU until it returns. */
void BPF_STRUCT_OPS(freqlock_cpu_online, s32 cpu)
{
	struct cpu_ctx *cctx = fl_cpu(cpu);

	fl_count(cpu_came);
	if (!fl_topo(cpu)->present) {
		fl_order_newcomer(cpu);
		fl_topo(cpu)->present = FL_CAME;
	}
	/* Its clock was off, and so was what it was asked for. */
	cctx->speed = 0;
	cctx->util = 0;
	cctx->asked = 0;
	cctx->busy_ns = 0;
	cctx->was_idle = true;
	cctx->speed_at = scx_bpf_now();
	cctx->offline = false;
}
