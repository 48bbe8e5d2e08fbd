// SPDX-License-Identifier: GPL-2.0-only
/*
 * Locks on bad days, for the VM tests: threads that lie about them, hold them
 * for ever, or die. Each command prints what it saw and judges nothing.
 *
 *   badlocks lie ms=3000 threads=4
 *   badlocks killed-waiter n=20 | killed-holder n=20
 *   badlocks claim ms=2000 hogs=2 cpu=0
 *   badlocks many n=1000
 *   badlocks storm n=10000
 *   badlocks crowd n=2048 uid=1001
 */
#include "threads.h"
#include <stdatomic.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "intf.h"
#include "hint.h"
#include "share.h"

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
	long *lies = malloc(sizeof(*lies));
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	*lies = 0;
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
		++*lies;
	}
	munmap(page, 4096);
	return lies;
}

static void cmd_lie(void)
{
	int threads = number("threads", 4);
	pthread_t thread[MAX_LIARS];
	long lies = 0;

	if (threads > MAX_LIARS)
		die("at most %d threads", MAX_LIARS);
	for (long i = 0; i < threads; i++)
		thread[i] = start(liar, (void *)i);
	for (int i = 0; i < threads; i++) {
		void *count;

		pthread_join(thread[i], &count);
		lies += *(long *)count;
	}
	printf("lies=%ld\n", lies);
}

/* A mutex in memory that processes share; what happens to those that use it. */
static struct shared {
	pthread_mutex_t mutex;
	sem_t held;
} *shared;

static void init_shared(bool robust)
{
	pthread_mutexattr_t attr;

	shared = share(sizeof(*shared));
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

/*
 * Storms of waiters: processes of several threads that wait for a lock, and of which the
 * wait ends in every way that there is. In the end nobody waits for anything.
 */
enum { STORM_THREADS = 8 };

static struct {
	pthread_mutex_t mutex;
	struct words cond, other;
	_Atomic int tid[STORM_THREADS];
} storm = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static void become_fifo(int tid)
{
	struct sched_param fifo = { .sched_priority = 1 };

	if (sched_setscheduler(tid, SCHED_FIFO, &fifo))
		die("sched_setscheduler: %s", strerror(errno));
}

/* Half of them may run on one CPU only, and so are woken without being asked where. */
static void storm_begins(long i)
{
	if (i % 2)
		pin(i % sysconf(_SC_NPROCESSORS_ONLN));
	storm.tid[i] = gettid();
}

static void *storm_waits(void *arg)
{
	storm_begins((long)arg);
	if (!pthread_mutex_lock(&storm.mutex))
		pthread_mutex_unlock(&storm.mutex);
	return NULL;
}

static void *storm_gives_up(void *arg)
{
	struct timespec until;

	storm_begins((long)arg);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 5000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	pthread_mutex_timedlock(&storm.mutex, &until);
	return NULL;
}

static void *storm_is_moved(void *arg)
{
	storm_begins((long)arg);
	futex(&storm.cond, FUTEX_WAIT_PRIVATE, 2, NULL);
	return NULL;
}

/* Its stack goes as it exits, and all want the lock of the address space. */
static void *storm_unmaps(void *arg)
{
	storm_begins((long)arg);
	sleep_us(2000);
	return NULL;
}

static void storm_join(pthread_t *thread)
{
	for (int i = 0; i < STORM_THREADS; i++)
		pthread_join(thread[i], NULL);
}

static void storm_begin(pthread_t *thread, void *(*body)(void *))
{
	for (long i = 0; i < STORM_THREADS; i++)
		thread[i] = start(body, (void *)i);
	for (int i = 0; i < STORM_THREADS; i++) {
		while (!storm.tid[i])
			sched_yield();
		if (body != storm_unmaps && body != storm_gives_up)
			await_sleep(storm.tid[i]);
	}
}

static void storm_by_unmap(pthread_t *thread)
{
	size_t size = 4 << 20;
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	uint64_t end;

	if (memory == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	madvise(memory, size, MADV_NOHUGEPAGE);
	storm_begin(thread, storm_unmaps);
	end = clock_ns(CLOCK_MONOTONIC) + 8000000;
	while (clock_ns(CLOCK_MONOTONIC) < end) {
		mprotect(memory, size, PROT_READ);
		mprotect(memory, size, PROT_READ | PROT_WRITE);
	}
}

static void storm_by_requeue(pthread_t *thread)
{
	storm.cond = (struct words){ .lock = 2, .owner = gettid(), .nusers = 1 };
	storm.other = storm.cond;
	storm_begin(thread, storm_is_moved);
	if (syscall(SYS_futex, &storm.cond, FUTEX_CMP_REQUEUE_PRIVATE, 1, STORM_THREADS,
		    &storm.other, 2) < 0)
		die("futex: %s", strerror(errno));
	futex(&storm.other, FUTEX_WAKE_PRIVATE, STORM_THREADS, NULL);
	storm_join(thread);
}

static int storm_how;

static void storm_once(void)
{
	pthread_t thread[STORM_THREADS];

	pthread_mutex_lock(&storm.mutex);
	switch (storm_how) {
	case 0: /* the process exits */
		storm_begin(thread, storm_waits);
		_exit(0);
	case 1: /* another program takes its place */
		storm_begin(thread, storm_waits);
		execl("/proc/self/exe", "badlocks", "nothing", NULL);
		die("exec: %s", strerror(errno));
	case 2: /* it is killed */
		storm_begin(thread, storm_waits);
		kill(getpid(), SIGKILL);
		break;
	case 3: /* the time of its waiters is up */
		storm_begin(thread, storm_gives_up);
		storm_join(thread);
		break;
	case 4: /* they are moved to another word */
		storm_by_requeue(thread);
		break;
	case 5: /* they are of another class when the lock is free */
		storm_begin(thread, storm_waits);
		for (int i = 0; i < STORM_THREADS; i++)
			become_fifo(storm.tid[i]);
		pthread_mutex_unlock(&storm.mutex);
		storm_join(thread);
		break;
	case 6: /* they exit, and wait for a lock of the kernel meanwhile */
		storm_by_unmap(thread);
		break;
	default: /* the lock is given from one to the next */
		storm_begin(thread, storm_waits);
		pthread_mutex_unlock(&storm.mutex);
		storm_join(thread);
	}
}

static void cmd_storm(void)
{
	long n = number("n", 10000), waiters = 0;

	for (; waiters < n; waiters += STORM_THREADS) {
		pid_t pid;

		storm_how = waiters / STORM_THREADS % 8;
		pid = child(storm_once);
		if (waitpid(pid, NULL, 0) != pid)
			die("waitpid: %s", strerror(errno));
	}
	printf("waiters=%ld\n", waiters);
}

/*
 * Threads of one user that sleep for ever, each in a word of its own that names another
 * as the holder of a mutex.
 */
static volatile int32_t named;

static void *crowd_named(void *arg)
{
	named = gettid();
	pause();
	return arg;
}

static void *crowd_waits(void *arg)
{
	struct words w = { .lock = 2, .owner = named, .nusers = 1 };

	sem_post(&is_held);
	futex(&w, FUTEX_WAIT_PRIVATE, 2, NULL);
	return arg;
}

static void crowd(void)
{
	struct rlimit any = { RLIM_INFINITY, RLIM_INFINITY };
	long n = number("n", 2048) / 4;

	/* As root: what a user may have is not what this is about. */
	if (setrlimit(RLIMIT_NPROC, &any))
		die("setrlimit: %s", strerror(errno));
	if (setresuid(number("uid", 1001), number("uid", 1001), number("uid", 1001)))
		die("setresuid: %s", strerror(errno));
	/* A change of user has taken that back. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	start(crowd_named, NULL);
	while (!named)
		sched_yield();
	for (long i = 0; i < n; i++) {
		start(crowd_waits, NULL);
		wait_for(&is_held);
	}
	sem_post(&shared->held);
	pause();
}

/* Stays until it is killed. */
static void cmd_crowd(void)
{
	init_shared(false);
	for (int i = 0; i < 4; i++)
		child(crowd);
	for (int i = 0; i < 4; i++)
		wait_for(&shared->held);
	printf("waiters=%ld\n", number("n", 2048));
	fflush(stdout);
	pause();
}

static void cmd_nothing(void)
{
}

static const struct command commands[] = {
	{ "lie", cmd_lie },
	{ "killed-waiter", cmd_killed_waiter },
	{ "killed-holder", cmd_killed_holder },
	{ "claim", cmd_claim },
	{ "many", cmd_many },
	{ "storm", cmd_storm },
	{ "crowd", cmd_crowd },
	{ "nothing", cmd_nothing },
};

int main(int argc, char **argv)
{
	sem_init(&is_held, 0, 0);
	return run_command(commands, sizeof(commands) / sizeof(*commands), argc, argv);
}
