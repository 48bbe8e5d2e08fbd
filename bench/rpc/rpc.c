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
#include "../channels.h"
#include "../histogram.h"

enum { MAX_PAIRS = 256, MAX_STEPS = 1000000000, MAX_MS = 600000 };

static struct pair {
	struct channel channel;
	struct histogram took;
} *pairs;

static struct {
	_Atomic int measuring, over;
} *shared;

static uint64_t work_steps, pause_steps;

static const struct channel_kind *const kinds[] = { &over_pipes, &over_sockets, &over_words };

static void client(const struct channel_kind *kind, struct pair *pair)
{
	uint64_t before;

	while (!atomic_load(&shared->over)) {
		work(pause_steps);
		before = now_ns();
		kind->ask(&pair->channel);
		if (atomic_load(&shared->measuring))
			histogram_add(&pair->took, now_ns() - before);
	}
	_exit(0);
}

static void serve(const struct channel_kind *kind, struct pair *pair)
{
	for (;;) {
		kind->await(&pair->channel);
		work(work_steps);
		kind->answer(&pair->channel);
	}
}

static void run(const struct channel_kind *kind, long nr_pairs, uint64_t ns)
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
		kind->open(&pairs[i].channel);
		servers[i] = begin_process();
		if (!servers[i])
			serve(kind, &pairs[i]);
		clients[i] = begin_process();
		if (!clients[i])
			client(kind, &pairs[i]);
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
		end_process(servers[i]);
		histogram_merge(took, &pairs[i].took);
		kind->close(&pairs[i].channel);
	}
	if (!took->nr)
		wrong("no request was answered: give it more time");
	printf("%srequests %.1f 1/s higher\n", kind->name, (double)took->nr * NS_PER_S / ns);
	print_us(kind->name, "p50", percentile_ns(took, 0.5));
	print_us(kind->name, "p99", percentile_ns(took, 0.99));
	print_us(kind->name, "p99.9", percentile_ns(took, 0.999));
	free(took);
	free(clients);
	free(servers);
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
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		run(kinds[i], nr_pairs, ns);
	return 0;
}
