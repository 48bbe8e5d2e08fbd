// SPDX-License-Identifier: MIT
//! The processes that there are, by /proc.

use std::collections::{HashMap, HashSet};
use std::fs;

/// What is known of a process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Process {
    /// The one that started it, or that took it over; 0 for the first ones.
    pub parent: u32,
    /// True if it ended and was not waited for.
    pub is_zombie: bool,
    /// Nice value.
    pub nice: i32,
    /// Threads.
    pub threads: u32,
    /// When it was born, in clock ticks since the boot: tells it from others of its number.
    pub start: u64,
    /// CPU time of it and of children that it waited for, clock ticks.
    pub ticks: u64,
}

impl Process {
    /// The calling one; none without /proc.
    pub fn own() -> Option<Self> {
        parse(&fs::read_to_string("/proc/self/stat").ok()?)
    }
}

/// All processes, by number.
#[derive(Clone, Debug, Default)]
pub struct Processes(pub HashMap<u32, Process>);

impl Processes {
    /// Looks at all that can be seen. Those that end meanwhile may be missing.
    pub fn look() -> Self {
        let numbers = fs::read_dir("/proc").into_iter().flatten().flatten();
        Self(
            numbers
                .filter_map(|entry| {
                    let pid = entry.file_name().to_str()?.parse().ok()?;
                    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
                    Some((pid, parse(&stat)?))
                })
                .collect(),
        )
    }

    /// The process itself, the one that started it, and so on.
    pub fn ancestors(&self, pid: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(Some(pid), |pid| {
            let parent = self.0.get(pid)?.parent;
            (parent != 0 && parent != *pid).then_some(parent)
        })
        // A look that takes time may see a number given away again below itself.
        .take(MOST_ANCESTORS)
    }

    /// Of `pid`, the branch of the tree of processes that leaves the way from the first process
    /// to `me`: its uppermost process. None if it is on that way or below `me`.
    pub(crate) fn branch(&self, pid: u32, me: u32, my_way: &HashSet<u32>) -> Option<u32> {
        let mut top = None;
        for above in self.ancestors(pid) {
            if my_way.contains(&above) {
                return top.filter(|_| above != me);
            }
            top = Some(above);
        }
        top
    }
}

const MOST_ANCESTORS: usize = 1000;

/// /proc/PID/stat, as proc(5) has it. The name may contain spaces and brackets.
fn parse(stat: &str) -> Option<Process> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // The first one is field 3.
    let number = |field: usize| fields.get(field - 3)?.parse::<i64>().ok();
    Some(Process {
        parent: number(4)? as u32,
        is_zombie: matches!(*fields.first()?, "Z" | "X"),
        nice: number(19)? as i32,
        threads: number(20)? as u32,
        start: number(22)? as u64,
        ticks: (number(14)? + number(15)? + number(16)? + number(17)?) as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_be_anything() {
        let stat = "7 (a) R (b) S 3 7 7 0 -1 4194560 1 2 3 4 10 20 30 40 25 5 6 0 99 1 2 3";
        let found = parse(stat).unwrap();
        assert_eq!((found.parent, found.ticks, found.nice), (3, 100, 5));
        assert_eq!((found.threads, found.start), (6, 99));
        for bad in ["", "7 (a", "7 (a) R 3", "7 (a) R x 7 7"] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }

    /// Processes by number and parent.
    pub(crate) fn tree(all: &[(u32, u32)]) -> Processes {
        Processes(
            all.iter()
                .map(|&(pid, parent)| {
                    let process = Process {
                        parent,
                        is_zombie: false,
                        nice: 0,
                        threads: 1,
                        start: 0,
                        ticks: 0,
                    };
                    (pid, process)
                })
                .collect(),
        )
    }

    #[test]
    fn branches_leave_the_way_to_me() {
        // 1 - 10 (shell) - 20 (me) - 21; 10 - 30 (another build) - 31 - 32; 1 - 40 (a service).
        let all = tree(&[
            (1, 0),
            (10, 1),
            (20, 10),
            (21, 20),
            (30, 10),
            (31, 30),
            (32, 31),
            (40, 1),
            (50, 0),
        ]);
        let way: HashSet<u32> = all.ancestors(20).collect();
        let branch = |pid| all.branch(pid, 20, &way);
        assert_eq!(
            (branch(32), branch(30), branch(40)),
            (Some(30), Some(30), Some(40))
        );
        assert_eq!(
            (branch(21), branch(20), branch(10), branch(1)),
            (None, None, None, None)
        );
        assert_eq!((branch(50), branch(99)), (Some(50), Some(99)));
    }

    #[test]
    fn a_circle_ends() {
        assert!(tree(&[(2, 3), (3, 2)]).ancestors(2).count() <= MOST_ANCESTORS);
    }

    #[test]
    fn this_process_is_there() {
        let me = Processes::look().0[&std::process::id()];
        assert!(me.threads >= 1 && !me.is_zombie && me.start > 0);
    }
}
