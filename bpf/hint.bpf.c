/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Edges of the wait-for graph that threads report themselves (hint.h).
 *
 * A hint is looked at when a tick hits its thread or when that loses its CPU: a
 * wait shorter than a tick needs no help, and a holder that keeps its CPU neither.
 * So what is known is a tick old at most, in which a thread may keep a boost that
 * is over, or lack one that is due.
 *
 * A lock's holder is reported by its waiter, or found among those who reported the
 * lock as held when they lost their CPU; the latest report counts. That table
 * forgets the lock that was reported least recently.
 */
#include "freqlock.bpf.h"
#include "hint.bpf.h"
#include "edge.bpf.h"
#include "graph.bpf.h"
#include "hooks.bpf.h"
#include "profile.bpf.h"
#include "policy/graph.h"
#include "policy/lock.h"

struct task_struct *bpf_task_from_vpid(s32 vpid) __ksym __weak;

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, FL_MAX_LOCKS);
	__type(key, u64);
	__type(value, u64); /* fl_self() */
} hint_holders SEC(".maps");

/* The current task shows its hint, at @uaddr. */
int fl_hint_show(struct task_ctx *tctx __arg_nonnull, u64 uaddr)
{
	tctx->hint = uaddr;
	tctx->hint_exec = bpf_get_current_task_btf()->self_exec_id;
	fl_count(hint_shown);
	return 0;
}

/* Reads the hint of a task. An unreadable or wrong-version hint is dropped. */
static bool hint_read(struct task_ctx *tctx, struct fl_hint *hint)
{
	if (!tctx->hint)
		return false;
	/* After an exec there is other memory at its address. */
	if (tctx->hint_exec == bpf_get_current_task_btf()->self_exec_id &&
	    !bpf_probe_read_user(hint, sizeof(*hint), (void *)tctx->hint) &&
	    hint->version == FL_HINT_VERSION)
		return true;
	tctx->hint = 0;
	fl_count(hint_lost);
	return false;
}

/* The lock that @self said to hold is free, or another's. */
static void let_go(struct task_ctx *tctx, u64 self)
{
	u64 hash = tctx->hint_holds, *holder;
	u32 i;

	tctx->hint_holds = 0;
	holder = bpf_map_lookup_elem(&hint_holders, &hash);
	/* Another may say that it holds it just now: then it will say so again. */
	if (holder && *holder == self)
		bpf_map_delete_elem(&hint_holders, &hash);
	bpf_for(i, 0, MAX_HOLDS) {
		u32 slot = holds_slot(tctx->holds, i);

		if (slot && slot_hash(fl_slot(slot - 1)) == hash)
			__sync_val_compare_and_swap(&fl_slot(slot - 1)->owner, self, 0);
	}
}

/* Its wait for a lock is over, or it waits otherwise now. */
static void wait_ends(struct task_ctx *tctx, u64 self)
{
	u64 now = scx_bpf_now();

	if (tctx->hint_since)
		fl_profile_wait(tctx->hint_waits, elapsed(tctx->hint_since, now));
	tctx->hint_waits = 0;
	fl_lock_end(tctx, self, false, now);
}

/*
 * The task that holds the lock @hash for which @p waits: with a reference, or NULL, as for
 * all that hints name by TID on kernels before 6.13, which cannot look one up.
 */
static struct task_struct *find_holder(u64 hash, s32 owner)
{
	u64 *self;

	if (owner > 0)
		return bpf_ksym_exists(bpf_task_from_vpid) ? bpf_task_from_vpid(owner) : NULL;
	self = bpf_map_lookup_elem(&hint_holders, &hash);
	return self ? bpf_task_from_pid(*self >> 32) : NULL;
}

static void begin_wait(struct task_struct *p, struct task_ctx *tctx, u64 hash, s32 owner, u64 lock)
{
	struct task_struct *h = find_holder(hash, owner);
	struct task_ctx *hctx;
	bool profiled;

	if (!h) {
		fl_count(lock_unowned);
		return;
	}
	hctx = fl_task(h);
	/* One whose PID came again holds nothing by its own word. */
	if (hctx && h->tgid == p->tgid && (owner > 0 || hctx->hint_holds == hash)) {
		profiled = fl_is_profiled(p, tctx, hash, FL_LOCK_HINT, lock);
		if (profiled)
			fl_profile_hint(hash, lock);
		fl_lock_begin(p, h, hash);
		if (tctx->edge) {
			tctx->hint_waits = hash;
			tctx->hint_since = profiled ? scx_bpf_now() : 0;
			fl_count(hint_wait);
		}
	} else {
		fl_count(lock_unowned);
	}
	bpf_task_release(h);
}

/*
 * @p has a hint, or had one, and may lose its CPU: take note of what it holds. False if nothing can
 * be read, since another task took it off its CPU, whose memory this is not.
 */
static bool note_holds(struct task_struct *p, struct task_ctx *tctx, struct fl_hint *hint)
{
	u64 self = fl_self(p, tctx), holds = 0;

	if (bpf_get_current_task_btf() != p)
		return false;
	if (!hint_read(tctx, hint))
		*hint = (struct fl_hint){};
	if (hint->holds)
		holds = fl_lock_hash(LOCK_HINT, hint->holds, p->tgid);
	if (tctx->hint_holds && tctx->hint_holds != holds)
		let_go(tctx, self);
	if (holds && !tctx->hint_holds) {
		tctx->hint_holds = holds;
		if (bpf_map_update_elem(&hint_holders, &holds, &self, BPF_ANY))
			fl_count(hint_full);
	}
	return true;
}

/* A tick hits @p: true if it spins for a lock whose holder is known. */
__noinline bool fl_hint_tick(struct task_struct *p __arg_trusted,
			     struct task_ctx *tctx __arg_nonnull)
{
	struct fl_hint hint = {};
	u64 waits = 0;

	if (!note_holds(p, tctx, &hint))
		return false;
	if (hint.waits_for)
		waits = fl_lock_hash(LOCK_HINT, hint.waits_for, p->tgid);
	/* The same lock may have a new holder. */
	if (tctx->hint_waits &&
	    (tctx->hint_waits != waits || !tctx->edge || !fl_slot(edge_slot(tctx->edge))->owner))
		wait_ends(tctx, fl_self(p, tctx));
	if (waits && !tctx->hint_waits)
		begin_wait(p, tctx, waits, hint.owner, hint.waits_for);
	return tctx->hint_waits;
}

/* @p is preempted. */
__noinline int fl_hint_preempted(struct task_struct *p __arg_trusted,
				 struct task_ctx *tctx __arg_nonnull)
{
	struct fl_hint hint = {};

	note_holds(p, tctx, &hint);
	return 0;
}

/* @tctx goes to sleep: so it does not spin. */
int fl_hint_sleep(struct task_ctx *tctx __arg_nonnull, u64 self)
{
	if (tctx->hint_waits)
		wait_ends(tctx, self);
	return 0;
}
