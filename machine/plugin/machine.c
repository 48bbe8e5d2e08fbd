// SPDX-License-Identifier: GPL-2.0-only
/*
 * The simulated machine's main loop. It runs in QEMU's only CPU thread in place
 * of QEMU's own loop, and is the only one that moves time:
 *
 *  1. Of the running CPUs, the one whose clock is earliest goes on, until the end
 *     of the quantum or the next timer, whichever comes first, and to the end of
 *     the block of instructions in which that is.
 *  2. Timers whose time has come fire when the earliest clock has come there.
 *  3. When all running CPUs have come to the end of a quantum, the model chooses
 *     speeds anew.
 *  4. When no CPU runs, time jumps to the next timer.
 *
 * A CPU idles from the HLT or WFI that QEMU reports until it has work: an
 * interrupt to an idle CPU wakes it at the sender's time. An interrupt to a
 * running CPU is taken at that CPU's own time, which may be up to a quantum
 * before or after the sender's.
 *
 * Nothing here depends on the host's time or on other threads. What those ask
 * for is served between two turns, and never ends one: the CPU whose turn was cut
 * short would no longer be the earliest.
 */
#include <stdio.h>
#include "machine.h"
#include "qemu.h"
#include "record.h"

/* A PAUSE, YIELD or WFE takes this long (Intel's Skylake: 140 cycles). */
#define PAUSE_INSNS 140
/*
 * A CPU that goes on waiting within a quantum: after each so many pauses the next
 * ones count double. What it waits for comes from another CPU, whose clock may be
 * a quantum away anyway.
 */
#define PAUSES_PER_STEP 4
#define PAUSE_MAX_STEPS 6
/* Longest time without any CPU having work; the kernel itself wakes far sooner. */
#define DEAD_NS (24ull * 3600 * 1000000000)
/* While limits are computed, QEMU's timers look so far away that none counts. */
#define LONG_AGO (-(1ll << 40))
/* Timers that QEMU runs elsewhere must not stop time. */
#define MAX_TIMER_ROUNDS 64
#define DEAD_STATUS      3

static struct model *model;
static CPUState *cpus[MODEL_MAX_CPUS];
static __thread bool is_machine;
/* Some CPU may have been given work: by an interrupt, by a request. */
static bool interrupts = true;
static bool kicked = true;
/* A QemuCond: what the machine waits for when it has nothing to do. */
static uint64_t wanted[32];

/* Time of the earliest running CPU; while all idle, the time of the last event. */
static uint64_t now;
static uint64_t tick_end;
/* The latest time that a CPU has seen: no other one may see an earlier one. */
static uint64_t seen;
/* The CPU that executes now, or -1. */
static int running = -1;
static uint64_t run_until;
uint64_t machine_done;
static uint64_t charged;
static bool limits;
static bool ending;
static uint64_t ended_at;

static bool paused;
static uint32_t pauses[MODEL_MAX_CPUS];
static uint64_t paused_before[MODEL_MAX_CPUS];

/* When an interrupt came for a CPU that does not run. */
static bool interrupted[MODEL_MAX_CPUS];
static uint64_t interrupted_at[MODEL_MAX_CPUS];
static uint64_t last_work;
static uint64_t idle_skipped;

/* Charge what the running CPU has done since it was last charged. */
static void settle(void)
{
	uint64_t done = machine_done;

	model_charge(model, running, done - charged);
	charged = done;
}

/* Let the running CPU's code come back when it has come to run_until. */
static void set_limit(void)
{
	uint64_t parts = model_budget(model, running, run_until) * MODEL_ONE;

	machine_done = parts < MACHINE_LIMIT ? MACHINE_LIMIT - parts : 0;
	charged = machine_done;
}

void machine_limit(void)
{
	accel_end_turn(cpus[running]);
}

uint64_t machine_now(void)
{
	if (running < 0)
		return now;
	settle();
	return model->cpu[running].t;
}

static int64_t clock_hook(void)
{
	uint64_t t;

	if (!is_machine)
		return (int64_t)__atomic_load_n(&now, __ATOMIC_RELAXED);
	if (limits)
		return LONG_AGO;
	t = machine_now();
	if (running >= 0) {
		if (t < seen)
			return (int64_t)seen;
		seen = t;
	}
	return (int64_t)t;
}

static void interrupt_hook(CPUState *cpu, int mask)
{
	uint32_t i;

	for (i = 0; i < model->config.nr_cpus; i++) {
		if (cpus[i] == cpu && model->cpu[i].state != MODEL_RUNNING && !interrupted[i]) {
			interrupted[i] = true;
			interrupted_at[i] = machine_now();
		}
	}
	interrupts = true;
	qemu.tcg_handle_interrupt(cpu, mask);
}

/*
 * Another thread wants something of a CPU; or the running CPU does, as when it
 * sets a timer that is due before the end of its turn.
 */
static void kick_hook(CPUState *unused)
{
	(void)unused;
	__atomic_store_n(&kicked, true, __ATOMIC_RELEASE);
	if (!is_machine)
		qemu.qemu_cond_broadcast(wanted);
	else if (running >= 0)
		accel_end_turn(cpus[running]);
}

const char *machine_prepare(struct model *m)
{
	static const struct accel_hooks hooks = { clock_hook, interrupt_hook, kick_hook };
	const char *wrong;
	uint32_t i;

	model = m;
	is_machine = true;
	qemu.qemu_cond_init(wanted);
	for (i = 0; i < m->config.nr_cpus; i++) {
		cpus[i] = qemu.qemu_get_cpu((int)i);
		if (!cpus[i])
			return "QEMU has fewer CPUs than the machine: start it with -smp as in the configuration";
	}
	wrong = accel_find_exit_request(cpus[0]);
	if (!wrong)
		wrong = accel_hook(&hooks);
	for (i = 0; !wrong && i < m->config.nr_cpus; i++)
		wrong = accel_stop_counting(cpus[i]);
	return wrong;
}

static void set_now(uint64_t t)
{
	if (t > now)
		__atomic_store_n(&now, t, __ATOMIC_RELAXED);
}

/* Fire the timers that are due; the time to the next one, or -1. */
static int64_t run_timers(void)
{
	int64_t next = -1;
	int i;

	for (i = 0; i < MAX_TIMER_ROUNDS; i++) {
		next = qemu.qemu_clock_deadline_ns_all(QEMU_CLOCK_VIRTUAL, QEMU_TIMER_ATTR_ALL);
		if (next)
			return next;
		qemu.qemu_clock_run_timers(QEMU_CLOCK_VIRTUAL);
	}
	return 1;
}

/* What one CPU is asked for may ask another. */
static void serve_cpus(void)
{
	bool served;
	uint32_t i;

	do {
		served = false;
		for (i = 0; i < model->config.nr_cpus; i++) {
			if (!qemu.cpu_work_list_empty(cpus[i])) {
				qemu.qemu_wait_io_event_common(cpus[i]);
				served = true;
			}
		}
	} while (served);
}

/*
 * Other threads, or the guest itself, may have work for a CPU: after this there
 * is none. False: the machine was stopped, and now may go on or not.
 */
static bool serve_host(void)
{
	uint32_t i;

	if (!__atomic_exchange_n(&kicked, false, __ATOMIC_ACQUIRE) && !ending)
		return true;
	interrupts = true;
	serve_cpus();
	for (i = 0; i < model->config.nr_cpus; i++)
		if (!qemu.cpu_can_run(cpus[i]))
			qemu.qemu_wait_io_event_common(cpus[i]);
	if (!ending && qemu.cpu_can_run(cpus[0]))
		return true;
	/* What is asked for from now on comes with a kick. */
	qemu.qemu_cond_wait_bql(wanted);
	__atomic_store_n(&kicked, true, __ATOMIC_RELAXED);
	return false;
}

static void wake_cpus(void)
{
	uint32_t i;

	interrupts = false;
	for (i = 0; i < model->config.nr_cpus; i++) {
		uint64_t at;

		if (model->cpu[i].state == MODEL_RUNNING)
			continue;
		at = interrupted[i] ? interrupted_at[i] : now;
		/* An interrupt that is no work, as one that is masked, is not kept. */
		interrupted[i] = false;
		if (qemu.cpu_thread_is_idle(cpus[i]))
			continue;
		if (!model_wake(model, i, at))
			model_start(model, i, at);
		last_work = model->cpu[i].t;
	}
}

static void count_pause(int cpu)
{
	uint32_t step;

	if (paused_before[cpu] != tick_end) {
		paused_before[cpu] = tick_end;
		pauses[cpu] = 0;
	}
	step = pauses[cpu]++ / PAUSES_PER_STEP;
	if (step > PAUSE_MAX_STEPS)
		step = PAUSE_MAX_STEPS;
	model_charge(model, cpu, (uint64_t)PAUSE_INSNS * MODEL_ONE << step);
	paused = false;
}

/* Let a CPU go on until a moment; its clock says how far it came. */
static void run_cpu(int cpu, uint64_t until)
{
	CPUState *cs = cpus[cpu];
	int why;

	accel_set_current(cs);
	qemu.bql_unlock();
	running = cpu;
	run_until = until;
	set_limit();
	accel_begin_turn(cs);
	why = qemu.tcg_cpu_exec(cs);
	if (why == EXCP_ATOMIC)
		qemu.cpu_exec_step_atomic(cs);
	if (machine_done == charged) {
		limits = true;
		accel_fill_counter(cs);
		limits = false;
	}
	settle();
	running = -1;
	qemu.bql_lock_impl(__FILE__, __LINE__);
	/* A CPU with something to do for another thread would not count as idle. */
	serve_cpus();
	if (paused || why == EXCP_YIELD)
		count_pause(cpu);
	if ((why == EXCP_HLT || why == EXCP_HALTED) && qemu.cpu_thread_is_idle(cs))
		model_sleep(model, cpu);
}

static uint64_t quantum_after(uint64_t t)
{
	return (t / model->config.quantum_ns + 1) * model->config.quantum_ns;
}

/*
 * The registers of Linux's mediatek-cpufreq-hw, as src/machine/cpufreq.rs lays
 * them out: a page a CPU, in it the choice, counted from the highest point down.
 */
#define CHOICE_OFFSET 0x88
#define CHOICE_STRIDE 0x1000

static void tick(void)
{
	uint32_t i, choice, last;

	for (i = 0; model->config.guest_governs && i < model->config.nr_cpus; i++) {
		qemu.cpu_physical_memory_rw(model->config.guest_page + i * CHOICE_STRIDE +
						    CHOICE_OFFSET,
					    &choice, sizeof(choice), false);
		last = model->config.cpu[i].nr_opps - 1;
		model_guest_choice(model, i, choice < last ? last - choice : 0);
	}
	model_tick(model, now);
	tick_end = quantum_after(now);
}

/* No CPU has anything to do: go to the next timer. */
static void skip_idle(void)
{
	int64_t next = qemu.qemu_clock_deadline_ns_all(QEMU_CLOCK_VIRTUAL, QEMU_TIMER_ATTR_ALL);
	uint64_t from = now;

	if (next < 0) {
		/* No timer at all: only the host can end this. */
		qemu.qemu_cond_wait_bql(wanted);
		__atomic_store_n(&kicked, true, __ATOMIC_RELAXED);
		return;
	}
	set_now(now + (uint64_t)next);
	idle_skipped += now - from;
	model_idle_until(model, from, now);
	tick_end = quantum_after(now);
	run_timers();
	if (now - last_work > DEAD_NS) {
		fprintf(stderr, "freqlock_machine: no CPU of the guest has had anything to do for "
				"24 hours of its time: it hangs\n");
		machine_end(DEAD_STATUS);
	}
	/* A guest that is being switched off only idles: let QEMU get the lock. */
	qemu.bql_unlock();
	qemu.bql_lock_impl(__FILE__, __LINE__);
}

void machine_run(void)
{
	struct model *m = model;

	now = (uint64_t)qemu.icount_get();
	tick_end = quantum_after(now);
	model_start(m, 0, now);
	for (;;) {
		int64_t next;
		int cpu;

		if (!serve_host())
			continue;
		if (interrupts)
			wake_cpus();
		cpu = model_next(m);
		if (cpu < 0) {
			skip_idle();
			continue;
		}
		set_now(m->cpu[cpu].t);
		if (now >= tick_end)
			tick();
		next = qemu.qemu_clock_deadline_ns_all(QEMU_CLOCK_VIRTUAL, QEMU_TIMER_ATTR_ALL);
		if (!next) {
			run_timers();
			continue;
		}
		run_cpu(cpu, next > 0 && now + (uint64_t)next < tick_end ? now + (uint64_t)next :
									   tick_end);
	}
}

int machine_cpu(void)
{
	return running;
}

void machine_pause(void)
{
	paused = true;
}

void machine_switch(uint64_t task)
{
	uint64_t cost = model->cpu[running].cost;

	settle();
	model_switch(model, running, task);
	/* The limit was for another speed. */
	if (model->cpu[running].cost != cost)
		set_limit();
}

void machine_end(uint8_t status)
{
	ending = true;
	model_tick(model, machine_now());
	ended_at = machine_now();
	qemu.qemu_system_shutdown_request_with_code(
		status == DEAD_STATUS ? SHUTDOWN_CAUSE_HOST_ERROR : SHUTDOWN_CAUSE_GUEST_SHUTDOWN,
		status);
	if (running >= 0)
		accel_end_turn(cpus[running]);
}

uint64_t machine_guest_ns(void)
{
	return ending ? ended_at : now;
}

uint64_t machine_idle_skipped_ns(void)
{
	return idle_skipped;
}
