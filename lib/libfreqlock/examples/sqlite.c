// SPDX-License-Identifier: MIT
/*
 * SQLite, one database in memory that all threads share by one connection: a third of the
 * requests inserts a row, a third selects one, a third sums a hundred. docs/DATABASES.md has it
 * run.
 */
#include <sqlite3.h>
#include "mix.h"

enum { ROWS = 10000, RANGE = 100 };

static sqlite3 *db;

struct statements {
	sqlite3_stmt *of[3];
};

static void must(int result)
{
	if (result != SQLITE_OK && result != SQLITE_ROW && result != SQLITE_DONE) {
		fprintf(stderr, "sqlite: %s\n", sqlite3_errstr(result));
		exit(1);
	}
}

static void *begin(void)
{
	static const char *const text[3] = {
		"INSERT OR REPLACE INTO t VALUES (?1, hex(randomblob(16)))",
		"SELECT value FROM t WHERE id = ?1",
		"SELECT sum(length(value)) FROM t WHERE id BETWEEN ?1 AND ?1 + 99",
	};
	struct statements *all = calloc(1, sizeof(*all));

	for (int i = 0; i < 3; i++)
		must(sqlite3_prepare_v2(db, text[i], -1, &all->of[i], NULL));
	return all;
}

static void request(void *state, uint64_t random)
{
	sqlite3_stmt *statement = ((struct statements *)state)->of[random % 3];

	must(sqlite3_bind_int64(statement, 1, (random >> 8) % (ROWS - RANGE)));
	must(sqlite3_step(statement));
	must(sqlite3_reset(statement));
}

int main(int argc, char **argv)
{
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX;

	(void)argc;
	must(sqlite3_open_v2(":memory:", &db, flags, NULL));
	must(sqlite3_exec(db,
			  "CREATE TABLE t (id INTEGER PRIMARY KEY, value TEXT);"
			  "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n"
			  " WHERE i < 9999) INSERT INTO t SELECT i, hex(randomblob(16)) FROM n",
			  NULL, NULL, NULL));
	serve_all(argv, begin, request);
}
