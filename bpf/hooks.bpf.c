/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Asks a user's policy: what it is told, what is made of its answer, and what its answers take.
 * One call in FL_HOOK_SAMPLE is timed; a policy whose calls take more than policy_max_ns on average
 * is asked no more, and the agent takes it out.
 */
#include "freqlock.bpf.h"
#include "graph.bpf.h"
#include "hooks.bpf.h"
#include "policy/graph.h"

_Static_assert(FREQLOCK_FUTEX == (int)FL_LOCK_FUTEX && FREQLOCK_PI == (int)FL_LOCK_PI &&
		       FREQLOCK_MUTEX == (int)FL_LOCK_MUTEX &&
		       FREQLOCK_RWSEM == (int)FL_LOCK_RWSEM && FREQLOCK_HINT == (int)FL_LOCK_HINT,
	       "policies know the kinds of locks by other numbers");

/* Written by the agent as policies come and go. */
volatile struct fl_hook hooks[FL_NR_HOOKS];

FREQLOCK_CALLS;

/* Calls of which one is timed, and how many of those there are before they are judged. */
#define FL_HOOK_SAMPLE 16
#define FL_HOOK_JUDGED 64

/*
 * The question at @place, to be filled in; NULL while another one stands there, which this one
 * interrupts.
 */
static struct freqlock_call *question(u32 place)
{
	struct freqlock_call *call = &freqlock_calls[place & (FREQLOCK_PLACES - 1)];

	if (__sync_lock_test_and_set(&call->busy, 1))
		return NULL;
	call->answer = FREQLOCK_DEFAULT;
	return call;
}

/* Where this CPU asks in the scheduler's operations: nothing there preempts it. */
static u32 own_place(void)
{
	return bpf_get_smp_processor_id();
}

/*
 * Where it asks on behalf of a task that may be preempted as it asks, with the question in place
 * for as long as it does not run. Others are not asked meanwhile, which is why this is not the
 * place above: with that, a task could keep a policy from deciding anything on its CPU.
 */
static u32 task_place(void)
{
	return FREQLOCK_CPUS + bpf_get_smp_processor_id();
}

/* How often the current task was preempted: where that changes, a call was not all that took. */
static u64 preemptions(void)
{
	return fl_cast(bpf_get_current_task_btf())->nivcsw;
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

#define ask(name, call, place)                              \
	({                                                  \
		u64 __before = preemptions();               \
		u64 __began = call_begins();                \
		fl_hook_##name(place);                      \
		if (preemptions() == __before)              \
			call_ends(FL_HOOK_##name, __began); \
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
	struct freqlock_call *call = question(own_place());

	if (!call)
		return FREQLOCK_DEFAULT;
	describe_holder(&call->may_preempt_holder, tctx, self, best, weight);
	return judged(ask(may_preempt_holder, call, own_place()), FREQLOCK_NO, FREQLOCK_YES);
}

/* The level that @self is boosted with, 0: not at all; @best unless a policy knows better. */
__noinline int fl_ask_boost(struct task_ctx *tctx __arg_nonnull, u64 self, u32 best)
{
	struct freqlock_call *call = question(own_place());
	s32 answer;

	if (!call)
		return best;
	describe_holder(&call->boost_holder, tctx, self, best, 0);
	answer = judged(ask(boost_holder, call, own_place()), FREQLOCK_NO, FREQLOCK_LEVEL_MAX);
	return answer < 0 ? (s32)best : answer;
}

/* The level of @w, which is to wait for the lock @hash of @holder. */
__noinline int fl_ask_level(struct task_struct *w __arg_trusted,
			    struct task_ctx *wctx __arg_nonnull, u64 hash, u64 holder)
{
	struct freqlock_call *call = question(own_place());
	s32 answer;

	if (!call)
		return wctx->level;
	describe(&call->waiter_level.task, w, wctx);
	call->waiter_level.lock = hash;
	call->waiter_level.holder_pid = holder >> 32;
	call->waiter_level.unused = 0;
	answer = judged(ask(waiter_level, call, own_place()), FREQLOCK_LEVEL_MIN,
			FREQLOCK_LEVEL_MAX);
	return answer < 0 ? (s32)wctx->level : answer;
}

/*
 * How @w, which @waker wakes for the lock at @slot, is ordered: a level, FREQLOCK_NO: as any task
 * that wakes up, FREQLOCK_DEFAULT.
 */
__noinline s32 fl_ask_handoff(struct task_struct *w __arg_trusted,
			      struct task_ctx *wctx __arg_nonnull,
			      struct task_struct *waker __arg_trusted, u32 slot)
{
	struct freqlock_call *call = question(own_place());
	struct lock_slot *s = fl_slot(slot);
	struct freqlock_handoff *about;
	const volatile struct cpu_topo *topo;
	s32 cpu;

	if (!call)
		return FREQLOCK_DEFAULT;
	about = &call->order_handoff;
	describe(&about->task, w, wctx);
	about->lock = slot_hash(s);
	about->waker_pid = waker->pid;
	cpu = bpf_get_smp_processor_id();
	topo = fl_topo(cpu);
	about->waker_cpu = cpu;
	about->waker_node = topo->node;
	about->waker_llc = topo->llc;
	about->waker_capacity = topo->capacity;
	cpu = scx_bpf_task_cpu(w);
	topo = fl_topo(cpu);
	about->prev_cpu = cpu;
	about->prev_node = topo->node;
	about->prev_llc = topo->llc;
	about->prev_capacity = topo->capacity;
	/* @w has one of the references still. */
	about->waiting = (READ_ONCE(s->id) & FL_SLOT_REFS) - 1;
	return judged(ask(order_handoff, call, own_place()), FREQLOCK_NO, FREQLOCK_LEVEL_MAX);
}

/* Whether the wait of @w for the lock @hash, which is at @addr, is in the profile. */
__noinline bool fl_ask_profiled(struct task_struct *w __arg_trusted,
				struct task_ctx *wctx __arg_nonnull, u64 hash, u32 kind, u64 addr)
{
	struct freqlock_call *call = question(task_place());

	if (!call)
		return true;
	describe(&call->profile_filter.task, w, wctx);
	call->profile_filter.lock = hash;
	call->profile_filter.addr = addr;
	call->profile_filter.kind = kind;
	call->profile_filter.unused = 0;
	return judged(ask(profile_filter, call, task_place()), FREQLOCK_NO, FREQLOCK_YES);
}

/* Whether @p, which a tick hit at @ip, spins. */
__noinline bool fl_ask_spins(struct task_struct *p __arg_trusted,
			     struct task_ctx *tctx __arg_nonnull, u64 ip, u64 ran, bool found)
{
	struct freqlock_call *call = question(own_place());
	s32 answer;

	if (!call)
		return found;
	describe(&call->is_spinner.task, p, tctx);
	call->is_spinner.ip = ip;
	call->is_spinner.ran = ran;
	call->is_spinner.cpu = scx_bpf_task_cpu(p);
	call->is_spinner.found = found;
	answer = judged(ask(is_spinner, call, own_place()), FREQLOCK_NO, FREQLOCK_YES);
	return answer < 0 ? found : answer;
}

/* The CPU that @p goes to, claimed if it is idle; -1: the mode decides. */
__noinline s32 fl_ask_place(struct task_struct *p __arg_trusted,
			    struct task_ctx *tctx __arg_nonnull, struct placement *pl __arg_nonnull)
{
	struct freqlock_call *call = question(own_place());
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
	cpu = judged(ask(place, call, own_place()), 0, nr_cpus - 1);
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
