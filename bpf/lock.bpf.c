/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who holds what, who waits for whom: the edges of the wait-for graph, whose
 * structure policy/graph.h describes.
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

struct task_struct *bpf_task_from_vpid(s32 vpid) __ksym __weak;

/* linux/sched/rt.h, MAX_RT_PRIO: a priority below is that of a real-time or deadline task. */
#define FIRST_NICE_PRIO 100

/* Written by the agent before it is loaded; unpredictable. */
const volatile u64 lock_key;

struct lock_slot lock_slots[FL_MAX_LOCKS];
struct lock_quota lock_quota;

/* True if the slot is the lock's, with a reference; @payer, unless 0, pays as the first waiter. */
__noinline bool fl_slot_take(u32 slot, u64 hash, u32 payer)
{
	struct lock_slot *s = fl_slot(slot);
	enum slot_got got = slot_get(s, hash, payer);

	if (got == SLOT_FIRST)
		s->payer = payer;
	else if (got == SLOT_JOINED && payer)
		quota_give(&lock_quota, payer);
	return got != SLOT_NOT;
}

/* The slot from @first on that is or was the lock's, -1 none. */
__noinline int fl_slot_find(u32 first, u64 hash)
{
	u32 i;

	bpf_for(i, 0, LOCK_PROBES) {
		if (slot_hash(fl_slot(first + i)) == hash)
			return first + i;
	}
	return -1;
}

/*
 * Slot of the lock @hash for which @w waits, referenced, or -1. Two that look for the same
 * lock at once, while a slot before becomes free, may find two slots for it: each is
 * then right for its own waiters.
 */
__noinline int fl_slot_of(struct task_struct *w __arg_trusted, u64 hash)
{
	u32 first = slot_first(hash), payer, i;
	s32 known = fl_slot_find(first, hash);

	if (known >= 0 && fl_slot_take(known, hash, 0))
		return known;
	payer = quota_payer(lock_key, BPF_CORE_READ(w, real_cred, uid.val), w->tgid);
	if (!quota_take(&lock_quota, payer)) {
		fl_count(lock_limit);
		return -1;
	}
	if (known >= 0 && fl_slot_take(known, hash, payer))
		return known;
	bpf_for(i, 0, LOCK_PROBES) {
		if (fl_slot_take(first + i, hash, payer))
			return in_range(first + i, FL_MAX_LOCKS);
	}
	quota_give(&lock_quota, payer);
	fl_count(lock_full);
	return -1;
}

__noinline u32 fl_levels_best(u32 slot)
{
	return levels_best(fl_slot(slot));
}

__noinline u32 fl_chain_update(u32 from)
{
	u32 hops = chain_update(lock_slots, from);

	if (hops)
		__sync_fetch_and_add(&cpu_stats[bpf_get_smp_processor_id() & (FL_MAX_CPUS - 1)]
					      .count[FL_STAT_lock_hop],
				     hops);
	return hops;
}

__noinline int fl_chain_link(u32 from, u32 edge)
{
	chain_link(lock_slots, from, edge);
	return 0;
}

__noinline bool fl_chain_reaches(u32 edge, u64 self)
{
	return chain_reaches(lock_slots, edge, self);
}

/* The locks that a task holds are waited for through what it waits for itself. */
__noinline int fl_link_holds(u64 holds, u64 self, u32 edge)
{
	u32 i;

	bpf_for(i, 0, MAX_HOLDS) {
		u32 slot = holds_slot(holds, i);

		if (slot && fl_slot(slot - 1)->owner == self)
			fl_chain_link(slot - 1, edge);
	}
	return 0;
}

/* CAS retries before a hold goes unrecorded. */
#define HOLD_TRIES 4

/* Record in @hctx that there are waiters for the lock at @slot, which it holds. */
__noinline int fl_holds_add(struct task_ctx *hctx __arg_nonnull, u32 slot, u64 self)
{
	u64 holds = hctx->holds, with, seen;
	u32 i, place = slot % MAX_HOLDS;

	bpf_for(i, 0, HOLD_TRIES) {
		if (holds_has(holds, slot))
			return 0;
		with = holds_with(holds, slot);
		/* No room, but what is there may be over. */
		if (with == holds) {
			if (fl_slot(holds_slot(holds, place) - 1)->owner == self)
				break;
			with = holds_with(holds_without(holds, place), slot);
		}
		seen = __sync_val_compare_and_swap(&hctx->holds, holds, with);
		if (seen == holds)
			return 0;
		/* Others begin to wait for what it holds, or it drops what is over. */
		holds = seen;
	}
	fl_count(hold_full);
	return 0;
}

/* The lock at @slot is held by @self from now on. */
static void slot_own(struct lock_slot *s, u64 self, u64 now)
{
	u64 before = __sync_lock_test_and_set(&s->owner, self);

	if (before == self)
		return;
	s->used = 0;
	s->since = now;
}

/* The wait of @wctx is over. With @handoff: its lock was given to it. */
__noinline int fl_lock_end(struct task_ctx *wctx __arg_nonnull, u64 self, bool handoff, u64 now)
{
	u32 edge = __sync_lock_test_and_set(&wctx->edge, 0), slot;
	struct lock_slot *s;

	if (!edge)
		return 0;
	if (reports_tasks)
		fl_account_waited(wctx, self, handoff, now);
	slot = edge_slot(edge);
	s = fl_slot(slot);
	if (wctx->holds)
		fl_link_holds(wctx->holds, self, 0);
	levels_remove(s, edge_level(edge));
	if (handoff) {
		fl_count(lock_handoff);
		s->hold = learn_average(s->hold, elapsed(s->since, now));
		slot_own(s, self, now);
		fl_chain_link(slot, 0);
		if (s->mask)
			fl_holds_add(wctx, slot, self);
	} else {
		fl_chain_update(slot);
	}
	slot_put_paid(s, &lock_quota);
	return 0;
}

/* @w begins to wait for the lock @hash, which @h holds. */
__noinline int fl_lock_begin(struct task_struct *w __arg_trusted,
			     struct task_struct *h __arg_trusted, u64 hash)
{
	struct task_ctx *wctx = fl_task(w), *hctx = fl_task(h);
	u64 now = scx_bpf_now(), self, holder;
	struct lock_slot *s;
	u32 edge, level;
	s32 slot;

	if (!wctx || !hctx || wctx == hctx)
		return 0;
	self = fl_self(w, wctx);
	holder = fl_self(h, hctx);
	fl_lock_end(wctx, self, false, now);

	if (hctx->edge && fl_chain_reaches(hctx->edge, self)) {
		fl_count(lock_cycle);
		return 0;
	}
	slot = fl_slot_of(w, hash);
	if (slot < 0)
		return 0;
	fl_count(lock_sleep);
	s = fl_slot(slot);
	slot_own(s, holder, now);
	level = w->prio < FIRST_NICE_PRIO ? LEVEL_MAX : wctx->level;
	levels_add(s, level);
	edge = edge_to(slot, level);
	wctx->inversion.level = level;
	if (reports_tasks)
		fl_account_waits(wctx, hctx, holder, hash, now);
	wctx->edge = edge;
	if (wctx->holds)
		fl_link_holds(wctx->holds, self, edge);
	/*
	 * In this order: a holder that begins to wait itself meanwhile either
	 * finds this lock among its holds, or has its edge seen here.
	 */
	fl_holds_add(hctx, slot, holder);
	fl_chain_link(slot, hctx->edge);
	if (s->out)
		fl_chain_update(edge_slot(s->out));
	return 0;
}

/*
 * @w, which waits for a lock, is woken: by an interrupt, then its time is up; or by
 * the current task, and that is a handoff, be the current task the holder that was
 * known or another. If it was the holder, what it still has to do is not waited
 * for. A signal looks alike; then the lock is @w's until @w or another begins to
 * wait for it again.
 */
int fl_lock_woken(struct task_struct *w __arg_trusted, struct task_ctx *wctx __arg_nonnull, u64 now)
{
	struct task_struct *waker = bpf_get_current_task_btf();
	struct cpu_ctx *cctx = fl_cpu(bpf_get_smp_processor_id());
	struct task_ctx *hctx = fl_task(waker);
	struct lock_slot *s = fl_slot(edge_slot(wctx->edge));

	if (!fl_from_task())
		return fl_lock_end(wctx, fl_self(w, wctx), false, now);
	if (hctx && s->owner == fl_self(waker, hctx)) {
		fl_profile_hold(slot_hash(s), bpf_get_smp_processor_id(), elapsed(s->since, now));
		hctx->stats.holds++;
		hctx->stats.hold += elapsed(s->since, now);
		fl_hold_charge(hctx, fl_self(waker, hctx), now);
		if (cctx->boosted)
			cctx->running_deadline = vtime_deadline(hctx->vtime, 0, fl_slice(hctx),
								hctx->weight);
	}
	wctx->flags |= FL_TASK_HANDOFF;
	return fl_lock_end(wctx, fl_self(w, wctx), true, now);
}

/* @p falls asleep: perhaps in the wait that a hook has noted. */
int fl_lock_sleep(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull)
{
	struct task_ctx *hctx = NULL;
	struct task_struct *h = fl_task_of(tctx->wait_owner, &hctx);

	tctx->wait_owner = 0;
	if (!h)
		return 0;
	fl_lock_begin(p, h, tctx->wait_hash);
	bpf_task_release(h);
	return 0;
}

/* The current task is about to wait for the lock @hash, which @h holds. */
static void note_wait(struct task_struct *h, u64 hash, u32 kind, u64 addr)
{
	struct task_struct *w = bpf_get_current_task_btf();
	struct task_ctx *wctx = fl_task(w), *hctx = fl_task(h);

	if (!wctx || !hctx || wctx == hctx)
		return;
	fl_count(lock_wait);
	wctx->wait_hash = hash;
	wctx->wait_since = scx_bpf_now();
	fl_profile_begin(hash, kind, addr);
	if (w->prio >= FIRST_NICE_PRIO) {
		wctx->wait_owner = fl_self(h, hctx);
	} else if (kind != FL_LOCK_PI) {
		fl_lock_begin(w, h, hash);
		if (wctx->edge)
			fl_hold_call(wctx->edge, bpf_get_smp_processor_id(), wctx->wait_since);
	}
}

/* What the current task was about to wait for, or did, is over; with @got it has the lock. */
static void wait_over(struct task_struct *w, struct task_ctx *wctx, bool got)
{
	u64 now = scx_bpf_now();

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
