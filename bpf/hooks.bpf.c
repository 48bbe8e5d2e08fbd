/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Asks a user's policy: what it is told, what is made of its answer, and what its answers take.
 * One call in FL_HOOK_SAMPLE is timed; a policy whose calls take more than policy_max_ns on average
 * is asked no more, and the agent takes it out.
 */
#include "freqlock.bpf.h"
#include "hooks.bpf.h"
#include "policy/graph.h"

/* Written by the agent as policies come and go. */
volatile struct fl_hook hooks[FL_NR_HOOKS];

FREQLOCK_CALLS;

/* Calls of which one is timed, and how many of those there are before they are judged. */
#define FL_HOOK_SAMPLE 16
#define FL_HOOK_JUDGED 64

/* This CPU's question, to be filled in; NULL while another one stands, which this one interrupts.
 */
static struct freqlock_call *question(void)
{
	u32 cpu = bpf_get_smp_processor_id();
	struct freqlock_call *call = &freqlock_calls[cpu & (FREQLOCK_CPUS - 1)];

	if (call->busy)
		return NULL;
	call->busy = 1;
	call->answer = FREQLOCK_DEFAULT;
	return call;
}

/* When the call about to be made began, 0: it is not timed. */
static u64 call_begins(void)
{
	fl_count(policy_asked);
	return bpf_get_prandom_u32() % FL_HOOK_SAMPLE ? 0 : bpf_ktime_get_ns();
}

static void call_ends(enum fl_hook_name name, u64 began)
{
	volatile struct fl_hook *hook = &hooks[name];
	u64 timed;

	if (!began)
		return;
	__sync_fetch_and_add(&hook->ns, elapsed(began, bpf_ktime_get_ns()));
	timed = __sync_fetch_and_add(&hook->timed, 1) + 1;
	if (timed >= FL_HOOK_JUDGED && hook->ns > timed * tunables.policy_max_ns) {
		hook->slow = 1;
		hook->whose = FL_HOOK_OFF;
	}
}

/* What came of a question, which no longer stands. */
static s32 answer_to(struct freqlock_call *call)
{
	s32 answer = READ_ONCE(call->answer);

	call->busy = 0;
	return answer;
}

#define ask(name, call)                                     \
	({                                                  \
		u64 __began = call_begins();                \
		fl_hook_##name(bpf_get_smp_processor_id()); \
		call_ends(FL_HOOK_##name, __began);         \
		answer_to(call);                            \
	})

static s32 refused(void)
{
	fl_count(policy_refused);
	return FREQLOCK_DEFAULT;
}

/* @answer if it is one from @least to @most. */
static s32 judged(s32 answer, s32 least, s32 most)
{
	if (answer == FREQLOCK_DEFAULT)
		return answer;
	return answer >= least && answer <= most ? answer : refused();
}

static void describe(struct freqlock_task *task, const struct task_struct *p,
		     const struct task_ctx *tctx)
{
	bpf_probe_read_kernel(task->comm, sizeof(task->comm), p->comm);
	task->pid = p->pid;
	task->tgid = p->tgid;
	task->level = tctx->level;
	task->context = fl_context_of(tctx);
	task->weight = tctx->weight;
	task->ran = tctx->ran;
}

/* @self holds a lock. If it is gone, little is known of it. */
static void describe_holder(struct freqlock_holder *about, struct task_ctx *tctx, u64 self,
			    u32 best, u64 weight)
{
	struct task_struct *p = bpf_task_from_pid(self >> 32);

	about->other_weight = weight;
	about->best = best;
	if (!p) {
		__builtin_memset(&about->task, 0, sizeof(about->task));
		about->cpu = 0;
		return;
	}
	describe(&about->task, p, tctx);
	about->cpu = scx_bpf_task_cpu(p);
	bpf_task_release(p);
}

/* Whether @self, of whose waiters @best is the best, may lose its CPU to a task of @weight. */
__noinline int fl_ask_preempt(struct task_ctx *tctx __arg_nonnull, u64 self, u32 best, u64 weight)
{
	struct freqlock_call *call = question();

	if (!call)
		return FREQLOCK_DEFAULT;
	describe_holder(&call->may_preempt_holder, tctx, self, best, weight);
	return judged(ask(may_preempt_holder, call), FREQLOCK_NO, FREQLOCK_YES);
}

/* The level that @self is boosted with, 0: not at all; @best unless a policy knows better. */
__noinline int fl_ask_boost(struct task_ctx *tctx __arg_nonnull, u64 self, u32 best)
{
	struct freqlock_call *call = question();
	s32 answer;

	if (!call)
		return best;
	describe_holder(&call->boost_holder, tctx, self, best, 0);
	answer = judged(ask(boost_holder, call), FREQLOCK_NO, FREQLOCK_LEVEL_MAX);
	return answer < 0 ? (s32)best : answer;
}

/* The level of @w, which is to wait for the lock @hash of @holder. */
__noinline int fl_ask_level(struct task_struct *w __arg_trusted,
			    struct task_ctx *wctx __arg_nonnull, u64 hash, u64 holder)
{
	struct freqlock_call *call = question();
	s32 answer;

	if (!call)
		return wctx->level;
	describe(&call->waiter_level.task, w, wctx);
	call->waiter_level.lock = hash;
	call->waiter_level.holder_pid = holder >> 32;
	call->waiter_level.unused = 0;
	answer = judged(ask(waiter_level, call), FREQLOCK_LEVEL_MIN, FREQLOCK_LEVEL_MAX);
	return answer < 0 ? (s32)wctx->level : answer;
}

/* Whether @p, which a tick hit at @ip, spins. */
__noinline bool fl_ask_spins(struct task_struct *p __arg_trusted,
			     struct task_ctx *tctx __arg_nonnull, u64 ip, u64 ran, bool found)
{
	struct freqlock_call *call = question();
	s32 answer;

	if (!call)
		return found;
	describe(&call->is_spinner.task, p, tctx);
	call->is_spinner.ip = ip;
	call->is_spinner.ran = ran;
	call->is_spinner.cpu = scx_bpf_task_cpu(p);
	call->is_spinner.found = found;
	answer = judged(ask(is_spinner, call), FREQLOCK_NO, FREQLOCK_YES);
	return answer < 0 ? found : answer;
}

/* The CPU that @p goes to, claimed if it is idle; -1: the mode decides. */
__noinline s32 fl_ask_place(struct task_struct *p __arg_trusted,
			    struct task_ctx *tctx __arg_nonnull, struct placement *pl __arg_nonnull)
{
	struct freqlock_call *call = question();
	struct freqlock_placement *about;
	s32 cpu;

	if (!call)
		return FREQLOCK_DEFAULT;
	about = &call->place;
	describe(&about->task, p, tctx);
	about->prev_cpu = pl->prev_cpu;
	about->prev_node = fl_topo(pl->prev_cpu)->node;
	about->this_cpu = pl->this_cpu;
	about->this_node = fl_topo(pl->this_cpu)->node;
	about->nr_cpus = nr_cpus;
	about->fork = pl->fork;
	about->waker = pl->from_task ? fl_cpu(pl->this_cpu)->running : 0;
	about->unused = 0;
	cpu = judged(ask(place, call), 0, nr_cpus - 1);
	if (cpu < 0)
		return FREQLOCK_DEFAULT;
	if (!fl_allowed(p, cpu))
		return refused();
	pl->idle = scx_bpf_test_and_clear_cpu_idle(cpu);
	if (pl->idle && cpu == pl->prev_cpu)
		fl_count(place_prev_idle);
	else if (pl->idle)
		fl_count(place_idle);
	else if (cpu == pl->prev_cpu)
		fl_count(place_prev);
	else
		fl_count(place_busy);
	return cpu;
}
