// SPDX-License-Identifier: MIT
/*
 * LMDB in a folder of its own, removed afterwards, without syncs: half of the requests put a
 * value of 100 bytes, half get one. docs/DATABASES.md has it run.
 */
#include <lmdb.h>
#include <unistd.h>
#include "mix.h"

enum { KEYS = 10000, SIZE = 256 << 20 };

static MDB_env *env;
static MDB_dbi dbi;

static void must(int result)
{
	if (result) {
		fprintf(stderr, "lmdb: %s\n", mdb_strerror(result));
		exit(1);
	}
}

static void *begin(void)
{
	return NULL;
}

static void put(uint64_t number)
{
	static char text[100];
	MDB_val key = { sizeof(number), &number }, value = { sizeof(text), text };
	MDB_txn *txn;

	must(mdb_txn_begin(env, NULL, 0, &txn));
	must(mdb_put(txn, dbi, &key, &value, 0));
	must(mdb_txn_commit(txn));
}

static void get(uint64_t number)
{
	MDB_val key = { sizeof(number), &number }, value;
	MDB_txn *txn;

	must(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn));
	must(mdb_get(txn, dbi, &key, &value));
	mdb_txn_abort(txn);
}

static void request(void *state, uint64_t random)
{
	(void)state;
	(random & 1 ? put : get)((random >> 8) % KEYS);
}

int main(int argc, char **argv)
{
	char folder[] = "/tmp/lmdb-mix.XXXXXX", file[64];
	MDB_txn *txn;

	(void)argc;
	if (!mkdtemp(folder)) {
		perror(folder);
		return 1;
	}
	must(mdb_env_create(&env));
	must(mdb_env_set_mapsize(env, SIZE));
	must(mdb_env_open(env, folder, MDB_NOSYNC | MDB_WRITEMAP, 0600));
	must(mdb_txn_begin(env, NULL, 0, &txn));
	must(mdb_dbi_open(txn, NULL, 0, &dbi));
	must(mdb_txn_commit(txn));
	for (uint64_t key = 0; key < KEYS; key++)
		put(key);
	serve_all(argv, begin, request);
	mdb_env_close(env);
	for (const char *const *name = (const char *const[]){ "data.mdb", "lock.mdb", NULL }; *name;
	     name++) {
		snprintf(file, sizeof(file), "%s/%s", folder, *name);
		unlink(file);
	}
	rmdir(folder);
}
