/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How many CPUs a process can count on now: a page that scx_freqlock keeps for
 * programs that size themselves, such as thread pools (Jeffery, Jensen and Mortier,
 * "Reducing Tail Latencies Through Environment- and Neighbour-aware Thread
 * Management": threads beyond these only wait for each other).
 *
 *	const struct fl_cpus_page *page = fl_cpus_open();
 *	struct fl_cpus_process me;
 *
 *	if (page && !fl_cpus_of_process(page, getpid(), &me))
 *		resize((me.figures.cpus + 999) / 1000);
 *
 * Anybody may read it. The scheduler writes it anew every period (its knob cpus_ms),
 * without a lock: readers try again if it was written meanwhile, as the functions below
 * do. A page of a scheduler that ended, stopped or was started again is not written any
 * more; fl_cpus_is_fresh() and the functions say so (ESTALE). Then unmap it, and open it
 * again now and then: a scheduler that starts makes a new one.
 *
 * All CPUs are in thousandths. What each figure means stands at its field; how
 * `neighbours` is found is described in src/cpus/share.rs and src/cpus/count.rs.
 *
 * Numbers of processes are those of the machine. In a container getpid() is another
 * number: look for the cgroup instead, of which the id is the inode of its folder, in
 * most containers that of /sys/fs/cgroup.
 */
#ifndef FREQLOCK_CPUS_PAGE_H
#define FREQLOCK_CPUS_PAGE_H

#include <stdint.h>

#define FL_CPUS_PATH "/run/scx_freqlock/cpus"

enum fl_cpus_consts {
	FL_CPUS_MAGIC = 0x73757063, /* "cpus" in little-endian memory */
	FL_CPUS_VERSION = 2,        /* of all that follows */
	FL_CPUS_PROCESSES = 4096,
	FL_CPUS_CGROUPS = 1024,
	/* A page is old when it was not written for three periods and so many ms. */
	FL_CPUS_GRACE_MS = 2000,
};

/* Instead of a quota, where there is none. */
#define FL_CPUS_NO_QUOTA 0xffffffffu

/* Thousandths of a CPU; ran, waited and throttled are means over the last period. */
struct fl_cpus_figures {
	uint32_t affinity;   /* CPUs that it may run on: of its first thread */
	uint32_t quota;      /* the least of its cgroup and all above it */
	uint32_t neighbours; /* what the others leave it, or have to */
	uint32_t cpus;       /* the least of the three: what it can count on */
	uint32_t ran;        /* what it had */
	uint32_t waited;     /* threads that waited for a CPU */
	uint32_t throttled;  /* threads that could have run but for a quota */
};

struct fl_cpus_process {
	uint64_t start;  /* when it was born, as in field 22 of /proc/PID/stat */
	uint64_t cgroup; /* id of its cgroup in the hierarchy with the cpu controller */
	uint32_t pid;
	struct fl_cpus_figures figures;
};

/* All processes of a cgroup and of those below it together. */
struct fl_cpus_cgroup {
	uint64_t id; /* the inode of its folder */
	struct fl_cpus_figures figures;
	uint32_t reserved;
};

struct fl_cpus_page {
	uint32_t magic;
	uint32_t version;
	uint64_t seq;     /* odd while it is written */
	uint64_t updated; /* when it was, ns of CLOCK_MONOTONIC */
	uint64_t period;  /* how often it is, ns; 0: not any more */
	uint64_t length;  /* of the last period, ns; 0: there was none yet */
	uint32_t agent;   /* the process that writes it */
	uint32_t nr_processes;
	uint32_t nr_cgroups;
	uint32_t processes_left_out; /* that found no room, now */
	uint32_t cgroups_left_out;
	uint32_t reserved;
	struct fl_cpus_process process[FL_CPUS_PROCESSES]; /* by pid, the least first */
	struct fl_cpus_cgroup cgroup[FL_CPUS_CGROUPS];     /* by id, the least first */
};

_Static_assert(sizeof(struct fl_cpus_process) == 48, "programs rely on it");
_Static_assert(sizeof(struct fl_cpus_cgroup) == 40, "programs rely on it");
_Static_assert(sizeof(struct fl_cpus_page) == 64 + 48 * FL_CPUS_PROCESSES + 40 * FL_CPUS_CGROUPS,
	       "programs rely on it");

/* The agent takes the layout alone, as for the BPF side. */
#ifndef __bpf__

#include <string.h>
#include "page.h"

/* The page, or NULL: ENOENT without a scheduler, EPROTO if it is of another version. */
static inline const struct fl_cpus_page *fl_cpus_open(void)
{
	return (const struct fl_cpus_page *)fl_page_open(FL_CPUS_PATH, sizeof(struct fl_cpus_page),
							 FL_CPUS_MAGIC, FL_CPUS_VERSION);
}

static inline void fl_cpus_close(const struct fl_cpus_page *page)
{
	munmap((void *)page, sizeof(*page));
}

/* True while somebody writes it. */
static inline int fl_cpus_is_fresh(const struct fl_cpus_page *page)
{
	return fl_page_is_fresh(&page->period, &page->updated, FL_CPUS_GRACE_MS);
}

/*
 * Copies the entry of @size bytes with this key, which stands @key_at bytes into it:
 * 0, or ESRCH, or ESTALE. Whatever is read while somebody writes, a number of entries or
 * a key, leads to no other place than one in the table, and is read again.
 */
static inline int fl_cpus_find(const struct fl_cpus_page *page, const uint32_t *nr, uint32_t max,
			       const void *table, size_t size, size_t key_at, size_t key_size,
			       uint64_t key, void *entry)
{
	uint32_t low, high, middle, narrow;
	uint64_t seq, at;
	int found;

	do {
		if (!fl_cpus_is_fresh(page))
			return ESTALE;
		seq = __atomic_load_n(&page->seq, __ATOMIC_ACQUIRE);
		low = 0;
		high = __atomic_load_n(nr, __ATOMIC_RELAXED);
		if (high > max)
			high = max;
		found = 0;
		while (low < high && !found) {
			middle = low + (high - low) / 2;
			memcpy(entry, (const char *)table + middle * size, size);
			if (key_size == sizeof(narrow)) {
				memcpy(&narrow, (const char *)entry + key_at, sizeof(narrow));
				at = narrow;
			} else {
				memcpy(&at, (const char *)entry + key_at, sizeof(at));
			}
			if (at < key)
				low = middle + 1;
			else
				high = middle;
			found = at == key;
		}
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while ((seq & 1) || __atomic_load_n(&page->seq, __ATOMIC_RELAXED) != seq);
	return found ? 0 : ESRCH;
}

/*
 * What is known of a process: 0, ESRCH if it is not in there (born a moment ago, or the
 * table is full), ESTALE if nobody writes the page any more. Who looks for a process
 * other than himself should compare `start`: its number may have been given away again.
 */
static inline int fl_cpus_of_process(const struct fl_cpus_page *page, uint32_t pid,
				     struct fl_cpus_process *process)
{
	return fl_cpus_find(page, &page->nr_processes, FL_CPUS_PROCESSES, page->process,
			    sizeof(*process), offsetof(struct fl_cpus_process, pid),
			    sizeof(process->pid), pid, process);
}

/* The same of a cgroup. */
static inline int fl_cpus_of_cgroup(const struct fl_cpus_page *page, uint64_t id,
				    struct fl_cpus_cgroup *cgroup)
{
	return fl_cpus_find(page, &page->nr_cgroups, FL_CPUS_CGROUPS, page->cgroup, sizeof(*cgroup),
			    offsetof(struct fl_cpus_cgroup, id), sizeof(cgroup->id), id, cgroup);
}

#endif /* __bpf__ */

#endif /* FREQLOCK_CPUS_PAGE_H */
