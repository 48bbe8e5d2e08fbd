// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads the flat file: one `key value...` a line. Each key has a reader of its
 * own in one table; what a line may not say twice is marked there.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "config.h"

#define MAX_LINE    256
#define MAX_VALUES  9
#define FLAT_FORMAT 1

struct line {
	uint32_t nr;
	char *value[MAX_VALUES];
	struct model_config *config;
	const char *wrong;
};

static uint64_t number(struct line *l, uint32_t i, uint64_t max)
{
	unsigned long long n;
	char *end;

	errno = 0;
	n = strtoull(l->value[i], &end, 0);
	if (*end || end == l->value[i] || l->value[i][0] == '-')
		l->wrong = "a value is not a whole number";
	else if (errno || n > max)
		l->wrong = "a value is too large";
	return l->wrong ? 0 : n;
}

static uint32_t number32(struct line *l, uint32_t i)
{
	return (uint32_t)number(l, i, UINT32_MAX);
}

static bool yes_no(struct line *l, uint32_t i)
{
	return number(l, i, 1);
}

static void word(struct line *l, uint32_t i, const char *expected)
{
	if (strcmp(l->value[i], expected))
		l->wrong = "the words of this line are not what they should be";
}

static struct model_cpu_config *cpu_of(struct line *l)
{
	return &l->config->cpu[number(l, 0, MODEL_MAX_CPUS - 1)];
}

static void read_version(struct line *l)
{
	if (number32(l, 0) != FLAT_FORMAT)
		l->wrong = "this plugin reads version 1 only: build runner and plugin together";
}

static void read_cpus(struct line *l)
{
	l->config->nr_cpus = number32(l, 0);
}

static void read_mips(struct line *l)
{
	l->config->mips = number32(l, 0);
}

static void read_quantum(struct line *l)
{
	l->config->quantum_ns = number32(l, 0);
}

static void read_governor(struct line *l)
{
	l->config->guest_governs = !strcmp(l->value[0], "guest");
	if (!l->config->guest_governs && strcmp(l->value[0], "hardware"))
		l->wrong = "the governor is hardware or guest";
}

static void read_guest_page(struct line *l)
{
	l->config->guest_page = number(l, 0, UINT64_MAX);
}

static void read_ramp(struct line *l)
{
	l->config->ramp_us = number32(l, 0);
}

static void read_hold(struct line *l)
{
	l->config->hold_us = number32(l, 0);
}

static void read_decay(struct line *l)
{
	l->config->decay_us = number32(l, 0);
}

static void read_always_top(struct line *l)
{
	l->config->always_top = yes_no(l, 0);
}

static void read_move(struct line *l, enum model_distance distance)
{
	l->config->move[distance].insns = number32(l, 0);
	l->config->move[distance].speed = number32(l, 1);
}

static void read_move_core(struct line *l)
{
	read_move(l, MODEL_SAME_CORE);
}

static void read_move_llc(struct line *l)
{
	read_move(l, MODEL_SAME_LLC);
}

static void read_move_far(struct line *l)
{
	read_move(l, MODEL_FAR);
}

static void read_rep_bytes(struct line *l)
{
	l->config->rep_bytes_per_insn = number32(l, 0);
}

static void read_power_idle(struct line *l)
{
	l->config->power_idle_mw = number32(l, 0);
}

static void read_cpu(struct line *l)
{
	struct model_cpu_config *cpu = cpu_of(l);

	if (cpu->present)
		l->wrong = "this CPU has a line already";
	cpu->present = true;
	word(l, 1, "capacity");
	cpu->capacity = number32(l, 2);
	word(l, 3, "floor");
	cpu->floor = number32(l, 4);
	word(l, 5, "core");
	cpu->core = number32(l, 6);
	word(l, 7, "llc");
	cpu->llc = number32(l, 8);
}

static void read_opp(struct line *l)
{
	struct model_cpu_config *cpu = cpu_of(l);

	if (cpu->nr_opps == MODEL_MAX_OPPS) {
		l->wrong = "a CPU has at most 40 operating points";
		return;
	}
	cpu->opp[cpu->nr_opps].speed = number32(l, 1);
	cpu->opp[cpu->nr_opps++].power_mw = number32(l, 2);
}

static void read_turbo(struct line *l)
{
	struct model_config *config = l->config;

	if (config->nr_turbo == MODEL_MAX_CPUS) {
		l->wrong = "there are at most 128 turbo lines";
		return;
	}
	config->turbo[config->nr_turbo].cores = number32(l, 0);
	config->turbo[config->nr_turbo++].speed = number32(l, 1);
}

enum how_often { ONCE, ONCE_IF_GUEST, ANY };

static const struct key {
	const char *name;
	uint32_t nr_values;
	enum how_often how_often;
	void (*read)(struct line *l);
} keys[] = {
	{ "version", 1, ONCE, read_version },
	{ "cpus", 1, ONCE, read_cpus },
	{ "mips", 1, ONCE, read_mips },
	{ "quantum_ns", 1, ONCE, read_quantum },
	{ "governor", 1, ONCE, read_governor },
	{ "guest_page", 1, ONCE_IF_GUEST, read_guest_page },
	{ "ramp_us", 1, ONCE, read_ramp },
	{ "hold_us", 1, ONCE, read_hold },
	{ "decay_us", 1, ONCE, read_decay },
	{ "always_top", 1, ONCE, read_always_top },
	{ "move_core", 2, ONCE, read_move_core },
	{ "move_llc", 2, ONCE, read_move_llc },
	{ "move_far", 2, ONCE, read_move_far },
	{ "rep_bytes_per_insn", 1, ONCE, read_rep_bytes },
	{ "power_idle_mw", 1, ONCE, read_power_idle },
	{ "cpu", 9, ANY, read_cpu },
	{ "opp", 3, ANY, read_opp },
	{ "turbo", 2, ANY, read_turbo },
};
#define NR_KEYS (sizeof(keys) / sizeof(keys[0]))

/* Split a line into its key and values; what begins with # is a remark. */
static const struct key *split(struct line *l, char *text, uint32_t *nr_values)
{
	const char *name;
	char *rest, *value;
	size_t i;

	*nr_values = 0;
	text[strcspn(text, "#")] = 0;
	name = strtok_r(text, " \t\r\n", &rest);
	if (!name)
		return NULL;
	while ((value = strtok_r(NULL, " \t\r\n", &rest))) {
		if (*nr_values < MAX_VALUES)
			l->value[*nr_values] = value;
		++*nr_values;
	}
	for (i = 0; i < NR_KEYS; i++)
		if (!strcmp(keys[i].name, name))
			return &keys[i];
	l->wrong = "this key is not known";
	return NULL;
}

static bool read_lines(FILE *file, struct line *l, bool seen[NR_KEYS])
{
	char text[MAX_LINE];
	const struct key *key;
	uint32_t nr_values;

	while (fgets(text, sizeof(text), file)) {
		l->nr++;
		if (!strchr(text, '\n') && !feof(file)) {
			l->wrong = "this line is too long";
			return false;
		}
		key = split(l, text, &nr_values);
		if (key) {
			if (nr_values != key->nr_values)
				l->wrong = "this line has too many or too few values";
			else if (seen[key - keys] && key->how_often != ANY)
				l->wrong = "this key was given before";
			else
				key->read(l);
			seen[key - keys] = true;
		}
		if (l->wrong)
			return false;
	}
	return true;
}

static const char *missing(const struct model_config *config, const bool seen[NR_KEYS])
{
	size_t i;

	for (i = 0; i < NR_KEYS; i++)
		if (!seen[i] && (keys[i].how_often == ONCE ||
				 (keys[i].how_often == ONCE_IF_GUEST && config->guest_governs)))
			return keys[i].name;
	return NULL;
}

bool config_read(const char *path, struct model_config *config, char *why, size_t why_size)
{
	struct line l = { .config = config };
	bool seen[NR_KEYS] = { false };
	const char *wrong;
	uint32_t cpu;
	FILE *file;

	memset(config, 0, sizeof(*config));
	file = fopen(path, "re");
	if (!file) {
		snprintf(why, why_size, "cannot open %s: %s", path, strerror(errno));
		return false;
	}
	if (!read_lines(file, &l, seen)) {
		snprintf(why, why_size, "%s:%u: %s", path, l.nr, l.wrong);
	} else if (ferror(file)) {
		snprintf(why, why_size, "cannot read %s", path);
	} else if ((wrong = missing(config, seen))) {
		snprintf(why, why_size, "%s:%u: the key %s is missing", path, l.nr, wrong);
	} else if ((wrong = model_check(config, &cpu))) {
		if (cpu < MODEL_MAX_CPUS)
			snprintf(why, why_size, "%s: CPU %u: %s", path, cpu, wrong);
		else
			snprintf(why, why_size, "%s: %s", path, wrong);
	} else {
		fclose(file);
		return true;
	}
	fclose(file);
	return false;
}
