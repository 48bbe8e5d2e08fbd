/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table of placement modes: one line each makes the BPF enum, the call of its
 * function in place.bpf.c, the agent's enum, the command line and its help (build.rs reads it).
 *
 * MODE(name, "name on the command line", flags of enum fl_mode_flags, "help"). The mode's
 * function is place_NAME(). New ones come last: their numbers are part of the ABI.
 */
#ifndef MODE
#error "define MODE before including modes.h"
#endif

/* clang-format off */
MODE(off, "off", 0, "An idle CPU near the previous one, as plain schedulers do")
MODE(fork_local, "fork-local", 0, "The parent's or previous CPU, if no other task is there; else as off")
MODE(fork_all, "fork-all", 0, "Always the parent's or previous CPU; balancing disperses")
MODE(smove, "smove", SCANS | BY_TASKS, "Stay local while the idle CPU is slower now, and move when that takes too long")
MODE(nest, "nest", SCANS | WARM | WARM_ONLY, "A small set of warm CPUs that grows when they are busy")
MODE(auto, "auto", SCANS | WARM | PREDICTS, "The CPU where the task is predicted to finish first")
/* clang-format on */
