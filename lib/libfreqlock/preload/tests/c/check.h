/* SPDX-License-Identifier: MIT */
/*
 * What these programs share. Each prints the results of calls; what it prints must be the same with
 * libc's own locks and with any that are preloaded.
 */
#ifndef CHECK_H
#define CHECK_H

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Also in a build with NDEBUG. */
#define MUST(what)                                                        \
	do {                                                              \
		if (!(what)) {                                            \
			printf("%s:%d: %s\n", __FILE__, __LINE__, #what); \
			exit(1);                                          \
		}                                                         \
	} while (0)

#define SHOW(call) show(#call, call)

static inline const char *name_of(int result)
{
	return result ? strerrorname_np(result) : "0";
}

static inline void show(const char *call, int result)
{
	printf("%s: %s\n", call, name_of(result));
}

static inline long long now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static inline struct timespec in_ms(clockid_t clock, long ms)
{
	long long ns = now_ns(clock) + ms * 1000000LL;

	return (struct timespec){ ns / 1000000000, ns % 1000000000 };
}

static inline void sleep_ms(long ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&ts, NULL);
}

static inline pthread_t start(void *(*what)(void *), void *arg)
{
	pthread_t thread;

	MUST(!pthread_create(&thread, NULL, what, arg));
	return thread;
}

static inline void *finish(pthread_t thread)
{
	void *result;

	MUST(!pthread_join(thread, &result));
	return result;
}

struct call {
	int (*what)(void *);
	void *arg;
	int result;
};

static inline void *make_call(void *call)
{
	((struct call *)call)->result = ((struct call *)call)->what(((struct call *)call)->arg);
	return NULL;
}

/* What another thread gets. */
static inline int elsewhere(int (*what)(void *), void *arg)
{
	struct call call = { what, arg, 0 };

	finish(start(make_call, &call));
	return call.result;
}

static inline void begin(const char *part)
{
	printf("-- %s\n", part);
	fflush(stdout);
}

#endif
