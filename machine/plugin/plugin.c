// SPDX-License-Identifier: GPL-2.0-only
/*
 * freqlock_machine: a QEMU plugin that makes of QEMU's emulation a machine whose
 * CPUs change speed. This file is its QEMU side: start and end, and the
 * instructions that matter, which are found when QEMU translates them:
 *  - PAUSE (YIELD and WFE come back from QEMU by themselves): waiting has a price;
 *  - the writes of the address space and of the thread pointer: together they
 *    name the task that a CPU goes on with;
 *  - rep movs and rep stos: charged by the byte;
 *  - CPUID with leaf 0x4c4b0000 + n on x86, HINT #(112 + n) on arm64: marks.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "config.h"
#include "machine.h"
#include "qemu.h"
#include "record.h"

#define EXIT_REFUSED 2
#define NR_GPRS      32
#define MARK_LEAF    0x4c4b0000u
#define MARK_HINT    112u

enum mark { MARK_BEGIN, MARK_END, MARK_EXIT, MARK_CLOCK, NR_MARKS };

static const char *const mark_names[NR_MARKS] = { "begin", "end", "exit", "clock" };

/* QEMU looks at it before it calls anything. */
QEMU_PLUGIN_EXPORT int qemu_plugin_version = QEMU_PLUGIN_VERSION;

static void __attribute__((constructor)) choose_version(void)
{
	if (dlsym(RTLD_DEFAULT, QEMU_NEW_FUNCTION))
		qemu_plugin_version = QEMU_PLUGIN_VERSION_NEW;
}

static struct model model;
static struct model_config config;
static bool is_arm;
static struct timespec started;
static unsigned int nr_init;

/* A handle may be NULL. */
static struct qemu_plugin_register *gpr[NR_GPRS];
static unsigned int nr_gprs;
static struct glib_array *register_bytes;

/*
 * Counters belong to CPUs, and code translated for one CPU, which all of them
 * run, adds to that CPU's. Here all must add to one: its distance from the
 * counter of the CPU for which code is translated is known then.
 */
static struct qemu_plugin_scoreboard *counters;

/* The address space that each CPU has switched to last. */
static uint64_t address_space[MODEL_MAX_CPUS];

static void refuse(const char *why)
{
	fprintf(stderr, "freqlock_machine: %s\n", why);
	fflush(NULL);
	_exit(EXIT_REFUSED);
}

static uint64_t read_gpr(unsigned int nr)
{
	uint64_t value = 0;

	/* arm64's number 31 is the zero register here. */
	if (nr >= nr_gprs)
		return 0;
	g_byte_array_set_size(register_bytes, 0);
	qemu_plugin_read_register(gpr[nr], register_bytes);
	if (register_bytes->len >= sizeof(value))
		memcpy(&value, register_bytes->data, sizeof(value));
	return value;
}

static void find_gprs(void)
{
	static const char *const x86[] = { "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
					   "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15" };
	struct glib_array *registers = qemu_plugin_get_registers();
	size_t size = g_array_get_element_size(registers);
	const struct qemu_plugin_reg_descriptor *r;
	unsigned int i, k;
	char name[8];

	nr_gprs = is_arm ? 31 : 16;
	for (k = 0; k < nr_gprs; k++) {
		snprintf(name, sizeof(name), "x%u", k);
		for (i = 0; i < registers->len; i++) {
			r = (const void *)((const char *)registers->data + i * size);
			if (!strcmp(r->name, is_arm ? name : x86[k]))
				break;
		}
		if (i < registers->len)
			gpr[k] = r->handle;
		else
			refuse("this QEMU does not show the CPU's registers to plugins");
	}
	register_bytes = g_byte_array_new();
}

static void on_limit(unsigned int cpu, void *unused)
{
	(void)cpu;
	(void)unused;
	machine_limit();
}

static void on_pause(unsigned int cpu, void *unused)
{
	(void)cpu;
	(void)unused;
	machine_pause();
}

static void on_address_space(unsigned int unused, void *reg)
{
	(void)unused;
	address_space[machine_cpu()] = read_gpr((unsigned int)(uintptr_t)reg) & ~0xfffull;
}

static void on_thread(unsigned int unused, void *reg)
{
	uint64_t thread = read_gpr((unsigned int)(uintptr_t)reg);

	(void)unused;
	/* Kernel threads have none: they are not told apart. */
	machine_switch(thread ? thread ^ address_space[machine_cpu()] : 0);
}

/* The host's time since the plugin was loaded. */
static uint64_t host_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)((t.tv_sec - started.tv_sec) * 1000000000ll + t.tv_nsec - started.tv_nsec);
}

static void mark(uint32_t nr, uint64_t value)
{
	if (nr >= NR_MARKS)
		return;
	record_mark(mark_names[nr], value, machine_now(), host_ns());
	if (nr == MARK_EXIT)
		machine_end((uint8_t)value);
}

static void on_cpuid(unsigned int unused, void *unused_too)
{
	uint32_t leaf = (uint32_t)read_gpr(0);

	(void)unused;
	(void)unused_too;
	if ((leaf & 0xffff0000) == MARK_LEAF)
		mark(leaf & 0xffff, read_gpr(1));
}

static void on_hint(unsigned int unused, void *nr)
{
	(void)unused;
	mark((uint32_t)(uintptr_t)nr, read_gpr(0));
}

static void call(struct qemu_plugin_insn *insn, qemu_plugin_vcpu_udata_cb_t cb,
		 enum qemu_plugin_cb_flags flags, uint32_t data)
{
	qemu_plugin_register_vcpu_insn_exec_cb(insn, cb, flags, (void *)(uintptr_t)data);
}

static void look_at_arm(struct qemu_plugin_insn *insn, const uint8_t *bytes)
{
	uint32_t word;

	memcpy(&word, bytes, sizeof(word));
	if ((word & 0xfffff01f) == 0xd503201f) {
		uint32_t hint = word >> 5 & 127;

		if (hint >= MARK_HINT && hint < MARK_HINT + NR_MARKS)
			call(insn, on_hint, QEMU_PLUGIN_CB_R_REGS, hint - MARK_HINT);
	} else if ((word & 0xffffffe0) == 0xd5182000) {
		call(insn, on_address_space, QEMU_PLUGIN_CB_R_REGS, word & 31);
	} else if ((word & 0xffffffe0) == 0xd51bd040) {
		call(insn, on_thread, QEMU_PLUGIN_CB_R_REGS, word & 31);
	}
}

static struct qemu_plugin_u64 the_counter(void)
{
	unsigned int cpu = (unsigned int)machine_cpu();
	const char *of_cpu = qemu_plugin_scoreboard_find(counters, 0);

	of_cpu += cpu;
	return (struct qemu_plugin_u64){ counters,
					 (size_t)((uintptr_t)&machine_done - (uintptr_t)of_cpu) };
}

/* rep movs or stos: each store of `width` bytes is a part of an instruction. */
static void charge_rep(struct qemu_plugin_insn *insn, uint32_t width)
{
	qemu_plugin_register_vcpu_mem_inline_per_vcpu(
		insn, QEMU_PLUGIN_MEM_W, QEMU_PLUGIN_INLINE_ADD_U64, the_counter(),
		(uint64_t)width * MODEL_ONE / config.rep_bytes_per_insn);
}

static void look_at_x86(struct qemu_plugin_insn *insn, const uint8_t *b, size_t size)
{
	uint8_t rex = 0;
	bool rep = false, narrow = false;
	size_t i = 0;

	for (; i < size && (b[i] == 0xf2 || b[i] == 0xf3 || b[i] == 0x66); i++) {
		rep = rep || b[i] != 0x66;
		narrow = narrow || b[i] == 0x66;
	}
	if (i < size && (b[i] & 0xf0) == 0x40)
		rex = b[i++];
	if (i >= size)
		return;
	switch (b[i]) {
	case 0x90:
		if (rep)
			call(insn, on_pause, QEMU_PLUGIN_CB_NO_REGS, 0);
		return;
	case 0xa4:
	case 0xaa:
		if (rep)
			charge_rep(insn, 1);
		return;
	case 0xa5:
	case 0xab:
		if (rep)
			charge_rep(insn, rex & 8 ? 8 : narrow ? 2 : 4);
		return;
	case 0x0f:
		break;
	default:
		return;
	}
	if (size - i == 2 && b[i + 1] == 0xa2)
		call(insn, on_cpuid, QEMU_PLUGIN_CB_R_REGS, 0);
	if (size - i != 3 || b[i + 2] >> 6 != 3)
		return;
	/* mov to CR3; wrfsbase */
	if (b[i + 1] == 0x22 && (b[i + 2] >> 3 & 7) == 3)
		call(insn, on_address_space, QEMU_PLUGIN_CB_R_REGS,
		     (b[i + 2] & 7) | (rex & 1) << 3);
	else if (b[i + 1] == 0xae && rep && (b[i + 2] >> 3 & 7) == 2)
		call(insn, on_thread, QEMU_PLUGIN_CB_R_REGS, (b[i + 2] & 7) | (rex & 1) << 3);
}

static void translate(struct qemu_plugin_tb *tb)
{
	struct qemu_plugin_u64 counter = the_counter();
	size_t nr = qemu_plugin_tb_n_insns(tb), i;

	qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, QEMU_PLUGIN_INLINE_ADD_U64, counter,
							  nr * MODEL_ONE);
	qemu_plugin_register_vcpu_tb_exec_cond_cb(tb, on_limit, QEMU_PLUGIN_CB_NO_REGS,
						  QEMU_PLUGIN_COND_GE, counter, MACHINE_LIMIT,
						  NULL);
	for (i = 0; i < nr; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
		size_t size = qemu_plugin_insn_size(insn);
		uint8_t bytes[8] = { 0 };

		/* All that matter are short. */
		if (size > sizeof(bytes))
			continue;
		qemu_plugin_insn_data(insn, bytes, size);
		if (is_arm)
			look_at_arm(insn, bytes);
		else
			look_at_x86(insn, bytes, size);
	}
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
	(void)id;
	translate(tb);
}

/* As the new version of the plugin interface calls back. */
static void on_translation_new(struct qemu_plugin_tb *tb, void *unused)
{
	(void)unused;
	translate(tb);
}

static void on_cpu(void)
{
	const char *wrong;

	if (++nr_init < config.nr_cpus)
		return;
	find_gprs();
	wrong = machine_prepare(&model);
	if (wrong)
		refuse(wrong);
	machine_run();
}

static void on_end(void)
{
	struct record_totals totals = { machine_guest_ns(), host_ns(), machine_idle_skipped_ns() };

	if (!record_close(&model, &totals))
		fprintf(stderr, "freqlock_machine: the record could not be written\n");
}

static void on_speed(void *unused, uint32_t cpu, uint64_t now, uint32_t speed)
{
	(void)unused;
	record_speed(cpu, now, speed);
}

static void on_state(void *unused, uint32_t cpu, uint64_t now, bool busy)
{
	(void)unused;
	record_state(cpu, now, busy);
}

static const char *argument(int argc, char **argv, const char *name)
{
	size_t length = strlen(name);
	int i;

	for (i = 0; i < argc; i++)
		if (!strncmp(argv[i], name, length) && argv[i][length] == '=')
			return argv[i] + length + 1;
	return NULL;
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_plugin_info *info,
					   int argc, char **argv);

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const struct qemu_plugin_info *info,
					   int argc, char **argv)
{
	const char *config_path = argument(argc, argv, "config");
	const char *record_path = argument(argc, argv, "record"), *wrong;
	char why[512];

	clock_gettime(CLOCK_MONOTONIC, &started);
	if (argc != 2 || !config_path || !record_path)
		refuse("the arguments are config=FILE,record=FILE");
	is_arm = !strcmp(info->target_name, "aarch64");
	if (!info->system_emulation || (!is_arm && strcmp(info->target_name, "x86_64")))
		refuse("it works with qemu-system-x86_64 and qemu-system-aarch64");
	if (!config_read(config_path, &config, why, sizeof(why)))
		refuse(why);
	if ((int)config.nr_cpus != info->system.max_vcpus)
		refuse("QEMU's -smp is not the number of cpus in the configuration");
	wrong = accel_find_functions();
	if (wrong)
		refuse(wrong);
	if (!record_open(record_path))
		refuse("the record cannot be made: is its folder there, and may it be written?");
	model_init(&model, &config);
	model.speed_changed = on_speed;
	model.state_changed = on_state;
	/* One byte each: a CPU's number is then its distance from the first. */
	counters = qemu_plugin_scoreboard_new(1);
	qemu_plugin_register_vcpu_init_cb(id, on_cpu, NULL);
	qemu_plugin_register_vcpu_tb_trans_cb(id,
					      qemu_plugin_version == QEMU_PLUGIN_VERSION_NEW ?
						      (qemu_plugin_any_cb_t)on_translation_new :
						      (qemu_plugin_any_cb_t)on_translation,
					      NULL);
	qemu_plugin_register_atexit_cb(id, on_end, NULL);
	return 0;
}
