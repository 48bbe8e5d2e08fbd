/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Records what the kernel's scheduler, or any other, does: not part of our own, so that
 * it costs nothing where nobody records. Where events go, record.bpf.h says.
 */
#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "record.bpf.h"

char _license[] SEC("license") = "GPL";

extern struct rq runqueues __ksym;

static __always_inline void record_name(u32 pid, const char *comm)
{
	u64 name[2] = {};

	if (!is_wanted(FL_TRACE_name))
		return;
	bpf_probe_read_kernel_str(name, sizeof(name), comm);
	record(FL_TRACE_name, pid, name[0]);
	if (name[1] && is_wanted(FL_TRACE_name_rest))
		record(FL_TRACE_name_rest, pid, name[1]);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(record_fork, struct task_struct *parent, struct task_struct *child)
{
	record(FL_TRACE_fork, child->pid, (u64)child->tgid << 32 | (u32)parent->pid);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(record_exec, struct task_struct *p, pid_t old_pid)
{
	if (is_wanted(FL_TRACE_exec))
		record(FL_TRACE_exec, p->pid, (u32)old_pid);
	record_name(p->pid, p->comm);
	return 0;
}

SEC("tp_btf/task_rename")
int BPF_PROG(record_rename, struct task_struct *p, const char *comm)
{
	record_name(p->pid, comm);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(record_exit, struct task_struct *p)
{
	record(FL_TRACE_exit, p->pid, 0);
	return 0;
}

static u32 cpu_of(struct task_struct *p)
{
	return p->thread_info.cpu;
}

/* Who runs here, which woke it unless an interrupt did, and for which CPU. */
static u64 woken_by(struct task_struct *p)
{
	return (u64)cpu_of(p) << 32 | (u32)bpf_get_current_pid_tgid();
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(record_wakeup, struct task_struct *p)
{
	record(FL_TRACE_wakeup, p->pid, woken_by(p));
	return 0;
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(record_wakeup_new, struct task_struct *p)
{
	record(FL_TRACE_wakeup_new, p->pid, woken_by(p));
	return 0;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(record_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	/* Preempted on its way to sleep, it is still runnable. */
	u64 state = preempt ? 0 : prev_state;

	record(FL_TRACE_switch, next->pid, state << 32 | (u32)prev->pid);
	return 0;
}

SEC("tp_btf/sched_migrate_task")
int BPF_PROG(record_migrate, struct task_struct *p, int dest)
{
	record(FL_TRACE_migrate, p->pid, (u64)cpu_of(p) << 32 | (u32)dest);
	return 0;
}

SEC("tp_btf/cpu_idle")
int BPF_PROG(record_idle, unsigned int state)
{
	if (state != (u32)-1) {
		if (is_wanted(FL_TRACE_idle))
			record(FL_TRACE_idle, 0, state);
	} else if (is_wanted(FL_TRACE_idle_end)) {
		record(FL_TRACE_idle_end, 0, 0);
	}
	return 0;
}

SEC("tp_btf/cpu_frequency")
int BPF_PROG(record_frequency, unsigned int khz, unsigned int cpu)
{
	record(FL_TRACE_frequency, 0, (u64)cpu << 32 | khz);
	return 0;
}

/* The tasks that there are, by the PIDs of the kernel's own namespace. */
SEC("iter/task")
int record_tasks(struct bpf_iter__task *ctx)
{
	struct task_struct *p = ctx->task;
	struct rec_task task = {};
	struct rq *rq;
	u32 cpu;

	if (!p)
		return 0;
	task.pid = p->pid;
	task.tgid = p->tgid;
	task.running_on = -1;
	cpu = cpu_of(p);
	rq = bpf_per_cpu_ptr(&runqueues, cpu);
	if (rq && rq->curr == p)
		task.running_on = cpu;
	bpf_probe_read_kernel_str(task.comm, sizeof(task.comm), p->comm);
	bpf_seq_write(ctx->meta->seq, &task, sizeof(task));
	return 0;
}
