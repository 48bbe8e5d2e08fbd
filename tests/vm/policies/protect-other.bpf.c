/* SPDX-License-Identifier: GPL-2.0-only */
/* The example, for a program that does not run. */
#define PROGRAM "other"
#include "../../../policies/protect-process.bpf.c"
