// SPDX-License-Identifier: GPL-2.0-only
/*
 * What tests/vm/soak runs beside stress-ng and the fuzzer. Each command prints lines of
 * name=value pairs and judges nothing.
 *
 *   soak waits low=19
 *	until it is killed: on each CPU a thread of nice 0 that wakes up every 10 ms, and
 *	one of nice @low that burns 20 ms of each 100. On each SIGUSR1, by a thread of the
 *	caller's nice value, the longest time since the last one that one of them could
 *	have run and did not, in ms
 *   soak realtime seconds=10 seed=1
 *	a SCHED_FIFO thread that comes and goes: up to 100 ms of work at a time on a CPU
 *	drawn by lot, a third of its time
 *   soak hammer to=PORT|PATH how=open|half|garbage|request n=1000 seed=1
 *	so many connections to a TCP port of this machine or a socket's path: opened and
 *	left so, with half a request, with bytes drawn by lot, or whole requests whose
 *	answers are not read. Held until all are there, then closed at once
 *   soak names n=100 seed=1
 *	processes whose names are escape sequences, newlines, and bytes drawn by lot
 *   soak kernel
 *	BPF programs and maps in the kernel, and the entries of hash maps
 */
#include "threads.h"
#include <arpa/inet.h>
#include <linux/bpf.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

enum { MSEC = 1000000, MAX_CPUS = 512, MAX_CONNECTIONS = 4096, MAX_KEY = 512 };

static uint64_t now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static unsigned int seed;

static unsigned int draw(unsigned int below)
{
	return rand_r(&seed) % below;
}

/* ---- waits ---- */

static volatile uint64_t longest_wake, longest_low;

/* Two that note at once may lose the shorter, or one that is hardly longer. */
static void note(volatile uint64_t *longest, uint64_t ns)
{
	if (ns > *longest)
		*longest = ns;
}

/*
 * The CPU may be offline: then anywhere, until it is back. Asked again each time, for
 * the kernel widens the affinity of those whose CPU goes, and never takes that back.
 */
static void try_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void *wake(void *arg)
{
	set_nice(0);
	for (;;) {
		uint64_t due = now() + 10 * MSEC, at;

		try_pin((long)arg);
		sleep_us(10000);
		at = now();
		if (at > due)
			note(&longest_wake, at - due);
	}
	return arg;
}

static void *low(void *arg)
{
	set_nice(number("low", 19));
	for (;;) {
		uint64_t end, last = now(), at;

		try_pin((long)arg);
		end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + 20 * MSEC;
		while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end) {
			at = now();
			note(&longest_low, at - last);
			last = at;
		}
		sleep_us(80000);
	}
	return arg;
}

static void waits(void)
{
	long n = sysconf(_SC_NPROCESSORS_CONF);
	sigset_t set;
	int sig;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (long cpu = 0; cpu < n; cpu++) {
		start(wake, (void *)cpu);
		start(low, (void *)cpu);
	}
	while (!sigwait(&set, &sig)) {
		printf("wake_ms=%lu low_ms=%lu\n", longest_wake / MSEC, longest_low / MSEC);
		fflush(stdout);
		longest_wake = longest_low = 0;
	}
}

/* ---- real-time ---- */

static void realtime(void)
{
	uint64_t end = now() + number("seconds", 10) * 1000 * MSEC;
	struct sched_param fifo = { .sched_priority = 10 };
	long n = sysconf(_SC_NPROCESSORS_CONF), came = 0;

	seed = number("seed", 1);
	while (now() < end) {
		long ms = 1 + draw(100);

		try_pin(draw(n));
		if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &fifo))
			die("sched_setscheduler: %s", strerror(errno));
		burn_us(ms * 1000);
		came++;
		/* Now and then it becomes an ordinary one in between. */
		if (!draw(4) && sched_setscheduler(0, SCHED_OTHER, &(struct sched_param){}))
			die("sched_setscheduler: %s", strerror(errno));
		sleep_us(ms * 2000);
	}
	printf("came=%ld\n", came);
}

/* ---- connections ---- */

static int connect_to(const char *to)
{
	struct sockaddr_in tcp = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				   .sin_port = htons(atoi(to)) };
	struct sockaddr_un local = { .sun_family = AF_UNIX };
	bool by_path = *to == '/';
	int fd = socket(by_path ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), err;

	if (fd < 0)
		return -1;
	strncpy(local.sun_path, to, sizeof(local.sun_path) - 1);
	err = by_path ? connect(fd, (void *)&local, sizeof(local)) :
			connect(fd, (void *)&tcp, sizeof(tcp));
	if (err && errno != EINPROGRESS) {
		close(fd);
		return -1;
	}
	return fd;
}

static const char *request(const char *to)
{
	if (*to != '/')
		return "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
	return "{\"req\":\"stats\",\"args\":{\"target\":\"top\"}}\n";
}

static long send_to(int fd, const char *to, const char *how)
{
	const char *whole = request(to);
	char bytes[4096];
	size_t n = strlen(whole);

	if (!strcmp(how, "open"))
		return 0;
	if (!strcmp(how, "half"))
		return send(fd, whole, 1 + draw(n - 1), MSG_NOSIGNAL);
	if (!strcmp(how, "request"))
		return send(fd, whole, n, MSG_NOSIGNAL);
	n = 1 + draw(sizeof(bytes));
	for (size_t i = 0; i < n; i++)
		bytes[i] = draw(16) ? draw(256) : '\n';
	return send(fd, bytes, n, MSG_NOSIGNAL);
}

static void hammer(void)
{
	static int fds[MAX_CONNECTIONS];
	const char *to = param("to", "9977"), *how = param("how", "open");
	long n = number("n", 1000), open = 0, refused = 0;
	struct rlimit files = { MAX_CONNECTIONS + 64, MAX_CONNECTIONS + 64 };

	if (n > MAX_CONNECTIONS)
		die("n is %d at most", MAX_CONNECTIONS);
	if (setrlimit(RLIMIT_NOFILE, &files))
		die("setrlimit: %s", strerror(errno));
	seed = number("seed", 1);
	for (long i = 0; i < n; i++) {
		int fd = connect_to(to);

		if (fd < 0) {
			/* A full backlog: the other side is to catch up. */
			refused++;
			sleep_us(1000);
			continue;
		}
		send_to(fd, to, how);
		fds[open++] = fd;
	}
	while (open)
		close(fds[--open]);
	printf("connections=%ld refused=%ld\n", n - refused, refused);
}

/* ---- names ---- */

static void names(void)
{
	static const char *const evil[] = {
		"\033[2J\033[31mred",
		"\033]0;title\a",
		"a\nb 1 2 3",
		"%s%n%s%n",
		"x\r0.00%",
		"\x9b"
		"31mcsi",
		"]) failed to",
		"\"},{\"pid\":",
		"\xff\xfe\x80",
		"",
	};
	long n = number("n", 100);

	seed = number("seed", 1);
	for (long i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork: %s", strerror(errno));
		if (!pid) {
			char name[16] = "";

			seed += i;
			strncpy(name, evil[i % (sizeof(evil) / sizeof(*evil))], 15);
			for (int k = 0; k < 15 && i % 3 == 2; k++)
				name[k] = 1 + draw(255);
			prctl(PR_SET_NAME, name);
			for (int k = 0; k < 20; k++) {
				burn_us(500);
				sleep_us(5000);
			}
			_exit(0);
		}
	}
	while (wait(NULL) > 0)
		;
	printf("named=%ld\n", n);
}

/* ---- what is in the kernel ---- */

static long bpf(int cmd, union bpf_attr *attr)
{
	return syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

static long count_ids(int cmd)
{
	union bpf_attr attr = {};
	long n = 0;

	while (!bpf(cmd, &attr)) {
		attr.start_id = attr.next_id;
		n++;
	}
	return n;
}

/* Keys are walked through while others come and go, so it begins again now and then. */
static long count_entries(int fd, const struct bpf_map_info *info)
{
	char key[2][MAX_KEY];
	long n = 0;

	if (info->key_size > MAX_KEY)
		return -1;
	for (;;) {
		union bpf_attr attr = { .map_fd = fd };

		attr.key = n ? (uintptr_t)key[(n - 1) & 1] : 0;
		attr.next_key = (uintptr_t)key[n & 1];
		if (bpf(BPF_MAP_GET_NEXT_KEY, &attr) || n > info->max_entries)
			return n;
		n++;
	}
}

static bool is_hash(uint32_t type)
{
	return type == BPF_MAP_TYPE_HASH || type == BPF_MAP_TYPE_LRU_HASH ||
	       type == BPF_MAP_TYPE_PERCPU_HASH || type == BPF_MAP_TYPE_LRU_PERCPU_HASH;
}

static void kernel(void)
{
	union bpf_attr next = {};

	printf("programs=%ld maps=%ld\n", count_ids(BPF_PROG_GET_NEXT_ID),
	       count_ids(BPF_MAP_GET_NEXT_ID));
	while (!bpf(BPF_MAP_GET_NEXT_ID, &next)) {
		struct bpf_map_info info = {};
		union bpf_attr get = { .map_id = next.next_id }, ask = {};
		int fd = bpf(BPF_MAP_GET_FD_BY_ID, &get);

		next.start_id = next.next_id;
		if (fd < 0)
			continue;
		ask.info.bpf_fd = fd;
		ask.info.info_len = sizeof(info);
		ask.info.info = (uintptr_t)&info;
		if (!bpf(BPF_OBJ_GET_INFO_BY_FD, &ask) && is_hash(info.type))
			printf("map=%s entries=%ld most=%u\n", info.name, count_entries(fd, &info),
			       info.max_entries);
		close(fd);
	}
}

int main(int argc, char **argv)
{
	static const struct command commands[] = {
		{ "waits", waits }, { "realtime", realtime }, { "hammer", hammer },
		{ "names", names }, { "kernel", kernel },
	};

	return run_command(commands, sizeof(commands) / sizeof(*commands), argc, argv);
}
