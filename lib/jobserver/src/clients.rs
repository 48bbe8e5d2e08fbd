// SPDX-License-Identifier: GPL-2.0-only
//! Who has the pipe open, and what tokens these can have.
//!
//! A client holds a token for each job beyond its first one, and keeps the pipe open meanwhile.
//! A job is a child of the client, or a thread of its own that runs. So clients have at most as
//! many tokens as they have children and running threads, less one each; if more have been
//! outstanding for a second, those are lost with their clients.
//! A client that keeps tokens for nothing looks like that, too: as the kernel's jobserver-exec
//! until its child has started others. Then there are as many too many until it gives them back.

use freqlock_cpus::Processes;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

/// How long tokens have to be missing to be lost.
const MISSING: Duration = Duration::from_secs(1);
/// And in how many looks.
const LOOKS: u32 = 3;

/// Processes that have a pipe open.
#[derive(Debug, Default, PartialEq)]
pub struct Clients {
    /// Tokens that they can have, at most.
    pub tokens: usize,
    /// Those that no other one started: each has a job without a token.
    pub uppermost: usize,
}

impl Clients {
    /// Looks for those of the pipe of this device and inode, but for the server itself.
    pub fn look(pipe: (u64, u64), processes: &Processes) -> Self {
        let me = std::process::id();
        let has_pipe = |pid: u32| {
            pid != me
                && entries(&format!("/proc/{pid}/fd")).any(|fd| {
                    fd.metadata()
                        .is_ok_and(|meta| (meta.dev(), meta.ino()) == pipe)
                })
        };
        let clients: HashSet<u32> = processes
            .0
            .keys()
            .copied()
            .filter(|&pid| has_pipe(pid))
            .collect();
        Self::of(&clients, processes, running)
    }

    fn of(clients: &HashSet<u32>, processes: &Processes, running: impl Fn(u32) -> usize) -> Self {
        let mut children: HashMap<u32, usize> = HashMap::new();
        for process in processes.0.values().filter(|process| !process.is_zombie) {
            *children.entry(process.parent).or_default() += 1;
        }
        let jobs = |pid: &u32| children.get(pid).copied().unwrap_or(0) + running(*pid);
        let is_uppermost = |pid: &&u32| {
            !processes
                .ancestors(**pid)
                .skip(1)
                .any(|above| clients.contains(&above))
        };
        Self {
            tokens: clients.iter().map(|pid| jobs(pid).saturating_sub(1)).sum(),
            uppermost: clients.iter().filter(is_uppermost).count(),
        }
    }
}

/// Entries of a folder that can be followed; none if it cannot be read.
fn entries(folder: &str) -> impl Iterator<Item = std::path::PathBuf> {
    let all = fs::read_dir(folder).into_iter().flatten().flatten();
    all.map(|entry| entry.path())
}

/// Threads that run or wait for a disk.
fn running(pid: u32) -> usize {
    entries(&format!("/proc/{pid}/task"))
        .filter_map(|task| fs::read_to_string(task.join("stat")).ok())
        .filter(|stat| {
            let state = stat
                .rsplit_once(") ")
                .map(|(_, rest)| rest.as_bytes().first());
            matches!(state, Some(Some(b'R' | b'D')))
        })
        .count()
}

/// Tokens that are missing, and since when.
#[derive(Debug, Default)]
pub struct Missing {
    since: Option<(Instant, u32, usize)>,
}

impl Missing {
    /// At `now`, `outstanding` tokens are out, and clients can have `held` of them. How many are
    /// lost: the least that was missing all the time.
    pub fn lost(&mut self, now: Instant, outstanding: usize, held: usize) -> usize {
        let missing = outstanding.saturating_sub(held);
        if missing == 0 {
            self.since = None;
            return 0;
        }
        let (since, looks, least) = self.since.unwrap_or((now, 0, missing));
        let (looks, least) = (looks + 1, least.min(missing));
        if looks < LOOKS || now - since < MISSING {
            self.since = Some((since, looks, least));
            return 0;
        }
        self.since = None;
        least
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use freqlock_cpus::Process;

    fn processes(all: &[(u32, u32, bool)]) -> Processes {
        let of = |&(pid, parent, is_zombie)| {
            let process = Process {
                parent,
                is_zombie,
                nice: 0,
                threads: 1,
                start: 0,
                ticks: 0,
            };
            (pid, process)
        };
        Processes(all.iter().map(of).collect())
    }

    #[test]
    fn each_job_but_the_first_has_a_token() {
        // 10, a make with three jobs, of which one (13) is a shell with a make (20) with two; 14 has ended.
        let all = processes(&[
            (10, 1, false),
            (11, 10, false),
            (12, 10, false),
            (13, 10, false),
            (14, 10, true),
            (20, 13, false),
            (21, 20, false),
            (22, 20, false),
            (30, 1, false),
        ]);
        let clients = HashSet::from([10, 20, 30]);
        let found = Clients::of(&clients, &all, |_| 0);
        let expected = Clients {
            tokens: 3,
            uppermost: 2,
        };
        assert_eq!(found, expected);
        let threads = Clients::of(&clients, &all, |pid| if pid == 30 { 4 } else { 0 });
        assert_eq!(threads.tokens, 6);
    }

    #[test]
    fn lost_is_what_was_missing_all_the_time() {
        let (mut missing, start) = (Missing::default(), Instant::now());
        let at = |ms| start + Duration::from_millis(ms);
        assert_eq!(missing.lost(at(0), 5, 1), 0);
        assert_eq!(missing.lost(at(500), 5, 3), 0);
        assert_eq!(missing.lost(at(900), 5, 1), 0);
        assert_eq!(missing.lost(at(1000), 5, 1), 2);
    }

    #[test]
    fn what_was_there_once_is_not_lost() {
        let (mut missing, start) = (Missing::default(), Instant::now());
        let at = |ms| start + Duration::from_millis(ms);
        missing.lost(at(0), 2, 1);
        missing.lost(at(500), 2, 1);
        assert_eq!(missing.lost(at(900), 2, 2), 0);
        assert_eq!(missing.lost(at(1100), 2, 1), 0);
        // After a pause in which nobody looked, two looks are not enough.
        assert_eq!(missing.lost(at(9000), 2, 1), 0);
        assert_eq!(missing.lost(at(9100), 2, 1), 1);
    }
}
