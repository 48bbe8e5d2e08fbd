// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests and answers: clients that wait for servers, each pair on a channel of its own.
 *
 * rpc MS PAIRS WORK PAUSE
 *
 * For MS each over pipes, over a UNIX socket, and by futexes in memory, a client asks,
 * its server works WORK steps and answers, and the client works PAUSE steps before it asks
 * again. Clients and servers are processes, as they are in life, but for what they share to
 * count in. Prints requests a second and how long one took (p50, p99, p99.9).
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include "../histogram.h"

enum { MAX_PAIRS = 256, MAX_STEPS = 1000000000, MAX_MS = 600000 };

static struct pair {
	int to_server[2], to_client[2]; /* each: read end, write end */
	_Atomic uint32_t asked, answered;
	struct histogram took;
} *pairs;

static struct {
	_Atomic int measuring, over;
} *shared;

static uint64_t work_steps, pause_steps;

/* ---- channels: one message to the other side, and from it ---- */

static void send_byte(int fd)
{
	char byte = 0;

	if (write(fd, &byte, 1) != 1)
		_exit(0);
}

static void wait_byte(int fd)
{
	char byte;

	if (read(fd, &byte, 1) != 1)
		_exit(0);
}

static void open_pipes(struct pair *pair)
{
	if (pipe(pair->to_server) || pipe(pair->to_client))
		fail("pipe");
}

static void close_pipes(struct pair *pair)
{
	close(pair->to_server[0]);
	close(pair->to_server[1]);
	close(pair->to_client[0]);
	close(pair->to_client[1]);
}

static void open_sockets(struct pair *pair)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		fail("socketpair");
	pair->to_server[1] = pair->to_client[0] = ends[0];
	pair->to_server[0] = pair->to_client[1] = ends[1];
}

static void close_sockets(struct pair *pair)
{
	close(pair->to_server[0]);
	close(pair->to_server[1]);
}

static void open_words(struct pair *pair)
{
	pair->asked = pair->answered = 0;
}

static void close_words(struct pair *pair)
{
	(void)pair;
}

static void ask_bytes(struct pair *pair)
{
	send_byte(pair->to_server[1]);
	wait_byte(pair->to_client[0]);
}

static void serve_bytes(struct pair *pair)
{
	wait_byte(pair->to_server[0]);
	work(work_steps);
	send_byte(pair->to_client[1]);
}

static void signal_word(_Atomic uint32_t *word)
{
	atomic_store(word, 1);
	futex_wake(word, 1, BETWEEN_PROCESSES);
}

static void wait_signal(_Atomic uint32_t *word)
{
	while (!atomic_exchange(word, 0))
		futex_wait(word, 0, 0, BETWEEN_PROCESSES);
}

static void ask_words(struct pair *pair)
{
	signal_word(&pair->asked);
	wait_signal(&pair->answered);
}

static void serve_words(struct pair *pair)
{
	wait_signal(&pair->asked);
	work(work_steps);
	signal_word(&pair->answered);
}

static const struct channel {
	const char *name;
	void (*open)(struct pair *pair);
	void (*close)(struct pair *pair);
	void (*ask)(struct pair *pair);
	void (*serve)(struct pair *pair);
} channels[] = {
	{ "pipe_", open_pipes, close_pipes, ask_bytes, serve_bytes },
	{ "socket_", open_sockets, close_sockets, ask_bytes, serve_bytes },
	{ "futex_", open_words, close_words, ask_words, serve_words },
};

/* ---- */

static pid_t begin_process(void)
{
	pid_t parent = getpid(), pid = fork();

	if (pid < 0)
		fail("fork");
	if (pid)
		return pid;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(1);
	return 0;
}

static void client(const struct channel *channel, struct pair *pair)
{
	uint64_t before;

	while (!atomic_load(&shared->over)) {
		work(pause_steps);
		before = now_ns();
		channel->ask(pair);
		if (atomic_load(&shared->measuring))
			histogram_add(&pair->took, now_ns() - before);
	}
	_exit(0);
}

static void run(const struct channel *channel, long nr_pairs, uint64_t ns)
{
	pid_t *clients = allocate(nr_pairs, sizeof(*clients));
	pid_t *servers = allocate(nr_pairs, sizeof(*servers));
	struct histogram *took = allocate(1, sizeof(*took));
	uint64_t start;
	int status;
	long i;

	shared->measuring = shared->over = 0;
	for (i = 0; i < nr_pairs; i++) {
		memset(&pairs[i].took, 0, sizeof(pairs[i].took));
		channel->open(&pairs[i]);
		servers[i] = begin_process();
		if (!servers[i])
			for (;;)
				channel->serve(&pairs[i]);
		clients[i] = begin_process();
		if (!clients[i])
			client(channel, &pairs[i]);
	}
	sleep_ns(ns / 10);
	start = now_ns();
	shared->measuring = 1;
	sleep_ns(ns);
	shared->measuring = 0;
	ns = now_ns() - start;
	shared->over = 1;
	for (i = 0; i < nr_pairs; i++) {
		if (waitpid(clients[i], &status, 0) < 0 || status)
			wrong("a client did not end as it should");
		kill(servers[i], SIGKILL);
		waitpid(servers[i], &status, 0);
		histogram_merge(took, &pairs[i].took);
		channel->close(&pairs[i]);
	}
	if (!took->nr)
		wrong("no request was answered: give it more time");
	printf("%srequests %.1f 1/s higher\n", channel->name, (double)took->nr * NS_PER_S / ns);
	print_us(channel->name, "p50", percentile_ns(took, 0.5));
	print_us(channel->name, "p99", percentile_ns(took, 0.99));
	print_us(channel->name, "p99.9", percentile_ns(took, 0.999));
	free(took);
	free(clients);
	free(servers);
}

static void *share(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		fail("memory");
	return memory;
}

int main(int argc, char **argv)
{
	uint64_t ns;
	long nr_pairs;
	size_t i;

	if (argc != 5) {
		fprintf(stderr, "usage: rpc MS PAIRS WORK PAUSE\n");
		return 2;
	}
	ns = number(argv[1], 1, MAX_MS) * 1000000ull;
	nr_pairs = number(argv[2], 1, MAX_PAIRS);
	work_steps = number(argv[3], 0, MAX_STEPS);
	pause_steps = number(argv[4], 0, MAX_STEPS);
	pairs = share(nr_pairs * sizeof(*pairs));
	shared = share(sizeof(*shared));
	for (i = 0; i < sizeof(channels) / sizeof(channels[0]); i++)
		run(&channels[i], nr_pairs, ns);
	return 0;
}
