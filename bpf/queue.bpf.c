/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which queue a CPU takes its next task from: its own by deadline, then, when
 * it would idle, the nearest CPU that has one to spare; and, when it is busy,
 * now and then from the CPU near it that has most weight to run.
 */
#include "freqlock.bpf.h"
#include "queue.bpf.h"
#include "choose.bpf.h"
#include "kick.bpf.h"
#include "place.bpf.h"
#include "policy/balance.h"
#include "policy/deadline.h"
#include "policy/groups.h"
#include "policy/modes.h"

/* A busy CPU looks at this many others that have tasks, nearest first. */
#define BALANCE_CPUS 16
/* Added to the length of a queue whose CPU a real-time task has. */
#define TAKEN_TASKS (1 << 20)
/* Added to the load of such a CPU. */
#define TAKEN_LOAD (1ULL << 40)
/* Tasks scanned at the head of a queue for one that another CPU may run. */
#define CALL_TASKS 16

/* Tasks parked at @cpu; the look into the queue is saved where none can be. */
u32 fl_nr_parked(s32 cpu)
{
	struct cpu_ctx *cctx = fl_cpu(cpu);
	s32 n;

	if (!cctx->parked)
		return 0;
	n = scx_bpf_dsq_nr_queued(fl_park(cpu));
	if (n <= 0) {
		cctx->parked = false;
		return 0;
	}
	return n;
}

/*
 * False if no task waits at @cpu, in any of its queues: each task is counted before it is
 * inserted and until it runs, but for those released. To look into a queue costs a look-up of that.
 */
static bool somebody_waits(s32 cpu)
{
	return READ_ONCE(fl_cpu(cpu)->queued_work) || READ_ONCE(fl_cpu(cpu)->released);
}

/* Deadline of the first task of a CPU's two queues, FL_NONE if both are empty. */
u64 fl_head_deadline(s32 cpu)
{
	struct task_struct *p;
	u64 deadline = FL_NONE;

	if (!somebody_waits(cpu))
		return FL_NONE;
	p = __COMPAT_scx_bpf_dsq_peek(fl_queue(cpu));
	if (p)
		deadline = p->scx.dsq_vtime;
	if (!fl_nr_parked(cpu))
		return deadline;
	p = __COMPAT_scx_bpf_dsq_peek(fl_park(cpu));
	if (p && (deadline == FL_NONE || vtime_before(p->scx.dsq_vtime, deadline)))
		deadline = p->scx.dsq_vtime;
	return deadline;
}

/* Take from the late tasks of @cpu. */
static bool take_late(s32 cpu)
{
	return fl_cpu(cpu)->late && scx_bpf_dsq_move_to_local(fl_late(cpu), 0);
}

/* The earliest of the CPU's own tasks, parked or not; one that is late if there is no other. */
bool fl_take_own(s32 cpu)
{
	struct task_struct *open, *parked;

	if (!somebody_waits(cpu))
		return false;
	if (!fl_nr_parked(cpu))
		return scx_bpf_dsq_move_to_local(fl_queue(cpu), 0) || take_late(cpu);

	open = __COMPAT_scx_bpf_dsq_peek(fl_queue(cpu));
	parked = __COMPAT_scx_bpf_dsq_peek(fl_park(cpu));
	if (open && parked && vtime_before(open->scx.dsq_vtime, parked->scx.dsq_vtime) &&
	    scx_bpf_dsq_move_to_local(fl_queue(cpu), 0))
		return true;
	return scx_bpf_dsq_move_to_local(fl_park(cpu), 0) ||
	       scx_bpf_dsq_move_to_local(fl_queue(cpu), 0);
}

/* Tasks that wait at @cpu, parked ones aside. */
static s32 nr_waiting(s32 cpu)
{
	s32 n = scx_bpf_dsq_nr_queued(fl_queue(cpu));

	if (fl_cpu(cpu)->late)
		n += scx_bpf_dsq_nr_queued(fl_late(cpu));
	/* No task of ours runs there: all of these are to go elsewhere. */
	return n && fl_is_taken(cpu) ? n + TAKEN_TASKS : n;
}

/* Take one of those, the late ones first. */
static bool take_waiting(s32 from)
{
	return take_late(from) || scx_bpf_dsq_move_to_local(fl_queue(from), 0);
}

/* The weights of all tasks that are to run on @cpu, parked ones included. */
static u64 load_of(s32 cpu)
{
	struct cpu_ctx *cctx = fl_cpu(cpu);
	u64 load = queued_weight(READ_ONCE(cctx->queued_work));

	if (fl_is_busy(cpu))
		return load + load_weight(cctx->running_weight);
	return fl_is_taken(cpu) ? load + TAKEN_LOAD : load;
}

/*
 * Timers may be late, most of all in a virtual machine: take the first of the
 * tasks parked at @from if its bound is over, or if a real-time task has that CPU. If another came
 * to be the first meanwhile, that one is moved before its bound, which costs it its warm CPU.
 */
static bool steal_parked(s32 from, u64 now)
{
	struct task_ctx *tctx;
	struct task_struct *p;

	if (!fl_cpu(from)->parked)
		return false;
	p = __COMPAT_scx_bpf_dsq_peek(fl_park(from));
	tctx = p ? fl_task(p) : NULL;
	if (!tctx || (now <= tctx->park_until && !fl_is_taken(from)) ||
	    !scx_bpf_dsq_move_to_local(fl_park(from), 0))
		return false;
	fl_park_over(tctx, from, now);
	fl_count(park_stolen);
	return true;
}

/*
 * @cpu found its queues empty. A task that comes is counted in queued_work, and marked, before
 * it is inserted: either this sees its count, or it marks after this has cleared.
 */
static void clear_work(s32 cpu)
{
	u32 group = fl_topo(cpu)->group;
	u64 bit = fl_work_bit(cpu);

	/* Set after a task was inserted: if that is not seen here, it is set again. */
	if (READ_ONCE(fl_cpu(cpu)->released)) {
		fl_cpu(cpu)->released = false;
		if (scx_bpf_dsq_nr_queued(fl_queue(cpu)) > 0) {
			fl_cpu(cpu)->released = true;
			return;
		}
	}
	if (group >= FL_MAX_GROUPS || !(READ_ONCE(*fl_group_work(group)) & bit) ||
	    READ_ONCE(fl_cpu(cpu)->queued_work))
		return;
	__sync_fetch_and_and(fl_group_work(group), ~bit);
	if (READ_ONCE(fl_cpu(cpu)->queued_work))
		__sync_fetch_and_or(fl_group_work(group), bit);
}

/*
 * Looks of a CPU through queues in which nothing may run there, by the CPU that these are of. A
 * task that comes may be inserted after the look that its count was read for: that is why they
 * expire.
 */
#define VAIN_LOOKS 8
static struct vain_look {
	u64 until;
	s32 from;
	u32 arrivals; /* as they were */
} vain_looks[FL_MAX_CPUS][VAIN_LOOKS];

#define vain_look_of(cpu, from) \
	(&vain_looks[in_range(cpu, FL_MAX_CPUS)][in_range(from, VAIN_LOOKS)])

/* True if @cpu looked there a moment ago, and nothing came since. */
static bool looks_in_vain(s32 cpu, s32 from, u64 now)
{
	const struct vain_look *look = vain_look_of(cpu, from);

	return (s64)(look->until - now) > 0 && look->from == from &&
	       look->arrivals == READ_ONCE(fl_cpu(from)->arrivals);
}

/* @cpu found nothing to take at @from, where @arrivals had been counted before. */
static void looked_in_vain(s32 cpu, s32 from, u32 arrivals, u64 now)
{
	u64 ns = vain_ns(scx_bpf_dsq_nr_queued(fl_queue(from)));
	struct vain_look *look = vain_look_of(cpu, from);

	if (!ns)
		return;
	look->from = from;
	look->arrivals = arrivals;
	look->until = now + ns;
	fl_count(steal_vain);
}

/* A task of another node is taken only if it waits for longer than the way costs. */
static bool crosses(s32 from, u64 now)
{
	struct task_struct *p = __COMPAT_scx_bpf_dsq_peek(fl_queue(from));
	struct task_ctx *tctx = p ? fl_task(p) : NULL;

	return !tctx || group_worth_crossing(nr_waiting(from), elapsed(tctx->waiting_since, now),
					     tunables.migrate_far_ns);
}

/* Take a task from @from, which may have one, for @cpu. */
int fl_steal_from(s32 cpu, s32 from, u64 now)
{
	struct cpu_topo a = *(struct cpu_topo *)fl_topo(cpu);
	struct cpu_topo b = *(struct cpu_topo *)fl_topo(from);
	u32 distance = topo_distance(&a, &b, false), arrivals;

	if (steal_parked(from, now))
		return true;
	if (distance == FL_FAR && !crosses(from, now))
		return false;
	arrivals = READ_ONCE(fl_cpu(from)->arrivals);
	if (looks_in_vain(cpu, from, now))
		return false;
	if (!take_waiting(from)) {
		looked_in_vain(cpu, from, arrivals, now);
		return false;
	}
	if (distance == FL_SAME_CORE)
		fl_count(steal_core);
	else if (distance == FL_SAME_LLC)
		fl_count(steal_llc);
	else if (distance == FL_SAME_NODE)
		fl_count(steal_node);
	else
		fl_count(steal_far);
	return true;
}

/*
 * The next CPU of @group among those marked in @work, which is not 0, from that at @place on;
 * its mark is taken out.
 */
static s32 next_marked(u32 group, u64 *work, u32 *place)
{
	*place = group_next(*work, *place) & (FL_GROUP_CPUS - 1);
	*work &= ~(1ULL << *place);
	return fl_group(group)->cpu[*place];
}

/* Take a task from a CPU of @group that has one, from that at @place on. */
int fl_steal_group(s32 cpu, u32 group, u32 place, u64 now)
{
	u64 work = READ_ONCE(*fl_group_work(group));
	u32 i;

	bpf_for(i, 0, FL_GROUP_CPUS) {
		s32 from;

		if (!work)
			break;
		from = next_marked(group, &work, &place);
		if (from != cpu && fl_steal_from(cpu, from, now))
			return true;
	}
	return false;
}

/* One that has just come is in no group yet: it looks into all, from the first on. */
static u32 nth_group(u32 own, u32 nr, u32 i)
{
	if (own >= FL_MAX_GROUPS)
		return i;
	return group_nth(own, fl_group(own)->first, fl_group(own)->end, nr, i);
}

/*
 * @cpu would idle: take a task from the nearest CPU that has one queued, its sibling first.
 * A CPU whose mark is missing has none, or one whose CPU is about to kick an idle CPU for it.
 */
bool fl_steal(s32 cpu)
{
	u32 own = fl_topo(cpu)->group, place = fl_topo(cpu)->place, nr = nr_groups, group, i;
	s32 sibling = fl_topo(cpu)->sibling;

	clear_work(cpu);
	if (fl_is_isolated(cpu))
		return false;
	if (sibling >= 0 && !fl_is_isolated(sibling) && somebody_waits(sibling) &&
	    fl_steal_from(cpu, sibling, scx_bpf_now()))
		return true;
	/* The most usual case, without the loop: a machine of one group, where nothing waits. */
	if (nr == 1 && !READ_ONCE(*fl_group_work(0)))
		return false;
	bpf_for(i, 0, nr) {
		group = nth_group(own, nr, i);
		if (READ_ONCE(*fl_group_work(group)) &&
		    fl_steal_group(cpu, group, place, scx_bpf_now()))
			return true;
	}
	return false;
}

/*
 * What the first task got in @queue that may go elsewhere, and has had its turn or waits for
 * half a slice, and what rotate_us is at its weight; FL_NONE if there is none. It is next
 * there: the one with most to gain. Turns end with ticks, and so on all CPUs at
 * once: a look a moment after the end of one is to find the task that had it.
 */
u64 fl_served_next(u64 queue, u64 now)
{
	struct task_struct *p;
	struct task_ctx *tctx;
	u64 served = FL_NONE;
	u32 seen = 0;

	bpf_for_each(scx_dsq, p, queue, 0) {
		if (++seen > CALL_TASKS)
			break;
		tctx = fl_task(p);
		if (!tctx || fl_is_pinned(p))
			continue;
		if (!(tctx->flags & FL_TASK_HAD_TURN) &&
		    elapsed(tctx->waiting_since, now) < fl_slice(tctx) / 2)
			continue;
		served = served_faded(tctx->served, elapsed(tctx->served_at, now)) +
			 vtime_charge(tunables.rotate_us * FL_USEC, tctx->weight);
		break;
	}
	return served;
}

/*
 * True if the first task in @queue, of another CPU, that may run on @cpu weighs less than @room and
 * has waited for @waited ns; if @take, it runs there now. Not one behind it: that has
 * no turn yet, and light tasks would have one each time loads differ by their weight. Its
 * affinity may change meanwhile: see take_here() in donate.bpf.c.
 */
bool fl_fits(s32 cpu, u64 queue, u64 room, u64 waited, bool take)
{
	u64 now = scx_bpf_now();
	struct task_struct *p;
	struct task_ctx *tctx;
	bool fits = false;
	u32 seen = 0;

	bpf_for_each(scx_dsq, p, queue, 0) {
		if (++seen > CALL_TASKS)
			break;
		tctx = fl_task(p);
		if (!tctx || fl_is_pinned(p) || !fl_allowed(p, cpu))
			continue;
		fits = load_weight(tctx->weight) < room &&
		       elapsed(tctx->waiting_since, now) >= waited;
		if (fits && take)
			fits = scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0);
		break;
	}
	return fits;
}

/*
 * What a CPU sees as it looks for a task to take. Its own, and with interrupts off: in memory
 * and not in registers, which the verifier would follow through each turn of the loop.
 */
static struct crowd {
	u64 here;     /* its own load */
	u64 least;    /* fl_served_next() of the task that got least ... */
	s32 behind;   /* ... and where that is */
	s32 from;     /* where the load is heaviest, of CPUs with a task that fits here, ... */
	u64 heaviest; /* ... and that load */
	u64 waited;   /* for how long that task has to have waited */
} crowds[FL_MAX_CPUS];

#define crowd_of(cpu) (&crowds[(u32)(cpu) & (FL_MAX_CPUS - 1)])

/*
 * How long a task at @from has to have waited before @cpu takes it: to another node as long as
 * that costs (rent or buy), so that at worst waiting and crossing cost twice the cheaper one.
 */
static u64 waits_before(s32 cpu, s32 from)
{
	struct cpu_topo a = *(struct cpu_topo *)fl_topo(cpu);
	struct cpu_topo b = *(struct cpu_topo *)fl_topo(from);

	return topo_distance(&a, &b, false) == FL_FAR ? tunables.migrate_far_ns : 0;
}

/* A task of the late ones at @from or of the others, as fl_fits() has it. */
static bool fits_from(s32 cpu, s32 from, u64 room, u64 waited, bool take)
{
	return (fl_cpu(from)->late && fl_fits(cpu, fl_late(from), room, waited, take)) ||
	       fl_fits(cpu, fl_queue(from), room, waited, take);
}

int fl_crowd_look(s32 cpu, s32 other, u64 now)
{
	struct crowd *crowd = crowd_of(cpu);
	u64 got, load, room, waited;

	if (nr_waiting(other) <= 0)
		return 0;
	load = load_of(other);
	room = balance_room(load, crowd->here);
	waited = waits_before(cpu, other);
	if (room && load > crowd->heaviest &&
	    (room >= TAKEN_LOAD || fits_from(cpu, other, room, waited, false))) {
		crowd->heaviest = load;
		crowd->from = other;
		crowd->waited = waited;
	}
	got = fl_served_next(fl_queue(other), now);
	if (got < crowd->least) {
		crowd->least = got;
		crowd->behind = other;
	}
	return 0;
}

/* How many more of its CPUs are scanned, as far as they have tasks. */
int fl_crowd_group(s32 cpu, u32 group, u32 left, u64 now)
{
	u32 place = fl_topo(cpu)->place + 1, i;
	u64 work = READ_ONCE(*fl_group_work(group));

	bpf_for(i, 0, BALANCE_CPUS) {
		s32 other;

		if (!work || !left)
			break;
		other = next_marked(group, &work, &place);
		if (other == cpu)
			continue;
		fl_crowd_look(cpu, other, now);
		left--;
	}
	return left;
}

/* Of the CPU that @cpu found to have the heaviest load. */
static bool take_excess(s32 cpu, const struct crowd *crowd)
{
	u64 room = balance_room(crowd->heaviest, crowd->here);

	if (room >= TAKEN_LOAD)
		return take_waiting(crowd->from);
	return fits_from(cpu, crowd->from, room, crowd->waited, true);
}

/*
 * @cpu picks a task while others wait; one that runs there got @served recently. If another
 * CPU's load is greater by more than the weight of a task there, take that. Else take one that got
 * less than that by rotate_us of its own time, so that tasks of unequal queues take turns at being
 * one too many: what any two of them got differs by no more than that then, and the shares of who
 * runs for long differ by rotate_us in the time in which it fades (4.3 s), as far as
 * affinities allow.
 */
bool fl_balance(s32 cpu, u64 now, u64 served)
{
	struct cpu_ctx *cctx = fl_cpu(cpu);
	u32 own = fl_topo(cpu)->group, nr = nr_groups, left = BALANCE_CPUS, group, i;
	struct crowd *crowd = crowd_of(cpu);

	if (now < cctx->next_balance || fl_is_isolated(cpu))
		return false;
	cctx->next_balance = now + tunables.balance_us * FL_USEC;
	crowd->here = load_of(cpu);
	crowd->heaviest = 0;
	crowd->least = FL_NONE;
	bpf_for(i, 0, nr) {
		group = nth_group(own, nr, i);
		if (READ_ONCE(*fl_group_work(group)))
			left = fl_crowd_group(cpu, group, left, now);
		if (!left)
			break;
	}
	if (crowd->heaviest && take_excess(cpu, crowd)) {
		fl_count(balance);
		return true;
	}
	if (crowd->least >= served)
		return false;
	if (!scx_bpf_dsq_move_to_local(fl_queue(crowd->behind), 0))
		return false;
	/*
	 * It catches up here before the others go on, or one of two would stay behind forever.
	 * Should another task run here first, that one has this credit: half a slice, so that
	 * who wakes up need not wait for it.
	 */
	cctx->credit = lesser(tunables.rotate_us * FL_USEC, fl_slice(NULL) / 2);
	fl_count(rotate);
	return true;
}

/*
 * Wake an idle CPU for the first task in @queue of @cpu that may run on one; the very
 * first may be bound to its CPU while those behind it are not. True if there is such a
 * task, though perhaps not for a CPU that is idle now.
 */
static bool call_for(u64 queue, s32 cpu, u64 now)
{
	struct task_struct *p;
	bool movable = false;
	u32 seen = 0;
	s32 idle;

	bpf_for_each(scx_dsq, p, queue, 0) {
		if (++seen > CALL_TASKS)
			break;
		if (fl_is_pinned(p))
			continue;
		movable = true;
		idle = fl_claim_idle(p, fl_policy(fl_task(p))->mode, cpu, now);
		if (idle < 0)
			continue;
		fl_kick(idle, SCX_KICK_IDLE);
		break;
	}
	return movable;
}

/*
 * The tick's look, for what slipped between a CPU's last look at this queue and its going
 * idle. True if a task waits here that may run on another CPU.
 */
bool fl_call_idle(s32 cpu, u64 now)
{
	bool movable;

	if (fl_is_isolated(cpu))
		return false;
	if (!fl_any_idle())
		return nr_waiting(cpu) > 0;
	bpf_rcu_read_lock();
	movable = call_for(fl_queue(cpu), cpu, now) ||
		  (fl_cpu(cpu)->late && call_for(fl_late(cpu), cpu, now));
	bpf_rcu_read_unlock();
	return movable;
}
