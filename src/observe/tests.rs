// SPDX-License-Identifier: GPL-2.0-only
//! The figures of small histories that can be checked by hand.

use super::event::{Event, Mask};
use super::observer::GRACE_NS;
use super::{Observer, Report};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// A history under construction; task 1 is the root, on CPU 0 from time 0.
struct History {
    observer: Observer,
}

impl History {
    fn new(cpus: &[usize]) -> Self {
        let mut history = Self {
            observer: Observer::new(cpus),
        };
        for &cpu in cpus {
            history.switch(0, cpu as u16, 9999, 0);
        }
        history.feed(Event::Fork {
            time: 0,
            cpu: 0,
            child: 1,
            parent_alone: true,
            root: true,
        });
        history.allow(1, cpus);
        history.wake(0, 1);
        history.switch(0, 0, 0, 1);
        history
    }

    fn feed(&mut self, event: Event) {
        self.observer.feed(event);
    }

    fn switch(&mut self, time: u64, cpu: u16, prev: u32, next: u32) {
        self.left(time, cpu, prev, next, false, false);
    }

    fn preempt(&mut self, time: u64, cpu: u16, prev: u32, next: u32) {
        self.left(time, cpu, prev, next, true, false);
    }

    fn die(&mut self, time: u64, cpu: u16, prev: u32, next: u32) {
        self.left(time, cpu, prev, next, false, true);
    }

    fn left(&mut self, time: u64, cpu: u16, prev: u32, next: u32, runnable: bool, dead: bool) {
        self.feed(Event::Switch {
            time,
            cpu,
            prev,
            next,
            prev_runnable: runnable,
            prev_dead: dead,
        });
    }

    fn wake(&mut self, time: u64, pid: u32) {
        self.feed(Event::Wake { time, pid });
    }

    fn fork(&mut self, time: u64, cpu: u16, child: u32, parent_alone: bool, allowed: &[usize]) {
        self.feed(Event::Fork {
            time,
            cpu,
            child,
            parent_alone,
            root: false,
        });
        self.allow(child, allowed);
        self.wake(time, child);
    }

    fn allow(&mut self, pid: u32, cpus: &[usize]) {
        let mut mask: Mask = [0; super::event::MASK_WORDS];
        for cpu in cpus {
            mask[cpu / 64] |= 1 << (cpu % 64);
        }
        for (word, bits) in mask.into_iter().enumerate() {
            self.feed(Event::Affinity { pid, word, bits });
        }
    }

    fn report(self) -> Report {
        Report::new(self.observer, 0, false)
    }
}

fn close_to(got: f64, want: f64) -> bool {
    (got - want).abs() <= want.abs() * 0.002
}

#[test]
fn forks_and_wakeups_count_where_the_task_then_ran() {
    let mut h = History::new(&[0, 1, 2]);
    h.fork(MS, 0, 2, true, &[0, 1, 2]);
    h.switch(MS + US, 1, 0, 2);
    h.switch(2 * MS, 1, 2, 0);
    h.wake(3 * MS, 2);
    h.switch(3 * MS + US, 2, 0, 2);
    h.preempt(4 * MS, 2, 2, 50);
    h.switch(4 * MS + US, 2, 50, 2);
    h.switch(5 * MS, 2, 2, 0);
    h.wake(5 * MS + US, 2);
    h.switch(6 * MS, 2, 0, 2);
    let r = h.report();
    assert_eq!((r.started.forks, r.started.wakeups), (1, 2));
    let per_cpu: Vec<(usize, u64)> = r
        .started
        .per_cpu
        .iter()
        .map(|c| (c.cpu, c.started))
        .collect();
    assert_eq!(per_cpu, [(0, 0), (1, 1), (2, 2)]);
    assert!(close_to(r.started.busiest_one, 2.0 / 3.0));
    assert_eq!(r.started.busiest_two, 1.0);
    assert!(r.valid);
}

#[test]
fn children_on_the_parents_cpu_and_those_of_a_lone_parent() {
    let mut h = History::new(&[0, 1]);
    // Lone parent, stayed; lone parent, left; crowded parent, left.
    for (child, alone, cpu) in [(2, true, 0), (3, true, 1), (4, false, 1)] {
        let time = u64::from(child) * 10 * MS;
        h.fork(time, 0, child, alone, &[0, 1]);
        if cpu == 0 {
            h.switch(time + 5 * US, 0, 1, child);
            h.wake(time + 6 * US, 1);
            h.die(time + MS, 0, child, 1);
        } else {
            h.switch(time + 5 * US, 1, 0, child);
            h.die(time + MS, 1, child, 0);
        }
    }
    let r = h.report();
    assert_eq!(r.forks.all, 3);
    assert!(close_to(r.forks.on_parent_cpu, 1.0 / 3.0));
    assert_eq!(r.forks.parent_alone, 2);
    assert_eq!(r.forks.parent_alone_on_parent_cpu, 0.5);
    assert_eq!(r.forks.first_run_us.count, 3);
    assert!(close_to(r.forks.first_run_us.max, 5.0));
}

#[test]
fn waits_are_distinguished_by_why_the_task_waited() {
    let mut h = History::new(&[0]);
    h.preempt(10 * MS, 0, 1, 50);
    h.switch(10 * MS + 300 * US, 0, 50, 1);
    h.switch(11 * MS, 0, 1, 0);
    h.wake(12 * MS, 1);
    h.switch(12 * MS + 40 * US, 0, 0, 1);
    let r = h.report();
    assert_eq!(r.wait_us.preempted.count, 1);
    assert!(close_to(r.wait_us.preempted.max, 300.0));
    assert_eq!(r.wait_us.woken.count, 1);
    assert!(close_to(r.wait_us.woken.p50, 40.0));
}

#[test]
fn quantiles_of_a_thousand_waits() {
    let mut h = History::new(&[0]);
    for i in 1..=1000 {
        let time = i * 10 * MS;
        h.switch(time, 0, 1, 0);
        h.wake(time + MS, 1);
        h.switch(time + MS + i * US, 0, 0, 1);
    }
    let waits = h.report().wait_us.woken;
    assert_eq!(waits.count, 1000);
    assert!(close_to(waits.p50, 500.0), "{waits:?}");
    assert!(close_to(waits.p99, 990.0), "{waits:?}");
    assert!(close_to(waits.p999, 999.0), "{waits:?}");
    assert!(close_to(waits.max, 1000.0), "{waits:?}");
}

#[test]
fn a_child_that_is_moved_before_it_runs() {
    let mut h = History::new(&[0, 1]);
    h.fork(10 * MS, 0, 2, true, &[0, 1]);
    h.feed(Event::Migrate {
        time: 10 * MS + 75 * US,
        pid: 2,
    });
    h.switch(10 * MS + 80 * US, 1, 0, 2);
    // Migrated by a wake-up: not waiting yet, so no rescue.
    h.switch(11 * MS, 1, 2, 0);
    h.feed(Event::Migrate {
        time: 12 * MS,
        pid: 2,
    });
    let r = h.report();
    assert_eq!(r.migrations, 2);
    assert_eq!(r.forks.migrated_us.count, 1);
    assert!(close_to(r.forks.migrated_us.max, 75.0));
    assert_eq!(r.forks.migrated_to_run_us.count, 1);
    assert!(close_to(r.forks.migrated_to_run_us.max, 5.0));
    assert!(close_to(r.forks.first_run_us.max, 80.0));
}

#[test]
fn how_fast_an_idle_cpu_answers() {
    let mut h = History::new(&[0, 1]);
    h.switch(10 * MS, 0, 1, 0);
    // Woken onto an idle CPU that takes its time.
    h.wake(11 * MS, 1);
    h.switch(11 * MS + 70 * US, 0, 0, 1);
    h.switch(12 * MS, 0, 1, 0);
    // Migrated to the idle CPU after it had waited elsewhere.
    h.wake(13 * MS, 1);
    h.feed(Event::Migrate {
        time: 14 * MS,
        pid: 1,
    });
    h.switch(14 * MS + US, 1, 0, 1);
    h.switch(15 * MS, 1, 1, 50);
    // The CPU was not idle when the task was woken.
    h.wake(16 * MS, 1);
    h.switch(17 * MS, 1, 50, 0);
    h.switch(18 * MS, 1, 0, 1);
    let answer = h.report().wait_us.answer;
    assert_eq!(answer.count, 2, "the root's own start, and one wake-up");
    assert!(close_to(answer.max, 70.0), "{answer:?}");
}

#[test]
fn idle_time_through_which_an_eligible_task_waited() {
    let mut h = History::new(&[0, 1]);
    // Task 2 waits on CPU 0 from 10 to 15 ms while CPU 1 is idle until 13 ms.
    h.fork(10 * MS, 0, 2, true, &[0, 1]);
    h.switch(13 * MS, 1, 0, 50);
    h.switch(15 * MS, 0, 1, 2);
    h.switch(20 * MS, 0, 2, 50);
    let r = h.report();
    assert_eq!(r.work_conservation.late_waits, 1);
    assert!(close_to(r.work_conservation.idle_while_waiting_ms, 2.0));
    assert!(close_to(r.work_conservation.share, 2.0 / 40.0));
}

#[test]
fn a_wait_within_the_grace_or_elsewhere_allowed_wastes_nothing() {
    let mut h = History::new(&[0, 1]);
    h.fork(10 * MS, 0, 2, true, &[0, 1]);
    h.switch(10 * MS + GRACE_NS, 0, 1, 2);
    h.fork(20 * MS, 0, 3, true, &[0]);
    h.switch(25 * MS, 0, 2, 3);
    let r = h.report();
    assert_eq!(r.work_conservation.late_waits, 1);
    assert_eq!(r.work_conservation.idle_while_waiting_ms, 0.0);
}

#[test]
fn an_affinity_that_changed_during_the_wait_is_not_held_against_the_scheduler() {
    let mut h = History::new(&[0, 1]);
    h.fork(10 * MS, 0, 2, true, &[0]);
    h.allow(2, &[0, 1]);
    h.switch(20 * MS, 1, 0, 2);
    assert_eq!(h.report().work_conservation.idle_while_waiting_ms, 0.0);
}

#[test]
fn a_task_that_still_waits_at_the_end_counts() {
    let mut h = History::new(&[0, 1]);
    h.fork(10 * MS, 0, 2, true, &[0, 1]);
    h.preempt(5_000 * MS, 0, 1, 50);
    let r = h.report();
    assert_eq!(r.work_conservation.late_waits, 0);
    assert!(close_to(r.work_conservation.idle_while_waiting_ms, 4989.0));
}

#[test]
fn cpu_time_of_tasks_that_ended_and_of_those_that_run() {
    let mut h = History::new(&[0, 1]);
    h.fork(10 * MS, 0, 2, true, &[0, 1]);
    h.switch(10 * MS, 1, 0, 2);
    let mut name = [0; 16];
    name[..4].copy_from_slice(b"hogs");
    h.feed(Event::Comm { pid: 2, name });
    h.die(40 * MS, 1, 2, 0);
    h.preempt(50 * MS, 0, 1, 50);
    h.switch(60 * MS, 0, 50, 1);
    h.switch(80 * MS, 1, 0, 50);
    let r = h.report();
    assert!(close_to(r.elapsed_ms, 80.0));
    assert!(close_to(r.cpu_time.total_ms, 30.0 + 70.0));
    assert_eq!(r.cpu_time.tasks_seen, 2);
    let tasks: Vec<(u32, &str)> = r
        .cpu_time
        .tasks
        .iter()
        .map(|t| (t.pid, t.comm.raw()))
        .collect();
    assert_eq!(tasks, [(1, ""), (2, "hogs")]);
    assert!(close_to(r.cpu_time.tasks[0].cpu_ms, 70.0));
    assert!(close_to(r.cpu_time.tasks[0].waited_ms, 10.0));
    assert!(close_to(r.cpu_time.tasks[1].cpu_ms, 30.0));
    // CPU 1 was idle for 10 ms before the child and 40 ms after it.
    assert!(close_to(r.cpu_time.idle_share, 50.0 / 160.0));
}

#[test]
fn a_run_that_nothing_explains_makes_the_figures_invalid() {
    let mut h = History::new(&[0]);
    h.switch(10 * MS, 0, 1, 0);
    h.switch(11 * MS, 0, 0, 1);
    let r = h.report();
    assert_eq!(r.unexplained, 1);
    assert!(!r.valid);
    assert!(r.to_string().contains("NOT VALID"));
}

#[test]
fn lost_events_and_changed_cpus_make_the_figures_invalid() {
    assert!(Report::new(Observer::new(&[0]), 0, false).valid);
    assert!(!Report::new(Observer::new(&[0]), 1, false).valid);
    assert!(!Report::new(Observer::new(&[0]), 0, true).valid);
}

#[test]
fn a_cpu_that_is_offline_is_not_idle() {
    let mut h = History::new(&[0, 2]);
    h.switch(MS, 1, 50, 0);
    h.fork(10 * MS, 0, 2, true, &[0, 1]);
    h.switch(30 * MS, 0, 1, 2);
    let r = h.report();
    assert_eq!(r.cpus, 2);
    assert_eq!(r.work_conservation.idle_while_waiting_ms, 0.0);
}

#[test]
fn an_observation_of_nothing_has_figures() {
    let r = Report::new(Observer::new(&[0, 1]), 0, false);
    assert_eq!(
        (
            r.elapsed_ms,
            r.started.busiest_two,
            r.work_conservation.share
        ),
        (0.0, 0.0, 0.0)
    );
    assert!(r.to_string().contains("0 forks"));
}
