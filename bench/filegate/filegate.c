// SPDX-License-Identifier: GPL-2.0-only
/*
 * A frame waits for a mutex of the kernel that a busy thread of its own process holds: two threads
 * share an open file, and its position is guarded by a mutex (f_pos_lock) for as long as a read
 * takes. The case, with its figures, is that of A. Righi's proxy-exec-demo; written anew.
 *
 * filegate SECONDS RATE KIB HOGS
 *
 * All threads are on one CPU and of one nice value. RATE times a second a thread reads one byte of
 * the file, and then what another one has written for it into a pipe. That other one reads KIB of
 * the file again and again; HOGS threads only use the CPU. Prints what ../refreshes.h says, and how
 * often a second the file was read.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <sys/uio.h>

#include "../refreshes.h"
#include "../threads.h"

enum {
	MAX_KIB = 1 << 20,
	/* A read goes over the same memory again and again. */
	PART_KIB = 1024,
	MAX_PARTS = MAX_KIB / PART_KIB,
	PAYLOAD = 64,
};

static int file, payload[2];
static size_t read_kib;
static unsigned long reads;

static void pin_here(void)
{
	cpu_set_t allowed, first;
	int cpu = 0;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		fail("sched_getaffinity");
	while (cpu < CPU_SETSIZE - 1 && !CPU_ISSET(cpu, &allowed))
		cpu++;
	CPU_ZERO(&first);
	CPU_SET(cpu, &first);
	if (sched_setaffinity(0, sizeof(first), &first))
		fail("sched_setaffinity");
}

/* A file without blocks, as long as a read and a byte more. */
static int open_sparse(void)
{
	const char *folder = getenv("TMPDIR");
	int fd = open(folder ? folder : "/tmp", O_TMPFILE | O_RDWR, 0600);

	if (fd < 0)
		fail("a file without a name in TMPDIR");
	if (ftruncate(fd, ((off_t)read_kib << 10) + 1))
		fail("ftruncate");
	return fd;
}

/* Not for longer than the system call takes itself: a frame may be waited for already. */
static void rewind_file(void)
{
	if (lseek(file, 0, SEEK_SET) < 0)
		fail("lseek");
}

static void *reader_main(void *arg)
{
	struct iovec parts[MAX_PARTS];
	char *memory = allocate(PART_KIB, 1024);
	char bytes[PAYLOAD] = {};
	size_t left = read_kib, nr;

	(void)arg;
	for (nr = 0; left; nr++) {
		size_t kib = left < PART_KIB ? left : PART_KIB;

		parts[nr] = (struct iovec){ memory, kib << 10 };
		left -= kib;
	}
	begin_together();
	while (phase() != OVER) {
		rewind_file();
		if (readv(file, parts, nr) < 0)
			fail("readv");
		reads++;
		/* Full, if frames are late: then there is enough in it. */
		if (write(payload[1], bytes, sizeof(bytes)) < 0 && errno != EAGAIN)
			fail("write");
	}
	free(memory);
	return NULL;
}

static void *hog_main(void *arg)
{
	(void)arg;
	begin_together();
	while (phase() != OVER)
		work(1000);
	return NULL;
}

static void draw(void)
{
	char bytes[PAYLOAD];

	/* At the end of the file it has no byte: it took the lock all the same. */
	if (read(file, bytes, 1) < 0)
		fail("read");
	if (read(payload[0], bytes, sizeof(bytes)) < 0)
		fail("read of the pipe");
}

int main(int argc, char **argv)
{
	unsigned int nr, t;
	long seconds, rate;
	uint64_t start;
	pthread_t *threads;

	if (argc != 5) {
		fprintf(stderr, "usage: filegate SECONDS RATE KIB HOGS\n");
		return 2;
	}
	seconds = number(argv[1], 1, MAX_SECONDS);
	rate = number(argv[2], 1, MAX_RATE);
	read_kib = number(argv[3], 1, MAX_KIB);
	nr = 1 + number(argv[4], 0, MAX_THREADS);
	pin_here();
	file = open_sparse();
	if (pipe2(payload, O_NONBLOCK) || fcntl(payload[0], F_SETFL, 0))
		fail("pipe");
	threads = allocate(nr, sizeof(*threads));
	expect_threads(nr + 1);
	for (t = 0; t < nr; t++)
		start_thread(&threads[t], t ? hog_main : reader_main, NULL);
	begin_together();
	start = now_ns();
	draw_frames(seconds, rate, draw);
	printf("reads %.1f 1/s higher\n", reads * (double)NS_PER_S / (now_ns() - start));
	atomic_store(&current_phase, OVER);
	for (t = 0; t < nr; t++)
		join_thread(threads[t]);
	free(threads);
	return 0;
}
