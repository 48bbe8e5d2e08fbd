/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table of decisions that a user's policy may make: one line each makes the BPF enum and the
 * agent's enum (build.rs reads it). The function of a line's name is declared, and its
 * answers are described, in freqlock_policy.bpf.h.
 *
 * HOOK(name, "name of the function", flags of enum fl_hook_flags, "help").
 */
#ifndef HOOK
#error "define HOOK before including hook_names.h"
#endif

/* clang-format off */
HOOK(may_preempt_holder, "may_preempt_holder", HOOK_LOCKS, "Whether a lock's holder may lose its CPU while others wait for it")
HOOK(boost_holder, "boost_holder", HOOK_LOCKS, "Whether and with what weight a lock's holder is boosted")
HOOK(waiter_level, "waiter_level", HOOK_LOCKS, "What a waiter for a lock counts for")
HOOK(order_handoff, "order_handoff", HOOK_LOCKS, "When a waiter runs that is woken for a lock")
HOOK(profile_filter, "profile_filter", HOOK_LOCKS | HOOK_TRACES, "Whether a wait for a lock is in the profile of locks")
HOOK(is_spinner, "is_spinner", HOOK_ANY, "Whether a task that a tick hits only waits")
HOOK(place, "place", HOOK_ANY, "Which CPU a woken or forked task goes to")
/* clang-format on */
