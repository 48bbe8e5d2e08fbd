/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scx_floor: a queue for each CPU, first come first served, the kernel's choice of an idle
 * CPU, and nothing else. What it costs is what sched_ext costs; nobody should run it but to
 * compare with.
 */
#include <scx/common.bpf.h>

char _license[] SEC("license") = "GPL";

UEI_DEFINE(uei);

s32 BPF_STRUCT_OPS(floor_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	bool idle = false;
	s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &idle);

	if (idle)
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_DFL, 0);
	return cpu;
}

void BPF_STRUCT_OPS(floor_enqueue, struct task_struct *p, u64 enq_flags)
{
	scx_bpf_dsq_insert(p, scx_bpf_task_cpu(p), SCX_SLICE_DFL, enq_flags);
}

void BPF_STRUCT_OPS(floor_dispatch, s32 cpu, struct task_struct *prev)
{
	scx_bpf_dsq_move_to_local(cpu, 0);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(floor_init)
{
	u32 nr = scx_bpf_nr_cpu_ids(), cpu;
	s32 err;

	bpf_for(cpu, 0, nr) {
		err = scx_bpf_create_dsq(cpu, -1);
		if (err)
			return err;
	}
	return 0;
}

void BPF_STRUCT_OPS(floor_exit, struct scx_exit_info *ei)
{
	UEI_RECORD(uei, ei);
}

SCX_OPS_DEFINE(floor_ops,
	       .select_cpu	= (void *)floor_select_cpu,
	       .enqueue		= (void *)floor_enqueue,
	       .dispatch	= (void *)floor_dispatch,
	       .init		= (void *)floor_init,
	       .exit		= (void *)floor_exit,
	       .name		= "floor");
