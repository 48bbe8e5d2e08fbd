/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a user's policy is asked: nothing happens here, and programs of the policy are attached to
 * these functions. An extension program in their stead would be simpler, but kernels from 6.14 on
 * crash as they verify one for a struct_ops program. The functions are in a file of their
 * own, so that the compiler does not see that calls of them have no effect.
 */
#include "hooks.bpf.h"

#define HOOK(name, cli, flags, help)             \
	__noinline int fl_hook_##name(u32 place) \
	{                                        \
		return 0;                        \
	}
#include "hook_names.h"
#undef HOOK
