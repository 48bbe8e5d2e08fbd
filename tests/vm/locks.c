// SPDX-License-Identifier: GPL-2.0-only
/*
 * Loads of locks for the VM tests: threads that hold, wait, lie and die. Each
 * command prints what it saw as one line of name=value pairs and judges nothing.
 *
 *   locks inversion n=100 hold-us=2000 hogs=4 cpu=-1 kind=normal
 *   locks chain n=50 depth=4 hold-us=2000 hogs=4
 *   locks lie ms=3000 threads=4
 *   locks killed-waiter n=20 | killed-holder n=20
 *   locks claim ms=2000 hogs=2 cpu=0
 *   locks many n=1000
 *   locks condvar n=200 | semaphore n=200 | barrier n=200
 *   locks big n=20 cpu=0 from=1 hold-us=20000
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "params.h"

enum { MAX_THREADS = 16384, MAX_CHAIN = 16 };

static long number(const char *name, long preset)
{
	const char *text = param(name, NULL);

	return text ? strtol(text, NULL, 0) : preset;
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	if (clock_gettime(clock, &ts))
		die("clock_gettime: %s", strerror(errno));
	return (uint64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* Use the CPU for this long, by the thread's own clock. */
static void burn_us(long us)
{
	uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + us * 1000ull;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		;
}

static void sleep_us(long us)
{
	struct timespec ts = { us / 1000000, us % 1000000 * 1000 };

	nanosleep(&ts, NULL);
}

static void set_nice(int nice)
{
	if (setpriority(PRIO_PROCESS, gettid(), nice))
		die("setpriority: %s", strerror(errno));
}

static void pin(int cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity: %s", strerror(errno));
}

static pthread_t start(void *(*body)(void *), void *arg)
{
	pthread_attr_t attr;
	pthread_t thread;
	int err;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	err = pthread_create(&thread, &attr, body, arg);
	if (err)
		die("pthread_create: %s", strerror(err));
	return thread;
}

static volatile bool stop;

/* ---- waits, sorted ---- */

static uint64_t waits[100000];
static int nr_waits;

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void note_wait(uint64_t ns)
{
	if (nr_waits < (int)(sizeof(waits) / sizeof(*waits)))
		waits[nr_waits++] = ns;
}

static void print_waits(void)
{
	uint64_t total = 0;

	qsort(waits, nr_waits, sizeof(*waits), by_size);
	for (int i = 0; i < nr_waits; i++)
		total += waits[i];
	if (!nr_waits)
		die("nobody waited");
	printf("waits=%d mean_us=%lu p50_us=%lu p99_us=%lu max_us=%lu", nr_waits,
	       total / nr_waits / 1000, waits[nr_waits / 2] / 1000,
	       waits[nr_waits * 99 / 100] / 1000, waits[nr_waits - 1] / 1000);
}

/* ---- inversion and chains ---- */

static pthread_mutex_t lock[MAX_CHAIN];
static sem_t go[MAX_CHAIN + 1], work, is_held;
static long hold_us;
static int depth, hog_cpu;

static int kind_of(const char *name)
{
	if (!strcmp(name, "normal"))
		return PTHREAD_MUTEX_NORMAL;
	if (!strcmp(name, "recursive"))
		return PTHREAD_MUTEX_RECURSIVE;
	if (!strcmp(name, "errorcheck"))
		return PTHREAD_MUTEX_ERRORCHECK;
	if (!strcmp(name, "adaptive"))
		return PTHREAD_MUTEX_ADAPTIVE_NP;
	return -1;
}

static void init_lock(pthread_mutex_t *mutex)
{
	const char *kind = param("kind", "normal");
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	if (!strcmp(kind, "robust"))
		pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	else if (!strcmp(kind, "pi"))
		pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	else if (!strcmp(kind, "shared"))
		pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	else if (kind_of(kind) >= 0)
		pthread_mutexattr_settype(&attr, kind_of(kind));
	else
		die("no mutex is of the kind '%s'", kind);
	pthread_mutex_init(mutex, &attr);
}

static void *hog(void *arg)
{
	pin(hog_cpu);
	set_nice(*(int *)arg);
	while (!stop)
		;
	return NULL;
}

static void wait_for(sem_t *sem)
{
	while (sem_wait(sem))
		;
}

/*
 * The first holds lock 0 and works; each further one holds its own and waits for
 * the one before. All are of the lowest priority.
 */
static void *holder(void *arg)
{
	long i = (long)arg;

	set_nice(19);
	for (;;) {
		wait_for(&go[i]);
		if (stop)
			return NULL;
		pthread_mutex_lock(&lock[i]);
		sem_post(&go[i + 1]);
		if (i == 0) {
			wait_for(&work);
			burn_us(hold_us);
		} else {
			pthread_mutex_lock(&lock[i - 1]);
			pthread_mutex_unlock(&lock[i - 1]);
		}
		pthread_mutex_unlock(&lock[i]);
	}
}

/* One of the highest priority waits for the last lock, while hogs are busy. */
static void invert(void)
{
	int hogs = number("hogs", 4), zero = 0;
	long n = number("n", 100);
	pthread_t thread[MAX_CHAIN];

	hold_us = number("hold-us", 2000);
	hog_cpu = number("cpu", -1);
	set_nice(-20);
	for (long i = 0; i < depth; i++) {
		init_lock(&lock[i]);
		thread[i] = start(holder, (void *)i);
	}
	for (int i = 0; i < hogs; i++)
		start(hog, &zero);
	for (long i = 0; i < n; i++) {
		uint64_t begin;

		sem_post(&go[0]);
		wait_for(&go[depth]);
		sem_post(&work);
		begin = clock_ns(CLOCK_MONOTONIC);
		pthread_mutex_lock(&lock[depth - 1]);
		note_wait(clock_ns(CLOCK_MONOTONIC) - begin);
		pthread_mutex_unlock(&lock[depth - 1]);
		sleep_us(1000);
	}
	stop = true;
	for (int i = 0; i < depth; i++)
		sem_post(&go[i]);
	for (int i = 0; i < depth; i++)
		pthread_join(thread[i], NULL);
	print_waits();
	printf("\n");
}

static void cmd_inversion(void)
{
	depth = 1;
	invert();
}

static void cmd_chain(void)
{
	depth = number("depth", 4);
	if (depth < 1 || depth > MAX_CHAIN)
		die("depth is not in 1..%d", MAX_CHAIN);
	invert();
}

/* ---- bad days ---- */

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

/* Waits on words of which each is made up, or a real TID of this process or another. */
static void *liar(void *arg)
{
	static const uint32_t kinds[] = { 0, 1, 2, 3, 16, 128, 129, 144, 256, 512 };
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + number("ms", 3000) * 1000000ull;
	struct timespec short_while = { 0, 200000 };
	unsigned int seed = 1 + (long)arg;
	struct words w;
	long *told = malloc(sizeof(*told));

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
		++*told;
	}
	return told;
}

static void cmd_lie(void)
{
	int threads = number("threads", 4);
	pthread_t thread[MAX_CHAIN];
	long told = 0;

	if (threads > MAX_CHAIN)
		die("at most %d threads", MAX_CHAIN);
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

/* ---- what waits and holds nothing ---- */

static sem_t ping, pong;
static pthread_barrier_t barrier;

static void *echo(void *arg)
{
	for (long i = 0; i < (long)arg; i++) {
		wait_for(&ping);
		sem_post(&pong);
	}
	return NULL;
}

static void cmd_semaphore(void)
{
	long n = number("n", 200);
	pthread_t other;

	sem_init(&ping, 0, 0);
	sem_init(&pong, 0, 0);
	other = start(echo, (void *)n);
	for (long i = 0; i < n; i++) {
		sem_post(&ping);
		wait_for(&pong);
	}
	pthread_join(other, NULL);
	printf("rounds=%ld\n", n);
}

static void *meets(void *arg)
{
	for (long i = 0; i < (long)arg; i++)
		pthread_barrier_wait(&barrier);
	return NULL;
}

static void cmd_barrier(void)
{
	long n = number("n", 200);
	pthread_t other;

	pthread_barrier_init(&barrier, NULL, 2);
	other = start(meets, (void *)n);
	meets((void *)n);
	pthread_join(other, NULL);
	printf("rounds=%ld\n", n);
}

/* A mutex of its own, which nobody else wants: the other changes a number without it. */
struct side {
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	volatile long round;
};

static struct side sides[2] = {
	{ PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0 },
	{ PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0 },
};

static void tell(struct side *side, long round)
{
	side->round = round;
	pthread_cond_signal(&side->cond);
}

/* Woken late or not at all, since the other holds no mutex: so it looks again. */
static void hear(struct side *side, long round)
{
	struct timespec until;

	pthread_mutex_lock(&side->mutex);
	while (side->round < round) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 2000000;
		if (until.tv_nsec >= 1000000000) {
			until.tv_sec++;
			until.tv_nsec -= 1000000000;
		}
		pthread_cond_timedwait(&side->cond, &side->mutex, &until);
	}
	pthread_mutex_unlock(&side->mutex);
}

static void *listener(void *arg)
{
	for (long i = 1; i <= (long)arg; i++) {
		hear(&sides[0], i);
		tell(&sides[1], i);
	}
	return NULL;
}

static void cmd_condvar(void)
{
	long n = number("n", 200);
	pthread_t other = start(listener, (void *)n);

	for (long i = 1; i <= n; i++) {
		tell(&sides[0], i);
		hear(&sides[1], i);
	}
	pthread_join(other, NULL);
	printf("rounds=%ld\n", n);
}

/* ---- big and little CPUs ---- */

static void *small_holder(void *arg)
{
	int *ended_on = arg;
	cpu_set_t all;

	if (sched_getaffinity(0, sizeof(all), &all))
		die("sched_getaffinity: %s", strerror(errno));
	for (;;) {
		wait_for(&go[0]);
		if (stop)
			return NULL;
		pin(number("from", 1));
		sched_setaffinity(0, sizeof(all), &all);
		pthread_mutex_lock(&lock[0]);
		sem_post(&is_held);
		burn_us(hold_us);
		*ended_on = sched_getcpu();
		pthread_mutex_unlock(&lock[0]);
	}
}

/* Where a hold ends that began on one CPU and is waited for from another. */
static void cmd_big(void)
{
	long n = number("n", 20), moved = 0;
	int cpu = number("cpu", 0), ended_on = -1;
	pthread_t it;

	hold_us = number("hold-us", 20000);
	init_lock(&lock[0]);
	it = start(small_holder, &ended_on);
	pin(cpu);
	for (long i = 0; i < n; i++) {
		sem_post(&go[0]);
		wait_for(&is_held);
		pthread_mutex_lock(&lock[0]);
		moved += ended_on == cpu;
		pthread_mutex_unlock(&lock[0]);
	}
	stop = true;
	sem_post(&go[0]);
	pthread_join(it, NULL);
	printf("holds=%ld moved=%ld\n", n, moved);
}

static const struct {
	const char *name;
	void (*run)(void);
} commands[] = {
	{ "inversion", cmd_inversion },
	{ "chain", cmd_chain },
	{ "lie", cmd_lie },
	{ "killed-waiter", cmd_killed_waiter },
	{ "killed-holder", cmd_killed_holder },
	{ "claim", cmd_claim },
	{ "many", cmd_many },
	{ "condvar", cmd_condvar },
	{ "semaphore", cmd_semaphore },
	{ "barrier", cmd_barrier },
	{ "big", cmd_big },
};

int main(int argc, char **argv)
{
	sem_init(&is_held, 0, 0);
	if (argc < 2)
		die("usage: locks COMMAND [name=value ...]");
	params = argv + 2;
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (!strcmp(argv[1], commands[i].name)) {
			commands[i].run();
			return 0;
		}
	die("no load is called '%s'", argv[1]);
}
