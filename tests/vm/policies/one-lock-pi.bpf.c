/* SPDX-License-Identifier: GPL-2.0-only */
/* No futex of the tests is in the profile of locks. */
#define KIND FREQLOCK_PI
#include "../../../policies/one-lock.bpf.c"
