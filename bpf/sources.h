/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table of sources of CPU speed: one line each makes the BPF enum, the call of its
 * function in freq.bpf.c, the agent's enum, the command line and its help (build.rs reads it).
 *
 * SOURCE(name, "name on the command line", flags of enum fl_source_flags, "help"). The
 * source's function is sample_NAME(); which one is best here, src/freq.rs decides.
 */
#ifndef SOURCE
#error "define SOURCE before including sources.h"
#endif

/* clang-format off */
SOURCE(test, "test", GIVEN, "Speeds given with --test-speed, for tests")
SOURCE(cpuperf, "cpuperf", CPUFREQ, "What cpufreq drivers report to the scheduler")
SOURCE(aperf, "aperf", COUNTERS, "APERF/MPERF counters of x86")
SOURCE(tracepoint, "tracepoint", CPUFREQ | HOOKED, "The tracepoint power:cpu_frequency")
SOURCE(recency, "recency", MODELLED, "A model: speed rises with busy time and falls with idle time")
/* clang-format on */
