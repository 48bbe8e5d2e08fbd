// SPDX-License-Identifier: GPL-2.0-only
/*
 * Finds what the plugin needs inside QEMU, without the layout of any of its
 * structs:
 *  - functions by their exported names;
 *  - the slots of AccelOpsClass by the addresses of the functions that -icount
 *    puts there, each of which must stand there as often as expected;
 *  - the two fields of CPUState that count a budget down by what the exported
 *    functions that fill and clear them do to the struct.
 * Where any of it is not as expected, the plugin refuses.
 */
#include <dlfcn.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "qemu.h"

/* Words of AccelOpsClass looked at: the class's head and some thirty slots. */
#define MAX_OPS_WORDS 48

struct qemu qemu;

static char sentence[256];

static void *find(const char *name, const char *new_name)
{
	void *address = dlsym(RTLD_DEFAULT, name);

	if (!address && new_name)
		address = dlsym(RTLD_DEFAULT, new_name);
	if (!address)
		snprintf(sentence, sizeof(sentence),
			 "this QEMU has no function %s: take one of version 10.0 to 11.1", name);
	return address;
}

/* ISO C has no cast between pointers to data and to functions. */
#define FIND(name, new_name)                                   \
	do {                                                   \
		void *address = find(#name, new_name);         \
		if (!address)                                  \
			return sentence;                       \
		memcpy(&qemu.name, &address, sizeof(address)); \
	} while (0);
#define FIND_FUNCTION(result, name, arguments)     FIND(name, NULL)
#define FIND_RENAMED(result, name, new, arguments) FIND(name, #new)

const char *accel_find_functions(void)
{
	QEMU_FUNCTIONS(FIND_FUNCTION)
	QEMU_RENAMED_FUNCTIONS(FIND_RENAMED)
	return NULL;
}

static unsigned int occurrences(void *const *words, size_t nr, const void *function)
{
	unsigned int found = 0;
	size_t i;

	for (i = 0; i < nr; i++)
		found += words[i] == function;
	return found;
}

static void replace(void **words, size_t nr, const void *function, const void *by)
{
	size_t i;

	for (i = 0; i < nr; i++)
		if (words[i] == function)
			words[i] = (void *)by;
}

const char *accel_hook(const struct accel_hooks *hooks)
{
	void **words = qemu.cpus_get_accel();
	size_t nr = MAX_OPS_WORDS;

	if (!words)
		return "QEMU has no accelerator yet";
	if (malloc_usable_size(words) / sizeof(*words) < nr)
		nr = malloc_usable_size(words) / sizeof(*words);
	if (occurrences(words, nr, (void *)qemu.rr_start_vcpu_thread) != 1)
		return "QEMU does not run all CPUs in one thread: start it with -accel tcg,thread=single";
	if (occurrences(words, nr, (void *)qemu.icount_handle_interrupt) != 1)
		return "QEMU does not count instructions: start it with -icount shift=0,sleep=off";
	if (occurrences(words, nr, (void *)qemu.rr_kick_vcpu_thread) != 1)
		return "CPUs are not woken as in QEMU 10.0 to 11.1";
	/* get_virtual_clock and get_elapsed_ticks */
	if (occurrences(words, nr, (void *)qemu.icount_get) != 2)
		return "the clocks are not where they are in QEMU 10.0 to 11.1";
	replace(words, nr, (void *)qemu.icount_handle_interrupt, (void *)hooks->interrupt);
	replace(words, nr, (void *)qemu.rr_kick_vcpu_thread, (void *)hooks->kick);
	replace(words, nr, (void *)qemu.icount_get, (void *)hooks->clock);
	return NULL;
}

/* How the budget probes split: the low word takes 16 bits, the rest is extra. */
static uint64_t probe_low(int64_t budget)
{
	return budget < 0xffff ? budget : 0xffff;
}

static void probe(CPUState *cpu, int64_t budget, unsigned char *image, size_t size)
{
	qemu.icount_prepare_for_run(cpu, budget);
	memcpy(image, cpu, size);
	qemu.icount_process_data(cpu);
}

static int64_t extra_at(const unsigned char *image, size_t at)
{
	int64_t value;

	memcpy(&value, image + at, sizeof(value));
	return value;
}

static uint16_t low_at(const unsigned char *image, size_t at)
{
	uint16_t value;

	memcpy(&value, image + at, sizeof(value));
	return value;
}

const char *accel_find_countdown(CPUState *cpu)
{
	static const int64_t budgets[] = { 0x5a5a5a, 0x1234, 0x2b4d6f, 0x7fe };
	enum { NR = sizeof(budgets) / sizeof(budgets[0]) };
	size_t size = malloc_usable_size(cpu) & ~(size_t)7, at;
	unsigned int lows = 0, extras = 0, i;
	unsigned char *image[NR];

	for (i = 0; i < NR; i++) {
		image[i] = malloc(size);
		if (!image[i])
			return "there is not enough memory";
		probe(cpu, budgets[i], image[i], size);
	}
	for (at = 0; at < size; at += 4) {
		bool low = true, extra = !(at % 8);

		for (i = 0; i < NR; i++) {
			uint64_t expected = probe_low(budgets[i]);

			low = low && low_at(image[i], at) == expected;
			extra = extra && extra_at(image[i], at) == budgets[i] - (int64_t)expected;
		}
		if (low) {
			qemu.count_low = at;
			lows++;
		}
		if (extra) {
			qemu.count_extra = at;
			extras++;
		}
	}
	for (i = 0; i < NR; i++)
		free(image[i]);
	if (lows != 1 || extras != 1)
		return "a CPU's instruction counter is not what it is in QEMU 10.0 to 11.1";
	return NULL;
}

extern __thread CPUState *current_cpu;

void accel_set_current(CPUState *cpu)
{
	current_cpu = cpu;
}

uint64_t accel_left(const CPUState *cpu)
{
	const unsigned char *bytes = (const unsigned char *)cpu;
	uint16_t low;
	int64_t extra;

	memcpy(&low, bytes + qemu.count_low, sizeof(low));
	memcpy(&extra, bytes + qemu.count_extra, sizeof(extra));
	return low + (uint64_t)extra;
}
