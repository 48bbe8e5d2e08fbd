// SPDX-License-Identifier: GPL-2.0-only
/*
 * A server that forks for each request, as inetd and CGI do: it accepts a connection,
 * and a child of it reads the request, works, answers and ends.
 *
 * forkserver REQUESTS CLIENTS STEPS
 *
 * CLIENTS processes ask one after another, REQUESTS times in all; each request is STEPS
 * of work. Printed are the time of all and how long one takes (p50, p99).
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include "../histogram.h"

enum { MAX_CLIENTS = 256, MAX_REQUESTS = 1000000, MAX_STEPS = 1000000000, BACKLOG = 512 };

static struct sockaddr_un address = { .sun_family = AF_UNIX };
static socklen_t address_length;

/* In the abstract namespace: nothing of it stays behind. */
static int listen_here(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "forkserver-%d", getpid());
	address_length = offsetof(struct sockaddr_un, sun_path) + 1 + strlen(address.sun_path + 1);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, address_length) || listen(fd, BACKLOG))
		fail("socket");
	return fd;
}

static void answer(int fd, uint64_t steps)
{
	char byte;

	if (read(fd, &byte, 1) != 1)
		_exit(1);
	work(steps);
	_exit(write(fd, &byte, 1) != 1);
}

static void __attribute__((noreturn)) serve(int listening, uint64_t steps)
{
	/* Children that nobody waits for. */
	signal(SIGCHLD, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		int fd = accept(listening, NULL, NULL);
		pid_t pid;

		if (fd < 0)
			fail("accept");
		pid = fork();
		if (pid < 0)
			fail("fork");
		if (pid == 0)
			answer(fd, steps);
		close(fd);
	}
}

static void ask(struct histogram *took, unsigned int nr)
{
	while (nr--) {
		uint64_t start = now_ns();
		int fd = socket(AF_UNIX, SOCK_STREAM, 0);
		char byte = 0;

		if (fd < 0 || connect(fd, (struct sockaddr *)&address, address_length))
			fail("connect");
		if (write(fd, &byte, 1) != 1 || read(fd, &byte, 1) != 1)
			fail("request");
		close(fd);
		histogram_add(took, now_ns() - start);
	}
}

int main(int argc, char **argv)
{
	unsigned int requests, clients, i;
	struct histogram *took, *all; /* of each client, shared */
	uint64_t steps, start, end;
	int listening, status;
	bool failed = false;
	pid_t server;

	if (argc != 4) {
		fprintf(stderr, "usage: forkserver REQUESTS CLIENTS STEPS\n");
		return 2;
	}
	requests = number(argv[1], 1, MAX_REQUESTS);
	clients = number(argv[2], 1, MAX_CLIENTS);
	steps = number(argv[3], 1, MAX_STEPS);
	took = mmap(NULL, clients * sizeof(*took), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (took == MAP_FAILED)
		fail("memory");
	listening = listen_here();
	server = fork();
	if (server < 0)
		fail("fork");
	if (server == 0)
		serve(listening, steps);
	start = now_ns();
	for (i = 0; i < clients; i++) {
		pid_t pid = fork();

		if (pid < 0)
			fail("fork");
		if (pid == 0) {
			ask(&took[i], requests / clients + (i < requests % clients));
			_exit(0);
		}
	}
	for (i = 0; i < clients; i++) {
		if (wait(&status) < 0)
			fail("wait");
		failed |= !WIFEXITED(status) || WEXITSTATUS(status) != 0;
	}
	end = now_ns();
	kill(server, SIGKILL);
	waitpid(server, &status, 0);
	if (failed)
		return 1;
	all = allocate(1, sizeof(*all));
	for (i = 0; i < clients; i++)
		histogram_merge(all, &took[i]);
	if (all->nr != requests)
		wrong("requests are missing");
	printf("time %.3f ms lower\n", (end - start) / 1e6);
	print_us("", "p50", percentile_ns(all, 0.5));
	print_us("", "p99", percentile_ns(all, 0.99));
	free(all);
	return 0;
}
