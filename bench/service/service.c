// SPDX-License-Identifier: GPL-2.0-only
/*
 * Service inversion: a client of high priority asks a server of low priority, which busy
 * processes in between keep from running.
 *
 * service MS HOGS STEPS PAUSE_US CLIENT BROKER HOG SERVER
 *
 * For MS each over pipes, a UNIX socket, eventfds, and over a broker between two UNIX sockets, as
 * D-Bus has it, the client asks, the server works STEPS steps and answers, and the client sleeps
 * PAUSE_US before it asks again: at first alone on the machine, then beside HOGS processes that
 * never sleep. CLIENT and so on are nice values. The first ten requests do not count. Prints
 * requests a second beside the hogs, how long one took (p50, p99, longest), and the p99 as a
 * multiple of that without hogs.
 */
#define _GNU_SOURCE
#include "../channels.h"
#include "../histogram.h"

enum {
	MAX_HOGS = 4096,
	MAX_STEPS = 1000000000,
	MAX_MS = 600000,
	MAX_PAUSE_US = 1000000,
	/* Answers before it counts: all have begun, and a scheduler may learn. */
	FIRST_ANSWERS = 10,
};

static struct {
	struct channel client, server; /* the same without a broker */
	struct histogram took;
	_Atomic int answers, measuring, over;
} *shared;

static uint64_t steps, pause_ns;
static long nr_hogs;
static int client_nice, broker_nice, hog_nice, server_nice;

static pid_t begin_with(int nice)
{
	pid_t pid = begin_process();

	if (!pid)
		set_nice(nice);
	return pid;
}

static pid_t begin_client(const struct channel_kind *kind)
{
	pid_t pid = begin_with(client_nice);
	uint64_t before;

	if (pid)
		return pid;
	while (!atomic_load(&shared->over)) {
		before = now_ns();
		kind->ask(&shared->client);
		if (atomic_load(&shared->measuring))
			histogram_add(&shared->took, now_ns() - before);
		atomic_fetch_add(&shared->answers, 1);
		sleep_ns(pause_ns);
	}
	_exit(0);
}

static pid_t begin_server(const struct channel_kind *kind, struct channel *channel)
{
	pid_t pid = begin_with(server_nice);

	if (pid)
		return pid;
	for (;;) {
		kind->await(channel);
		work(steps);
		kind->answer(channel);
	}
}

static pid_t begin_broker(const struct channel_kind *kind)
{
	pid_t pid = begin_with(broker_nice);

	if (pid)
		return pid;
	for (;;) {
		kind->await(&shared->client);
		kind->ask(&shared->server);
		kind->answer(&shared->client);
	}
}

static pid_t begin_hog(void)
{
	pid_t pid = begin_with(hog_nice);

	if (pid)
		return pid;
	for (;;)
		work(MAX_STEPS);
}

/* Measures for @ns; returns how long that took. */
static uint64_t measure(const struct channel_kind *kind, bool brokered, uint64_t ns)
{
	pid_t client, server, broker = 0;
	uint64_t start;
	int status;

	memset(&shared->took, 0, sizeof(shared->took));
	shared->answers = shared->measuring = shared->over = 0;
	kind->open(&shared->client);
	if (brokered) {
		kind->open(&shared->server);
		broker = begin_broker(kind);
	}
	server = begin_server(kind, brokered ? &shared->server : &shared->client);
	client = begin_client(kind);
	while (atomic_load(&shared->answers) < FIRST_ANSWERS)
		sleep_ns(NS_PER_S / 1000);
	start = now_ns();
	shared->measuring = 1;
	sleep_ns(ns);
	shared->measuring = 0;
	ns = now_ns() - start;
	shared->over = 1;
	if (waitpid(client, &status, 0) < 0 || status)
		wrong("the client did not end as it should");
	end_process(server);
	if (broker) {
		end_process(broker);
		kind->close(&shared->server);
	}
	kind->close(&shared->client);
	if (!shared->took.nr)
		wrong("no request was answered: give it more time");
	return ns;
}

static void compare(const char *name, const struct channel_kind *kind, bool brokered, uint64_t ns)
{
	pid_t *hogs = allocate(nr_hogs, sizeof(*hogs));
	double alone, p99;
	long i;

	measure(kind, brokered, ns);
	alone = percentile_ns(&shared->took, 0.99);
	for (i = 0; i < nr_hogs; i++)
		hogs[i] = begin_hog();
	ns = measure(kind, brokered, ns);
	for (i = 0; i < nr_hogs; i++)
		end_process(hogs[i]);
	free(hogs);
	p99 = percentile_ns(&shared->took, 0.99);
	printf("%srequests %.1f 1/s higher\n", name, (double)shared->took.nr * NS_PER_S / ns);
	print_us(name, "p50", percentile_ns(&shared->took, 0.5));
	print_us(name, "p99", p99);
	print_us(name, "longest", shared->took.longest_ns);
	printf("%sp99_by_hogs %.3f x lower\n", name, p99 / alone);
}

int main(int argc, char **argv)
{
	uint64_t ns;

	if (argc != 9) {
		fprintf(stderr, "usage: service MS HOGS STEPS PAUSE_US CLIENT BROKER HOG SERVER\n");
		return 2;
	}
	ns = number(argv[1], 1, MAX_MS) * 1000000ull;
	nr_hogs = number(argv[2], 1, MAX_HOGS);
	steps = number(argv[3], 0, MAX_STEPS);
	pause_ns = number(argv[4], 0, MAX_PAUSE_US) * (uint64_t)NS_PER_US;
	client_nice = number(argv[5], -20, 19);
	broker_nice = number(argv[6], -20, 19);
	hog_nice = number(argv[7], -20, 19);
	server_nice = number(argv[8], -20, 19);
	shared = share(sizeof(*shared));
	compare(over_pipes.name, &over_pipes, false, ns);
	compare(over_sockets.name, &over_sockets, false, ns);
	compare(over_counts.name, &over_counts, false, ns);
	compare("broker_", &over_sockets, true, ns);
	return 0;
}
