// SPDX-License-Identifier: GPL-2.0-only
/* The record of a run: JSON lines, written as things happen. */
#include <inttypes.h>
#include <stdio.h>
#include "record.h"

/* A record of a long run would fill the disk otherwise: so many of each kind. */
#define MAX_LINES 2000000u

static FILE *file;
static uint32_t speed_lines, state_lines;
static uint64_t lines_dropped;

bool record_open(const char *path)
{
	file = fopen(path, "we");
	return file;
}

/* Room for one more of @lines? */
static bool room(uint32_t *lines)
{
	if (*lines == MAX_LINES) {
		lines_dropped++;
		return false;
	}
	(*lines)++;
	return true;
}

void record_state(uint32_t cpu, uint64_t now, bool busy)
{
	if (room(&state_lines))
		fprintf(file, "{\"kind\":\"state\",\"ns\":%" PRIu64 ",\"cpu\":%u,\"busy\":%s}\n",
			now, cpu, busy ? "true" : "false");
}

void record_speed(uint32_t cpu, uint64_t now, uint32_t speed)
{
	if (!room(&speed_lines))
		return;
	fprintf(file, "{\"kind\":\"speed\",\"ns\":%" PRIu64 ",\"cpu\":%u,\"speed\":%u}\n", now, cpu,
		speed);
}

void record_mark(const char *name, uint64_t value, uint64_t now, uint64_t host_ns)
{
	fprintf(file,
		"{\"kind\":\"mark\",\"name\":\"%s\",\"value\":%" PRIu64 ",\"ns\":%" PRIu64
		",\"host_ns\":%" PRIu64 "}\n",
		name, value, now, host_ns);
}

static void record_cpu(const struct model *m, uint32_t i)
{
	const struct model_cpu *c = &m->cpu[i];
	const char *comma = "";
	uint32_t k;

	fprintf(file,
		"{\"kind\":\"cpu\",\"cpu\":%u,\"instructions\":%" PRIu64 ",\"busy_ns\":%" PRIu64
		",\"idle_ns\":%" PRIu64 ",\"energy_uj\":%" PRIu64 ",\"migrations\":%" PRIu64
		",\"residency_ns\":[",
		i, c->insns, c->busy_ns, c->idle_ns, c->energy_uj, c->migrations);
	for (k = 0; k < m->config.cpu[i].nr_opps; k++) {
		fprintf(file, "%s[%u,%" PRIu64 "]", comma, m->config.cpu[i].opp[k].speed,
			c->residency_ns[k]);
		comma = ",";
	}
	fprintf(file, "]}\n");
}

bool record_close(const struct model *m, const struct record_totals *totals)
{
	uint64_t insns = 0, energy_uj = 0, energy_pj = 0;
	bool whole;
	uint32_t i;

	for (i = 0; i < m->config.nr_cpus; i++) {
		record_cpu(m, i);
		insns += m->cpu[i].insns;
		energy_uj += m->cpu[i].energy_uj;
		energy_pj += m->cpu[i].energy_pj;
	}
	fprintf(file,
		"{\"kind\":\"totals\",\"guest_ns\":%" PRIu64 ",\"host_ns\":%" PRIu64
		",\"instructions\":%" PRIu64 ",\"energy_uj\":%" PRIu64
		",\"idle_skipped_ns\":%" PRIu64 ",\"timeline_dropped\":%" PRIu64
		",\"tasks_forgotten\":%" PRIu64 "}\n",
		totals->guest_ns, totals->host_ns, insns, energy_uj + energy_pj / 1000000,
		totals->idle_skipped_ns, lines_dropped, m->tasks_forgotten);
	whole = !ferror(file);
	return !fclose(file) && whole;
}
