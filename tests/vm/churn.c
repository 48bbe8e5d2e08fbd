// SPDX-License-Identifier: GPL-2.0-only
/*
 * Does to a scheduler what any user, and root, may do to it, at random and as fast as
 * possible: changes of affinity, class and nice value of any of its own tasks, locks with
 * owners, forks, execs, exits, threads, SIGKILL, cpusets, and CPUs that go and come.
 *
 *   churn [seconds=10] [seed=N] [tasks=16] [hotplug=1] [user=1] [deadline=1]
 *
 * The seed is said at the start, so that a run can be repeated: each thread then makes the
 * same choices, though not at the same moments. Without privileges (user=1 gives them up)
 * what needs them is left out. At the end one line of name=value pairs: how many changes
 * of each kind, how many of them the kernel refused, as it may, and gap_ms, the longest time
 * in which a thread did not come to its next step. Fails if one does not for STALL_S, if a
 * call fails in a way that it must not, or if a process does not end.
 *
 * Deadline tasks, which only root can make, are among them with deadline=1 only, for the
 * kernel loses some by itself: on Linux 6.18.15 one was found runnable, in no queue,
 * throttled (dl_throttled 1), and its timer not armed (dl_timer.state 0). It was in an RCU
 * read-side section, so that everything which waits for RCU hung from then on, unloading a
 * scheduler included. And with CPUs that go, 7.3.4 was seen to divide by the number of CPUs
 * left to one that had slept (inactive_task_timer), which was 0.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "attributes.h"
#include "cpusets.h"
#include "share.h"
#include "timing.h"

enum {
	THREADS = 4, /* of a process */
	MAX_PROCS = 256,
	CHILDREN = 3, /* that a thread has at a time */
	STALL_S = 20,
	NOBODY = 65534,
};

enum kind {
	DID_AFFINITY,
	DID_MIGRATE,
	DID_CLASS,
	DID_NICE,
	DID_YIELD,
	DID_LOCK,
	DID_SLEEP,
	DID_BURN,
	DID_FORK,
	DID_EXEC,
	DID_THREAD,
	DID_KILL,
	DID_CPUSET,
	DID_HOTPLUG,
	NR_KINDS
};

static const char *const kind_name[NR_KINDS] = {
	"affinity", "migrate", "class", "nice",   "yield", "lock",   "sleep",
	"burn",     "fork",    "exec",  "thread", "kill",  "cpuset", "hotplug",
};

/* One for each thread. */
struct slot {
	volatile pid_t tid; /* 0: nobody's */
	volatile uint64_t beat;
};

static struct {
	volatile bool stop;
	uint64_t count[NR_KINDS];
	uint64_t refused;
	struct slot slot[MAX_PROCS * THREADS];
} *shared;

static long nr_procs;
static int nr_cpus;
static bool is_root, with_hotplug, with_deadline;
static uint64_t seed;
static __thread uint64_t state;

static void did(enum kind kind)
{
	__atomic_fetch_add(&shared->count[kind], 1, __ATOMIC_RELAXED);
}

/* splitmix64 */
static uint64_t draw(void)
{
	uint64_t z = state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static uint64_t below(uint64_t n)
{
	return draw() % n;
}

/* The kernel may say no: the target is gone, has no CPU left, or is a deadline task. */
static void may_refuse(long result, const char *what)
{
	if (result >= 0)
		return;
	if (errno != ESRCH && errno != EPERM && errno != EACCES && errno != EBUSY &&
	    errno != EINVAL && errno != EAGAIN && errno != ENOSPC)
		die("%s: %s", what, strerror(errno));
	__atomic_fetch_add(&shared->refused, 1, __ATOMIC_RELAXED);
}

/* Any thread of ours, or who asks. */
static pid_t someone(void)
{
	return shared->slot[below(nr_procs * THREADS)].tid;
}

static void some_cpus(cpu_set_t *set)
{
	uint64_t bits = draw() | draw();

	CPU_ZERO(set);
	for (int cpu = 0; cpu < nr_cpus; cpu++)
		if (bits >> cpu % 64 & 1)
			CPU_SET(cpu, set);
	CPU_SET(below(nr_cpus), set);
}

static void change_affinity(void)
{
	cpu_set_t set;

	some_cpus(&set);
	did(DID_AFFINITY);
	may_refuse(sched_setaffinity(someone(), sizeof(set), &set), "sched_setaffinity");
}

/* To one CPU, and free again. */
static void migrate(void)
{
	pid_t tid = someone();
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(below(nr_cpus), &set);
	did(DID_MIGRATE);
	may_refuse(sched_setaffinity(tid, sizeof(set), &set), "sched_setaffinity");
	for (int cpu = 0; cpu < nr_cpus; cpu++)
		CPU_SET(cpu, &set);
	may_refuse(sched_setaffinity(tid, sizeof(set), &set), "sched_setaffinity");
}

static void set_class(pid_t tid, int policy)
{
	struct attributes attr = { .size = sizeof(attr), .policy = policy };

	if (policy == SCHED_FIFO || policy == SCHED_RR)
		attr.priority = 1 + below(50);
	if (policy == SCHED_DEADLINE) {
		attr.runtime = 1000000;
		attr.deadline = attr.period = 20000000;
	}
	if (attr.priority || attr.period)
		attr.flags = FLAG_RESET_ON_FORK;
	did(DID_CLASS);
	may_refuse(syscall(SYS_sched_setattr, tid, &attr, 0), "sched_setattr");
}

static void change_class(void)
{
	static const int policy[] = { SCHED_OTHER, SCHED_BATCH, SCHED_IDLE,    SCHED_EXT,
				      SCHED_FIFO,  SCHED_RR,    SCHED_DEADLINE };

	set_class(someone(), policy[below(!is_root ? 4 : with_deadline ? 7 : 6)]);
}

static void change_nice(void)
{
	did(DID_NICE);
	may_refuse(setpriority(PRIO_PROCESS, someone(),
			       is_root ? (int)below(40) - 20 : (int)below(20)),
		   "setpriority");
}

static void yield(void)
{
	for (int n = 1 + below(10); n; n--)
		sched_yield();
	did(DID_YIELD);
}

static void rest(void)
{
	sleep_us(below(1000));
	did(DID_SLEEP);
}

static void burn(void)
{
	burn_us(below(500));
	did(DID_BURN);
}

/* Of a process; the second one has priority inheritance. */
static pthread_mutex_t mutex[3] = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
				    PTHREAD_MUTEX_INITIALIZER };

static void make_mutexes(void)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	if (pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT) ||
	    pthread_mutex_init(&mutex[1], &attr))
		die("no mutex with priority inheritance");
}

/* What a holder does makes waiters of the others. */
static void lock(void)
{
	int outer = below(3), inner = outer + 1 + below(3);
	struct timespec until;

	did(DID_LOCK);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 2000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	if (below(4))
		pthread_mutex_lock(&mutex[outer]);
	else if (pthread_mutex_timedlock(&mutex[outer], &until))
		return;
	if (inner < 3)
		pthread_mutex_lock(&mutex[inner]);
	switch (below(5)) {
	case 0:
		rest();
		break;
	case 1:
		change_affinity();
		break;
	case 2:
		yield();
		break;
	default:
		burn();
	}
	if (inner < 3)
		pthread_mutex_unlock(&mutex[inner]);
	pthread_mutex_unlock(&mutex[outer]);
}

static __thread pid_t child[CHILDREN];

static void kill_child(void)
{
	int i = below(CHILDREN), status;

	if (!child[i])
		return;
	did(DID_KILL);
	if (kill(child[i], SIGKILL) || waitpid(child[i], &status, 0) != child[i])
		die("kill or waitpid of %d: %s", child[i], strerror(errno));
	if (WIFEXITED(status) && WEXITSTATUS(status))
		die("child %d ended with status 0x%x", child[i], status);
	child[i] = 0;
}

static void make_child(void)
{
	int what = below(8), i = 0;
	long us = below(1000);
	pid_t parent = getpid();

	while (i < CHILDREN && child[i])
		i++;
	if (i == CHILDREN) {
		kill_child();
		return;
	}
	child[i] = fork();
	if (child[i] < 0) {
		may_refuse(child[i], "fork");
		child[i] = 0;
		return;
	}
	if (child[i]) {
		did(what ? DID_FORK : DID_EXEC);
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* Killed before that: nobody would ever end this one. */
	if (getppid() != parent)
		_exit(0);
	if (what == 0)
		execl("/proc/self/exe", "churn", "leaf", NULL);
	else if (what == 1)
		for (;;)
			pause();
	else if (what < 5)
		burn_us(us);
	_exit(what == 0);
}

static void *short_life(void *arg)
{
	state = *(uint64_t *)arg;
	lock();
	return NULL;
}

static void make_thread(void)
{
	uint64_t begin = draw();
	pthread_t thread;
	int err = pthread_create(&thread, NULL, short_life, &begin);

	/* A deadline task has no children. */
	if (err) {
		errno = err;
		may_refuse(-1, "pthread_create");
		return;
	}
	did(DID_THREAD);
	pthread_join(thread, NULL);
}

static const struct {
	void (*step)(void);
	unsigned int weight;
} steps[] = {
	{ change_affinity, 20 }, { migrate, 10 },    { change_class, 12 }, { change_nice, 8 },
	{ yield, 10 },           { lock, 30 },       { rest, 15 },         { burn, 10 },
	{ make_child, 4 },       { make_thread, 4 }, { kill_child, 2 },
};

static void step(void)
{
	int left = 0;

	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
		left += steps[i].weight;
	left = below(left);
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		left -= steps[i].weight;
		if (left < 0) {
			steps[i].step();
			return;
		}
	}
}

static void *churn(void *arg)
{
	struct slot *slot = arg;

	state = seed + (uint64_t)(slot - shared->slot) * 0x2545f4914f6cdd1d;
	slot->beat = clock_ns(CLOCK_MONOTONIC);
	slot->tid = gettid();
	while (!shared->stop) {
		slot->beat = clock_ns(CLOCK_MONOTONIC);
		/* Nobody keeps a real-time class for long. */
		if (!below(6))
			set_class(0, SCHED_OTHER);
		step();
	}
	slot->tid = 0;
	for (int i = 0; i < CHILDREN; i++)
		while (child[i])
			kill_child();
	return NULL;
}

static void process(long number)
{
	struct slot *slot = &shared->slot[number * THREADS];
	pthread_t thread[THREADS];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	make_mutexes();
	for (int i = 1; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, churn, slot + i))
			die("pthread_create failed");
	churn(slot);
	for (int i = 1; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	_exit(0);
}

static pid_t proc[MAX_PROCS];

static void spawn(long number)
{
	proc[number] = fork();
	if (proc[number] < 0)
		die("fork: %s", strerror(errno));
	if (!proc[number])
		process(number);
	/* The next one in this place makes other choices. */
	seed = draw();
}

/* Returns false if there is none, or it has ended, which only stop may bring about. */
static bool kill_process(long number)
{
	int status;

	for (int i = 0; i < THREADS; i++)
		shared->slot[number * THREADS + i].tid = 0;
	did(DID_KILL);
	kill(proc[number], SIGKILL);
	if (waitpid(proc[number], &status, 0) != proc[number])
		die("waitpid: %s", strerror(errno));
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

/* ---- cpusets ---- */

static void change_cpuset(void)
{
	const char *to = below(8) ? group[below(GROUPS)] : hierarchy;
	char text[4096] = "";
	cpu_set_t set;

	did(DID_CPUSET);
	if (below(2)) {
		snprintf(text, sizeof(text), "%d", proc[below(nr_procs)]);
		may_refuse(write_file(to, "cgroup.procs", text) ? 0 : -1, "cgroup.procs");
		return;
	}
	some_cpus(&set);
	for (int cpu = 0; cpu < nr_cpus; cpu++)
		if (CPU_ISSET(cpu, &set))
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%d,", cpu);
	may_refuse(write_file(group[below(GROUPS)], "cpuset.cpus", text) ? 0 : -1, "cpuset.cpus");
}

/* ---- CPUs ---- */

/* The first CPU stays. */
static void change_cpus(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!shared->stop) {
		int cpu = 1 + below(nr_cpus - 1);

		did(DID_HOTPLUG);
		may_refuse(turn(cpu, below(2) ? "1" : "0") ? 0 : -1, "cpu/online");
		sleep_us(below(100000));
	}
	_exit(0);
}

static pid_t main_pid, hotplugger;

static void clean_up(void)
{
	if (getpid() != main_pid)
		return;
	for (long i = 0; i < nr_procs; i++)
		if (proc[i])
			kill(proc[i], SIGKILL);
	if (hotplugger) {
		kill(hotplugger, SIGKILL);
		waitpid(hotplugger, NULL, 0);
		for (int cpu = 1; cpu < nr_cpus; cpu++)
			turn(cpu, "1");
	}
	while (wait(NULL) > 0)
		;
	leave_cpusets();
}

/* ---- the whole ---- */

static uint64_t longest_gap;

static void look_for_gaps(void)
{
	uint64_t now = clock_ns(CLOCK_MONOTONIC);

	for (long i = 0; i < nr_procs * THREADS; i++) {
		const struct slot *slot = &shared->slot[i];
		uint64_t beat = slot->beat;

		if (!slot->tid || beat >= now)
			continue;
		if (now - beat > longest_gap)
			longest_gap = now - beat;
		if (now - beat > STALL_S * 1000000000ull)
			die("thread %d has not come to its next step for %d s", slot->tid, STALL_S);
	}
}

/* True once the process has ended well. */
static bool await_end(pid_t pid, uint64_t until)
{
	pid_t ended;
	int status;

	while (!(ended = waitpid(pid, &status, WNOHANG)) && clock_ns(CLOCK_MONOTONIC) < until)
		sleep_us(10000);
	if (ended == pid && status)
		die("process %d ended with status 0x%x", pid, status);
	return ended == pid;
}

static void drop_privileges(void)
{
	if (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))
		die("cannot become user %d: %s", NOBODY, strerror(errno));
	prctl(PR_SET_DUMPABLE, 1);
}

int main(int argc, char **argv)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC), until, ops = 0;
	bool cpusets = false;

	if (argc == 2 && !strcmp(argv[1], "leaf"))
		return 0;
	params = argv + 1;
	seed = number("seed", begin);
	fprintf(stderr, "churn: seed=%lu\n", seed);
	state = seed;
	until = begin + number("seconds", 10) * 1000000000ull;
	nr_procs = (number("tasks", 16) + THREADS - 1) / THREADS;
	if (nr_procs < 1 || nr_procs > MAX_PROCS)
		die("tasks is 1 to %d", MAX_PROCS * THREADS);
	nr_cpus = sysconf(_SC_NPROCESSORS_CONF);
	if (nr_cpus > CPU_SETSIZE)
		nr_cpus = CPU_SETSIZE;
	shared = share(sizeof(*shared));
	if (number("user", 0))
		drop_privileges();
	is_root = !geteuid();
	main_pid = getpid();
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	atexit(clean_up);
	printf("seed=%lu", seed);
	fflush(stdout);

	if (is_root)
		cpusets = find_cpusets();
	with_hotplug = number("hotplug", 0);
	with_deadline = number("deadline", 0);
	if (with_hotplug) {
		if (!is_root || nr_cpus < 2)
			die("hotplug=1 needs root, and a second CPU");
		hotplugger = fork();
		if (!hotplugger)
			change_cpus();
		seed = draw();
	}
	for (long i = 0; i < nr_procs; i++)
		spawn(i);
	while (clock_ns(CLOCK_MONOTONIC) < until) {
		long i = below(nr_procs);

		sleep_us(below(20000));
		look_for_gaps();
		if (cpusets)
			change_cpuset();
		if (!below(16)) {
			if (!kill_process(i))
				die("process %ld ended before it was killed", i);
			spawn(i);
		}
	}

	shared->stop = true;
	until = clock_ns(CLOCK_MONOTONIC) + STALL_S * 1000000000ull;
	for (long i = 0; i < nr_procs; i++) {
		if (!await_end(proc[i], until))
			die("process %d does not end", proc[i]);
		proc[i] = 0;
	}
	for (int i = 0; i < NR_KINDS; i++)
		ops += shared->count[i];
	printf(" ops=%lu seconds=%lu gap_ms=%lu refused=%lu", ops,
	       (clock_ns(CLOCK_MONOTONIC) - begin) / 1000000000, longest_gap / 1000000,
	       shared->refused);
	for (int i = 0; i < NR_KINDS; i++)
		printf(" %s=%lu", kind_name[i], shared->count[i]);
	printf("\n");
	return 0;
}
