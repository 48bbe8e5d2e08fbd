/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The only ABI between the BPF side and the agent: constants, knobs,
 * statistics and shared structs. Fixed-width types only; a change of layout
 * changes FL_ABI_VERSION, which the agent compares with the loaded object's.
 */
#ifndef __FREQLOCK_INTF_H
#define __FREQLOCK_INTF_H

#ifndef __VMLINUX_H__
#include <stdint.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int32_t s32;
typedef int64_t s64;
#include <stdbool.h>
#endif

enum fl_consts {
	FL_ABI_VERSION = 1,
	FL_MAX_CPUS = 1024,
	FL_FULL_SPEED = 1024,  /* speeds and shares are 0..1024 */
	FL_HIST_SLOTS = 24,    /* log2 buckets of microseconds: [0,1), [1,2), [2,4) ... */
	FL_MAX_CLASSES = 4096, /* fork classes remembered, least recently used go */
	FL_MAX_LOCKS = 4096,   /* locks that somebody waits for, at one time */
};

/* Placement, as ARCHITECTURE.md describes each. */
enum fl_mode {
	FL_MODE_OFF,
	FL_MODE_FORK_LOCAL,
	FL_MODE_FORK_ALL,
	FL_MODE_SMOVE,
	FL_MODE_NEST,
	FL_MODE_AUTO,
	FL_NR_MODES,
};

/* Where a CPU's present speed comes from, best first after TEST. */
enum fl_freq_source {
	FL_FREQ_TEST,       /* set per CPU by a test */
	FL_FREQ_CPUPERF,    /* scx_bpf_cpuperf_cur() */
	FL_FREQ_APERF,      /* APERF/MPERF counters */
	FL_FREQ_TRACEPOINT, /* power:cpu_frequency */
	FL_FREQ_RECENCY,    /* rises with busy time, decays with idle time */
	FL_NR_FREQ_SOURCES,
};

/* Distances between two CPUs; each includes the ones before it. */
enum fl_distance {
	FL_SAME_CPU,
	FL_SAME_CORE,
	FL_SAME_LLC,
	FL_SAME_NODE,
	FL_FAR,
	FL_NR_DISTANCES,
};

struct tunables {
	u64 mode; /* enum fl_mode */
#define KNOB(name, unit, def, min, max, meaning) u64 name;
#include "knobs.h"
#undef KNOB
};

enum fl_stat {
#define STAT(name, group, desc) FL_STAT_##name,
#include "stats.h"
#undef STAT
	FL_NR_STATS,
};

/* What never changes while loaded, for each CPU; written by the agent. */
struct cpu_topo {
	u32 core; /* all ids are global and dense */
	u32 llc;
	u32 node;
	u32 capacity; /* 0..1024 of the machine's largest */
	s32 sibling;  /* another hardware thread of the core, or -1 */
	u32 present;  /* 1: exists and was online at start */
};

/* All CPUs, nearest first; `first[d]` is where distance d begins. */
struct cpu_order {
	u32 first[FL_NR_DISTANCES + 1];
	u32 nr;
	u16 cpu[FL_MAX_CPUS];
};

/* Predicted (row) against real (column), log2 of microseconds. */
struct fl_hist2 {
	u64 slot[FL_HIST_SLOTS][FL_HIST_SLOTS];
};

enum fl_hist { FL_HIST_WAIT, FL_HIST_BURST, FL_NR_HISTS };

_Static_assert(sizeof(struct cpu_topo) == 24, "cpu_topo is shared with the agent");
_Static_assert(sizeof(struct cpu_order) == 28 + 2 * FL_MAX_CPUS,
	       "cpu_order is shared with the agent");

#endif /* __FREQLOCK_INTF_H */
