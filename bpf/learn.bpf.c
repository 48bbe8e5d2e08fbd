/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is learned of tasks: how long their bursts are, and how soon a task
 * leaves its CPU after it forked or woke another one. Per task where the task
 * lives long enough; for forks, whose children are new each time, per parent
 * command and kind of fork, in a table that forgets the least recently used.
 */
#include "freqlock.bpf.h"
#include "learn.bpf.h"
#include "freq.bpf.h"
#include "policy/learn.h"
#include "policy/lock.h"
#include "policy/modes.h"

/* By parent command and kind of fork. */
struct fork_class {
	struct learned leave; /* time from such a fork to the parent's leaving its CPU */
	u64 burst;            /* average first burst of such a child */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, FL_MAX_CLASSES);
	__type(key, u64);
	__type(value, struct fork_class);
} fork_classes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, FL_NR_HISTS);
	__type(key, u32);
	__type(value, struct fl_hist2);
} hists SEC(".maps");

enum fork_kind { FORK_PROCESS, FORK_VFORK, FORK_THREAD };

/*
 * Key of the fork that made @p. Until its first exec a child bears its parent's
 * command; and the parent of a vfork is about to sleep, which the child shows.
 */
static u64 fork_key(struct task_struct *p)
{
	enum fork_kind kind = FORK_PROCESS;
	u64 comm[2] = {};

	if (p->pid != p->tgid)
		kind = FORK_THREAD;
	else if (p->vfork_done)
		kind = FORK_VFORK;
	bpf_probe_read_kernel_str(comm, sizeof(comm), p->comm);
	/* 0 stands for "no class" */
	return fl_mix(fl_mix(comm[0], comm[1]), kind + 1) | 1;
}

/* Two CPUs may update one class at once: one sample is lost, which averages bear. */
__noinline int fl_class_learn(u64 key, u64 leave, u64 burst)
{
	struct fork_class *c = bpf_map_lookup_elem(&fork_classes, &key);
	struct fork_class fresh = {};

	if (!c) {
		if (leave)
			learn_time(&fresh.leave, leave);
		fresh.burst = burst;
		if (bpf_map_update_elem(&fork_classes, &key, &fresh, BPF_NOEXIST))
			fl_count(class_full);
		return 0;
	}
	if (leave)
		learn_time(&c->leave, leave);
	if (burst)
		c->burst = learn_average(c->burst, burst);
	return 0;
}

/* To compare takes as long as to predict: by the last bits of the clock, one of four is. */
static bool is_sampled(u64 now)
{
	return !(now & 3);
}

__noinline int fl_hist_add(u32 which, u64 predicted, u64 real)
{
	struct fl_hist2 *h = bpf_map_lookup_elem(&hists, &which);
	u64 *slot;

	if (!h)
		return -ENOENT;
	slot = MEMBER_VPTR(*h, .slot[hist_slot(predicted)][hist_slot(real)]);
	if (slot)
		(*slot)++;
	return 0;
}

/* The current task's own part: note the event, say when it will leave its CPU. */
static u64 event_note(struct task_struct *waker, u64 now, enum fl_event event, u64 key)
{
	struct task_ctx *tctx = fl_task(waker);
	struct fork_class *c;
	u64 leave;

	if (!tctx)
		return FL_NONE;
	if (!tctx->event_at[event])
		tctx->event_at[event] = now;
	tctx->events = true;
	if (waker->flags & PF_EXITING) {
		struct cpu_ctx *cctx = fl_cpu(bpf_get_smp_processor_id());

		leave = learn_most(&cctx->exit_leave);
		cctx->running_away = 0;
	} else if (event == FL_EVENT_FORK) {
		tctx->fork_key = key;
		c = bpf_map_lookup_elem(&fork_classes, &key);
		leave = c ? learn_most(&c->leave) : 0;
	} else {
		leave = learn_most(&tctx->leave[event]);
	}
	return leave ?: FL_NONE;
}

/* @tctx was woken: how long it slept after it had made another task runnable. */
int fl_learn_back(struct task_ctx *tctx __arg_nonnull, u64 now)
{
	if (tctx->left_at)
		tctx->away = learn_average(tctx->away, elapsed(tctx->left_at, now));
	tctx->left_at = 0;
	return 0;
}

/*
 * @p was forked or woken by what runs on this CPU now. Returns the time in ns
 * after which the running task is expected to leave the CPU by itself, FL_NONE
 * where nothing is known, which includes wake-ups by interrupts: the running
 * task has nothing to do with those.
 */
u64 fl_learn_event(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
		   u64 now, u64 wake_flags)
{
	struct task_struct *waker = bpf_get_current_task_btf();
	enum fl_event event = FL_EVENT_WAKE;
	struct fork_class *c;
	u64 key = 0, leave;

	if (wake_flags & SCX_WAKE_FORK) {
		event = FL_EVENT_FORK;
		key = fork_key(p);
		c = bpf_map_lookup_elem(&fork_classes, &key);
		if (c) {
			fl_count(class_hit);
			tctx->burst = c->burst;
		} else {
			fl_count(class_new);
		}
		tctx->class_key = key;
	} else if (wake_flags & SCX_WAKE_SYNC) {
		event = FL_EVENT_SYNC;
	}
	leave = event_note(waker, now, event, key);
	if (leave != FL_NONE)
		fl_cpu(bpf_get_smp_processor_id())->leave_at = now + leave;
	return leave;
}

/* @p leaves its CPU after it forked or woke others: how soon. */
int fl_learn_leave(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
		   u64 now, bool runnable)
{
	struct cpu_ctx *cctx = fl_cpu(bpf_get_smp_processor_id());
	u64 slice = fl_slice(tctx), stayed;
	int i;

	tctx->events = false;
	for (i = 0; i < FL_NR_EVENTS; i++) {
		if (!tctx->event_at[i])
			continue;
		stayed = elapsed(tctx->event_at[i], now);
		if (runnable && stayed < slice) {
			tctx->events = true;
			continue;
		}
		tctx->event_at[i] = 0;
		if (!runnable)
			tctx->left_at = now;
		if (p->flags & PF_EXITING)
			learn_time(&cctx->exit_leave, stayed);
		else if (i == FL_EVENT_FORK)
			fl_class_learn(tctx->fork_key, stayed, 0);
		else
			learn_time(&tctx->leave[i], stayed);
	}
	return 0;
}

/*
 * @p leaves its CPU: to sleep or for good (!@runnable), or because it was
 * preempted. A whole slice after an event counts as having stayed that long.
 */
int fl_learn_stop(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull, u64 now,
		  bool runnable)
{
	tctx->left_at = 0;
	if (tctx->events)
		fl_learn_leave(p, tctx, now, runnable);
	if (runnable)
		return 0;
	/* What no mode went by is not compared. */
	if (is_sampled(now) && tctx->burst && mode_has(fl_policy(tctx)->mode, PREDICTS))
		fl_hist_add(FL_HIST_BURST, tctx->burst, tctx->work);
	if (tctx->class_key) {
		fl_class_learn(tctx->class_key, 0, tctx->work ?: 1);
		tctx->class_key = 0;
	}
	tctx->burst = learn_average(tctx->burst, tctx->work);
	tctx->work = 0;
	tctx->ran = 0;
	return 0;
}

/* @tctx begins to run on @cpu: compare the wait that was predicted. */
int fl_learn_wait(struct task_ctx *tctx __arg_nonnull, s32 cpu, u64 now)
{
	struct cpu_ctx *cctx = fl_cpu(cpu);
	u64 wait = elapsed(tctx->waiting_since, now);

	if (tctx->flags & FL_TASK_PREDICTED && is_sampled(now))
		fl_hist_add(FL_HIST_WAIT, tctx->predicted_wait, wait);
	/* Of several predictions the lowest is chosen, and so usually one that is too low. */
	if (tctx->flags & FL_TASK_PREDICTED && tctx->park_until) {
		u64 overrun = fl_overrun(cpu, now);

		cctx->overrun = learn_average(overrun,
					      elapsed(tctx->predicted_wait, wait + overrun));
		cctx->overrun_at = now;
	}
	/*
	 * A CPU that ran another first, or was stolen by the host for long, says nothing about
	 * leaving idle.
	 */
	if (tctx->flags & FL_TASK_TO_IDLE && wait < LEARN_IDLE_EXIT_MAX_NS &&
	    (s64)(cctx->last_stop - tctx->waiting_since) <= 0) {
		cctx->idle_exit = learn_average(cctx->idle_exit ? fl_idle_exit(cpu, now) : 0, wait);
		cctx->idle_exit_at = now;
		/* Busy with the wake-up; the rest is the way out of a deep idle state. */
		cctx->busy_ns += shorter(wait, FREQ_WAKE_NS);
	}
	return 0;
}
