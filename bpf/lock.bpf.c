/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who holds what, who waits for whom, as hooks see it: the edges (edge.bpf.c) of the
 * wait-for graph (policy/graph.h).
 *
 * Hooks note who holds the lock that a task is about to wait for, where that is known:
 * from the words of a glibc mutex (policy/lock.h), from a PI futex, from the kernel's own
 * mutexes and rwsems. The edge appears when the task then falls asleep, and goes when it
 * is woken, be it by a time-out, a signal or SIGKILL: both are the scheduler's own to see.
 * Of real-time tasks it does not see them: their edge begins and ends with the hooks, but
 * for PI futexes, of which the kernel raises the holder.
 *
 * A lock is handed off when its holder wakes a waiter: the other waiters wait for
 * the woken task from then on. That may be wrong, since a third task can take the
 * lock before; then the woken one waits again, and each new wait reads the holder
 * again.
 *
 * What was noted holds for one sleep. The task may sleep for something else before
 * it gets to the lock, a page of memory; and the kernel skips a hook that was
 * preempted inside the same hook on its CPU, so that a note outlives its wait.
 * Either way one task is boosted for a sleep too many, and another is not.
 *
 * Threads can also say themselves what they hold and wait for (hint.bpf.c).
 *
 * What is not hooked: futex_wake, since the wake-up of the waiter says the same,
 * and system calls as such, which all programs would pay for.
 *
 * The lock words are the user's to forge. Believing them gives a task of the
 * same process (or, of mutexes shared between processes, of the same user) the
 * waiter's own priority, within the bounds of donate.bpf.c.
 */
#include "freqlock.bpf.h"
#include "donate.bpf.h"
#include "edge.bpf.h"
#include "graph.bpf.h"
#include "hint.bpf.h"
#include "hooks.bpf.h"
#include "profile.bpf.h"
#include "policy/lock.h"

struct task_struct *bpf_task_from_vpid(s32 vpid) __ksym __weak;

/* The current task is about to wait for the lock @hash, which @h holds. */
static void note_wait(struct task_struct *h, u64 hash, u32 kind, u64 addr)
{
	struct task_struct *w = bpf_get_current_task_btf();
	struct task_ctx *wctx = fl_task(w), *hctx = fl_task(h);
	u64 now;

	if (!wctx || !hctx || wctx == hctx)
		return;
	/* A normal task that did not ask for us waits as it would without us. */
	if (fl_is_higher(w) && w->prio >= PRIO_RT_END)
		return;
	fl_count(lock_wait);
	wctx->wait_hash = hash;
	now = scx_bpf_now();
	wctx->wait_since = 0;
	if (fl_is_profiled(w, wctx, hash, kind, addr)) {
		wctx->wait_since = now;
		fl_profile_begin(hash, kind, addr);
	}
	if (w->prio >= PRIO_RT_END) {
		wctx->wait_owner = fl_self(h, hctx);
	} else if (kind != FL_LOCK_PI) {
		fl_lock_begin(w, h, hash);
		if (wctx->edge)
			fl_hold_call(wctx->edge, bpf_get_smp_processor_id(), now);
	}
}

/* What the current task was about to wait for, or did, is over; with @got it has the lock. */
static void wait_over(struct task_struct *w, struct task_ctx *wctx, bool got)
{
	u64 now = scx_bpf_now();

	if (wctx->wait_since)
		fl_profile_wait(wctx->wait_hash, elapsed(wctx->wait_since, now));
	wctx->wait_hash = 0;
	wctx->wait_owner = 0;
	/* Of a real-time task: of others it ended as they were woken. */
	if (wctx->edge && !wctx->hint_waits)
		fl_lock_end(wctx, fl_self(w, wctx), got, now);
}

static int user_wait_over(bool got)
{
	struct task_struct *w = bpf_get_current_task_btf();
	struct task_ctx *wctx = fl_task(w);

	if (wctx && wctx->wait_hash)
		wait_over(w, wctx, got);
	return 0;
}

/* True if @h may inherit the priority of @w through a lock that processes share. */
static bool same_user(struct task_struct *w, struct task_struct *h)
{
	return BPF_CORE_READ(w, real_cred, uid.val) == BPF_CORE_READ(h, real_cred, uid.val);
}

/* The current task waits at @uaddr for a lock that the task @tid holds. */
static int user_wait(u64 uaddr, s32 tid, u32 kind, bool shared)
{
	struct task_struct *w = bpf_get_current_task_btf(), *h;
	u64 hash = fl_lock_hash(LOCK_USER, uaddr, w->tgid);

	h = tid > 0 ? bpf_task_from_vpid(tid) : NULL;
	if (!h) {
		fl_count(lock_unowned);
		return 0;
	}
	if (h->tgid == w->tgid || (shared && same_user(w, h)))
		note_wait(h, hash, kind, uaddr);
	else
		fl_count(lock_unowned);
	bpf_task_release(h);
	return 0;
}

SEC("?fentry/__futex_wait")
int BPF_PROG(lock_futex_wait, u32 *uaddr, unsigned int flags, u32 val)
{
	struct mutex_words m;
	struct task_ctx *tctx;

	if (val == FL_HINT_SHOW) {
		tctx = fl_task(bpf_get_current_task_btf());
		if (tctx)
			fl_hint_show(tctx, (u64)uaddr);
		return 0;
	}
	if (!mutex_may_wait(val) || bpf_probe_read_user(&m, sizeof(m), uaddr))
		return 0;
	return user_wait((u64)uaddr, mutex_owner(&m, val), FL_LOCK_FUTEX, mutex_is_shared(&m));
}

SEC("?fexit/__futex_wait")
int BPF_PROG(lock_futex_waited)
{
	u64 err = 1;

	bpf_get_func_ret(ctx, &err);
	return user_wait_over(!err);
}

/* PI futexes carry their owner in the futex word; the kernel does the handoff. */
SEC("?fentry/futex_lock_pi")
int BPF_PROG(lock_futex_pi, u32 *uaddr)
{
	u32 word;

	if (bpf_probe_read_user(&word, sizeof(word), uaddr) || !(word & FUTEX_TID))
		return 0;
	return user_wait((u64)uaddr, word & FUTEX_TID, FL_LOCK_PI, true);
}

SEC("?fexit/futex_lock_pi")
int BPF_PROG(lock_futex_pi_done)
{
	return user_wait_over(false);
}

/* linux/trace/events/lock.h: LCB_F_*. */
enum {
	KLOCK_SPIN = 1 << 0,
	KLOCK_READ = 1 << 1,
	KLOCK_WRITE = 1 << 2,
	KLOCK_PERCPU = 1 << 4,
	KLOCK_MUTEX = 1 << 5,
};

/*
 * The task in the owner word of a mutex or an rwsem, 0 if unknown:
 * its low bits are flags, and bit 0 of an rwsem's says that readers have it.
 */
static u64 kernel_owner(void *lock, u32 flags)
{
	struct rw_semaphore *sem = lock;
	struct mutex *mutex = lock;

	if (flags & KLOCK_MUTEX)
		return BPF_CORE_READ(mutex, owner.counter) & ~7ULL;
	if (BPF_CORE_READ(sem, owner.counter) & 1)
		return 0;
	return BPF_CORE_READ(sem, owner.counter) & ~3ULL;
}

SEC("?tp_btf/contention_begin")
int BPF_PROG(lock_kernel_wait, void *lock, unsigned int flags)
{
	struct task_struct *h;
	u64 owner;

	/* First of all: spinlocks are most of what comes here. */
	if ((flags & (KLOCK_SPIN | KLOCK_PERCPU)) ||
	    !(flags & (KLOCK_MUTEX | KLOCK_READ | KLOCK_WRITE)))
		return 0;
	owner = kernel_owner(lock, flags);
	if (!owner)
		return 0;
	h = bpf_task_from_pid(BPF_CORE_READ((struct task_struct *)owner, pid));
	if (!h)
		return 0;
	/* The owner may have gone meanwhile, and its memory be another's. */
	if ((u64)h == owner)
		note_wait(h, fl_lock_hash(LOCK_KERNEL, (u64)lock, 0),
			  flags & KLOCK_MUTEX ? FL_LOCK_MUTEX : FL_LOCK_RWSEM, (u64)lock);
	bpf_task_release(h);
	return 0;
}

SEC("?tp_btf/contention_end")
int BPF_PROG(lock_kernel_waited, void *lock, int err)
{
	struct task_struct *w = bpf_get_current_task_btf();
	struct task_ctx *wctx = fl_task(w);

	/* Spinlocks end here too, held, and hardly any of their tasks waits for another lock. */
	if (!wctx || !lock_is_kernels(wctx->wait_hash))
		return 0;
	if (wctx->wait_hash == fl_lock_hash(LOCK_KERNEL, (u64)lock, 0))
		wait_over(w, wctx, !err);
	return 0;
}
