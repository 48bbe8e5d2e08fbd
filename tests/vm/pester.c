// SPDX-License-Identifier: GPL-2.0-only
/*
 * Preloaded into QEMU: a thread that asks for its big lock and interrupts its
 * CPUs for as long as the guest runs, as QEMU's main thread does whenever it sees
 * all CPUs idle, only far more often. At the end, how often it did is written
 * into the file named by PESTERED. In any other program it does nothing.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define QEMU_CLOCK_VIRTUAL 1
#define PAUSE_US           50

static struct {
	void (*bql_lock_impl)(const char *file, int line);
	void (*bql_unlock)(void);
	bool (*runstate_is_running)(void);
	void (*qemu_clock_notify)(int clock);
} qemu;

static unsigned long pestered;

static void *pester(void *unused)
{
	(void)unused;
	for (;;) {
		/* QEMU begins without a lock, and nobody is in the way when the guest has ended. */
		if (!qemu.runstate_is_running()) {
			usleep(100 * PAUSE_US);
			continue;
		}
		qemu.bql_lock_impl(__FILE__, __LINE__);
		if (qemu.runstate_is_running()) {
			qemu.qemu_clock_notify(QEMU_CLOCK_VIRTUAL);
			pestered++;
		}
		qemu.bql_unlock();
		usleep(PAUSE_US);
	}
	return NULL;
}

static bool find(const char *name, void *function)
{
	void *address = dlsym(RTLD_DEFAULT, name);

	/* ISO C has no cast between pointers to data and to functions. */
	memcpy(function, &address, sizeof(address));
	return address;
}

static void __attribute__((constructor)) begin(void)
{
	pthread_t thread;

	if (find("bql_lock_impl", &qemu.bql_lock_impl) && find("bql_unlock", &qemu.bql_unlock) &&
	    find("runstate_is_running", &qemu.runstate_is_running) &&
	    find("qemu_clock_notify", &qemu.qemu_clock_notify) &&
	    pthread_create(&thread, NULL, pester, NULL))
		abort();
}

static void __attribute__((destructor)) end(void)
{
	const char *path = getenv("PESTERED");
	FILE *file = path && pestered ? fopen(path, "w") : NULL;

	if (!file)
		return;
	fprintf(file, "%lu\n", pestered);
	fclose(file);
}
