/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the plugin takes from QEMU: the part of the plugin interface it uses,
 * declared here because packages of QEMU bring no header, and the functions of
 * QEMU itself that accel.c finds by name.
 */
#ifndef FREQLOCK_MACHINE_QEMU_H
#define FREQLOCK_MACHINE_QEMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * --- The plugin interface ---
 * Version 4 will do for QEMU 10.0 to 11.0. Version 7, which QEMU 11.1 insists on,
 * calls back without the plugin's id, and with user data as the last argument.
 */
#define QEMU_PLUGIN_EXPORT      __attribute__((visibility("default")))
#define QEMU_PLUGIN_VERSION     4
#define QEMU_PLUGIN_VERSION_NEW 7
/* A function of QEMU itself that came at the same time. */
#define QEMU_NEW_FUNCTION "physical_memory_read"

typedef uint64_t qemu_plugin_id_t;

struct qemu_plugin_info {
	const char *target_name;
	struct {
		int min;
		int cur;
	} version;
	bool system_emulation;
	struct {
		int smp_vcpus;
		int max_vcpus;
	} system;
};

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_scoreboard;
struct qemu_plugin_register;

struct qemu_plugin_u64 {
	struct qemu_plugin_scoreboard *score;
	size_t offset;
};

enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_CB_R_REGS };
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_W = 2 };
enum qemu_plugin_cond { QEMU_PLUGIN_COND_GE = 7 };

/* The head of it: 11.0 has more behind. */
struct qemu_plugin_reg_descriptor {
	struct qemu_plugin_register *handle;
	const char *name;
};

/* GLib's GArray and GByteArray: the two fields that it shows. */
struct glib_array {
	void *data;
	unsigned int len;
};

typedef void (*qemu_plugin_vcpu_udata_cb_t)(unsigned int vcpu_index, void *userdata);

/* What these callbacks are given depends on the version. */
typedef void (*qemu_plugin_any_cb_t)(void);

void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t id, qemu_plugin_any_cb_t cb,
				       void *userdata);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, qemu_plugin_any_cb_t cb,
					   void *userdata);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, qemu_plugin_any_cb_t cb, void *userdata);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn,
					    qemu_plugin_vcpu_udata_cb_t cb,
					    enum qemu_plugin_cb_flags flags, void *userdata);
void qemu_plugin_register_vcpu_mem_inline_per_vcpu(struct qemu_plugin_insn *insn,
						   enum qemu_plugin_mem_rw rw,
						   enum qemu_plugin_op op,
						   struct qemu_plugin_u64 entry, uint64_t imm);
void qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(struct qemu_plugin_tb *tb,
						       enum qemu_plugin_op op,
						       struct qemu_plugin_u64 entry, uint64_t imm);
void qemu_plugin_register_vcpu_tb_exec_cond_cb(
	struct qemu_plugin_tb *tb, qemu_plugin_vcpu_udata_cb_t cb, enum qemu_plugin_cb_flags flags,
	enum qemu_plugin_cond cond, struct qemu_plugin_u64 entry, uint64_t imm, void *userdata);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t idx);
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *insn, void *dest, size_t len);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
struct glib_array *qemu_plugin_get_registers(void);
/* The result is not the same in all versions; what it has read is in buf. */
void qemu_plugin_read_register(struct qemu_plugin_register *handle, struct glib_array *buf);
struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t element_size);
void *qemu_plugin_scoreboard_find(struct qemu_plugin_scoreboard *score, unsigned int vcpu_index);

unsigned int g_array_get_element_size(struct glib_array *array);
struct glib_array *g_byte_array_new(void);
struct glib_array *g_byte_array_set_size(struct glib_array *array, unsigned int len);

/* --- QEMU itself --- */
typedef struct CPUState CPUState;

#define QEMU_CLOCK_VIRTUAL  1
#define QEMU_TIMER_ATTR_ALL (-1)
/* How a CPU's code is translated. */
#define CF_USE_ICOUNT 0x2000
#define CF_PARALLEL   0x8000
/* What running a CPU comes back with. */
#define EXCP_HLT    0x10001
#define EXCP_DEBUG  0x10002
#define EXCP_HALTED 0x10003
#define EXCP_YIELD  0x10004
#define EXCP_ATOMIC 0x10005
/* Why the machine is shut down. */
#define SHUTDOWN_CAUSE_HOST_ERROR     1
#define SHUTDOWN_CAUSE_GUEST_SHUTDOWN 6

/* One line a function: its result, name and arguments. */
#define QEMU_FUNCTIONS(F)                                                  \
	F(void *, cpus_get_accel, (void))                                  \
	F(CPUState *, qemu_get_cpu, (int index))                           \
	F(int, tcg_cpu_exec, (CPUState * cpu))                             \
	F(void, cpu_exec_step_atomic, (CPUState * cpu))                    \
	F(void, cpu_exit, (CPUState * cpu))                                \
	F(bool, cpu_can_run, (CPUState * cpu))                             \
	F(bool, cpu_thread_is_idle, (CPUState * cpu))                      \
	F(bool, cpu_work_list_empty, (CPUState * cpu))                     \
	F(void, bql_lock_impl, (const char *file, int line))               \
	F(void, bql_unlock, (void))                                        \
	F(int64_t, icount_get, (void))                                     \
	F(void, icount_handle_interrupt, (CPUState * cpu, int mask))       \
	F(void, icount_prepare_for_run, (CPUState * cpu, int64_t budget))  \
	F(void, icount_process_data, (CPUState * cpu))                     \
	F(bool, tcg_cflags_has, (CPUState * cpu, uint32_t flags))          \
	F(void, tcg_cflags_set, (CPUState * cpu, uint32_t flags))          \
	F(void, tcg_handle_interrupt, (CPUState * cpu, int mask))          \
	F(void, rr_start_vcpu_thread, (CPUState * cpu))                    \
	F(void, rr_kick_vcpu_thread, (CPUState * cpu))                     \
	F(void, qemu_cond_init, (void *cond))                              \
	F(void, qemu_cond_broadcast, (void *cond))                         \
	F(void, qemu_cond_wait_bql, (void *cond))                          \
	F(int64_t, qemu_clock_deadline_ns_all, (int type, int attributes)) \
	F(bool, qemu_clock_run_timers, (int type))                         \
	F(void, qemu_system_shutdown_request_with_code, (int reason, int status))

/*
 * Functions that 10.2 or 11.1 have under another name; those read memory without
 * the last argument.
 */
#define QEMU_RENAMED_FUNCTIONS(F)                                                                  \
	F(void, qemu_wait_io_event_common, "qemu_process_cpu_events_common", "", (CPUState * cpu)) \
	F(void, cpu_physical_memory_rw, "cpu_physical_memory_read", QEMU_NEW_FUNCTION,             \
	  (uint64_t address, void *buffer, uint64_t length, bool write))

/* What 10.2 brought: cpu_exit() has become more than it was, and this is what it was. */
#define QEMU_OPTIONAL_FUNCTIONS(F) F(void, tcg_kick_vcpu_thread, (CPUState * cpu))

#define QEMU_DECLARE(result, name, arguments)                     result(*name) arguments;
#define QEMU_DECLARE_RENAMED(result, name, new, newer, arguments) result(*name) arguments;

struct qemu {
	QEMU_FUNCTIONS(QEMU_DECLARE)
	QEMU_RENAMED_FUNCTIONS(QEMU_DECLARE_RENAMED)
	QEMU_OPTIONAL_FUNCTIONS(QEMU_DECLARE)
};

extern struct qemu qemu;

/* What the accelerator asks instead of QEMU's own instruction counter. */
struct accel_hooks {
	int64_t (*clock)(void);
	void (*interrupt)(CPUState *cpu, int mask);
	void (*kick)(CPUState *cpu);
};

/* Each returns NULL or a sentence that says why this QEMU cannot be used. */
const char *accel_find_functions(void);
const char *accel_hook(const struct accel_hooks *hooks);
const char *accel_stop_counting(CPUState *cpu);
const char *accel_find_exit_request(CPUState *cpu);
/* Before a CPU runs: nobody asks it to come back yet. */
void accel_begin_turn(CPUState *cpu);
/* The CPU that runs comes back at the end of its block of instructions. */
void accel_end_turn(CPUState *cpu);
/* A CPU whose counter is empty, as after a reset, does not run: fill it. */
void accel_fill_counter(CPUState *cpu);

/* The running CPU, in the thread that runs it. */
void accel_set_current(CPUState *cpu);

#endif /* FREQLOCK_MACHINE_QEMU_H */
