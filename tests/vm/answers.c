// SPDX-License-Identifier: GPL-2.0-only
/*
 * A client and the server that answers it over pipes, beside busy loops at nice 0. Prints one line
 * of name=value pairs; the tests judge.
 *
 *   answers serve n=200 hogs=8 work-us=1000
 *	a client at nice -10 asks a server at nice 19 now and then, at first without hogs: the
 *	p99 of a request in us, with and without
 *   answers woken ms=1000 hogs=8
 *	a client at nice 19 that burns 2 ms before each request, and a server at nice -10: how much
 *	of a CPU the client got, in thousandths
 *   answers silent ms=2000 hogs=8
 *	a client at nice -10 that gives up after 20 ms and asks again, and a server at nice 19 that
 *	answers ten times and then burns for ever: the same of the server
 *   answers gone n=300 hogs=8
 *	as serve, but the server answers twice and exits as it is asked again, n times: how many did
 */
#define _GNU_SOURCE
#include "tasks.h"

enum { HIGH = -10, LOW = 19, MAX_REQUESTS = 10000, FIRST_REQUESTS = 10, PAUSE_US = 2000 };

static int to_server[2], to_client[2];

/* What the children report. */
static struct {
	volatile uint64_t took[MAX_REQUESTS];
	volatile long nr;
} *report;

static void set_nice(int nice)
{
	if (setpriority(PRIO_PROCESS, 0, nice))
		die("setpriority: %s", strerror(errno));
}

static void pass(int fd)
{
	if (write(fd, "", 1) != 1)
		_exit(0);
}

/* False at the end of the pipe. */
static bool take(int fd)
{
	char byte;

	return read(fd, &byte, 1) == 1;
}

static void open_channel(void)
{
	if (pipe(to_server) || pipe(to_client))
		die("pipe: %s", strerror(errno));
}

static void close_channel(void)
{
	close(to_server[0]);
	close(to_server[1]);
	close(to_client[0]);
	close(to_client[1]);
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void begin_hogs(void)
{
	long i, n = number("hogs", 8);

	for (i = 0; i < n; i++)
		spawn_hog(i, -1);
}

/* CPU time of a child that is about to end, ns. */
static uint64_t ran_ns(pid_t pid)
{
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock))
		die("clock_getcpuclockid");
	return clock_ns(clock);
}

static void serve(int nice)
{
	set_nice(nice);
	while (take(to_server[0])) {
		burn_us(number("work-us", 1000));
		pass(to_client[1]);
	}
}

static void client(int nice)
{
	uint64_t before;

	set_nice(nice);
	for (;;) {
		before = clock_ns(CLOCK_MONOTONIC);
		pass(to_server[1]);
		take(to_client[0]);
		report->took[report->nr] = clock_ns(CLOCK_MONOTONIC) - before;
		if (++report->nr == number("n", 200) + FIRST_REQUESTS)
			return;
		sleep_us(PAUSE_US);
	}
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t p99_us(void)
{
	uint64_t sorted[MAX_REQUESTS];
	long n = number("n", 200);
	pid_t server, asker;

	open_channel();
	report->nr = 0;
	server = spawn(serve, LOW);
	asker = spawn(client, HIGH);
	reap(asker);
	end(server);
	close_channel();
	memcpy(sorted, (void *)(report->took + FIRST_REQUESTS), n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), by_size);
	return sorted[n * 99 / 100] / 1000;
}

static void cmd_serve(void)
{
	uint64_t alone = p99_us();

	begin_hogs();
	printf("alone_p99_us=%lu p99_us=%lu\n", alone, p99_us());
}

static void eager(int nice)
{
	set_nice(nice);
	for (;;) {
		burn_us(2000);
		pass(to_server[1]);
		take(to_client[0]);
	}
}

static void at_once(int nice)
{
	set_nice(nice);
	while (take(to_server[0]))
		pass(to_client[1]);
}

/* How much of a CPU @pid gets, in thousandths. */
static long share_of(pid_t pid, long ms)
{
	uint64_t before;

	sleep_us(200000);
	before = ran_ns(pid);
	sleep_us(ms * 1000);
	return (ran_ns(pid) - before) / (ms * 1000);
}

static void cmd_woken(void)
{
	pid_t asker;

	open_channel();
	begin_hogs();
	spawn(at_once, HIGH);
	asker = spawn(eager, LOW);
	printf("share=%ld\n", share_of(asker, number("ms", 1000)));
}

static void silent(int nice)
{
	int i;

	set_nice(nice);
	for (i = 0; i < FIRST_REQUESTS && take(to_server[0]); i++)
		pass(to_client[1]);
	burn_us(PATIENCE_MS * 1000L);
}

static void impatient(int nice)
{
	struct pollfd fd = { .fd = to_client[0], .events = POLLIN };

	set_nice(nice);
	for (;;) {
		pass(to_server[1]);
		if (poll(&fd, 1, 20) > 0)
			take(to_client[0]);
	}
}

static void cmd_silent(void)
{
	pid_t server;

	open_channel();
	server = spawn(silent, LOW);
	spawn(impatient, HIGH);
	sleep_us(100000);
	begin_hogs();
	printf("share=%ld\n", share_of(server, number("ms", 2000)));
}

static void leaves(int nice)
{
	int i;

	set_nice(nice);
	close(to_server[1]);
	for (i = 0; i < 2 && take(to_server[0]); i++)
		pass(to_client[1]);
	take(to_server[0]);
	_exit(0);
}

static void cmd_gone(void)
{
	long n = number("n", 300), i, gone = 0;
	pid_t server;

	begin_hogs();
	set_nice(HIGH);
	for (i = 0; i < n; i++) {
		open_channel();
		server = spawn(leaves, LOW);
		close(to_client[1]);
		pass(to_server[1]);
		take(to_client[0]);
		pass(to_server[1]);
		take(to_client[0]);
		pass(to_server[1]);
		gone += !take(to_client[0]);
		waitpid(server, NULL, 0);
		close(to_server[0]);
		close(to_server[1]);
		close(to_client[0]);
	}
	printf("gone=%ld\n", gone);
}

static const struct command commands[] = {
	{ "serve", cmd_serve },
	{ "woken", cmd_woken },
	{ "silent", cmd_silent },
	{ "gone", cmd_gone },
	{},
};

int main(int argc, char **argv)
{
	report = share(sizeof(*report));
	return run_command("answers", commands, argc, argv);
}
