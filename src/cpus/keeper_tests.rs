// SPDX-License-Identifier: GPL-2.0-only
//! Tests of what is kept, with a kernel of their own.

use super::*;

/// Processes with 1..=9 may run on CPUs 0 and 1, others on all 4.
#[derive(Debug, Default)]
struct Fake {
    paths: HashMap<u64, (&'static str, Option<f64>)>,
    gone: Vec<u32>,
}

impl Kernel for Fake {
    fn mask(&mut self, pid: u32, cpus: usize) -> Option<Mask> {
        let cpus = if pid < 10 { 2 } else { cpus };
        (!self.gone.contains(&pid)).then(|| (0..cpus).collect())
    }

    fn cgroup(&mut self, _pid: u32, unified: u64) -> Option<u64> {
        Some(unified)
    }

    fn path(&mut self, cgroup: u64) -> Option<String> {
        Some(self.paths.get(&cgroup)?.0.into())
    }

    fn id(&mut self, path: &str) -> Option<u64> {
        let mut paths = self.paths.iter();
        paths.find(|(_, (p, _))| *p == path).map(|(id, _)| *id)
    }

    fn quota(&mut self, path: &str) -> Option<f64> {
        self.paths.values().find(|(p, _)| *p == path)?.1
    }

    fn forget(&mut self, _which: &dyn Fn(u64) -> bool) {}
}

fn keeper() -> Keeper<Fake> {
    let kernel = Fake {
        paths: HashMap::from([
            (1, ("/", None)),
            (2, ("/a", Some(1.5))),
            (3, ("/a/b", None)),
            (4, ("/c", None)),
        ]),
        ..Default::default()
    };
    Keeper::new(kernel, (0..4).collect())
}

fn living(pid: u32, cgroup: u64) -> Living {
    Living {
        pid,
        start: 20_000_000,
        cgroup,
        weight: 1024,
    }
}

fn ran(pid: u32, cpu: usize, ns: u64) -> Entered {
    Entered {
        cpu,
        pid,
        start: 20_000_000,
        cgroup: 4,
        ran: ns,
        waited: 0,
        throttled: 0,
        claim: ns,
    }
}

fn of(contents: &Contents, pid: u32) -> ProcessEntry {
    let mut entries = contents.processes.iter();
    *entries.find(|entry| entry.pid == pid).unwrap()
}

#[test]
fn processes_and_cgroups_have_their_figures() {
    let mut keeper = keeper();
    keeper.take_in(&[living(5, 3), living(20, 4), living(21, 4)]);
    let page = keeper.page(&[ran(20, 2, 1000), ran(20, 3, 500), ran(0, 0, 10)], 1000);
    let of = |pid| of(&page, pid).figures;
    assert_eq!(
        (of(5).affinity, of(5).quota, of(5).cpus),
        (2.0, Some(1.5), 1.5)
    );
    assert_eq!(
        (of(20).affinity, of(20).quota, of(20).ran),
        (4.0, None, 1.5)
    );
    assert!(of(21).cpus > 2.4 && of(21).cpus < 2.5, "{:?}", of(21));
    assert_eq!(page.processes[0].start, 2, "a tick is 10 ms");
    let ids: Vec<_> = page.cgroups.iter().map(|group| group.id).collect();
    assert_eq!(ids, [1, 2, 3, 4]);
    assert_eq!(page.cgroups[1].figures.quota, Some(1.5));
    assert_eq!(page.cgroups[2].figures.affinity, 2.0);
    assert_eq!(page.cgroups[0].figures.ran, 1.5);
    assert_eq!(page.length, Duration::from_nanos(1000));
}

#[test]
fn who_is_born_or_gone_is_noticed_when_it_runs() {
    let mut keeper = keeper();
    keeper.take_in(&[living(20, 4)]);
    let again = Entered {
        start: 50_000_000,
        cgroup: 1,
        ..ran(20, 1, 100)
    };
    let page = keeper.page(&[ran(30, 0, 100), again], 1000);
    assert_eq!(of(&page, 30).cgroup, 4);
    assert_eq!((of(&page, 20).start, of(&page, 20).cgroup), (5, 1));
    keeper.kernel.gone = vec![30];
    let page = keeper.page(&[ran(30, 0, 1000), ran(REST, 1, 1000)], 1000);
    assert_eq!(page.processes.len(), 1);
    let left = of(&page, 20).figures.neighbours;
    assert!(left < 2.1, "what they did counts all the same: {left}");
    keeper.take_in(&[]);
    assert_eq!(keeper.page(&[], 1000).processes, []);
}

#[test]
fn where_there_is_not_room_for_all_those_that_ran_come_first() {
    let mut keeper = keeper();
    let many = MOST_PROCESSES as u32 + 50;
    let all: Vec<_> = (10..10 + many).map(|pid| living(pid, 4)).collect();
    keeper.take_in(&all);
    let last = 10 + many - 1;
    let page = keeper.page(&[ran(last, 0, 1000)], 1000);
    assert_eq!(page.processes.len(), MOST_PROCESSES);
    assert_eq!(page.processes_left_out, 50);
    assert_eq!(of(&page, last).figures.ran, 1.0);
    assert!(page.processes.is_sorted_by_key(|entry| entry.pid));
}

#[test]
fn a_process_in_no_known_cgroup_has_no_quota() {
    let mut keeper = keeper();
    keeper.take_in(&[living(20, 77)]);
    let page = keeper.page(&[], 1000);
    assert_eq!(of(&page, 20).figures.quota, None);
    assert_eq!(page.cgroups, []);
}
