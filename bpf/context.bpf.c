/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Contexts: knobs that have other values for some tasks. A file of the agent's says
 * for which, by the names of tasks, their cgroups and their users.
 *
 * 1. Each task knows where its policy stands: the values of all knobs that contexts
 *    may set, its context's own or those for all. So a decision reads a value from
 *    there and looks nothing up.
 * 2. Which context that is, is looked up before a decision about the task, if
 *    something changed that it depends on: the task is new, or what is in force is;
 *    or its name, its cgroup or its user are others than they were. The latter are
 *    compared each time, where there are contexts, rather than hooked: exec, prctl,
 *    writes to comm, moves and setuid need no hook each, nothing is lost between a
 *    hook and what it reports, and a task that sleeps costs nothing. A running task
 *    is looked at by its ticks.
 * 3. Rules are tried in their order, and the first that matches applies. Which of them a
 *    cgroup fits is remembered by its id, since a path takes the longest.
 *
 * The agent writes what is new beside what is in force and then changes
 * contexts_version. A look-up meanwhile sees one or the other. Only a look-up that
 * takes longer than two such changes may see a mixture: its result is filed under
 * the version that it began with, which is out of force by then, so the next
 * decision looks again. Every word is one that some file had, within its range.
 */
#include "freqlock.bpf.h"
#include "cgroup.bpf.h"
#include "context.bpf.h"
#include "policy/deadline.h"
#include "policy/graph.h"

/* Cgroups further down are taken for the one at this depth. */
#define PATH_DEPTH 32

/* A name has 255 bytes at most. */
#define CGROUP_NAME 256

volatile u32 contexts_version;
volatile struct fl_policy policies[FL_MAX_POLICIES];
struct fl_rule rules[2 * FL_MAX_CONTEXTS];

/* The rules of one version that a cgroup fits, a bit each. */
struct cgroup_rules {
	u64 mask;
	u32 version;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, FL_MAX_CGROUPS);
	__type(key, u64);
	__type(value, struct cgroup_rules);
} cgroup_masks SEC(".maps");

/* What a pattern is to fit; of a path the rest is for one name too long. */
struct text {
	u8 bytes[2 * FL_GLOB_TEXT];
};

/* One search for a context. In memory, as struct placement is. */
struct search {
	struct fl_traits traits;
	struct glob glob;
	u64 mask;
	u32 len;
	struct text text[FL_NR_GLOBS];
};

_Static_assert(FL_GLOB_TEXT + CGROUP_NAME < 2 * FL_GLOB_TEXT, "there is room for any name");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct search);
} searches SEC(".maps");

/* Asked and answered by context_explain. */
struct fl_explained explained;
static struct search explaining;

/* Path of the cgroup at @cgrp from the root of its hierarchy, which has an empty one itself. */
__noinline int fl_cgroup_path(struct search *s __arg_nonnull, u64 cgrp)
{
	u64 at = cgrp + bpf_core_field_offset(struct cgroup, ancestors);
	u32 depth = BPF_CORE_READ((struct cgroup *)cgrp, level), i;
	u8 *path = s->text[FL_ASKS_CGROUP].bytes;

	s->len = 0;
	bpf_for(i, 1, PATH_DEPTH) {
		u32 begin = in_range(s->len, FL_GLOB_TEXT);
		struct cgroup *above = NULL;
		long n;

		if (i > depth || bpf_probe_read_kernel(&above, sizeof(above), (void *)(at + 8 * i)))
			break;
		path[begin] = '/';
		n = bpf_probe_read_kernel_str(path + begin + 1, CGROUP_NAME,
					      BPF_CORE_READ(above, kn, name));
		if (n <= 0 || begin + n >= FL_GLOB_TEXT) {
			fl_count(context_long);
			break;
		}
		/* Its 0 is where the next one begins. */
		s->len = begin + n;
	}
	path[in_range(s->len, FL_GLOB_TEXT)] = 0;
	return 0;
}

/* True if the rule asks for nothing of kind @what, or what is in @s fits it. */
__noinline bool fl_glob_fits(struct search *s __arg_nonnull, u32 rule, u32 what)
{
	struct fl_rule *r = &rules[in_range(rule, 2 * FL_MAX_CONTEXTS)];
	u32 i = in_range(what, FL_NR_GLOBS);

	return !(r->asks >> i & 1) || glob_fits(&s->glob, r->glob[i].pattern, s->text[i].bytes,
						i == FL_ASKS_CGROUP ? '/' : 0);
}

static bool task_fits(struct search *s, u32 rule)
{
	struct fl_rule *r = &rules[in_range(rule, 2 * FL_MAX_CONTEXTS)];

	return (!(r->asks >> FL_ASKS_USER & 1) || r->uid == s->traits.uid) &&
	       fl_glob_fits(s, rule, FL_ASKS_COMMAND);
}

/* A bit for each rule of @version that the cgroup at @cgrp fits, or that asks for none. */
static u64 rules_of_cgroup(struct search *s, u64 cgrp, u32 version)
{
	struct cgroup_rules *known, fresh = { .version = version };
	u64 id = s->traits.cgroup;
	u32 i;

	known = bpf_map_lookup_elem(&cgroup_masks, &id);
	if (known && known->version == version)
		return known->mask;
	fl_cgroup_path(s, cgrp);
	s->mask = 0;
	bpf_for(i, 0, version_nr(version)) {
		if (fl_glob_fits(s, rule_at(version, i), FL_ASKS_CGROUP))
			s->mask |= 1ULL << (i & 63);
	}
	fresh.mask = s->mask;
	if (bpf_map_update_elem(&cgroup_masks, &id, &fresh, BPF_ANY))
		fl_count(context_full);
	return fresh.mask;
}

/* What the context of @p depends on. Returns the address of its cgroup. */
static u64 traits_of(struct task_struct *p, struct fl_traits *traits)
{
	u64 cgrp = (u64)BPF_CORE_READ(p, cgroups, dfl_cgrp);

	bpf_probe_read_kernel(traits->comm, FL_COMM, p->comm);
	traits->cgroup = BPF_CORE_READ((struct cgroup *)cgrp, kn, id);
	traits->uid = BPF_CORE_READ(p, real_cred, uid.val);
	return cgrp;
}

/* The number of the first context of @version that fits what is in @s, 0 if none does. */
__noinline u32 fl_context_find(struct search *s __arg_nonnull, u64 cgrp, u32 version)
{
	u64 left = rules_of_cgroup(s, cgrp, version);
	u32 i;

	__builtin_memcpy(s->text[FL_ASKS_COMMAND].bytes, s->traits.comm, FL_COMM);

	bpf_for(i, 0, version_nr(version)) {
		if ((left >> (i & 63) & 1) && task_fits(s, rule_at(version, i)))
			return i + 1;
	}
	return 0;
}

/*
 * What a task asked for by sched_setattr() (sched_runtime, from Linux 6.12 on; the kernel
 * sees that it is 0.1 to 100 ms). It asks for that much at a time, and for no more in all.
 */
static __always_inline u64 own_slice(const struct task_struct *p, u64 slice)
{
	if (!bpf_core_field_exists(p->se.custom_slice) || !p->se.custom_slice)
		return 0;
	return slice_granted(p->se.slice, slice, tunables.lag_us * FL_USEC);
}

/* The weight of @p by its nice value, within what its context allows; and its slice. */
__noinline int fl_weigh(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull)
{
	const volatile struct fl_policy *policy = fl_policy(tctx);
	bool idle = p->policy == POLICY_IDLE;
	u64 weight = idle ? WEIGHT_IDLE : weight_of_prio(p->static_prio);

	tctx->own_slice = own_slice(p, policy->slice_us * FL_USEC);
	tctx->own_weight = weight_within(weight, policy->weight_min, policy->weight_max);
	fl_cgroup_scale(p, tctx);
	if (p->prio < PRIO_RT_END)
		tctx->level = LEVEL_MAX;
	else if (tctx->own_weight != weight)
		tctx->level = level_of_weight(tctx->own_weight);
	else
		tctx->level = idle ? LEVEL_IDLE : level_of_prio(p->static_prio);
	return 0;
}

static bool same_traits(const struct fl_traits *a, const struct fl_traits *b)
{
	return !((a->comm[0] ^ b->comm[0]) | (a->comm[1] ^ b->comm[1]) | (a->cgroup ^ b->cgroup) |
		 (a->uid ^ b->uid));
}

/*
 * Looks whether the context of @p is still the one that it is known to be in, and looks
 * it up if not. Decisions about one task come one after the other, so nobody else does
 * the same for it meanwhile.
 */
__noinline int fl_context_look(struct task_struct *p __arg_trusted,
			       struct task_ctx *tctx __arg_nonnull)
{
	struct search *s;
	u32 zero = 0, version, number = 0;
	u64 cgrp;

	s = bpf_map_lookup_elem(&searches, &zero);
	if (!s)
		return 0;
	cgrp = traits_of(p, &s->traits);
	if (tctx->context_version == contexts_version && same_traits(&s->traits, &tctx->traits))
		return 0;
	/* Atomic, so that what was written before it is seen after it on every architecture. */
	version = __sync_fetch_and_add(&contexts_version, 0);
	tctx->traits = s->traits;
	if (version_nr(version)) {
		fl_count(context_look);
		number = fl_context_find(s, cgrp, version);
	}
	tctx->context_version = version;
	tctx->policy = policy_at(version, number);
	return fl_weigh(p, tctx);
}

/*
 * For the agent: which context the task explained.pid is in, and which it will be in
 * when it is looked at next. Changes nothing, so that decisions need not mind it.
 */
SEC("syscall")
int context_explain(void *ctx)
{
	struct task_struct *p = bpf_task_from_pid(explained.pid);
	struct search *s = &explaining;
	struct task_ctx *tctx;
	u64 cgrp;

	explained.found = false;
	if (!p)
		return 0;
	tctx = fl_task(p);
	if (tctx) {
		bpf_rcu_read_lock();
		cgrp = traits_of(p, &s->traits);
		explained.version = __sync_fetch_and_add(&contexts_version, 0);
		explained.context = fl_context_find(s, cgrp, explained.version);
		fl_cgroup_path(s, cgrp);
		bpf_rcu_read_unlock();
		bpf_probe_read_kernel_str(explained.path, FL_GLOB_TEXT,
					  s->text[FL_ASKS_CGROUP].bytes);
		explained.traits = s->traits;
		explained.policy = tctx->policy;
		explained.weight = tctx->own_weight;
		explained.tgid = p->tgid;
		explained.found = true;
	}
	bpf_task_release(p);
	return 0;
}
