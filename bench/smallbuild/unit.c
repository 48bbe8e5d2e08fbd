// SPDX-License-Identifier: GPL-2.0-only
/*
 * A small C file, built many times with a number of its own (UNIT): a table of words by
 * their hashes. It includes nothing, so that compilers without a C library can build it.
 */
#define NAME_(name, unit) name##_##unit
#define NAME(name, unit)  NAME_(name, unit)
#define PUBLIC(name)      NAME(name, UNIT)

enum { BUCKETS = 64, ENTRIES = 256, WORD = 24 };

struct entry {
	char word[WORD];
	unsigned int hash, count;
	int next;
};

struct table {
	struct entry entries[ENTRIES];
	int buckets[BUCKETS];
	int used;
};

static unsigned int hash_of(const char *word)
{
	unsigned int hash = 2166136261u + UNIT;

	for (; *word; word++)
		hash = (hash ^ (unsigned char)*word) * 16777619u;
	return hash;
}

static int same(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

static void copy(char *to, const char *from)
{
	int i;

	for (i = 0; i < WORD - 1 && from[i]; i++)
		to[i] = from[i];
	to[i] = 0;
}

void PUBLIC(init)(struct table *table)
{
	int i;

	for (i = 0; i < BUCKETS; i++)
		table->buckets[i] = -1;
	table->used = 0;
}

struct entry *PUBLIC(find)(struct table *table, const char *word)
{
	unsigned int hash = hash_of(word);
	int at;

	for (at = table->buckets[hash % BUCKETS]; at >= 0; at = table->entries[at].next)
		if (table->entries[at].hash == hash && same(table->entries[at].word, word))
			return &table->entries[at];
	return 0;
}

int PUBLIC(add)(struct table *table, const char *word)
{
	struct entry *entry = PUBLIC(find)(table, word);
	unsigned int hash = hash_of(word);

	if (entry)
		return ++entry->count;
	if (table->used == ENTRIES)
		return -1;
	entry = &table->entries[table->used];
	copy(entry->word, word);
	entry->hash = hash;
	entry->count = 1;
	entry->next = table->buckets[hash % BUCKETS];
	table->buckets[hash % BUCKETS] = table->used++;
	return 1;
}

static void swap(struct entry *a, struct entry *b)
{
	struct entry kept = *a;

	*a = *b;
	*b = kept;
}

static void sift_down(struct entry *heap, int root, int nr)
{
	int child;

	while ((child = 2 * root + 1) < nr) {
		if (child + 1 < nr && heap[child].count < heap[child + 1].count)
			child++;
		if (heap[root].count >= heap[child].count)
			return;
		swap(&heap[root], &heap[child]);
		root = child;
	}
}

/* By how often they were added; the table cannot be searched any more. */
void PUBLIC(sort)(struct table *table)
{
	int i;

	for (i = table->used / 2 - 1; i >= 0; i--)
		sift_down(table->entries, i, table->used);
	for (i = table->used - 1; i > 0; i--) {
		swap(&table->entries[0], &table->entries[i]);
		sift_down(table->entries, 0, i);
	}
}

/* Words of `text`, parted by anything that is no letter. Returns how many were too many. */
int PUBLIC(count)(struct table *table, const char *text)
{
	char word[WORD];
	int used = 0, lost = 0;

	for (;; text++) {
		char c = *text;

		if (c >= 'A' && c <= 'Z')
			c += 'a' - 'A';
		if (c >= 'a' && c <= 'z') {
			if (used < WORD - 1)
				word[used++] = c;
			continue;
		}
		word[used] = 0;
		if (used && PUBLIC(add)(table, word) < 0)
			lost++;
		used = 0;
		if (!c)
			return lost;
	}
}
