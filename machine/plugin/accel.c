// SPDX-License-Identifier: GPL-2.0-only
/*
 * Finds what the plugin needs inside QEMU, without the layout of any of its
 * structs:
 *  - functions by their exported names;
 *  - the slots of AccelOpsClass by the addresses of the functions that -icount
 *    puts there, each of which must stand there as often as expected;
 *  - the flags with which a CPU's code is translated, and the wish that a CPU
 *    come back, by what the exported functions that set them do to CPUState.
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

static void *find(const char *name, const char *new_name, const char *newer_name)
{
	void *address = dlsym(RTLD_DEFAULT, name);

	if (!address)
		address = dlsym(RTLD_DEFAULT, new_name);
	if (!address)
		address = dlsym(RTLD_DEFAULT, newer_name);
	if (!address)
		snprintf(sentence, sizeof(sentence),
			 "this QEMU has no function %s: take one of version 10.0 to 11.1", name);
	return address;
}

/* ISO C has no cast between pointers to data and to functions. */
#define FIND(name, new, newer)                                 \
	do {                                                   \
		void *address = find(#name, new, newer);       \
		if (!address)                                  \
			return sentence;                       \
		memcpy(&qemu.name, &address, sizeof(address)); \
	} while (0);
#define FIND_FUNCTION(result, name, arguments)            FIND(name, "", "")
#define FIND_RENAMED(result, name, new, newer, arguments) FIND(name, new, newer)

#define FIND_OPTIONAL(result, name, arguments)                 \
	do {                                                   \
		void *address = dlsym(RTLD_DEFAULT, #name);    \
		memcpy(&qemu.name, &address, sizeof(address)); \
	} while (0);

const char *accel_find_functions(void)
{
	QEMU_FUNCTIONS(FIND_FUNCTION)
	QEMU_RENAMED_FUNCTIONS(FIND_RENAMED)
	QEMU_OPTIONAL_FUNCTIONS(FIND_OPTIONAL)
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

/* Where in CPUState the one word is that setting `flag` changes; 0: not found. */
static size_t find_cflags(CPUState *cpu, uint32_t flag)
{
	size_t size = malloc_usable_size(cpu) & ~sizeof(uint32_t), at, found = 0;
	unsigned char *before = malloc(size);
	unsigned int changes = 0;

	if (!before)
		return 0;
	memcpy(before, cpu, size);
	qemu.tcg_cflags_set(cpu, flag);
	for (at = 0; at < size; at += sizeof(uint32_t)) {
		uint32_t was, is;

		memcpy(&was, before + at, sizeof(was));
		memcpy(&is, (unsigned char *)cpu + at, sizeof(is));
		if (was == is || is != (was | flag) || !(was & CF_USE_ICOUNT))
			continue;
		found = at;
		changes++;
	}
	free(before);
	return changes == 1 ? found : 0;
}

/*
 * QEMU's counter decrements a halfword that it then loads as part of a word,
 * which stalls the host's processor at each block. The plugin counts itself, and
 * that counter stays as accel_fill_counter() leaves it.
 */
const char *accel_stop_counting(CPUState *cpu)
{
	unsigned char *flags = (unsigned char *)cpu;
	uint32_t value;
	size_t at;

	if (!qemu.tcg_cflags_has(cpu, CF_USE_ICOUNT) || qemu.tcg_cflags_has(cpu, CF_PARALLEL))
		return "a CPU's code is not translated as in QEMU 10.0 to 11.1";
	at = find_cflags(cpu, CF_PARALLEL);
	if (!at)
		return "a CPU's flags are not where they are in QEMU 10.0 to 11.1";
	memcpy(&value, flags + at, sizeof(value));
	value &= ~(uint32_t)(CF_USE_ICOUNT | CF_PARALLEL);
	memcpy(flags + at, &value, sizeof(value));
	if (qemu.tcg_cflags_has(cpu, CF_USE_ICOUNT | CF_PARALLEL))
		return "a CPU's flags cannot be changed as in QEMU 10.0 to 11.1";
	return NULL;
}

void accel_fill_counter(CPUState *cpu)
{
	qemu.icount_process_data(cpu);
	qemu.icount_prepare_for_run(cpu, INT32_MAX);
}

/*
 * Where in CPUState it stands that a CPU is asked to come back: from 10.2 on, the
 * main loop takes that back, and not the function that runs a CPU. 0: not needed.
 */
static size_t exit_request;

/*
 * Asking sets one byte to 1 and one halfword to -1, and does nothing else: so it
 * can be done to a CPU that is not there.
 */
const char *accel_find_exit_request(CPUState *cpu)
{
	size_t size = malloc_usable_size(cpu), at, ones = 0, halves = 0;
	unsigned char *nobody;

	exit_request = 0;
	if (!qemu.tcg_kick_vcpu_thread)
		return NULL;
	nobody = calloc(1, size);
	if (!nobody)
		return "there is no memory";
	qemu.tcg_kick_vcpu_thread((CPUState *)nobody);
	for (at = 0; at < size; at++) {
		if (nobody[at] == 1) {
			exit_request = at;
			ones++;
		} else if (nobody[at]) {
			halves += nobody[at] == 0xff ? 1 : 2 * sizeof(uint16_t);
		}
	}
	free(nobody);
	if (ones != 1 || halves != sizeof(uint16_t))
		return "a CPU is not stopped as in QEMU 10.0 to 11.1";
	return NULL;
}

void accel_begin_turn(CPUState *cpu)
{
	if (exit_request)
		__atomic_store_n((unsigned char *)cpu + exit_request, 0, __ATOMIC_SEQ_CST);
}

void accel_end_turn(CPUState *cpu)
{
	if (qemu.tcg_kick_vcpu_thread)
		qemu.tcg_kick_vcpu_thread(cpu);
	else
		qemu.cpu_exit(cpu);
}

extern __thread CPUState *current_cpu;

void accel_set_current(CPUState *cpu)
{
	current_cpu = cpu;
}
