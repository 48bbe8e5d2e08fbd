// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sessions of WiredTiger that update one table in memory, the case of
 * Andreoli and Cucinotta, "Inducing Huge Tail Latency": a session that allocates a transaction's
 * number makes all others, which take a snapshot, spin until it is done, however long it does not
 * run.
 *
 * wiredtiger FOLDER SECONDS SESSIONS CPUS NICED NICE BACKOFF
 *
 * Keys are chosen as YCSB does for its workload A: 100000 records, Zipfian with
 * 0.99, scrambled. Each update is a transaction of its own. With CPUS above 0 all
 * threads, the engine's too, run on so many CPUs only, the first ones that they
 * may use; NICED of the sessions have the nice value NICE, the others 0. With BACKOFF
 * 0 an update that met another one is tried again at once. Printed
 * are the time of an update, retries included, and updates per second.
 */
#define _GNU_SOURCE
#include <math.h>
#include <sched.h>
#include <unistd.h>
#include <wiredtiger.h>

#include "../common.h"
#include "../histogram.h"
#include "../threads.h"

enum {
	NR_RECORDS = 100000,
	RECORD_BYTES = 100,
};

static const char table[] = "table:ycsb";

struct session {
	pthread_t thread;
	WT_CONNECTION *connection;
	int nice;
	struct drand48_data random;
	struct histogram updates;
};

static void __attribute__((noreturn)) wt_fail(const char *what, int error)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what,
		wiredtiger_strerror(error));
	exit(1);
}

static void check(const char *what, int error)
{
	if (error)
		wt_fail(what, error);
}

/* ---- Zipfian keys, as in Gray et al., "Quickly generating billion-record
 * synthetic databases", SIGMOD 1994, which is what YCSB does ---- */

static const double theta = 0.99;
static double zeta_n, eta;

static void zipfian_init(void)
{
	double zeta_2 = 1 + pow(0.5, theta);
	unsigned int i;

	for (i = 1; i <= NR_RECORDS; i++)
		zeta_n += pow(1.0 / i, theta);
	eta = (1 - pow(2.0 / NR_RECORDS, 1 - theta)) / (1 - zeta_2 / zeta_n);
}

/* FNV-1a over the eight bytes, by which the popular keys are not neighbours. */
static uint64_t scramble(uint64_t n)
{
	uint64_t hash = 0xcbf29ce484222325ull;
	unsigned int i;

	for (i = 0; i < 8; i++, n >>= 8)
		hash = (hash ^ (n & 0xff)) * 0x100000001b3ull;
	return hash;
}

static uint64_t next_key(struct drand48_data *random)
{
	double u, uz;
	uint64_t rank;

	drand48_r(random, &u);
	uz = u * zeta_n;
	if (uz < 1)
		rank = 0;
	else if (uz < 1 + pow(0.5, theta))
		rank = 1;
	else
		rank = NR_RECORDS * pow(eta * u - eta + 1, 1 / (1 - theta));
	return scramble(rank) % NR_RECORDS;
}

/* ---- the table ---- */

static WT_CURSOR *open_table(WT_CONNECTION *connection, WT_SESSION **session)
{
	WT_CURSOR *cursor;

	check("open_session",
	      connection->open_session(connection, NULL, "isolation=snapshot", session));
	check("open_cursor", (*session)->open_cursor(*session, table, NULL, NULL, &cursor));
	return cursor;
}

static void load(WT_CONNECTION *connection)
{
	char record[RECORD_BYTES] = { 0 };
	WT_ITEM value = { .data = record, .size = sizeof(record) };
	WT_SESSION *session;
	WT_CURSOR *cursor;
	uint64_t key;

	check("open_session", connection->open_session(connection, NULL, NULL, &session));
	check("create", session->create(session, table, "key_format=Q,value_format=u"));
	check("close", session->close(session, NULL));
	cursor = open_table(connection, &session);
	for (key = 0; key < NR_RECORDS; key++) {
		cursor->set_key(cursor, key);
		cursor->set_value(cursor, &value);
		check("insert", cursor->insert(cursor));
	}
	check("close", session->close(session, NULL));
}

static bool backs_off;

/*
 * How long to sleep before a transaction is tried again, us: what MongoDB, whose
 * engine this is, does after a write conflict (logAndBackoff() in
 * src/mongo/util/log_and_backoff.cpp).
 */
static unsigned int backoff_us(unsigned int tries)
{
	if (!backs_off || tries < 4)
		return 0;
	return tries < 10 ? 1000 : tries < 100 ? 5000 : 10000;
}

/* One transaction, again and again until no other one has come in its way. */
static void update(WT_SESSION *session, WT_CURSOR *cursor, uint64_t key, WT_ITEM *value)
{
	unsigned int tries;
	int error;

	for (tries = 1;; tries++) {
		check("begin_transaction", session->begin_transaction(session, NULL));
		cursor->set_key(cursor, key);
		cursor->set_value(cursor, value);
		error = cursor->update(cursor);
		if (!error) {
			check("commit_transaction", session->commit_transaction(session, NULL));
			return;
		}
		if (error != WT_ROLLBACK)
			wt_fail("update", error);
		check("rollback_transaction", session->rollback_transaction(session, NULL));
		if (backoff_us(tries))
			usleep(backoff_us(tries));
	}
}

static void *session_main(void *arg)
{
	struct session *self = arg;
	char record[RECORD_BYTES] = { 0 };
	WT_ITEM value = { .data = record, .size = sizeof(record) };
	uint64_t key, begin;
	WT_SESSION *session;
	WT_CURSOR *cursor;
	bool counts;

	cursor = open_table(self->connection, &session);
	set_nice(self->nice);
	begin_together();
	while (phase() != OVER) {
		key = next_key(&self->random);
		memcpy(record, &key, sizeof(key));
		/* By its beginning, or the longest would be left out at the end. */
		counts = phase() == MEASURING;
		begin = now_ns();
		update(session, cursor, key, &value);
		if (counts)
			histogram_add(&self->updates, now_ns() - begin);
	}
	check("close", session->close(session, NULL));
	return NULL;
}

/* Nothing was lost, and what is there is what some session has written. */
static void verify(WT_CONNECTION *connection)
{
	WT_SESSION *session;
	WT_CURSOR *cursor = open_table(connection, &session);
	uint64_t key, written, nr = 0;
	WT_ITEM value;
	int error;

	while (!(error = cursor->next(cursor))) {
		check("get_key", cursor->get_key(cursor, &key));
		check("get_value", cursor->get_value(cursor, &value));
		memcpy(&written, value.data, sizeof(written));
		if (value.size != RECORD_BYTES || (written && written != key))
			wrong("a record holds what nobody has written");
		nr++;
	}
	if (error != WT_NOTFOUND)
		wt_fail("next", error);
	if (nr != NR_RECORDS)
		wrong("records were lost");
	check("close", session->close(session, NULL));
}

static void restrict_to(int nr)
{
	cpu_set_t set;
	int cpu;

	if (sched_getaffinity(0, sizeof(set), &set))
		fail("sched_getaffinity");
	if (nr > CPU_COUNT(&set))
		wrong("there are not so many CPUs");
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set) && nr-- <= 0)
			CPU_CLR(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fail("sched_setaffinity");
}

static void report(const struct session *sessions, unsigned int nr, uint64_t elapsed_ns)
{
	struct histogram *all = allocate(1, sizeof(*all));
	unsigned int i;

	for (i = 0; i < nr; i++)
		histogram_merge(all, &sessions[i].updates);
	if (all->nr == 0)
		wrong("not one update came to an end: give it more seconds");
	print_us("", "mean", mean_ns(all));
	print_us("", "p99", percentile_ns(all, 0.99));
	print_us("", "p99.9", percentile_ns(all, 0.999));
	print_us("", "p99.99", percentile_ns(all, 0.9999));
	print_us("", "longest", all->longest_ns);
	printf("throughput %.0f 1/s higher\n", (double)all->nr * NS_PER_S / elapsed_ns);
	free(all);
}

int main(int argc, char **argv)
{
	unsigned int nr, nr_niced, i;
	struct session *sessions;
	WT_CONNECTION *connection;
	uint64_t seconds, elapsed_ns;
	int cpus, nice;

	if (argc != 8) {
		fprintf(stderr,
			"usage: wiredtiger FOLDER SECONDS SESSIONS CPUS NICED NICE BACKOFF\n");
		return 2;
	}
	seconds = number(argv[2], 1, MAX_SECONDS);
	nr = number(argv[3], 1, MAX_THREADS);
	cpus = number(argv[4], 0, CPU_SETSIZE);
	nr_niced = number(argv[5], 0, nr);
	nice = number(argv[6], -20, 19);
	backs_off = number(argv[7], 0, 1);

	if (cpus)
		restrict_to(cpus);
	zipfian_init();
	check("wiredtiger_open",
	      wiredtiger_open(argv[1], NULL,
			      "create,in_memory=true,cache_size=512MB,session_max=4200",
			      &connection));
	load(connection);
	sessions = allocate(nr, sizeof(*sessions));
	expect_threads(nr + 1);
	for (i = 0; i < nr; i++) {
		sessions[i].connection = connection;
		sessions[i].nice = i < nr_niced ? nice : 0;
		srand48_r(i + 1, &sessions[i].random);
		start_thread(&sessions[i].thread, session_main, &sessions[i]);
	}
	begin_together();
	elapsed_ns = measure_for(seconds * NS_PER_S);
	for (i = 0; i < nr; i++)
		join_thread(sessions[i].thread);
	verify(connection);
	check("close", connection->close(connection, NULL));
	report(sessions, nr, elapsed_ns);
	return 0;
}
