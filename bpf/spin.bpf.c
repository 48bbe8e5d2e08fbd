/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Spinners: tasks that burn their time waiting for another one, and what is done
 * about those while a task of their own process is runnable and does not run.
 *
 * 1. Only tasks of processes with several threads are looked at, at ticks that
 *    hit them in user mode: instruction pointer and registers then, and, when
 *    these stand still, the code around (policy/spin.h). So a task that computes
 *    costs one comparison of registers a tick. A storm of sched_yield is another
 *    sign.
 * 2. A spinner's slice ends at each tick at which the signs are there. Before it
 *    may go on, its CPU looks for a runnable task of the same process that was not
 *    seen spinning, in its own queue and then in those of the nearest CPUs, and
 *    runs the first one. The spinner goes behind those in its own queue; where all
 *    of them spin, they take turns. Its vtime is charged as always; what it is owed
 *    when the wait is over is bounded as the credit of a sleeper is.
 * 3. It ends when it sleeps, or with the first tick that finds it elsewhere.
 *
 * No count of runnable tasks is kept for each process: the queues are looked at
 * when a spinner was found, which honest loads do not have. Tasks parked at other
 * CPUs are not looked for, as their wait has a bound of its own.
 */
#include "freqlock.bpf.h"
#include "spin.bpf.h"
#include "hooks.bpf.h"
#include "queue.bpf.h"
#include "policy/deadline.h"
#include "policy/spin.h"

/* Tasks scanned per queue, and queues scanned, for a task of the process. */
#define SPIN_TASKS 32
#define SPIN_CPUS  16

/* Registers of what the interrupt that is served now has interrupted. */
extern struct pt_regs *__irq_regs __ksym __weak;

/* It is unknown what interrupts interrupted: spinners are found by sched_yield alone. */
volatile bool no_irq_regs;

/* The registers of @p if the tick hit it in user mode; those are at the end of its stack. */
static struct pt_regs *user_regs(struct task_struct *p)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(p);
	struct pt_regs **irq;

	if (!bpf_ksym_exists(&__irq_regs) || bpf_get_current_task_btf() != p)
		return NULL;
	irq = bpf_this_cpu_ptr(&__irq_regs);
	return (u64)*irq == (u64)regs ? regs : NULL;
}

static void take_sample(struct spin_sample *s, const struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	*s = (struct spin_sample){
		.ip = regs->ip,
		.regs = { regs->r15, regs->r14, regs->r13, regs->r12, regs->bp, regs->bx, regs->r11,
			  regs->r10, regs->r9, regs->r8, regs->ax, regs->cx, regs->dx, regs->si,
			  regs->di, regs->sp },
	};
#elif defined(__TARGET_ARCH_arm64)
	s->ip = regs->pc;
	for (int i = 0; i < 31; i++)
		s->regs[i] = regs->regs[i];
	s->regs[31] = regs->sp;
#else
#error "registers and instructions of this architecture are not known"
#endif
}

/* On its own, and in memory: what it finds is then a number like any to the verifier. */
__noinline int fl_spin_marks(struct spin_code *code __arg_nonnull)
{
#if defined(__TARGET_ARCH_x86)
	spin_marks_x86(code);
#else
	spin_marks_arm64(code);
#endif
	return 0;
}

/* True if the code around @ip is that of a loop which waits. */
static bool code_waits(const struct spin_watch *w, u64 ip, u64 need)
{
	u64 begin = spin_code_begin(ip);
	struct spin_code code = { .at = ip - begin };

	/* May fail where the page was taken away this moment. */
	if (bpf_probe_read_user(code.bytes, sizeof(code.bytes), (void *)begin)) {
		fl_count(spin_unreadable);
		return false;
	}
	fl_spin_marks(&code);
	return spin_verdict(w, code.marks, need);
}

/* True if its process has no other thread. */
static bool is_alone(struct task_struct *p)
{
	return fl_cast(p)->signal->nr_threads < 2;
}

/* A tick of @p, which runs on @cpu. True if it spins: then its slice is over. */
bool fl_spin_tick(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull, s32 cpu,
		  u64 now)
{
	const volatile struct fl_policy *policy = fl_policy(tctx);
	struct spin_watch *w = &tctx->spin;
	struct spin_sample sample = {};
	struct pt_regs *regs;
	u64 ran, need;
	bool spins;

	if (!policy->spin || is_alone(p) || !tctx->run_start)
		return false;
	/* In the kernel: no sign for and none against it. */
	regs = user_regs(p);
	if (!regs)
		return false;
	fl_count(spin_looked);
	take_sample(&sample, regs);
	ran = tctx->ran + elapsed(tctx->run_start, now);
	need = policy->spin_ticks;
	spins = spin_watch_tick(w, &sample, ran, policy->spin_window_bytes, need) &&
		code_waits(w, sample.ip, need);
	if (spins)
		w->known = sample.ip;
	spins |= spin_storms(w, ran);
	if (fl_asks(FL_HOOK_is_spinner, tctx))
		spins = fl_ask_spins(p, tctx, sample.ip, ran, spins);
	if (spins) {
		fl_count(spin_tick);
		if (!w->spinning)
			fl_count(spin_found);
		scx_bpf_task_set_slice(p, 0);
	} else if (w->spinning) {
		fl_count(spin_ended);
	}
	w->spinning = spins;
	fl_cpu(cpu)->spinner = spins ? p->tgid : 0;
	return spins;
}

/* @p calls sched_yield. */
int fl_spin_yield(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull, u64 now)
{
	struct spin_watch *w = &tctx->spin;

	if (!fl_policy(tctx)->spin || is_alone(p) || !tctx->run_start)
		return 0;
	if (spin_watch_yield(w, tctx->ran + elapsed(tctx->run_start, now)) && !w->spinning) {
		fl_count(spin_storm);
		w->spinning = true;
	}
	return 0;
}

/* @tctx goes to sleep. */
int fl_spin_sleep(struct task_ctx *tctx __arg_nonnull)
{
	if (tctx->spin.spinning)
		fl_count(spin_ended);
	spin_watch_reset(&tctx->spin);
	return 0;
}

/*
 * Run the first task of process @tgid in @queue on @cpu that does not spin, and
 * note in @w where the last one of them all is if the queue is the CPU's @own. What is read of
 * those tasks may be stale by a task switch: then the spinner is put behind one
 * that has just left, or before one that has just come. Affinity is not among that:
 * a change puts the task back after the iterator began, which does not move it then.
 */
__noinline bool fl_take_peer(struct spin_watch *w __arg_nonnull, u64 queue, bool own, s32 cpu,
			     u32 tgid)
{
	struct task_struct *p;
	struct task_ctx *tctx;
	bool taken = false;

	w->seen = 0;
	bpf_for_each(scx_dsq, p, queue, 0) {
		if (++w->seen > SPIN_TASKS)
			break;
		if (p->tgid != tgid)
			continue;
		tctx = fl_task(p);
		if (tctx && own) {
			if (!w->behind || vtime_before(w->behind, tctx->deadline))
				w->behind = tctx->deadline;
			if (!w->least || tctx->weight < w->least)
				w->least = tctx->weight;
		}
		if (taken || (tctx && tctx->spin.spinning) ||
		    !(own ? fl_may_use(p, cpu) : fl_allowed(p, cpu)) ||
		    (!own && is_migration_disabled(p)))
			continue;
		taken = scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0);
		if (taken && !own)
			break;
	}
	return taken;
}

/*
 * @prev spins on @cpu and its slice is over: run a task of its process instead,
 * if one waits. What others know of being a spinner may be a slice old: a task
 * that got what it waited for is passed over here, and runs when its deadline
 * comes.
 */
bool fl_spin_give_way(struct task_struct *prev __arg_trusted, struct task_ctx *tctx __arg_nonnull,
		      s32 cpu)
{
	struct spin_watch *w = &tctx->spin;
	u32 key = cpu, i, tgid = prev->tgid;
	struct cpu_order *order;

	if (!fl_policy(tctx)->spin || !w->spinning)
		return false;
	w->behind = 0;
	w->least = 0;
	if (fl_take_peer(w, fl_queue(cpu), true, cpu, tgid) ||
	    (fl_nr_parked(cpu) && fl_take_peer(w, fl_park(cpu), true, cpu, tgid))) {
		fl_count(spin_gave_way);
		return true;
	}
	order = bpf_map_lookup_elem(&cpu_orders, &key);
	if (!order)
		return false;
	/* The nearest of all is the CPU itself. */
	bpf_for(i, 1, SPIN_CPUS) {
		s32 from;

		if (i >= order->nr)
			break;
		from = order->cpu[in_range(i, FL_MAX_CPUS)];
		if (READ_ONCE(fl_cpu(from)->queued_work) &&
		    fl_take_peer(w, fl_queue(from), false, cpu, tgid)) {
			fl_count(spin_gave_way);
			fl_count(spin_fetched);
			return true;
		}
	}
	if (w->behind && fl_take_own(cpu)) {
		fl_count(spin_turn);
		return true;
	}
	fl_count(spin_alone);
	return false;
}

/* Deadline of a task that is queued on @cpu after it gave way. */
u64 fl_spin_deadline(struct task_ctx *tctx __arg_nonnull, s32 cpu)
{
	struct spin_watch *w = &tctx->spin;

	return spin_deadline(tctx->vtime, fl_slice(tctx), tctx->weight, w->least, w->behind,
			     fl_cpu(cpu)->vclock + tunables.lag_us * FL_USEC);
}

/* From ops.init. */
int fl_spin_init(void)
{
	no_irq_regs = !bpf_ksym_exists(&__irq_regs);
	return 0;
}
