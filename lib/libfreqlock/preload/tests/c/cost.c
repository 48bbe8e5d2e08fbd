/* SPDX-License-Identifier: MIT */
/* What locking and unlocking a mutex costs where nobody waits, in ns: the least of many short
 * measurements. */
#include "check.h"

enum { ROUNDS = 100, CALLS = 5000 };

static void *nothing(void *arg)
{
	return arg;
}

int main(void)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	double least = 1e9;

	/* With a second thread libc's mutexes cost what they cost in programs that need them. */
	finish(start(nothing, NULL));
	for (int round = 0; round < ROUNDS; round++) {
		long long began = now_ns(CLOCK_MONOTONIC);
		double took;

		for (int call = 0; call < CALLS; call++) {
			pthread_mutex_lock(&mutex);
			pthread_mutex_unlock(&mutex);
		}
		took = (now_ns(CLOCK_MONOTONIC) - began) / (double)CALLS;
		if (took < least)
			least = took;
	}
	printf("%.1f\n", least);
	return 0;
}
