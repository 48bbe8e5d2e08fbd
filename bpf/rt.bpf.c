/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CPUs that real-time and deadline tasks take. What they displace lies in the local queue
 * of such a CPU, from where no other CPU can take it, until it is enqueued again;
 * then an idle CPU takes it. How that happens depends on the kernel:
 *
 * up to 6.18	ops.stopping for the task that ran, ops.cpu_release for others (main.bpf.c);
 * 6.19, 7.0	the hook below, at each switch: ops.cpu_release is deprecated there;
 * from 7.1	the kernel itself, by SCX_OPS_ALWAYS_ENQ_IMMED.
 *
 * With --partial, normal tasks take CPUs in the same way (fl_is_higher). From 7.1 on the hook is
 * there then as well: the kernel's flag does not count for a task that came to us while it
 * ran, and up to 6.18 tasks are kept out of local queues (goes_by_queue, is_about_to_be_taken).
 *
 * Such a CPU is no place for a woken task (fl_is_taken), others take what is queued there
 * (queue.bpf.c), and as it has no tick of ours, the timer of its parked tasks stands in
 * for that (park.bpf.c). What is left: up to 6.18, a task that was sent to an idle CPU in
 * the same moment as a real-time task waits for that one.
 */
#include "freqlock.bpf.h"

SEC("?tp_btf/sched_switch")
int BPF_PROG(rt_takes_cpu, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	if (fl_is_higher(next) && !fl_is_higher(prev))
		scx_bpf_reenqueue_local_from_anywhere();
	return 0;
}
