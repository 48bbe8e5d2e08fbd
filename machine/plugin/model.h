/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The model of the simulated machine: when each CPU runs, idles or is off, how
 * fast it is, what it costs. Pure: no input, no output, no QEMU; the same C is
 * compiled into the plugin and into the host's tests (tests/machine).
 *
 * Times are guest nanoseconds. Everything is integer arithmetic, so that a run
 * gives the same figures on every host.
 *
 * A CPU's life is one state machine:
 *
 *	OFF --model_start--> RUNNING --model_sleep--> IDLE --model_wake--> RUNNING
 *
 * A running CPU has a clock of its own, which instructions move forward
 * (model_charge). Who drives the model lets the running CPU with the earliest
 * clock go first and calls model_tick() when all of them have come to the end of
 * a quantum. Speeds change at ticks and at wake-ups only.
 *
 * The frequency of a CPU that the hardware governs lies between its floor and
 * its top. Busy time moves it up (the whole way in ramp_us), idle time down (the
 * whole way in decay_us) once the CPU has been idle for hold_us. It then runs at
 * the highest operating point that is not above that frequency nor above what
 * the turbo table allows for the number of active cores.
 */
#ifndef FREQLOCK_MACHINE_MODEL_H
#define FREQLOCK_MACHINE_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#define MODEL_MAX_CPUS 128 /* a multiple of 64 */
#define MODEL_MAX_OPPS 40
/* Full capacity, full speed, full frequency. */
#define MODEL_ONE 1024
/* Tasks whose last CPU is remembered: sets times ways. */
#define MODEL_TASK_SETS 1024
#define MODEL_TASK_WAYS 4

struct model_opp {
	uint32_t speed; /* share of the CPU's top frequency */
	uint32_t power_mw;
};

struct model_cpu_config {
	bool present;
	uint32_t capacity;
	uint32_t floor;
	uint32_t core;
	uint32_t llc;
	uint32_t nr_opps;
	struct model_opp opp[MODEL_MAX_OPPS];
};

struct model_turbo {
	uint32_t cores;
	uint32_t speed;
};

/* After a move, the first `insns` instructions run at speed / MODEL_ONE. */
struct model_move {
	uint32_t insns;
	uint32_t speed;
};

/* How far a task moved. */
enum model_distance { MODEL_SAME_CORE, MODEL_SAME_LLC, MODEL_FAR, MODEL_NR_DISTANCES };

struct model_config {
	uint32_t nr_cpus;
	uint32_t mips; /* instructions a microsecond, full capacity and speed */
	uint32_t quantum_ns;
	bool guest_governs;
	bool always_top;
	uint64_t guest_page;
	uint32_t ramp_us;
	uint32_t hold_us;
	uint32_t decay_us;
	struct model_move move[MODEL_NR_DISTANCES];
	uint32_t rep_bytes_per_insn;
	uint32_t power_idle_mw;
	struct model_cpu_config cpu[MODEL_MAX_CPUS];
	uint32_t nr_turbo;
	struct model_turbo turbo[MODEL_MAX_CPUS];
};

enum model_state { MODEL_OFF, MODEL_IDLE, MODEL_RUNNING };

struct model_cpu {
	enum model_state state;
	/* The CPU's clock, in nanoseconds and 2^-32 of them. */
	uint64_t t;
	uint32_t t_frac;
	/* Up to here busy time, energy and frequency are accounted. */
	uint64_t accounted;
	uint64_t idle_since;
	/* Frequency between floor (0) and top (model->span). */
	uint64_t level;
	uint32_t opp;
	uint32_t guest_opp;
	/* Time an instruction takes now, in 2^-32 ns. */
	uint64_t cost;
	/* Cold caches: how many instructions are still slow, and how slow. */
	uint32_t cold_insns;
	uint32_t cold_speed;

	uint64_t insns;
	uint64_t insns_part; /* 1/MODEL_ONE, less than one */
	uint64_t busy_ns;
	uint64_t idle_ns;
	uint64_t energy_pj; /* less than a microjoule */
	uint64_t energy_uj;
	uint64_t migrations;
	uint64_t residency_ns[MODEL_MAX_OPPS];
};

struct model_task {
	uint64_t key; /* 0: free */
	uint64_t used;
	uint32_t cpu;
};

struct model {
	struct model_config config;
	uint64_t span;
	uint64_t rise; /* level gained per busy nanosecond */
	uint64_t fall; /* level lost per idle nanosecond */
	struct model_cpu cpu[MODEL_MAX_CPUS];
	uint32_t active_cores;
	struct model_task tasks[MODEL_TASK_SETS][MODEL_TASK_WAYS];
	uint64_t task_uses;
	uint64_t tasks_forgotten;
	/* Called at each change of operating point; may be NULL. */
	void (*speed_changed)(void *context, uint32_t cpu, uint64_t now, uint32_t speed);
	/* The CPU begins to run, or to idle. */
	void (*state_changed)(void *context, uint32_t cpu, uint64_t now, bool busy);
	void *context;
};

/*
 * What is wrong with a configuration, as a sentence; NULL if nothing is. *cpu
 * is set to the CPU that it is about, or to MODEL_MAX_CPUS.
 */
const char *model_check(const struct model_config *config, uint32_t *cpu);
/* The configuration must have passed model_check(). All CPUs are off. */
void model_init(struct model *m, const struct model_config *config);

/* False, and nothing changed, if the CPU is not in the state that it leaves. */
bool model_start(struct model *m, uint32_t cpu, uint64_t now);
bool model_sleep(struct model *m, uint32_t cpu);
bool model_wake(struct model *m, uint32_t cpu, uint64_t now);

/* A running CPU has done work of so many 1/MODEL_ONE of an instruction. */
void model_charge(struct model *m, uint32_t cpu, uint64_t parts);
/* Instructions that bring a running CPU's clock to `until`; at least 1. */
uint64_t model_budget(const struct model *m, uint32_t cpu, uint64_t until);
/* The running CPU with the earliest clock, the lowest number first; -1: none. */
int model_next(const struct model *m);
/* Account all CPUs up to `now` and choose operating points anew. */
void model_tick(struct model *m, uint64_t now);
/* All CPUs idle from their last accounting to `now`: ticks where points change. */
void model_idle_until(struct model *m, uint64_t from, uint64_t now);
/* The guest's own choice of an operating point, taken at the next tick. */
void model_guest_choice(struct model *m, uint32_t cpu, uint32_t opp);
/* A running CPU goes on with the task `key` (not 0; 0 = a task without a name). */
void model_switch(struct model *m, uint32_t cpu, uint64_t key);

/* Present speed of the CPU's frequency, as a share of its top. */
uint32_t model_speed(const struct model *m, uint32_t cpu);
/* What the turbo table allows for that many active cores. */
uint32_t model_turbo_limit(const struct model_config *config, uint32_t cores);

#endif /* FREQLOCK_MACHINE_MODEL_H */
