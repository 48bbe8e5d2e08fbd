// SPDX-License-Identifier: GPL-2.0-only
/*
 * Locks on bad days, for the VM tests: threads that lie about them, hold them
 * for ever, or die. Each command prints what it saw and judges nothing.
 *
 *   badlocks lie ms=3000 threads=4
 *   badlocks killed-waiter n=20 | killed-holder n=20
 *   badlocks claim ms=2000 hogs=2 cpu=0
 *   badlocks many n=1000
 */
#include "threads.h"
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "intf.h"
#include "hint.h"

enum { MAX_THREADS = 16384, MAX_LIARS = 16 };

static sem_t is_held;

static long futex(void *word, int op, uint32_t val, const struct timespec *timeout)
{
	return syscall(SYS_futex, word, op, val, timeout, NULL, 0);
}

/* The start of a mutex, as glibc has it, with room behind. */
struct words {
	uint32_t lock, count;
	int32_t owner;
	uint32_t nusers, kind, rest[11];
};

/*
 * Hints of locks that are few, so that liars meet, by holders that are anybody; now
 * and then shown at addresses where none is, or none any more.
 */
static void lie_by_hint(volatile struct fl_hint *hint, int32_t owner, unsigned int *seed)
{
	uintptr_t nowhere[] = { 0, 8, (uintptr_t)hint + 4093, ~0xffful, (uintptr_t)&seed };

	hint->version = rand_r(seed) % 16 ? FL_HINT_VERSION : rand_r(seed);
	hint->owner = rand_r(seed) % 2 ? owner : 0;
	hint->holds = rand_r(seed) % 4;
	hint->waits_for = rand_r(seed) % 4;
	if (rand_r(seed) % 64 == 0)
		futex((void *)nowhere[rand_r(seed) % 5], FUTEX_WAIT_PRIVATE, FL_HINT_SHOW, NULL);
	else if (rand_r(seed) % 4 == 0)
		futex((void *)hint, FUTEX_WAIT_PRIVATE, FL_HINT_SHOW, NULL);
	burn_us(100);
}

/* Waits on words of which each is made up, or a real TID of this process or another. */
static void *liar(void *arg)
{
	static const uint32_t kinds[] = { 0, 1, 2, 3, 16, 128, 129, 144, 256, 512 };
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + number("ms", 3000) * 1000000ull;
	struct timespec short_while = { 0, 200000 };
	unsigned int seed = 1 + (long)arg;
	struct words w;
	long *told = malloc(sizeof(*told));
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	*told = 0;
	while (clock_ns(CLOCK_MONOTONIC) < end) {
		int32_t owners[] = { 0,
				     1,
				     2,
				     getpid(),
				     getppid(),
				     gettid(),
				     getpid() + 1,
				     getpid() + 2,
				     getpid() + 3,
				     rand_r(&seed),
				     -1 };
		int32_t owner = owners[rand_r(&seed) % (sizeof(owners) / sizeof(*owners))];

		for (size_t i = 0; i < sizeof(w) / sizeof(uint32_t); i++)
			((uint32_t *)&w)[i] = rand_r(&seed);
		/* All but every fourth make a mutex of it, as far as that goes. */
		if (rand_r(&seed) % 4) {
			w.lock = 2;
			w.kind = kinds[rand_r(&seed) % (sizeof(kinds) / sizeof(*kinds))];
			w.count = (w.kind & 3) == 1;
			w.nusers = 1;
			w.owner = owner;
			if (w.kind & 16)
				w.lock = FUTEX_WAITERS | ((uint32_t)owner & FUTEX_TID_MASK);
		}
		if (rand_r(&seed) % 8 == 0)
			futex(&w, FUTEX_LOCK_PI_PRIVATE, 0, &short_while);
		else
			futex(&w, rand_r(&seed) % 2 ? FUTEX_WAIT : FUTEX_WAIT_PRIVATE, w.lock,
			      &short_while);
		lie_by_hint(page, owner, &seed);
		++*told;
	}
	munmap(page, 4096);
	return told;
}

static void cmd_lie(void)
{
	int threads = number("threads", 4);
	pthread_t thread[MAX_LIARS];
	long told = 0;

	if (threads > MAX_LIARS)
		die("at most %d threads", MAX_LIARS);
	for (long i = 0; i < threads; i++)
		thread[i] = start(liar, (void *)i);
	for (int i = 0; i < threads; i++) {
		void *count;

		pthread_join(thread[i], &count);
		told += *(long *)count;
	}
	printf("told=%ld\n", told);
}

/* A mutex in memory that processes share; what happens to those that use it. */
static struct shared {
	pthread_mutex_t mutex;
	sem_t held;
} *shared;

static void init_shared(bool robust)
{
	pthread_mutexattr_t attr;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	if (robust)
		pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&shared->mutex, &attr);
	sem_init(&shared->held, 1, 0);
}

static pid_t child(void (*body)(void))
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork: %s", strerror(errno));
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		body();
		_exit(0);
	}
	return pid;
}

/* Returns when the process sleeps, in whatever. */
static void await_sleep(pid_t pid)
{
	char path[32], text[256], *state;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	for (;;) {
		file = fopen(path, "r");
		if (!file || !fgets(text, sizeof(text), file))
			die("%s: %s", path, strerror(errno));
		fclose(file);
		state = strrchr(text, ')');
		if (state && state[2] == 'S')
			return;
		sched_yield();
	}
}

static void take(void)
{
	if (pthread_mutex_lock(&shared->mutex) == EOWNERDEAD)
		pthread_mutex_consistent(&shared->mutex);
	pthread_mutex_unlock(&shared->mutex);
}

static void take_and_keep(void)
{
	if (pthread_mutex_lock(&shared->mutex) == EOWNERDEAD)
		pthread_mutex_consistent(&shared->mutex);
	sem_post(&shared->held);
	pause();
}

static void cmd_killed_waiter(void)
{
	long n = number("n", 20), killed = 0;

	init_shared(false);
	pthread_mutex_lock(&shared->mutex);
	for (long i = 0; i < n; i++) {
		pid_t pid = child(take);

		await_sleep(pid);
		kill(pid, SIGKILL);
		killed += waitpid(pid, NULL, 0) == pid;
	}
	pthread_mutex_unlock(&shared->mutex);
	printf("killed=%ld\n", killed);
}

static void cmd_killed_holder(void)
{
	long n = number("n", 20), freed = 0;

	init_shared(true);
	for (long i = 0; i < n; i++) {
		pid_t holds = child(take_and_keep), waits;
		int status = 1;

		wait_for(&shared->held);
		waits = child(take);
		await_sleep(waits);
		kill(holds, SIGKILL);
		waitpid(holds, NULL, 0);
		freed += waitpid(waits, &status, 0) == waits && status == 0;
	}
	printf("freed=%ld\n", freed);
}

/*
 * One claims to hold a lock that it never releases, and somebody of high priority
 * always waits for that: what it gets of the CPU beside hogs, in 1/1000.
 */
static struct words claimed;

static void *claimant(void *arg)
{
	struct timespec cpu;

	pin(hog_cpu);
	set_nice(19);
	claimed = (struct words){ .lock = 2, .owner = gettid(), .nusers = 1 };
	sem_post(&is_held);
	while (!stop)
		;
	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu))
		die("clock_gettime: %s", strerror(errno));
	*(uint64_t *)arg = cpu.tv_sec * 1000000000ull + cpu.tv_nsec;
	return NULL;
}

static void *dupe(void *arg)
{
	struct timespec while_ = { 0, *(long *)arg };

	set_nice(-20);
	while (!stop)
		futex(&claimed, FUTEX_WAIT_PRIVATE, 2, &while_);
	return NULL;
}

static void cmd_claim(void)
{
	long ms = number("ms", 2000), wait_ns = number("wait-us", 5000) * 1000;
	int hogs = number("hogs", 2), zero = 0;
	uint64_t got = 0, begin;
	pthread_t it, dupes[2];

	hog_cpu = number("cpu", 0);
	it = start(claimant, &got);
	wait_for(&is_held);
	for (int i = 0; i < hogs; i++)
		start(hog, &zero);
	for (int i = 0; i < 2; i++)
		dupes[i] = start(dupe, &wait_ns);
	begin = clock_ns(CLOCK_MONOTONIC);
	sleep_us(ms * 1000);
	stop = true;
	pthread_join(it, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(dupes[i], NULL);
	printf("share=%lu\n", got * 1000 / (clock_ns(CLOCK_MONOTONIC) - begin));
}

/* Many locks are waited for at one time, all held by the main thread. */
static pthread_mutex_t *locks;

static void *taker(void *arg)
{
	pthread_mutex_t *mutex = arg;

	pthread_mutex_lock(mutex);
	pthread_mutex_unlock(mutex);
	return NULL;
}

static void cmd_many(void)
{
	long n = number("n", 1000);
	pthread_t *thread;

	if (n > MAX_THREADS)
		die("at most %d locks", MAX_THREADS);
	locks = calloc(n, sizeof(*locks));
	thread = calloc(n, sizeof(*thread));
	for (long i = 0; i < n; i++) {
		pthread_mutex_init(&locks[i], NULL);
		pthread_mutex_lock(&locks[i]);
		thread[i] = start(taker, &locks[i]);
	}
	/* The last of them to wait says that all do, but for a moment. */
	while (*(volatile int *)&locks[n - 1].__data.__lock != 2)
		sched_yield();
	sleep_us(100000);
	for (long i = 0; i < n; i++)
		pthread_mutex_unlock(&locks[i]);
	for (long i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	printf("locks=%ld\n", n);
}

static const struct command commands[] = {
	{ "lie", cmd_lie },
	{ "killed-waiter", cmd_killed_waiter },
	{ "killed-holder", cmd_killed_holder },
	{ "claim", cmd_claim },
	{ "many", cmd_many },
};

int main(int argc, char **argv)
{
	sem_init(&is_held, 0, 0);
	return run_command(commands, sizeof(commands) / sizeof(*commands), argc, argv);
}
