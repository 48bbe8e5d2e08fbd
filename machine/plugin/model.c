// SPDX-License-Identifier: GPL-2.0-only
/* The model of the simulated machine; see model.h. */
#include <stddef.h>
#include <string.h>
#include "model.h"

#define NSEC_PER_USEC 1000ull
#define PJ_PER_UJ     1000000ull
/* While all CPUs idle, how closely falling frequencies are followed. */
#define IDLE_STEP_NS 250000ull

static uint64_t min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

const char *model_check(const struct model_config *config, uint32_t *cpu)
{
	uint32_t i, k;

	*cpu = MODEL_MAX_CPUS;
	if (!config->nr_cpus || config->nr_cpus > MODEL_MAX_CPUS)
		return "cpus must be 1 to 128";
	if (!config->mips || config->mips > 100000)
		return "mips must be 1 to 100000";
	if (config->quantum_ns < 1000 || config->quantum_ns > 1000000)
		return "quantum_ns must be 1000 to 1000000";
	if (config->ramp_us > 1000000 || config->hold_us > 1000000 || config->decay_us > 1000000)
		return "ramp_us, hold_us and decay_us must be at most 1000000";
	if (!config->rep_bytes_per_insn || config->rep_bytes_per_insn > 4096)
		return "rep_bytes_per_insn must be 1 to 4096";
	if (config->guest_governs && !config->guest_page)
		return "governor guest needs guest_page";
	if (config->guest_page & 4095)
		return "guest_page must be the address of a page (a multiple of 4096)";
	for (i = 0; i < MODEL_NR_DISTANCES; i++)
		if (!config->move[i].speed || config->move[i].speed > MODEL_ONE)
			return "the speed after a move must be 1 to 1024";
	if (!config->nr_turbo)
		return "there is no turbo line: the last one is for all cores";
	for (i = 0; i < config->nr_turbo; i++) {
		const struct model_turbo *turbo = &config->turbo[i];

		if (!turbo->speed || turbo->speed > MODEL_ONE)
			return "a turbo speed must be 1 to 1024";
		if (i && (turbo->cores <= turbo[-1].cores || turbo->speed > turbo[-1].speed))
			return "turbo lines must have rising cores and falling speeds";
	}
	for (i = 0; i < MODEL_MAX_CPUS; i++) {
		const struct model_cpu_config *c = &config->cpu[i];

		*cpu = i;
		if (i >= config->nr_cpus) {
			if (c->present || c->nr_opps)
				return "there is no such CPU";
			continue;
		}
		if (!c->present)
			return "there is no cpu line";
		if (!c->capacity || c->capacity > MODEL_ONE || !c->floor || c->floor > MODEL_ONE)
			return "capacity and floor must be 1 to 1024";
		if (c->core >= MODEL_MAX_CPUS || c->llc >= MODEL_MAX_CPUS)
			return "core and llc must be 0 to 63";
		if (!c->nr_opps)
			return "there is no operating point";
		for (k = 0; k < c->nr_opps; k++) {
			if (!c->opp[k].speed || c->opp[k].speed > MODEL_ONE)
				return "an operating point's speed must be 1 to 1024";
			if (k && (c->opp[k].speed <= c->opp[k - 1].speed ||
				  c->opp[k].power_mw < c->opp[k - 1].power_mw))
				return "operating points must rise in speed and not fall in power";
		}
		if ((uint64_t)config->mips * c->capacity * c->opp[0].speed < MODEL_ONE * MODEL_ONE)
			return "the lowest speed is below one instruction a microsecond";
	}
	*cpu = MODEL_MAX_CPUS;
	return NULL;
}

uint32_t model_turbo_limit(const struct model_config *config, uint32_t cores)
{
	uint32_t i;

	for (i = 0; i + 1 < config->nr_turbo; i++)
		if (cores <= config->turbo[i].cores)
			break;
	return config->turbo[i].speed;
}

uint32_t model_speed(const struct model *m, uint32_t cpu)
{
	return m->config.cpu[cpu].opp[m->cpu[cpu].opp].speed;
}

static void set_cost(struct model *m, uint32_t cpu)
{
	struct model_cpu *c = &m->cpu[cpu];
	uint64_t rate = (uint64_t)m->config.mips * m->config.cpu[cpu].capacity *
			model_speed(m, cpu) * (c->cold_insns ? c->cold_speed : MODEL_ONE);

	c->cost = (uint64_t)(((unsigned __int128)NSEC_PER_USEC << 62) / rate);
}

/* The highest operating point not above `speed`; the lowest if all are. */
static uint32_t point_below(const struct model_cpu_config *config, uint32_t speed)
{
	uint32_t k = config->nr_opps - 1;

	while (k && config->opp[k].speed > speed)
		k--;
	return k;
}

/* The frequency that the hardware would like, as a share of the top. */
static uint32_t frequency(const struct model *m, uint32_t cpu)
{
	uint32_t floor = m->config.cpu[cpu].floor;

	return floor +
	       (uint32_t)((unsigned __int128)m->cpu[cpu].level * (MODEL_ONE - floor) / m->span);
}

static uint32_t wanted_point(const struct model *m, uint32_t cpu, uint32_t limit)
{
	const struct model_cpu_config *config = &m->config.cpu[cpu];
	uint32_t most = point_below(config, limit), opp;

	if (m->config.always_top)
		opp = config->nr_opps - 1;
	else if (m->config.guest_governs)
		opp = m->cpu[cpu].guest_opp;
	else
		opp = point_below(config, frequency(m, cpu));
	return opp < most ? opp : most;
}

static void choose_point(struct model *m, uint32_t cpu, uint64_t now)
{
	const struct model_cpu_config *config = &m->config.cpu[cpu];
	struct model_cpu *c = &m->cpu[cpu];
	uint32_t limit = model_turbo_limit(&m->config, m->active_cores), opp;

	/* A running CPU held back by the turbo table has to climb from there. */
	if (c->state == MODEL_RUNNING && limit < MODEL_ONE && config->floor < MODEL_ONE) {
		uint32_t above = limit > config->floor ? limit - config->floor : 0;
		uint32_t range = MODEL_ONE - config->floor;

		/* Rounded up, so that what is allowed is also reached. */
		c->level = min64(
			c->level,
			(uint64_t)(((unsigned __int128)m->span * above + range - 1) / range));
	}
	opp = wanted_point(m, cpu, limit);
	if (opp == c->opp)
		return;
	c->opp = opp;
	set_cost(m, cpu);
	if (m->speed_changed)
		m->speed_changed(m->context, cpu, now, model_speed(m, cpu));
}

static void count_active_cores(struct model *m)
{
	/* Cores are bits. */
	uint64_t active[MODEL_MAX_CPUS / 64] = { 0 };
	uint32_t i;

	for (i = 0; i < m->config.nr_cpus; i++)
		if (m->cpu[i].state == MODEL_RUNNING)
			active[m->config.cpu[i].core / 64] |= 1ull << m->config.cpu[i].core % 64;
	m->active_cores = 0;
	for (i = 0; i < MODEL_MAX_CPUS / 64; i++)
		m->active_cores += (uint32_t)__builtin_popcountll(active[i]);
}

static void spend(struct model_cpu *c, uint64_t ns, uint32_t power_mw)
{
	unsigned __int128 pj = (unsigned __int128)ns * power_mw + c->energy_pj;

	c->energy_uj += (uint64_t)(pj / PJ_PER_UJ);
	c->energy_pj = (uint64_t)(pj % PJ_PER_UJ);
}

/* Idle time after the hold, up to a moment `ns` after it began. */
static uint64_t past_hold(const struct model *m, uint64_t ns)
{
	uint64_t hold = m->config.hold_us * NSEC_PER_USEC;

	return ns > hold ? ns - hold : 0;
}

/* The CPU was in its present state up to `now`. */
static void account(struct model *m, uint32_t cpu, uint64_t now)
{
	struct model_cpu *c = &m->cpu[cpu];
	uint64_t ns, falling;

	if (now <= c->accounted)
		return;
	ns = now - c->accounted;
	switch (c->state) {
	case MODEL_OFF:
		break;
	case MODEL_RUNNING:
		c->busy_ns += ns;
		c->residency_ns[c->opp] += ns;
		spend(c, ns, m->config.cpu[cpu].opp[c->opp].power_mw);
		c->level = min64(m->span, c->level + min64(ns, m->span / m->rise + 1) * m->rise);
		break;
	case MODEL_IDLE:
		c->idle_ns += ns;
		spend(c, ns, m->config.power_idle_mw);
		falling = past_hold(m, now - c->idle_since) -
			  past_hold(m, c->accounted - c->idle_since);
		c->level -= min64(c->level, min64(falling, m->span / m->fall + 1) * m->fall);
		break;
	}
	c->accounted = now;
}

void model_init(struct model *m, const struct model_config *config)
{
	uint64_t ramp = config->ramp_us * NSEC_PER_USEC, decay = config->decay_us * NSEC_PER_USEC;
	uint32_t i;

	memset(m, 0, sizeof(*m));
	m->config = *config;
	/* Whole numbers for both directions: nothing is ever rounded away. */
	m->rise = decay ? decay : 1;
	m->fall = ramp ? ramp : 1;
	m->span = m->rise * m->fall;
	for (i = 0; i < config->nr_cpus; i++) {
		m->cpu[i].opp = wanted_point(m, i, MODEL_ONE);
		set_cost(m, i);
	}
}

static void go(struct model *m, uint32_t cpu, uint64_t now)
{
	struct model_cpu *c = &m->cpu[cpu];

	account(m, cpu, now);
	c->accounted = now;
	if (c->t < now) {
		c->t = now;
		c->t_frac = 0;
	}
	c->state = MODEL_RUNNING;
	count_active_cores(m);
	if (m->state_changed)
		m->state_changed(m->context, cpu, now, true);
	choose_point(m, cpu, now);
}

bool model_start(struct model *m, uint32_t cpu, uint64_t now)
{
	if (m->cpu[cpu].state != MODEL_OFF)
		return false;
	go(m, cpu, now);
	return true;
}

bool model_wake(struct model *m, uint32_t cpu, uint64_t now)
{
	if (m->cpu[cpu].state != MODEL_IDLE)
		return false;
	/* An interrupt from a CPU whose clock is behind cannot come in the past. */
	go(m, cpu, now < m->cpu[cpu].idle_since ? m->cpu[cpu].idle_since : now);
	return true;
}

bool model_sleep(struct model *m, uint32_t cpu)
{
	struct model_cpu *c = &m->cpu[cpu];

	if (c->state != MODEL_RUNNING)
		return false;
	account(m, cpu, c->t);
	c->state = MODEL_IDLE;
	c->idle_since = c->accounted;
	count_active_cores(m);
	if (m->state_changed)
		m->state_changed(m->context, cpu, c->idle_since, false);
	return true;
}

void model_charge(struct model *m, uint32_t cpu, uint64_t parts)
{
	struct model_cpu *c = &m->cpu[cpu];
	unsigned __int128 t;

	while (parts) {
		uint64_t now = parts, whole;

		if (c->cold_insns)
			now = min64(now, (uint64_t)c->cold_insns * MODEL_ONE - c->insns_part);
		t = (unsigned __int128)now * c->cost / MODEL_ONE + c->t_frac;
		c->t += (uint64_t)(t >> 32);
		c->t_frac = (uint32_t)t;
		whole = (c->insns_part + now) / MODEL_ONE;
		c->insns_part = (c->insns_part + now) % MODEL_ONE;
		c->insns += whole;
		parts -= now;
		if (c->cold_insns) {
			c->cold_insns -= (uint32_t)whole;
			if (!c->cold_insns)
				set_cost(m, cpu);
		}
	}
}

uint64_t model_budget(const struct model *m, uint32_t cpu, uint64_t until)
{
	const struct model_cpu *c = &m->cpu[cpu];
	uint64_t insns;

	if (until <= c->t)
		return 1;
	insns = (uint64_t)(((((unsigned __int128)(until - c->t)) << 32) - c->t_frac + c->cost - 1) /
			   c->cost);
	/* The rate changes when the caches are warm. */
	if (c->cold_insns)
		insns = min64(insns, c->cold_insns);
	return insns;
}

int model_next(const struct model *m)
{
	uint64_t best = UINT64_MAX;
	int next = -1;
	uint32_t i;

	for (i = 0; i < m->config.nr_cpus; i++) {
		if (m->cpu[i].state == MODEL_RUNNING && m->cpu[i].t < best) {
			best = m->cpu[i].t;
			next = (int)i;
		}
	}
	return next;
}

void model_tick(struct model *m, uint64_t now)
{
	uint32_t i;

	for (i = 0; i < m->config.nr_cpus; i++) {
		account(m, i, now);
		choose_point(m, i, now);
	}
}

/* No frequency will fall any further. */
static bool settled(const struct model *m)
{
	uint32_t i;

	for (i = 0; i < m->config.nr_cpus; i++)
		if (m->cpu[i].level && m->cpu[i].state == MODEL_IDLE)
			return false;
	return true;
}

void model_idle_until(struct model *m, uint64_t from, uint64_t now)
{
	while (now - from > IDLE_STEP_NS && !settled(m)) {
		from += IDLE_STEP_NS;
		model_tick(m, from);
	}
	model_tick(m, now);
}

void model_guest_choice(struct model *m, uint32_t cpu, uint32_t opp)
{
	uint32_t last = m->config.cpu[cpu].nr_opps - 1;

	m->cpu[cpu].guest_opp = opp < last ? opp : last;
}

static enum model_distance distance(const struct model_config *config, uint32_t a, uint32_t b)
{
	if (config->cpu[a].core == config->cpu[b].core)
		return MODEL_SAME_CORE;
	return config->cpu[a].llc == config->cpu[b].llc ? MODEL_SAME_LLC : MODEL_FAR;
}

static struct model_task *find_task(struct model *m, uint64_t key)
{
	struct model_task *set = m->tasks[(key * 0x9e3779b97f4a7c15ull >> 32) % MODEL_TASK_SETS];
	struct model_task *oldest = set;
	uint32_t i;

	for (i = 0; i < MODEL_TASK_WAYS; i++) {
		if (set[i].key == key)
			return &set[i];
		if (set[i].used < oldest->used)
			oldest = &set[i];
	}
	if (oldest->key)
		m->tasks_forgotten++;
	oldest->key = 0;
	return oldest;
}

void model_switch(struct model *m, uint32_t cpu, uint64_t key)
{
	struct model_cpu *c = &m->cpu[cpu];
	const struct model_move *move;
	struct model_task *task;

	/* What the task before it had not yet warmed up is not its successor's. */
	if (c->cold_insns) {
		c->cold_insns = 0;
		set_cost(m, cpu);
	}
	if (!key)
		return;
	task = find_task(m, key);
	task->used = ++m->task_uses;
	if (task->key == key && task->cpu != cpu) {
		c->migrations++;
		move = &m->config.move[distance(&m->config, task->cpu, cpu)];
		if (move->insns && move->speed < MODEL_ONE) {
			c->cold_insns = move->insns;
			c->cold_speed = move->speed;
			set_cost(m, cpu);
		}
	}
	task->key = key;
	task->cpu = cpu;
}
