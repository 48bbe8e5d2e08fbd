/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Requests and answers between two processes, a client and its server: what they go over, and
 * processes that end with the one that began them.
 */
#ifndef __BENCH_CHANNELS_H
#define __BENCH_CHANNELS_H

#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "common.h"

struct channel {
	int to_server[2], to_client[2]; /* each: read end, write end */
	_Atomic uint32_t asked, answered;
};

/* ---- bytes, over pipes and sockets ---- */

/* One whose other side is gone has nothing more to do. */
static inline void send_byte(int fd)
{
	char byte = 0;

	if (write(fd, &byte, 1) != 1)
		_exit(0);
}

static inline void wait_byte(int fd)
{
	char byte;

	if (read(fd, &byte, 1) != 1)
		_exit(0);
}

static inline void open_pipes(struct channel *channel)
{
	if (pipe(channel->to_server) || pipe(channel->to_client))
		fail("pipe");
}

static inline void close_pipes(struct channel *channel)
{
	close(channel->to_server[0]);
	close(channel->to_server[1]);
	close(channel->to_client[0]);
	close(channel->to_client[1]);
}

static inline void open_sockets(struct channel *channel)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		fail("socketpair");
	channel->to_server[1] = channel->to_client[0] = ends[0];
	channel->to_server[0] = channel->to_client[1] = ends[1];
}

static inline void close_sockets(struct channel *channel)
{
	close(channel->to_server[0]);
	close(channel->to_server[1]);
}

static inline void ask_bytes(struct channel *channel)
{
	send_byte(channel->to_server[1]);
	wait_byte(channel->to_client[0]);
}

static inline void await_byte(struct channel *channel)
{
	wait_byte(channel->to_server[0]);
}

static inline void answer_byte(struct channel *channel)
{
	send_byte(channel->to_client[1]);
}

/* ---- counts, over eventfds ---- */

static inline void add_count(int fd)
{
	uint64_t one = 1;

	if (write(fd, &one, sizeof(one)) != sizeof(one))
		_exit(0);
}

static inline void wait_count(int fd)
{
	uint64_t count;

	if (read(fd, &count, sizeof(count)) != sizeof(count))
		_exit(0);
}

static inline void open_counts(struct channel *channel)
{
	channel->to_server[0] = channel->to_server[1] = eventfd(0, 0);
	channel->to_client[0] = channel->to_client[1] = eventfd(0, 0);
	if (channel->to_server[0] < 0 || channel->to_client[0] < 0)
		fail("eventfd");
}

static inline void close_counts(struct channel *channel)
{
	close(channel->to_server[0]);
	close(channel->to_client[0]);
}

static inline void ask_count(struct channel *channel)
{
	add_count(channel->to_server[1]);
	wait_count(channel->to_client[0]);
}

static inline void await_count(struct channel *channel)
{
	wait_count(channel->to_server[0]);
}

static inline void answer_count(struct channel *channel)
{
	add_count(channel->to_client[1]);
}

/* ---- words in shared memory, by futexes ---- */

static inline void open_words(struct channel *channel)
{
	channel->asked = channel->answered = 0;
}

static inline void close_words(struct channel *channel)
{
	(void)channel;
}

static inline void signal_word(_Atomic uint32_t *word)
{
	atomic_store(word, 1);
	futex_wake(word, 1, BETWEEN_PROCESSES);
}

static inline void wait_signal(_Atomic uint32_t *word)
{
	while (!atomic_exchange(word, 0))
		futex_wait(word, 0, 0, BETWEEN_PROCESSES);
}

static inline void ask_words(struct channel *channel)
{
	signal_word(&channel->asked);
	wait_signal(&channel->answered);
}

static inline void await_word(struct channel *channel)
{
	wait_signal(&channel->asked);
}

static inline void answer_word(struct channel *channel)
{
	signal_word(&channel->answered);
}

/* ---- kinds of channels ---- */

struct channel_kind {
	const char *name; /* as the metrics' prefix */
	void (*open)(struct channel *channel);
	void (*close)(struct channel *channel);
	void (*ask)(struct channel *channel); /* and wait for the answer */
	void (*await)(struct channel *channel);
	void (*answer)(struct channel *channel);
};

static const struct channel_kind over_pipes = {
	"pipe_", open_pipes, close_pipes, ask_bytes, await_byte, answer_byte,
};
static const struct channel_kind over_sockets = {
	"socket_", open_sockets, close_sockets, ask_bytes, await_byte, answer_byte,
};
static const struct channel_kind over_counts __attribute__((unused)) = {
	"eventfd_", open_counts, close_counts, ask_count, await_count, answer_count,
};
static const struct channel_kind over_words __attribute__((unused)) = {
	"futex_", open_words, close_words, ask_words, await_word, answer_word,
};

/* ---- processes, and memory that they share ---- */

static inline pid_t begin_process(void)
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

static inline void end_process(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}

static inline void *share(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		fail("memory");
	return memory;
}

#endif /* __BENCH_CHANNELS_H */
