/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Watches one tree of processes under whatever scheduler runs.
 *
 * The tree is every task forked by the process that called observe_start(),
 * and all their descendants: a child is marked in task storage while it is
 * forked, before it can run. Only events of marked tasks leave the kernel, and
 * those of CPUs that go idle or cease to be, which work conservation needs.
 *
 * Nothing is computed here: each hook sends one 24-byte event, and the reader
 * (src/observe/) derives all figures, so that they can be tested on lists of
 * events. The order of events in the ring is right for each CPU and for each
 * task, because both are serialised by the scheduler; between CPUs only the
 * times tell. What did not fit is counted, and the reader says so.
 *
 * Mutexes alone are counted here: how often tasks of the tree waited for one whose
 * holder is known, and how often such a holder lost its CPU meanwhile. Both are
 * read from the mutex in user memory, with nothing of the scheduler's own book.
 */
#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "observe.h"
#include "policy/lock.h"

#define FL_TASK_DEAD 0x80 /* TASK_DEAD, a macro that BTF does not carry */

char _license[] SEC("license") = "GPL";

/* Words of the CPU mask that this machine uses; written before load. */
const volatile u32 nr_mask_words = 1;

/* Whose children are the roots; 0 until the observation starts. */
u32 observer_tgid;
u64 dropped;
/* Waits for mutexes, and holders of such that were preempted while somebody waited. */
u64 lock_waits;
u64 holders_preempted;

/* A task as a mutex names its owner: by the PID that it has in its own namespace. */
struct owner {
	u64 namespace;
	u64 pid;
};

/*
 * By a task that others waited for: the mutex. The latest of several; whether it is still
 * held and waited for, the mutex itself says.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct owner);
	__type(value, u64);
} waited_for SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, OBS_RING_BYTES);
} events SEC(".maps");

/* The affinity last reported, so that it is sent only when it changes. */
struct tracked {
	u64 mask[OBS_MASK_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct tracked);
} tracked_tasks SEC(".maps");

extern struct rq runqueues __ksym;

/* False on a CPU that goes: soon it runs no irq_work, by which a reader is woken (kick.bpf.h). */
static bool can_wake(void)
{
	struct rq *rq = bpf_this_cpu_ptr(&runqueues);

	return rq->online;
}

/*
 * The reader sleeps until half of the ring is full: it must not take CPU time
 * from what it watches, and a short run is read only after it has ended.
 */
static void emit(u8 kind, u8 flags, u16 cpu, u32 pid, u64 a, u64 b)
{
	struct obs_event *e = bpf_ringbuf_reserve(&events, sizeof(*e), 0);
	bool wakes;

	if (!e) {
		__sync_fetch_and_add(&dropped, 1);
		return;
	}
	e->a = a;
	e->b = b;
	e->pid = pid;
	e->cpu = cpu;
	e->kind = kind;
	e->flags = flags;
	wakes = bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) > OBS_RING_BYTES / 2 && can_wake();
	bpf_ringbuf_submit(e, wakes ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}

static struct tracked *find(struct task_struct *p)
{
	/* Idle tasks are never forked by anybody: spare them the look-up. */
	if (!p->pid)
		return NULL;
	return bpf_task_storage_get(&tracked_tasks, p, NULL, 0);
}

static void report_affinity(struct task_struct *p, struct tracked *t)
{
	u64 now[OBS_MASK_WORDS];
	u32 words = nr_mask_words;
	u32 i;

	if (words > OBS_MASK_WORDS)
		words = OBS_MASK_WORDS;
	if (bpf_probe_read_kernel(now, words * sizeof(u64), p->cpus_ptr))
		return;
	for (i = 0; i < OBS_MASK_WORDS; i++) {
		if (i >= words)
			break;
		if (now[i] == t->mask[i])
			continue;
		t->mask[i] = now[i];
		emit(OBS_AFFINITY, 0, 0, p->pid, now[i], i);
	}
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(observe_fork, struct task_struct *parent, struct task_struct *child)
{
	u8 flags = 0;

	if (!find(parent)) {
		/* Threads of the observer are not what it observes. */
		if (!observer_tgid || parent->tgid != observer_tgid || child->tgid == observer_tgid)
			return 0;
		flags |= OBS_ROOT;
	}
	if (!bpf_task_storage_get(&tracked_tasks, child, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE)) {
		__sync_fetch_and_add(&dropped, 1);
		return 0;
	}
	/* Whatever its class, a task points to a queue of the CPU it is on. */
	if (parent->se.cfs_rq->rq->nr_running == 1)
		flags |= OBS_PARENT_ALONE;
	emit(OBS_FORK, flags, bpf_get_smp_processor_id(), child->pid, bpf_ktime_get_ns(),
	     parent->pid);
	return 0;
}

static void woken(struct task_struct *p)
{
	struct tracked *t;

	/* A task that wakes itself has not left its CPU: it does not wait. */
	if (p == bpf_get_current_task_btf())
		return;
	t = find(p);
	if (!t)
		return;
	report_affinity(p, t);
	emit(OBS_WAKE, 0, bpf_get_smp_processor_id(), p->pid, bpf_ktime_get_ns(), 0);
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(observe_wakeup, struct task_struct *p)
{
	woken(p);
	return 0;
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(observe_wakeup_new, struct task_struct *p)
{
	woken(p);
	return 0;
}

SEC("tp_btf/sched_migrate_task")
int BPF_PROG(observe_migrate, struct task_struct *p, int dest)
{
	if (find(p))
		emit(OBS_MIGRATE, 0, dest, p->pid, bpf_ktime_get_ns(), 0);
	return 0;
}

/* What a mutex that @p holds says, and in which namespace. */
static struct owner name_of(struct task_struct *p)
{
	struct pid *pid = BPF_CORE_READ(p, thread_pid);
	u32 level = BPF_CORE_READ(pid, level);
	struct owner name = {};
	struct upid upid = {};

	bpf_probe_read_kernel(&upid, sizeof(upid), &pid->numbers[level]);
	name.namespace = (u64)upid.ns;
	name.pid = upid.nr;
	return name;
}

SEC("?fentry/__futex_wait")
int BPF_PROG(observe_lock_wait, u32 *uaddr, unsigned int flags, u32 val)
{
	struct task_struct *waiter = bpf_get_current_task_btf();
	struct mutex_words m;
	u64 mutex = (u64)uaddr;
	struct owner owner;

	if (!mutex_may_wait(val) || !find(waiter) || bpf_probe_read_user(&m, sizeof(m), uaddr))
		return 0;
	owner = name_of(waiter);
	owner.pid = mutex_owner(&m, val);
	if (!owner.pid)
		return 0;
	__sync_fetch_and_add(&lock_waits, 1);
	bpf_map_update_elem(&waited_for, &owner, &mutex, BPF_ANY);
	return 0;
}

/* @p loses its CPU: it is still the current task, so its memory can be read. */
static void count_holder(struct task_struct *p)
{
	struct owner name = name_of(p);
	u64 *mutex = bpf_map_lookup_elem(&waited_for, &name);
	struct mutex_words m;

	if (mutex && !bpf_probe_read_user(&m, sizeof(m), (void *)*mutex) &&
	    mutex_may_wait(m.lock) && mutex_owner(&m, m.lock) == (s32)name.pid)
		__sync_fetch_and_add(&holders_preempted, 1);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(observe_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	struct tracked *from = find(prev), *to = find(next);
	u32 cpu = bpf_get_smp_processor_id();
	u64 now = bpf_ktime_get_ns();
	u8 flags = 0;
	u64 name[2];

	if (!from && prev->pid) {
		/* Or the compiler joins both pointers, which the verifier refuses. */
		barrier();
		if (!to && next->pid)
			return 0;
	}
	if (preempt || !prev_state) {
		flags |= OBS_PREV_RUNNABLE;
		if (from) {
			report_affinity(prev, from);
			count_holder(prev);
		}
	} else if (prev_state & FL_TASK_DEAD) {
		flags |= OBS_PREV_DEAD;
		if (from) {
			BPF_CORE_READ_INTO((char(*)[16])name, prev, comm);
			emit(OBS_COMM, 0, 0, prev->pid, name[0], name[1]);
		}
	}
	/* Again as the wait ends: the affinity may have changed in between. */
	if (to)
		report_affinity(next, to);
	emit(OBS_SWITCH, flags, cpu, next->pid, now, prev->pid);
	return 0;
}

/*
 * Called once by the observer, after the hooks are attached: children of its
 * process are roots from here on. Asked here, the process id is the one of the
 * kernel's own namespace, whatever the observer's is.
 */
SEC("syscall")
int observe_start(void *ctx)
{
	observer_tgid = bpf_get_current_pid_tgid() >> 32;
	return 0;
}
