/* SPDX-License-Identifier: MIT */
/*
 * What freqlock-profile's tests run: four threads that wait for one mutex. By its argument: each
 * turn is an epoch 1 with one of number 2 in it ("epochs"); a child does it that ends by a signal
 * ("killed"); nobody waits ("alone"); it fails ("failed").
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The library's, which is loaded before the program. */
__attribute__((weak)) int freqlock_epoch_start(uint32_t id);
__attribute__((weak)) int freqlock_epoch_end(uint32_t id, uint64_t slo_ns);

enum { THREADS = 4, TURNS = 500 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t start;
static int has_epochs;

static void *work(void *arg)
{
	pthread_barrier_wait(&start);
	for (int i = 0; i < TURNS; i++) {
		if (has_epochs) {
			freqlock_epoch_start(1);
			freqlock_epoch_start(2);
		}
		pthread_mutex_lock(&mutex);
		/* Somebody waits for it, also where there is one CPU. */
		if (i % 50 == 0)
			usleep(100);
		pthread_mutex_unlock(&mutex);
		if (has_epochs) {
			freqlock_epoch_end(2, 1);
			freqlock_epoch_end(1, 1);
		}
	}
	return arg;
}

static void work_all(void)
{
	pthread_t thread[THREADS];

	pthread_barrier_init(&start, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, work, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "";

	if (!strcmp(how, "alone"))
		return 0;
	if (!strcmp(how, "failed")) {
		fprintf(stderr, "no such table\n");
		return 3;
	}
	has_epochs = !strcmp(how, "epochs");
	if (!strcmp(how, "killed")) {
		pid_t child = fork();

		if (child == 0) {
			work_all();
			raise(SIGKILL);
		}
		waitpid(child, NULL, 0);
	} else {
		work_all();
	}
	printf("warm: 1 ops/sec\nall: %d.5 ops/sec\n", THREADS * TURNS);
	return 0;
}
