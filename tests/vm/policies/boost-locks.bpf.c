/* SPDX-License-Identifier: GPL-2.0-only */
/* The example, for the tests' load of locks. */
#define PREFIX "locks"
#include "../../../policies/boost-chosen.bpf.c"
