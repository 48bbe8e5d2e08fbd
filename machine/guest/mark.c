// SPDX-License-Identifier: GPL-2.0-only
/*
 * mark begin|end|exit [N] | clock: marks for the simulated machine where it is in
 * a run. `begin`, `end` and `clock` are put into the record with the machine's
 * time, `clock` with the guest's CLOCK_MONOTONIC in ns; `exit` ends the machine at
 * once with exit status N. Elsewhere it does nothing.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void mark(unsigned int nr, uint64_t value)
{
#if defined(__x86_64__)
	uint32_t eax = 0x4c4b0000u + nr;

	__asm__ volatile("cpuid" : "+a"(eax), "+c"(value) : : "rbx", "rdx", "memory");
#elif defined(__aarch64__)
	register uint64_t x0 __asm__("x0") = value;

	switch (nr) {
	case 0:
		__asm__ volatile("hint #112" : : "r"(x0) : "memory");
		break;
	case 1:
		__asm__ volatile("hint #113" : : "r"(x0) : "memory");
		break;
	case 2:
		__asm__ volatile("hint #114" : : "r"(x0) : "memory");
		break;
	default:
		__asm__ volatile("hint #115" : : "r"(x0) : "memory");
		break;
	}
#else
#error "the simulated machine has x86-64 and arm64 guests"
#endif
}

static int mark_clock(void)
{
	struct timespec now;

	/* The first call may have to find the clock's page. */
	clock_gettime(CLOCK_MONOTONIC, &now);
	if (clock_gettime(CLOCK_MONOTONIC, &now)) {
		perror("mark: CLOCK_MONOTONIC");
		return 1;
	}
	mark(3, (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
	return 0;
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "begin", "end", "exit" };
	unsigned int i;

	if (argc == 2 && !strcmp(argv[1], "clock"))
		return mark_clock();

	for (i = 0; argc >= 2 && argc <= 3 && i < 3; i++) {
		if (!strcmp(argv[1], names[i])) {
			mark(i, argc == 3 ? strtoull(argv[2], NULL, 0) : 0);
			return 0;
		}
	}
	fprintf(stderr, "usage: mark begin|end|exit [N] | clock\n");
	return 2;
}
