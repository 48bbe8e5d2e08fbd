/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files about locks offer to the others and to each other: lock.bpf.c,
 * donate.bpf.c, hint.bpf.c and profile.bpf.c. The last part of freqlock.bpf.h, which
 * includes it.
 */
#ifndef __FREQLOCK_LOCK_BPF_H
#define __FREQLOCK_LOCK_BPF_H

/* profile.bpf.c */
int fl_profile_begin(u64 hash, u32 kind, u64 addr);
int fl_profile_hint(u64 hash, u64 addr);
int fl_profile_wait(u64 hash, u64 ns);
int fl_profile_hold(u64 hash, s32 cpu, u64 ns);
int fl_profile_preempted(u64 hash);

/* lock.bpf.c */
extern const volatile u64 lock_key;
extern struct lock_slot lock_slots[FL_MAX_LOCKS];
extern struct lock_quota lock_quota;
int fl_lock_begin(struct task_struct *w __arg_trusted, struct task_struct *h __arg_trusted,
		  u64 hash);
int fl_lock_end(struct task_ctx *wctx __arg_nonnull, u64 self, bool handoff, u64 now);
int fl_lock_sleep(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull);
int fl_lock_woken(struct task_struct *w __arg_trusted, struct task_ctx *wctx __arg_nonnull,
		  u64 now);
u32 fl_levels_best(u32 slot);
int fl_holds_add(struct task_ctx *hctx __arg_nonnull, u32 slot, u64 self);
#define fl_slot(i) (&lock_slots[in_range(i, FL_MAX_LOCKS)])

/* donate.bpf.c */
u64 fl_hold_deadline(struct task_ctx *tctx __arg_nonnull, u64 self, s32 cpu, u64 now);
u64 fl_hold_running(struct task_ctx *tctx __arg_nonnull, u64 self, s32 cpu, u64 now);
bool fl_hold_spares(s32 cpu, u64 weight, u64 now);
u64 fl_hold_keep(struct task_ctx *tctx __arg_nonnull, u64 self, s32 cpu, u64 now);
int fl_hold_charge(struct task_ctx *tctx __arg_nonnull, u64 self, u64 now);
int fl_hold_stops(struct task_ctx *tctx __arg_nonnull, u64 self, u64 now, bool runnable);
bool fl_hold_wants_big(struct task_ctx *tctx __arg_nonnull, u64 self, u64 now);
bool fl_run_holder(s32 cpu, u64 now);
int fl_hold_call(u32 edge, s32 cpu, u64 now);

/* hint.bpf.c */
int fl_hint_show(struct task_ctx *tctx __arg_nonnull, u64 uaddr);
bool fl_hint_tick(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull);
int fl_hint_preempted(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull);
int fl_hint_sleep(struct task_ctx *tctx __arg_nonnull, u64 self);

/* The name of a lock in the graph, policy/lock.h. */
static __always_inline u64 fl_lock_hash(enum lock_space space, u64 addr, u32 tgid)
{
	return lock_hash(lock_key, space, addr, tgid);
}

/*
 * What a task holds and waits for. Without --locks these are constants to the
 * verifier, and what would follow from them is not loaded.
 */
static __always_inline u64 fl_holds(const struct task_ctx *tctx)
{
	return sees_locks ? tctx->holds : 0;
}

static __always_inline u64 fl_hint(const struct task_ctx *tctx)
{
	return sees_locks ? tctx->hint | tctx->hint_waits : 0;
}

static __always_inline u32 fl_edge(const struct task_ctx *tctx)
{
	return sees_locks ? tctx->edge : 0;
}

/* True if @cpu is to run the holder of a lock: its task left to wait for that, or waits for it. */
static __always_inline bool fl_is_called(s32 cpu)
{
	return sees_locks && (fl_cpu(cpu)->waits_edge | READ_ONCE(fl_cpu(cpu)->called_edge));
}

/* The wait of @p ends otherwise than by a wake-up that was seen: it leaves. */
static __always_inline void fl_wait_leaves(struct task_struct *p, struct task_ctx *tctx)
{
	if (!fl_edge(tctx))
		return;
	tctx->hint_waits = 0;
	fl_lock_end(tctx, fl_self(p, tctx), false, scx_bpf_now());
}

/*
 * @p runs, so it does not sleep for a lock: its wake-up went past both select_cpu and
 * enqueue, or it was given another class meanwhile. A task that spins by its own hint still waits.
 */
static __always_inline void fl_wait_stale(struct task_struct *p, struct task_ctx *tctx, u64 now)
{
	if (fl_edge(tctx) && !tctx->hint_waits)
		fl_lock_end(tctx, fl_self(p, tctx), false, now);
}

#endif /* __FREQLOCK_LOCK_BPF_H */
