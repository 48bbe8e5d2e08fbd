// SPDX-License-Identifier: GPL-2.0-only
/*
 * mark begin|end|exit [N]: marks for the simulated machine where it is in a run.
 * `begin` and `end` are put into the record with the guest's time; `exit` ends
 * the machine at once with exit status N. Elsewhere it does nothing.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void mark(unsigned int nr, uint64_t value)
{
#if defined(__x86_64__)
	uint32_t eax = 0x4c4b0000u + nr, ecx = (uint32_t)value;

	__asm__ volatile("cpuid" : "+a"(eax), "+c"(ecx) : : "rbx", "rdx", "memory");
#elif defined(__aarch64__)
	register uint64_t x0 __asm__("x0") = value;

	switch (nr) {
	case 0:
		__asm__ volatile("hint #112" : : "r"(x0) : "memory");
		break;
	case 1:
		__asm__ volatile("hint #113" : : "r"(x0) : "memory");
		break;
	default:
		__asm__ volatile("hint #114" : : "r"(x0) : "memory");
		break;
	}
#else
#error "the simulated machine has x86-64 and arm64 guests"
#endif
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "begin", "end", "exit" };
	unsigned int i;

	for (i = 0; argc >= 2 && argc <= 3 && i < 3; i++) {
		if (!strcmp(argv[1], names[i])) {
			mark(i, argc == 3 ? strtoull(argv[2], NULL, 0) : 0);
			return 0;
		}
	}
	fprintf(stderr, "usage: mark begin|end|exit [N]\n");
	return 2;
}
