/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CPU time is shared along the tree of cgroups, by cpu.weight, cpu.weight.nice and cpu.idle, and
 * among autogroups as the kernel has them. policy/cgroup.h says how; this file keeps the tree.
 *
 * 1. A task's cgroup is its struct task_group: that of its cgroup in the hierarchy of the cpu
 *    controller, version 1 or 2, or of its autogroup. Each with tasks, and those above it, has a
 *    slot. A task is looked at before decisions about it, as its context is: so there is no
 *    hook for moves, and no difference between kernels.
 * 2. CPUs add up what the tasks of each cgroup run and wait for, and the weight of those that are
 *    runnable, each for itself: no line is shared by CPUs at wake-ups or switches. Once in 17 ms
 *    a CPU marks the cgroup as active.
 * 3. A timer, set by whoever does that first, works out scales from the sums of all CPUs and
 *    from the weights as they stand in the kernel then. An idle machine has no such timer, and
 *    a cgroup in which nothing runs costs nothing. What a pass costs grows with active
 *    cgroups times CPUs: where it takes more than a 64th of a CPU, it comes less often.
 *
 * Slots are claimed by a compare-exchange and are given back by the timer alone, which first
 * marks one dead, then takes its name out. A name is put in only where there is none. So two
 * slots never have one name; who meets a dead one tries again at its next decision.
 *
 * The kernel may use the address of a task_group that is gone for another one, while a task that
 * left it sleeps. It then has the same slot; whoever joins links the slot to the
 * parent that the kernel says. Weights read at an address that is gone are some number within
 * the bounds of weights, and of a cgroup without tasks.
 */
#include "freqlock.bpf.h"
#include "cgroup.bpf.h"
#include "kick.bpf.h"
#include "limit.bpf.h"

/* Time from the first sums to the timer. */
#define CGROUP_PASS_NS (1ULL << CGROUP_PERIOD_SHIFT)
/* A pass has at most this part of a CPU's time. */
#define CGROUP_PASS_SHARE 64
/* A timer that is late by this was lost. */
#define CGROUP_LOST_NS (1000 * 1000 * FL_USEC)
/* Slots looked at for one that is free, and in each pass for those to be given back. */
#define CGROUP_SCAN  64
#define CGROUP_WORDS (FL_MAX_SHARES / 64)
#define CGROUP_DEAD  (~0U)

struct cgroup_ctx cgroups[FL_MAX_SHARES];

struct { /* by the address of a task_group, its slot */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, FL_MAX_SHARES);
	__type(key, u64);
	__type(value, u32);
} cgroup_slots SEC(".maps");

struct cgroup_timer {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cgroup_timer);
} cgroup_timers SEC(".maps");

/* Slots in which something ran, a bit each. */
static u64 active_slots[CGROUP_WORDS];
static struct fl_alarm pass_alarm;
static volatile u64 ran_since; /* since when something ran, as it was set */
static u64 passed_at, pass_ns;
static volatile u32 next_free;

/* Of a pass, of which there is one at a time: which slots, ... */
static u32 list[FL_MAX_SHARES];
/* ... and sums. Not static: clang makes variables of members then, of sizes that BTF gets wrong. */
struct {
	u64 ns;   /* since the one before */
	u64 span; /* that part of it in which anything ran */
	u64 mass, tasks, before;
	u32 listed, nr; /* slots with new sums; those of them that take part */
	u32 swept;      /* slots up to here were looked at for those to be given back */
} cgroup_pass;

static u64 parent_of(u64 task_group)
{
	return (u64)BPF_CORE_READ((struct task_group *)task_group, parent);
}

/* Nothing that is known of another one counts for the cgroup in @c. */
static void forget(struct cgroup_ctx *c)
{
	c->idle = false;
	c->scale = CGROUP_ONE;
	c->newcomer = 0;
	c->own = (struct cgroup_member){ .correction = CGROUP_ONE };
	c->all = (struct cgroup_member){ .correction = CGROUP_ONE };
	c->pool = (struct cgroup_pool){};
	__builtin_memset(&c->fading, 0, sizeof(c->fading));
}

/*
 * One more task or child has the cgroup in @slot; false if that is free, or about to be. One
 * without may be new, at the address of another, whose corrections are not its own.
 */
static bool get(u32 slot)
{
	struct cgroup_ctx *c = fl_cgroup(slot);
	u32 refs = READ_ONCE(c->refs), seen, i;

	bpf_for(i, 0, 16) {
		if (!refs || refs == CGROUP_DEAD)
			return false;
		seen = __sync_val_compare_and_swap(&c->refs, refs, refs + 1);
		if (seen == refs) {
			if (refs == 1)
				forget(c);
			return true;
		}
		refs = seen;
	}
	return false;
}

static void put(u32 slot)
{
	__sync_fetch_and_sub(&fl_cgroup(slot)->refs, 1);
}

/* A free slot with one reference, FL_MAX_SHARES if none was found. */
static u32 claim_slot(void)
{
	u32 slot = next_free, i;

	bpf_for(i, 0, CGROUP_SCAN) {
		slot = in_range(slot + 1, FL_MAX_SHARES);
		if (slot && !fl_cgroup(slot)->refs &&
		    __sync_bool_compare_and_swap(&fl_cgroup(slot)->refs, 0, 2)) {
			next_free = slot;
			return slot;
		}
	}
	next_free = slot;
	return FL_MAX_SHARES;
}

/* The slot of @task_group with a reference more; FL_MAX_SHARES if there is none now. */
static u32 find(u64 task_group)
{
	u32 *known = bpf_map_lookup_elem(&cgroup_slots, &task_group);
	struct cgroup_ctx *c;
	u32 slot;

	if (known)
		return get(*known) ? *known : FL_MAX_SHARES;
	slot = claim_slot();
	if (slot == FL_MAX_SHARES) {
		fl_count(cgroup_full);
		return slot;
	}
	c = fl_cgroup(slot);
	c->parent = 0;
	c->linked = false;
	forget(c);
	c->task_group = task_group;
	/* Another CPU may do the same: one of both gives its slot back, and tries again. */
	if (bpf_map_update_elem(&cgroup_slots, &task_group, &slot, BPF_NOEXIST)) {
		c->task_group = 0;
		__sync_lock_test_and_set(&c->refs, 0);
		return FL_MAX_SHARES;
	}
	/* Read again, a number: the verifier knows the other for a pointer. */
	fl_limit_read(slot, READ_ONCE(c->task_group));
	fl_count(cgroup_new);
	return slot;
}

/* Link @slot, of @task_group, with those above it, as far as that is not so already. */
static void link_up(u32 slot, u64 task_group)
{
	u32 i, parent, old;
	u64 above;

	bpf_for(i, 0, CGROUP_DEPTH) {
		struct cgroup_ctx *c = fl_cgroup(slot);

		above = parent_of(task_group);
		/* Those below the root have its slot, 0, from the start. */
		if (!above || !parent_of(above)) {
			parent = 0;
		} else {
			if (c->linked && fl_cgroup(c->parent)->task_group == above)
				return;
			parent = find(above);
			if (parent >= FL_MAX_SHARES)
				parent = 0;
		}
		old = __sync_lock_test_and_set(&c->parent, parent);
		if (old)
			put(old);
		c->linked = true;
		if (!parent)
			return;
		slot = parent;
		task_group = above;
	}
}

static bool is_idle(u64 task_group)
{
	return BPF_CORE_READ((struct task_group *)task_group, idle) > 0;
}

static u64 weight_of(u64 task_group)
{
	return cgroup_weight(BPF_CORE_READ((struct task_group *)task_group, shares),
			     is_idle(task_group));
}

static __always_inline bool is_root(const struct cgroup_ctx *c)
{
	return c == &cgroups[0];
}

/*
 * The scale of the cgroup in @slot until a pass has seen it, 17 ms or more: with one of 1, a
 * cgroup of weight 1 had a fifth more than its share in its first 5 s.
 */
__noinline int fl_cgroup_begin(u32 slot)
{
	struct cgroup_ctx *c = fl_cgroup(slot), *at = c, *above;
	u64 scale = CGROUP_ONE;
	u32 i;

	bpf_for(i, 0, CGROUP_DEPTH) {
		if (at->newcomer || is_root(at))
			break;
		above = fl_cgroup(at->parent);
		/* Alone there it has all that its parent has. */
		if (is_root(above) || above->refs > 2)
			scale = cgroup_begin(weight_of(at->task_group), scale);
		c->idle |= is_idle(at->task_group);
		at = above;
	}
	scale = greater(lesser(scale, CGROUP_BEGINS_MOST), CGROUP_BEGINS_LEAST);
	c->scale = cgroup_scaled(scale, at->newcomer ?: CGROUP_ONE);
	return 0;
}

/* @p is in another cgroup than it was, or is new. */
int fl_cgroup_follow(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
		     u64 now)
{
	u64 task_group = (u64)fl_cast(p)->sched_task_group;
	u64 counted = tctx->counted;
	u32 slot = 0;

	fl_cgroup_leave(tctx, now);
	if (parent_of(task_group)) {
		slot = find(task_group);
		/* Among those of the root, until its next decision finds better. */
		if (slot >= FL_MAX_SHARES) {
			fl_cgroup_count(tctx, counted, now);
			return 0;
		}
		link_up(slot, task_group);
		if (!fl_cgroup(slot)->newcomer)
			fl_cgroup_begin(slot);
	}
	tctx->cgroup = slot;
	tctx->task_group = task_group;
	fl_cgroup_count(tctx, counted, now);
	return 0;
}

/* @tctx is in no cgroup but the root. */
int fl_cgroup_leave(struct task_ctx *tctx __arg_nonnull, u64 now)
{
	u32 slot = tctx->cgroup;

	fl_cgroup_count(tctx, 0, now);
	tctx->cgroup = 0;
	tctx->task_group = 0;
	if (slot)
		put(slot);
	return 0;
}

static void mark_active(u32 slot)
{
	u64 bit = 1ULL << (slot & 63), *word = &active_slots[in_range(slot / 64, CGROUP_WORDS)];

	if (!(READ_ONCE(*word) & bit))
		__sync_fetch_and_or(word, bit);
}

/* Two CPUs may do so at once: then the timer is set twice, to about the same time. */
static void set_timer(u64 since, u64 now)
{
	u64 at = READ_ONCE(pass_alarm.at),
	    in = greater(CGROUP_PASS_NS, pass_ns * CGROUP_PASS_SHARE);
	struct cgroup_timer *t;
	u32 zero = 0;

	if (at && (s64)(now - at) < (s64)CGROUP_LOST_NS)
		return;
	t = bpf_map_lookup_elem(&cgroup_timers, &zero);
	if (!t)
		return;
	ran_since = since;
	fl_timer_set(&t->timer, &pass_alarm, now + in, now);
}

/* A task of the cgroup in @slot ran here @since then, for the first time in this period. */
int fl_cgroup_active(u32 slot, u64 since, u64 now)
{
	u32 i;

	bpf_for(i, 0, CGROUP_DEPTH) {
		mark_active(slot);
		if (!slot)
			break;
		slot = fl_cgroup(slot)->parent;
	}
	set_timer(since, now);
	return 0;
}

static __always_inline u64 taken(u64 *sum)
{
	return __sync_lock_test_and_set(sum, 0);
}

/* Add up what CPUs have of the cgroup in @slot: what it grew by goes to those above it, too. */
__noinline int fl_cgroup_sum(u32 slot)
{
	struct cgroup_ctx *c = fl_cgroup(slot);
	u64 used = 0, runnable = 0;
	s64 weight = 0;
	u32 i;

	bpf_for(i, 0, nr_cpus) {
		struct cgroup_sum *sum = bpf_map_lookup_percpu_elem(&cgroup_sums, &slot, i);

		if (!sum)
			break;
		used += sum->used;
		runnable += fl_cgroup_runnable(sum, passed_at);
		weight += sum->weight;
	}
	/* Read while a CPU changes them, sums may be off, and less than before. */
	c->grew.used = used - c->used;
	c->grew.runnable = elapsed(c->runnable, runnable);
	c->used = used;
	c->runnable = runnable;
	if (weight < 0)
		weight = 0;
	/* The mean of now and then. */
	c->grew.weight = (weight + c->weight) / 2;
	c->weight = weight;
	used = c->grew.used;
	runnable = c->grew.runnable;
	bpf_for(i, 0, CGROUP_DEPTH) {
		c->all_used += used;
		c->all_runnable += runnable;
		if (!slot)
			break;
		slot = c->parent;
		c = fl_cgroup(slot);
	}
	return 0;
}

/* What the fading @sum is with @more, over the time in which sums fade elsewhere. */
static __always_inline u64 fade(struct cgroup_ctx *c, u64 *sum, u64 more)
{
	*sum = cgroup_faded(*sum, cgroup_pass.ns, more);
	return cgroup_mature(*sum, c->fading.time);
}

/* What the cgroup in @slot brings into this pass. */
__noinline int fl_cgroup_take(u32 slot)
{
	struct cgroup_ctx *c = fl_cgroup(slot);
	u64 weight = WEIGHT_NICE_0, ns = cgroup_pass.ns, span = cgroup_pass.span, claim;

	c->burst = taken(&c->bursts);
	c->fading.time = cgroup_faded(c->fading.time, ns, span);
	c->own.ran = c->grew.used;
	c->own.wanted = c->grew.runnable;
	c->all.ran = taken(&c->all_used);
	c->all.wanted = taken(&c->all_runnable);
	c->own.used = fade(c, &c->fading.used, c->own.ran);
	c->own.runnable = fade(c, &c->fading.runnable, c->own.wanted);
	c->all.used = fade(c, &c->fading.all_used, c->all.ran);
	c->all.runnable = fade(c, &c->fading.all_runnable, c->all.wanted);
	c->fading.active = cgroup_faded(c->fading.active, ns, c->grew.weight ? span : 0);
	c->fading.load = cgroup_faded(c->fading.load, ns, cgroup_load(c->grew.weight, span));
	if (slot && c->all.runnable < CGROUP_GONE_NS && !c->weight)
		return 0;
	mark_active(slot);
	if (slot) {
		fl_limit_read(slot, c->task_group);
		weight = weight_of(c->task_group);
		c->idle = is_idle(c->task_group) || fl_cgroup(c->parent)->idle;
	}
	claim = cgroup_claim(c->fading.load);
	c->own.right = c->own.runnable ? cgroup_right(claim, c->fading.active) : 0;
	c->all.right = weight * CGROUP_ACTIVE;
	c->pool.rights = 0;
	c->pool.content = 0;
	c->pool.open = 0;
	c->pool.ran = 0;
	/* What others have to share they know from those above, a pass later on each level. */
	if (!slot) {
		c->pool.has = c->all.used;
		c->pool.rate = c->all.used;
		c->pool.lift = CGROUP_ONE;
	}
	list[in_range(cgroup_pass.nr, FL_MAX_SHARES)] = slot;
	cgroup_pass.nr++;
	return 0;
}

/* List those of the 64 slots in this word that are active. */
__noinline int fl_cgroup_list(u32 word)
{
	u64 bits = taken(&active_slots[in_range(word, CGROUP_WORDS)]);
	u32 i;

	bpf_for(i, 0, 64) {
		if (!bits)
			break;
		list[in_range(cgroup_pass.listed++, FL_MAX_SHARES)] = word * 64 + highest_bit(bits);
		bits &= ~(1ULL << (highest_bit(bits) & 63));
	}
	return 0;
}

static __always_inline struct cgroup_ctx *listed(u32 i)
{
	return fl_cgroup(list[in_range(i, FL_MAX_SHARES)]);
}

static __always_inline struct cgroup_pool *pool_above(const struct cgroup_ctx *c)
{
	return &fl_cgroup(c->parent)->pool;
}

static void join(struct cgroup_ctx *c)
{
	cgroup_join(&c->own, &c->pool);
	if (!is_root(c))
		cgroup_join(&c->all, pool_above(c));
}

static void ask(struct cgroup_ctx *c)
{
	cgroup_ask(&c->own, &c->pool);
	if (!is_root(c))
		cgroup_ask(&c->all, pool_above(c));
}

/* That own tasks of the cgroup in @slot run for a @burst at once counts for those above it, too. */
__noinline int fl_cgroup_bursts(u32 slot, u64 burst)
{
	struct cgroup_ctx *c = fl_cgroup(slot);
	u32 i;

	bpf_for(i, 0, CGROUP_DEPTH) {
		c->bursts = greater(c->bursts, burst);
		if (!slot)
			break;
		slot = c->parent;
		c = fl_cgroup(slot);
	}
	return 0;
}

/* What it has for its members counts from the next pass on. */
static void settle(struct cgroup_ctx *c, u32 slot)
{
	struct cgroup_pool *above = pool_above(c);
	/* Those that are gone do not count any more, though what they used fades. */
	u64 tasks = c->grew.runnable ? cgroup_claim(c->own.runnable) : 0;
	u64 burst = cgroup_burst(&c->own, fl_slice(NULL));

	cgroup_settle(&c->own, &c->pool, burst);
	/* Alone in its pool it is what the cgroup is, which is corrected among its siblings. */
	if (c->pool.rights == c->own.right)
		c->own.correction = CGROUP_ONE;
	c->unit = cgroup_unit(&c->own, &c->pool);
	if (c->pool.rate) {
		if (c->own.right)
			fl_cgroup_bursts(slot, burst);
		cgroup_pass.mass += cgroup_mass(tasks, c->unit);
		cgroup_pass.tasks += tasks;
		cgroup_pass.before += cgroup_mass_before(tasks, c->scale);
	}
	if (is_root(c))
		return;
	cgroup_settle(&c->all, above, c->burst);
	c->pool.has = c->all.has;
	c->pool.rate = c->all.rate;
	c->pool.lift = cgroup_lift(&c->all, above);
}

/* Give back slots that nobody has. */
static void sweep(void)
{
	u32 i, slot = cgroup_pass.swept;

	bpf_for(i, 0, CGROUP_SCAN) {
		struct cgroup_ctx *c;
		u64 task_group;

		slot = in_range(slot + 1, FL_MAX_SHARES);
		c = fl_cgroup(slot);
		if (READ_ONCE(c->refs) != 1 || !fl_limit_is_open(slot) ||
		    !__sync_bool_compare_and_swap(&c->refs, 1, CGROUP_DEAD))
			continue;
		task_group = c->task_group;
		/* Another CPU has that part of the table just now. */
		if (bpf_map_delete_elem(&cgroup_slots, &task_group)) {
			__sync_lock_test_and_set(&c->refs, 1);
			continue;
		}
		c->task_group = 0;
		fl_limit_forget(slot);
		if (c->parent)
			put(c->parent);
		c->parent = 0;
		__sync_lock_test_and_set(&c->refs, 0);
	}
	cgroup_pass.swept = slot;
}

static int pass_fire(void *map, u32 *key, struct cgroup_timer *t)
{
	u64 now = fl_timer_now(&pass_alarm), began = bpf_ktime_get_ns(), mean;
	u32 i, round;

	/* Idle time, which has no passes, fades what was. */
	cgroup_pass.ns = elapsed(passed_at, now);
	cgroup_pass.span = cgroup_span(passed_at, ran_since, now);
	passed_at = now;
	cgroup_pass.listed = 0;
	cgroup_pass.nr = 0;
	cgroup_pass.mass = 0;
	cgroup_pass.tasks = 0;
	cgroup_pass.before = 0;
	bpf_for(i, 0, CGROUP_WORDS)
		fl_cgroup_list(i);
	bpf_for(i, 0, cgroup_pass.listed)
		fl_cgroup_sum(list[in_range(i, FL_MAX_SHARES)]);
	/* Those that take part move up in the list. */
	bpf_for(i, 0, cgroup_pass.listed)
		fl_cgroup_take(list[in_range(i, FL_MAX_SHARES)]);
	bpf_for(i, 0, cgroup_pass.nr)
		join(listed(i));
	bpf_for(round, 0, CGROUP_ROUNDS) {
		bpf_for(i, 0, cgroup_pass.nr)
			ask(listed(i));
	}
	bpf_for(i, 0, cgroup_pass.nr)
		settle(listed(i), list[in_range(i, FL_MAX_SHARES)]);
	mean = cgroup_slewed(cgroup_mean(cgroup_pass.mass, cgroup_pass.tasks), cgroup_pass.before,
			     cgroup_pass.tasks);
	bpf_for(i, 0, cgroup_pass.nr) {
		struct cgroup_ctx *c = listed(i);

		if (!mean || !c->pool.rate)
			continue;
		c->newcomer = cgroup_newcomer(&c->pool, mean);
		if (!c->unit && c->own.right)
			continue;
		c->scale = cgroup_steady(c->scale,
					 c->own.right ? cgroup_scale(c->unit, mean) : c->newcomer);
	}
	sweep();
	fl_count(cgroup_pass);
	pass_ns = bpf_ktime_get_ns() - began;
	return 0;
}

/* From ops.init. */
int fl_cgroup_init(void)
{
	struct cgroup_timer *t;
	u32 zero = 0;

	if (!shares_cgroups)
		return 0;
	cgroups[0].refs = 2;
	cgroups[0].scale = CGROUP_ONE;
	cgroups[0].own.correction = CGROUP_ONE;
	cgroups[0].all.correction = CGROUP_ONE;
	t = bpf_map_lookup_elem(&cgroup_timers, &zero);
	if (!t)
		return -ENOENT;
	bpf_timer_init(&t->timer, &cgroup_timers, CLOCK_MONOTONIC);
	return bpf_timer_set_callback(&t->timer, pass_fire);
}
