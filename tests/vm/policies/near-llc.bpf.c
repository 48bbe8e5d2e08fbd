/* SPDX-License-Identifier: GPL-2.0-only */
/* The example, by caches: the tests' machine has two of these, and one node. */
#define NEAR llc
#include "../../../policies/near-first.bpf.c"
