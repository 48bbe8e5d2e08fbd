// SPDX-License-Identifier: GPL-2.0-only
/* What accel.c takes from QEMU other than by name. */
struct CPUState;
__thread struct CPUState *current_cpu;
