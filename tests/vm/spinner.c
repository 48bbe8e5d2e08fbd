// SPDX-License-Identifier: GPL-2.0-only
/*
 * Loops that wait for memory to change, and loops that work and may look like
 * them: what the scheduler must distinguish. It judges nothing and prints one
 * line of name=value pairs.
 *
 *   spinner list				kinds, one a line: spin NAME or work NAME
 *   spinner run kind=NAME ms=1000		one thread in this loop
 *   spinner share kind=NAME ms=2000 nice=-20 cpu=0 peer-cpu=0
 *	one thread in this loop with this nice value on one CPU, and one with nice
 *	0 that computes, there too or first on another one: CPU time of each
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "params.h"

/* What the loops wait for, in vain: nobody changes it. */
static volatile uint32_t flag;
static _Atomic uint32_t lock_word = 1;
static struct {
	_Atomic uint32_t next, owner;
} ticket = { 1, 0 };
static pthread_spinlock_t spinlock;
static volatile bool stop;

enum { BUFFER = 1 << 16 };
static uint8_t buffer[BUFFER], other[BUFFER];
static volatile uint64_t sink;
static _Atomic uint64_t counter;

static void cpu_relax(void)
{
#if defined(__x86_64__)
	__asm__ volatile("pause" ::: "memory");
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#endif
}

static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

/* ---- loops that wait ---- */

static void spin_load(void)
{
	while (!flag)
		;
}

static void spin_pause(void)
{
	while (!flag)
		cpu_relax();
}

static void spin_cmpxchg(void)
{
	uint32_t free = 0;

	while (!atomic_compare_exchange_weak(&lock_word, &free, 1))
		free = 0;
}

static void spin_exchange(void)
{
	while (atomic_exchange(&lock_word, 1))
		;
}

static void spin_ticket(void)
{
	uint32_t mine = atomic_fetch_add(&ticket.next, 1);

	while (atomic_load_explicit(&ticket.owner, memory_order_acquire) != mine)
		;
}

static void spin_ticket_pause(void)
{
	uint32_t mine = atomic_fetch_add(&ticket.next, 1);

	while (atomic_load_explicit(&ticket.owner, memory_order_acquire) != mine)
		cpu_relax();
}

static void spin_backoff(void)
{
	uint32_t delay = 1;

	while (atomic_exchange(&lock_word, 1)) {
		for (uint32_t i = 0; i < delay; i++)
			cpu_relax();
		if (delay < 1024)
			delay *= 2;
	}
}

static void spin_pthread(void)
{
	pthread_spin_lock(&spinlock);
}

static void spin_yield(void)
{
	while (!flag)
		sched_yield();
}

/* As adaptive locks do: spin for a while, then yield. */
static void spin_adaptive(void)
{
	while (!flag) {
		for (int i = 0; i < 100 && !flag; i++)
			cpu_relax();
		sched_yield();
	}
}

/* ---- loops that work ---- */

static void work_hash(void)
{
	uint64_t h = 0xcbf29ce484222325;

	while (!stop) {
		for (int i = 0; i < 4096; i++)
			h = (h ^ buffer[i]) * 0x100000001b3;
		sink = h;
	}
}

static void work_matrix(void)
{
	enum { N = 48 };
	static double a[N][N], b[N][N], c[N][N];

	while (!stop)
		for (int i = 0; i < N; i++)
			for (int j = 0; j < N; j++) {
				double sum = 0;

				for (int k = 0; k < N; k++)
					sum += a[i][k] * b[k][j];
				c[i][j] = sum;
			}
	sink = c[1][1];
}

/* The search for the longest match, as compressors of the LZ family do it. */
static void work_lz(void)
{
	while (!stop)
		for (int at = 4096; at < BUFFER - 258 && !stop; at += 17) {
			int best = 0;

			for (int back = 1; back < 4096; back++) {
				int n = 0;

				while (n < 258 && buffer[at + n] == buffer[at - back + n])
					n++;
				if (n > best)
					best = n;
			}
			sink = best;
		}
}

/* An interpreter's loop: its state is in memory, its program is short. */
static void work_dispatch(void)
{
	static const uint8_t program[] = { 0, 1, 2, 1, 0, 3, 2, 1, 1, 4 };
	static volatile struct {
		uint64_t acc, pc, x;
	} vm = { 1, 0, 3 };

	while (!stop)
		switch (program[vm.pc]) {
		case 0:
			vm.acc += vm.x, vm.pc++;
			break;
		case 1:
			vm.acc ^= vm.acc << 3, vm.pc++;
			break;
		case 2:
			vm.acc *= 5, vm.pc++;
			break;
		case 3:
			vm.x++, vm.pc++;
			break;
		case 4:
			vm.pc = 0;
			break;
		}
}

static void work_memcpy(void)
{
	while (!stop) {
		memcpy(other, buffer, BUFFER);
		__asm__ volatile("" ::: "memory");
	}
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void work_sort(void)
{
	enum { N = 4096 };
	static uint32_t values[N];
	uint64_t seed = 88172645463325252;

	while (!stop) {
		for (int i = 0; i < N; i++)
			values[i] = next_random(&seed);
		qsort(values, N, sizeof(*values), by_value);
	}
}

static void work_xadd(void)
{
	while (!stop)
		sink = atomic_fetch_add(&counter, 3);
}

/* The same, but no register ever changes. */
static void work_add(void)
{
	while (!stop)
		atomic_fetch_add(&counter, 1);
}

static void work_cas(void)
{
	while (!stop) {
		uint64_t old = atomic_load(&counter);

		while (!atomic_compare_exchange_weak(&counter, &old, old * 5 + 1))
			;
	}
}

/* A loop with PAUSE in it that hardly ever gets there. */
static void work_rare_pause(void)
{
	uint64_t x = 1;

	while (!stop) {
		x = x * 6364136223846793005 + 1442695040888963407;
		if (!(x >> 48))
			cpu_relax();
	}
	sink = x;
}

/* A ring of few elements: the registers have few values. */
static void work_chase(void)
{
	static uint16_t ring[64];
	uint32_t at = 0;

	for (int i = 0; i < 64; i++)
		ring[i] = (i * 29 + 7) % 64;
	while (!stop) {
		at = ring[at];
		other[at]++;
	}
	sink = at;
}

static void work_sieve(void)
{
	while (!stop) {
		memset(other, 1, BUFFER);
		for (int i = 2; i * i < BUFFER; i++)
			if (other[i])
				for (int j = i * i; j < BUFFER; j += i)
					other[j] = 0;
	}
}

static void work_scan(void)
{
	while (!stop)
		sink = strlen((const char *)other + 64 * (sink & 3));
}

static void work_crc(void)
{
	uint32_t crc = ~0u;

	while (!stop)
		for (int i = 0; i < 256; i++) {
			crc ^= buffer[i];
			for (int bit = 0; bit < 8; bit++)
				crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
		}
	sink = crc;
}

static const struct kind {
	const char *name;
	bool spins;
	void (*run)(void);
} kinds[] = {
	{ "load", true, spin_load },       { "pause", true, spin_pause },
	{ "cmpxchg", true, spin_cmpxchg }, { "exchange", true, spin_exchange },
	{ "ticket", true, spin_ticket },   { "ticket-pause", true, spin_ticket_pause },
	{ "backoff", true, spin_backoff }, { "pthread", true, spin_pthread },
	{ "yield", true, spin_yield },     { "adaptive", true, spin_adaptive },
	{ "hash", false, work_hash },      { "matrix", false, work_matrix },
	{ "lz", false, work_lz },          { "dispatch", false, work_dispatch },
	{ "memcpy", false, work_memcpy },  { "sort", false, work_sort },
	{ "xadd", false, work_xadd },      { "add", false, work_add },
	{ "cas", false, work_cas },        { "rare-pause", false, work_rare_pause },
	{ "chase", false, work_chase },    { "sieve", false, work_sieve },
	{ "scan", false, work_scan },      { "crc", false, work_crc },
};

enum { NR_KINDS = sizeof(kinds) / sizeof(*kinds) };

static const struct kind *find_kind(const char *name)
{
	for (int i = 0; i < NR_KINDS; i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	die("there is no kind %s", name);
}

static long number(const char *name, long preset)
{
	const char *text = param(name, NULL);

	return text ? strtol(text, NULL, 0) : preset;
}

struct thread {
	const struct kind *kind;
	int nice;
	int first_cpu; /* -1: anywhere */
	cpu_set_t cpus;
	pthread_t id;
};

static void set_affinity(const cpu_set_t *set)
{
	if (sched_setaffinity(0, sizeof(*set), set))
		die("sched_setaffinity: %s", strerror(errno));
}

static void *run_thread(void *arg)
{
	struct thread *t = arg;

	/* Of the calling thread alone, on Linux. */
	if (t->nice && setpriority(PRIO_PROCESS, gettid(), t->nice))
		die("setpriority: %s", strerror(errno));
	if (t->first_cpu >= 0) {
		cpu_set_t first;

		CPU_ZERO(&first);
		CPU_SET(t->first_cpu, &first);
		set_affinity(&first);
		set_affinity(&t->cpus);
	}
	t->kind->run();
	return NULL;
}

static void start(struct thread *t)
{
	if (pthread_create(&t->id, NULL, run_thread, t))
		die("pthread_create failed");
}

static uint64_t used_us(struct thread *t)
{
	struct timespec ts;
	clockid_t clock;

	if (pthread_getcpuclockid(t->id, &clock) || clock_gettime(clock, &ts))
		die("no clock of the thread");
	return (uint64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void sleep_ms(long ms)
{
	struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&ts, NULL);
}

static void run(void)
{
	struct thread t = { .kind = find_kind(param("kind", "pause")), .first_cpu = -1 };

	start(&t);
	sleep_ms(number("ms", 1000));
	printf("us=%lu\n", (unsigned long)used_us(&t));
}

static void share(void)
{
	struct thread t = { .kind = find_kind(param("kind", "pause")),
			    .nice = number("nice", -20) };
	struct thread peer = { .kind = find_kind(param("peer", "crc")) };

	t.first_cpu = number("cpu", 0);
	CPU_SET(t.first_cpu, &t.cpus);
	peer.first_cpu = number("peer-cpu", t.first_cpu);
	CPU_SET(t.first_cpu, &peer.cpus);
	CPU_SET(peer.first_cpu, &peer.cpus);
	start(&t);
	start(&peer);
	sleep_ms(number("ms", 2000));
	printf("us=%lu peer=%lu\n", (unsigned long)used_us(&t), (unsigned long)used_us(&peer));
}

int main(int argc, char **argv)
{
	uint64_t seed = 42;

	if (argc < 2)
		die("run, share or list?");
	params = argv + 2;
	for (int i = 0; i < BUFFER; i++)
		buffer[i] = next_random(&seed) & 3;
	memset(other, 1, BUFFER - 1);
	pthread_spin_init(&spinlock, PTHREAD_PROCESS_PRIVATE);
	pthread_spin_lock(&spinlock);

	if (!strcmp(argv[1], "list"))
		for (int i = 0; i < NR_KINDS; i++)
			printf("%s %s\n", kinds[i].spins ? "spin" : "work", kinds[i].name);
	else if (!strcmp(argv[1], "run"))
		run();
	else if (!strcmp(argv[1], "share"))
		share();
	else
		die("run, share or list, not %s", argv[1]);
	fflush(stdout);
	/* The threads never end. */
	_exit(0);
}
