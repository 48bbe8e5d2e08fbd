// SPDX-License-Identifier: GPL-2.0-only
/*
 * Watches CPUs and tasks for the lab: scx_rustland_core tells user space neither which CPUs
 * are idle nor who woke a task up. Each CPU has a struct of its own. The two that may write to
 * that of a task at once, its waker and the CPU that it leaves, write different fields.
 */
#include <scx/common.bpf.h>
#include <bpf_experimental.h>

#include "watch.h"

/* Priorities of tasks of higher classes are below. */
#define PRIO_RT_END 100

char _license[] SEC("license") = "GPL";

struct watch_cpu cpus[FL_MAX_CPUS];
struct watch_task tasks[WATCH_TASKS];

static struct watch_cpu *this_cpu(void)
{
	return &cpus[bpf_get_smp_processor_id() & (FL_MAX_CPUS - 1)];
}

static struct watch_task *task_of(u32 pid)
{
	struct watch_task *task = &tasks[pid & (WATCH_TASKS - 1)];

	if (task->pid != pid)
		*task = (struct watch_task){ .pid = pid };
	return task;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(watch_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int state)
{
	u64 now = bpf_ktime_get_ns(), ran;
	struct watch_cpu *cpu = this_cpu();
	struct watch_task *task;

	ran = now - cpu->since;
	if (prev->pid) {
		cpu->busy += cpu->since ? ran : 0;
		cpu->last = prev->pid;
		task = task_of(prev->pid);
		task->ran += cpu->since ? ran : 0;
		if (!preempt && state) {
			task->burst = task->ran;
			task->slept_at = now;
			task->bursts++;
		}
	}
	if (next->pid)
		task_of(next->pid)->began_at = now;
	cpu->pid = next->pid;
	cpu->taken = next->pid && next->prio < PRIO_RT_END;
	cpu->since = now;
	return 0;
}

/* @p is woken up, or is new. */
static void comes(struct task_struct *p, u32 flags)
{
	u64 now = bpf_ktime_get_ns();
	struct watch_task *task = task_of(p->pid);

	if (bpf_in_task() && this_cpu()->pid)
		flags |= WATCH_FROM_TASK;
	task->waker = bpf_get_smp_processor_id();
	task->flags = flags;
	task->slept = task->slept_at ? now - task->slept_at : 0;
	task->ran = 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(watch_waking, struct task_struct *p)
{
	comes(p, 0);
	return 0;
}

/* Raised as a new task comes to its first queue: the scheduler has been asked by then. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(watch_fork, struct task_struct *parent, struct task_struct *child)
{
	comes(child, WATCH_FORK);
	return 0;
}
