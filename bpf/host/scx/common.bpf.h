/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stands in for scx's header where replay.c compiles parts of the scheduler for the host: what
 * freqlock.bpf.h names of the kernel. What is only declared is never called there.
 */
#ifndef __FREQLOCK_HOST_COMMON_H
#define __FREQLOCK_HOST_COMMON_H

#include <stddef.h>
#include <sys/cdefs.h>

#include "intf.h"

#define SEC(name)
#define __weak
#define __ksym
#define __noinline __attribute__((noinline))
#define __arg_nonnull
#define __arg_trusted
#define __uint(name, val)        int(*name)[val]
#define __type(name, val)        typeof(val) *name
#define READ_ONCE(x)             (*(const volatile typeof(x) *)&(x))
#define BPF_PROG(name, ...)      name(__VA_ARGS__)
#define BPF_CORE_READ(...)       0
#define bpf_core_cast(ptr, type) ((const type *)(ptr))
#define BPF_F_CURRENT_CPU        0xffffffffULL

enum {
	BPF_MAP_TYPE_ARRAY,
	BPF_MAP_TYPE_TASK_STORAGE,
	BPF_MAP_TYPE_PERF_EVENT_ARRAY,
	BPF_F_NO_PREALLOC,
};

enum { SCX_DSQ_LOCAL_ON };

struct cpumask {
	u64 bits[1];
};

struct task_struct {
	s32 prio;
	s32 pid;
	u32 policy;
	s32 nr_cpus_allowed;
	struct cpumask cpus_mask;
};

struct rq {
	u32 nr_running;
	struct task_struct *curr;
};

struct bpf_perf_event_value {
	u64 counter;
};

/* What a replay may come by. */
struct rq *host_rq(s32 cpu);
#define bpf_per_cpu_ptr(variable, cpu) host_rq(cpu)

static inline u32 bpf_get_smp_processor_id(void)
{
	return 0;
}

u64 scx_bpf_now(void);
void *bpf_task_storage_get(void *map, struct task_struct *p, void *value, u64 flags);
struct task_struct *bpf_task_from_pid(s32 pid);
void bpf_task_release(struct task_struct *p);
bool bpf_in_hardirq(void);
bool bpf_in_serving_softirq(void);
bool is_migration_disabled(const struct task_struct *p);
bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *mask);
s32 scx_bpf_dsq_nr_queued(u64 dsq);

/* As a replay never comes to what asks for them. */
static inline const struct cpumask *scx_bpf_get_idle_smtmask(void)
{
	return 0;
}

static inline u32 bpf_cpumask_weight(const struct cpumask *mask)
{
	return 0;
}

static inline void scx_bpf_put_idle_cpumask(const struct cpumask *mask)
{
}

static inline u32 scx_bpf_cpuperf_cur(s32 cpu)
{
	return 0;
}

static inline void scx_bpf_cpuperf_set(s32 cpu, u32 perf)
{
}

static inline long bpf_perf_event_read_value(void *map, u64 flags, struct bpf_perf_event_value *to,
					     u32 size)
{
	return -1;
}

#endif /* __FREQLOCK_HOST_COMMON_H */
