/* SPDX-License-Identifier: GPL-2.0-only */
/* The queues of a CPU that goes are emptied: why, and by whom, hotplug.bpf.c says. */
#include "freqlock.bpf.h"
#include "drain.bpf.h"
#include "kick.bpf.h"

/* Hand what waits in @queue, one of those of @cpu, to the kernel; the number of tasks. */
static u32 drain_queue(u64 queue, s32 cpu)
{
	struct task_struct *p;
	u32 n = 0;

	/*
	 * Of its own tasks, to its own local queue: affinity does not matter. A task that was sent
	 * here from another CPU (go_on()) may run here, or is put back behind the iterator.
	 */
	bpf_for_each(scx_dsq, p, queue, 0)
		n += scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL_ON | cpu, 0);
	return n;
}

/*
 * Hand all that waits for @cpu, which goes, to the kernel. Tasks enter these queues only
 * when they are moved between or within them: those look at @offline once they did, and
 * come here. The lock of the queue orders the two: either the iterator above sees the
 * task, or they see @offline.
 */
__noinline int fl_drain(s32 cpu)
{
	u32 n;

	bpf_rcu_read_lock();
	n = drain_queue(fl_park(cpu), cpu) + drain_queue(fl_queue(cpu), cpu) +
	    drain_queue(fl_late(cpu), cpu);
	bpf_rcu_read_unlock();
	if (n) {
		cpu_stats[bpf_get_smp_processor_id() & (FL_MAX_CPUS - 1)]
			.count[FL_STAT_drained] += n;
		fl_kick(cpu, SCX_KICK_PREEMPT);
	}
	return 0;
}
