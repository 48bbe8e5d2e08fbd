/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The concurrency profile: for each lock that was waited for, how often and
 * how long, and what became of its holders meanwhile. For `scx_freqlock locks`.
 *
 * Counts are atomic. The longest wait is not: of two that end at once on two
 * CPUs the longer may be overwritten by the shorter, and the histogram tells.
 *
 * What is forgotten for another lock is the one least recently waited for.
 */
#include "freqlock.bpf.h"
#include "profile.bpf.h"
#include "policy/profile.h"

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, FL_MAX_PROFILES);
	__type(key, u64);
	__type(value, struct fl_lock_profile);
} lock_profiles SEC(".maps");

/* Where a new profile begins; too large for the stack. */
static const struct fl_lock_profile nothing_known;

/*
 * A new profile of the lock @hash, NULL if there is one. Of two tasks that are its first
 * waiters at once one finds the other's, which may not be filled yet.
 */
static struct fl_lock_profile *profile_new(u64 hash)
{
	struct fl_lock_profile *profile = bpf_map_lookup_elem(&lock_profiles, &hash);

	if (profile)
		return NULL;
	if (bpf_map_update_elem(&lock_profiles, &hash, &nothing_known, BPF_NOEXIST)) {
		fl_count(profile_full);
		return NULL;
	}
	fl_count(profile_new);
	return bpf_map_lookup_elem(&lock_profiles, &hash);
}

/* Who waits, and for what. */
static void describe(struct fl_lock_profile *profile, u32 tgid, u32 kind, u64 addr)
{
	struct task_struct *w = bpf_get_current_task_btf();

	profile->addr = addr;
	profile->tgid = tgid;
	profile->cgroup = bpf_get_current_cgroup_id();
	bpf_probe_read_kernel_str(profile->comm, FL_COMM, fl_cast(w)->group_leader->comm);
	/* Last: by it the agent sees that the rest is there. */
	*(volatile u32 *)&profile->kind = kind;
}

/* The current task, which is in a system call, begins to wait for the lock @hash. */
__noinline int fl_profile_begin(u64 hash, u32 kind, u64 addr)
{
	struct fl_lock_profile *profile = profile_new(hash);
	struct task_struct *w = bpf_get_current_task_btf();
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(w);
	u64 sp = PT_REGS_SP(regs);
	u32 tgid = 0;

	if (!profile)
		return 0;
	if (kind == FL_LOCK_FUTEX || kind == FL_LOCK_PI) {
		tgid = w->tgid;
		/* The top of the stack may be the last of its mapping: then less is known. */
		if (bpf_probe_read_user(profile->stack, sizeof(profile->stack), (void *)sp))
			bpf_probe_read_user(profile->stack, sizeof(profile->stack) / 4, (void *)sp);
	} else {
		bpf_get_task_stack(w, profile->stack, sizeof(profile->stack), 0);
		if (fl_cast(w)->mm && addr == (u64)&fl_cast(w)->mm->mmap_lock)
			kind = FL_LOCK_MMAP;
	}
	describe(profile, tgid, kind, addr);
	return 0;
}

/* The current task, which was hit by a tick, waits for a lock by its own word. */
__noinline int fl_profile_hint(u64 hash, u64 addr)
{
	struct fl_lock_profile *profile = profile_new(hash);

	if (profile)
		describe(profile, bpf_get_current_task_btf()->tgid, FL_LOCK_HINT, addr);
	return 0;
}

/* A wait of @ns for the lock @hash is over, and its task runs again. */
__noinline int fl_profile_wait(u64 hash, u64 ns)
{
	struct fl_lock_profile *profile = bpf_map_lookup_elem(&lock_profiles, &hash);

	if (!profile)
		return 0;
	__sync_fetch_and_add(&profile->waits, 1);
	__sync_fetch_and_add(&profile->wait_ns, ns);
	__sync_fetch_and_add(&profile->wait_slot[in_range(profile_slot(ns), FL_PROFILE_SLOTS)], 1);
	if (ns > READ_ONCE(profile->wait_longest_ns))
		profile->wait_longest_ns = ns;
	return 0;
}

/* The holder handed off the lock @hash on @cpu, @ns after the first wait began. */
__noinline int fl_profile_hold(u64 hash, s32 cpu, u64 ns)
{
	struct fl_lock_profile *profile = bpf_map_lookup_elem(&lock_profiles, &hash);

	if (!profile)
		return 0;
	__sync_fetch_and_add(&profile->holds, 1);
	__sync_fetch_and_add(&profile->hold_ns, ns);
	__sync_fetch_and_add(&profile->hold_slot[in_range(profile_slot(ns), FL_PROFILE_SLOTS)], 1);
	if (fl_topo(cpu)->capacity < FL_FULL_SPEED)
		__sync_fetch_and_add(&profile->holds_small, 1);
	return 0;
}

/* The holder of the lock @hash loses its CPU while there are waiters. */
__noinline int fl_profile_preempted(u64 hash)
{
	struct fl_lock_profile *profile = bpf_map_lookup_elem(&lock_profiles, &hash);

	if (profile)
		__sync_fetch_and_add(&profile->preempted, 1);
	return 0;
}
