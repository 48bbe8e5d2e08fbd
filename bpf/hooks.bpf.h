/* SPDX-License-Identifier: GPL-2.0-only */
/* Decisions that a user's policy may make: whether one is loaded, and what it answers. */
#ifndef __FREQLOCK_HOOKS_BPF_H
#define __FREQLOCK_HOOKS_BPF_H

#include "freqlock.bpf.h"
#include "decision.bpf.h"
#define FREQLOCK_SCHEDULER
#include "freqlock_policy.bpf.h"

extern volatile struct fl_hook hooks[FL_NR_HOOKS];

#define HOOK(name, cli, flags, help) int fl_hook_##name(u32 place);
#include "hook_names.h"
#undef HOOK

int fl_ask_preempt(struct task_ctx *tctx __arg_nonnull, u64 self, u32 best, u64 weight);
int fl_ask_boost(struct task_ctx *tctx __arg_nonnull, u64 self, u32 best);
int fl_ask_level(struct task_struct *w __arg_trusted, struct task_ctx *wctx __arg_nonnull, u64 hash,
		 u64 holder);
s32 fl_ask_handoff(struct task_struct *w __arg_trusted, struct task_ctx *wctx __arg_nonnull,
		   struct task_struct *waker __arg_trusted, u32 slot);
bool fl_ask_profiled(struct task_struct *w __arg_trusted, struct task_ctx *wctx __arg_nonnull,
		     u64 hash, u32 kind, u64 addr);
bool fl_ask_spins(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull, u64 ip,
		  u64 ran, bool found);
s32 fl_ask_place(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
		 struct placement *pl __arg_nonnull);

/* The number of the context that the task is in, 0 none. */
static __always_inline u32 fl_context_of(const struct task_ctx *tctx)
{
	return tctx->policy & (FL_MAX_POLICIES / 2 - 1);
}

/* True if a policy is to be asked about the task: without one, that is a load and a branch. */
static __always_inline bool fl_asks(enum fl_hook_name hook, const struct task_ctx *tctx)
{
	u32 whose = hooks[hook].whose;

	return whose && (whose == FL_HOOK_ALL || whose == FL_HOOK_CONTEXT + fl_context_of(tctx));
}

/* True if the wait of @w, which begins, for the lock @hash at @addr belongs into the profile. */
static __always_inline bool fl_is_profiled(struct task_struct *w, struct task_ctx *wctx, u64 hash,
					   u32 kind, u64 addr)
{
	return !fl_asks(FL_HOOK_profile_filter, wctx) || fl_ask_profiled(w, wctx, hash, kind, addr);
}

#endif /* __FREQLOCK_HOOKS_BPF_H */
