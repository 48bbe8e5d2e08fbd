/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The CPUs that the load keeps warm. How many is policy/warmset.h's to say, by the work that
 * all CPUs have done; they are those nearest to where the load was when the set began. Mode auto
 * looks for idle CPUs in the set only, and what finds none there queues at one of the set, from
 * where the others of it take it as they go idle, and any CPU when it has waited for long.
 */
#include "freqlock.bpf.h"
#include "warm.bpf.h"
#include "policy/warmset.h"

u32 warm_cpus;    /* of the set, 0: there is none */
u32 warm_share;   /* of what an idle one of the set lacks to full speed that is forgiven it */
u64 warm_wait_ns; /* for how long a task waits there at most */
u64 warm_next;    /* when to look next */

/* What all CPUs had done as of then, and the average of their work. */
static u64 warm_at, warm_done, warm_work_avg;
static u32 warm_anchor;

static void machine_of(struct warm_machine *m)
{
	m->ramp_ns = tunables.ramp_us * FL_USEC;
	m->cool_ns = (tunables.decay_after_us + tunables.decay_us) * FL_USEC;
	m->floor = tunables.speed_floor;
}

/* The set is of @size CPUs, those nearest to the anchor. */
static void resize(u32 size)
{
	struct cpu_order *order;
	u32 key = warm_anchor, i;

	order = bpf_map_lookup_elem(&cpu_orders, &key);
	if (!order)
		return;
	bpf_for(i, 0, order->nr)
		fl_cpu(order->cpu[in_range(i, FL_MAX_CPUS)])->in_set = i < size;
}

/*
 * What all CPUs did since the last look, and so how many the load deserves. One CPU looks at a
 * time: by another's half of what was seen, all of the work would seem to be done in no time.
 */
int fl_warm_look(s32 cpu, u64 now)
{
	u64 due = READ_ONCE(warm_next), past, done = 0, work, window;
	u32 size = warm_cpus, i;
	struct warm_machine m;

	machine_of(&m);
	window = warm_window(&m);
	if (now < due || !__sync_bool_compare_and_swap(&warm_next, due, now + window / WARM_LOOKS))
		return 0;
	past = elapsed(warm_at, now);
	bpf_for(i, 0, nr_cpus)
		done += fl_cpu(i)->done;
	work = warm_work(elapsed(warm_done, done), past);
	warm_at = now;
	warm_done = done;
	/* More work counts at once, and its end as slowly as CPUs cool. */
	warm_work_avg = greater(work, warm_average(warm_work_avg, work, past, window));
	warm_wait_ns = warm_wait(&m, fl_slice(NULL));
	size = 0;
	if (tunables.warm_set && warm_pays(&m) && !capacity_differs)
		size = warm_size(warm_cpus, warm_deserved(warm_work_avg, &m), nr_present);
	warm_share = warm_invest(warm_work_avg, tunables.warm_up);
	if (size == warm_cpus)
		return 0;
	if (!warm_cpus)
		warm_anchor = cpu;
	if (size)
		resize(size);
	warm_cpus = size;
	return 0;
}
