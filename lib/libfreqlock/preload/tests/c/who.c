/* SPDX-License-Identifier: MIT */
/* Which library each function is of, and what a mutex looks like while it is locked. */
#include "check.h"
#include <dlfcn.h>

#define OF(name) of(#name, (void *)name)

static void of(const char *name, void *function)
{
	Dl_info info;

	MUST(dladdr(function, &info));
	printf("%s %s\n", name, strrchr(info.dli_fname, '/') + 1);
}

static pthread_mutex_t early = PTHREAD_MUTEX_INITIALIZER;

static void lock_early(void)
{
	pthread_mutex_lock(&early);
}

__attribute__((section(".preinit_array"), used)) static void (*before_all)(void) = lock_early;

static void words(const char *when, pthread_mutex_t *mutex)
{
	unsigned int words[5];

	memcpy(words, mutex, sizeof(words));
	printf("%s %u %u %s %u %u\n", when, words[0], words[1],
	       words[2] == (unsigned int)gettid() ? "mine" : "?", words[3], words[4]);
}

int main(void)
{
	pthread_mutex_t late = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

	OF(pthread_cond_broadcast);
	OF(pthread_cond_clockwait);
	OF(pthread_cond_destroy);
	OF(pthread_cond_init);
	OF(pthread_cond_signal);
	OF(pthread_cond_timedwait);
	OF(pthread_cond_wait);
	OF(pthread_mutex_clocklock);
	OF(pthread_mutex_destroy);
	OF(pthread_mutex_init);
	OF(pthread_mutex_lock);
	OF(pthread_mutex_timedlock);
	OF(pthread_mutex_trylock);
	OF(pthread_mutex_unlock);
	OF(pthread_rwlock_clockrdlock);
	OF(pthread_rwlock_clockwrlock);
	OF(pthread_rwlock_destroy);
	OF(pthread_rwlock_init);
	OF(pthread_rwlock_rdlock);
	OF(pthread_rwlock_timedrdlock);
	OF(pthread_rwlock_timedwrlock);
	OF(pthread_rwlock_tryrdlock);
	OF(pthread_rwlock_trywrlock);
	OF(pthread_rwlock_unlock);
	OF(pthread_rwlock_wrlock);
	OF(pthread_spin_destroy);
	OF(pthread_spin_init);
	OF(pthread_spin_lock);
	OF(pthread_spin_trylock);
	OF(pthread_spin_unlock);
	words("early", &early);
	pthread_mutex_lock(&late);
	pthread_mutex_lock(&late);
	words("late", &late);
	return 0;
}
