// SPDX-License-Identifier: GPL-2.0-only
//! Tests of the analysis, on events that are written down.

use super::super::format::Task as Known;
use super::*;
use crate::foreign::lines;
use crate::foreign::tests::{assert_harmless, HOSTILE};

fn head(capacities: &[u32]) -> Head {
    let cpu = |(id, capacity): (usize, &u32)| Described {
        id: id as u16,
        capacity: Some(*capacity),
        running: Some(0),
        ..Described::default()
    };
    Head {
        cpus: capacities.iter().enumerate().map(cpu).collect(),
        tasks: vec![Known {
            pid: 1,
            tgid: 1,
            name: "one".into(),
        }],
        wanted: vec!["switch".into(), "wakeup".into()],
        ..Head::default()
    }
}

struct Told(Analysis);

impl Told {
    fn new(capacities: &[u32]) -> Self {
        Self(Analysis::new(head(capacities)))
    }

    fn event(&mut self, time: u64, cpu: u16, kind: Kind, pid: u32, high: u32, low: u32) {
        self.0.take(Item::Event(Event {
            time,
            pid,
            kind: kind as u16,
            cpu,
            arg: u64::from(high) << 32 | u64::from(low),
        }));
    }

    fn switch(&mut self, time: u64, cpu: u16, prev: u32, next: u32, state: u32) {
        self.event(time, cpu, Kind::Switch, next, state, prev);
    }

    fn wake(&mut self, time: u64, pid: u32, to: u16) {
        self.event(time, 0, Kind::Wakeup, pid, to.into(), 0);
    }

    fn end(mut self, ns: u64) -> Analysis {
        self.0.finish(ns);
        self.0
    }
}

#[test]
fn time_is_busy_or_idle_and_adds_up() {
    let mut told = Told::new(&[1024, 1024]);
    told.switch(100, 0, 0, 1, 0);
    told.switch(400, 0, 1, 0, 1);
    let found = told.end(1000);
    assert_eq!((found.cpus[&0].busy, found.cpus[&0].idle), (300, 700));
    assert_eq!((found.cpus[&1].busy, found.cpus[&1].idle), (0, 1000));
}

#[test]
fn phases_are_by_how_many_run_and_how_fast() {
    let mut told = Told::new(&[1024, 512]);
    told.switch(100, 1, 0, 1, 0);
    told.switch(300, 0, 0, 2, 0);
    told.event(400, 1, Kind::Tick, 1, 0, 256);
    told.switch(600, 1, 1, 0, 1);
    let found = told.end(1000);
    assert_eq!((found.phases.idle, found.phases.unknown), (100, 0));
    assert_eq!(found.phases.time, [200 + 400, 300]);
    let [sequential, parallel] = found.phases.by_speed;
    assert_eq!((sequential[3], sequential[7]), (200, 400));
    assert_eq!((parallel[7], parallel[3], parallel[1]), (300, 100, 200));
    let text = found.to_string();
    for line in [
        " 10.0% of the time no CPU ran a task",
        " 60.0% of the time one CPU did (sequential)",
        " 66.7% of that at 87.5 .. 100.0%",
        " 33.3% of that at 37.5 ..  50.0%",
        " 30.0% of the time several did (parallel)",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    assert!(!text.contains("that is not known"), "{text}");
}

#[test]
fn a_wait_counts_from_wake_up_to_run_and_says_who_ran() {
    let mut told = Told::new(&[1024]);
    told.event(10, 0, Kind::Fork, 2, 2, 1);
    told.switch(100, 0, 0, 2, 0);
    told.wake(200, 1, 0);
    told.wake(250, 1, 0);
    told.switch(500, 0, 2, 3, 0);
    told.switch(700, 0, 3, 1, 1);
    told.switch(900, 0, 1, 2, 1);
    let found = told.end(1000);
    assert_eq!((found.wake_waits.len(), found.wake_waits.max()), (1, 500));
    assert_eq!(
        (found.preempted_waits.len(), found.preempted_waits.max()),
        (1, 400)
    );
    let wait = &found.longest[0];
    assert_eq!((wait.pid, wait.ns, wait.woken), (1, 500, true));
    let who: Vec<_> = (wait.meanwhile.iter())
        .map(|(pid, _, ns)| (*pid, *ns))
        .collect();
    assert_eq!(who, [(2, 300), (3, 200)]);
    assert_eq!(
        wait.meanwhile[0].1.raw(),
        "one",
        "a child has its parent's name"
    );
}

#[test]
fn what_is_missing_makes_no_wait_and_no_time() {
    let mut told = Told::new(&[1024]);
    told.switch(100, 0, 0, 2, 0);
    told.wake(200, 1, 0);
    told.0.take(Item::Gap { cpu: 0 });
    told.switch(700, 0, 5, 1, 1);
    let found = told.end(1000);
    assert_eq!((found.wake_waits.len(), found.uncounted), (0, 1));
    let cpu = &found.cpus[&0];
    assert_eq!((cpu.idle, cpu.busy, cpu.unknown), (100, 400, 500));
}

#[test]
fn no_wait_ends_while_events_of_another_cpu_are_missing() {
    let mut told = Told::new(&[1024, 1024]);
    told.0.take(Item::Gap { cpu: 1 });
    told.wake(200, 1, 0);
    told.switch(700, 0, 0, 1, 0);
    // CPU 1 is known from here on.
    told.switch(800, 1, 0, 2, 0);
    told.switch(900, 0, 1, 0, 1);
    told.wake(1000, 1, 0);
    told.switch(1100, 0, 0, 1, 0);
    let found = told.end(2000);
    assert_eq!((found.wake_waits.len(), found.uncounted), (1, 1));
    assert_eq!(found.longest[0].ns, 100);
}

#[test]
fn a_wake_up_for_a_slower_cpu_than_one_soon_idle_is_an_inversion() {
    for (idle_at, by, expected) in [(900_000, 1, 1), (1_200_000, 1, 0), (900_000, 0, 0)] {
        let mut told = Told::new(&[512, 1024]);
        told.switch(10, by, 0, 9, 0);
        told.wake(100, 1, 0);
        told.switch(idle_at, by, 9, 0, 1);
        told.switch(idle_at + 10, by, 0, 9, 0);
        told.switch(idle_at + 20, by, 9, 0, 1);
        let found = told.end(2_000_000);
        assert_eq!(found.inversions, expected, "CPU {by} at {idle_at}");
        assert!(found.speeds_known);
        assert_eq!(found.by_speed, [0, 0, 0, 1, 0, 0, 0, 0]);
    }
}

#[test]
fn frequencies_make_equal_cpus_different() {
    let mut told = Told::new(&[1024, 1024]);
    for cpu in told.0.running.values_mut() {
        cpu.described.max_khz = Some(4_000_000);
    }
    told.event(5, 1, Kind::Frequency, 0, 0, 1_000_000);
    told.wake(10, 1, 0);
    told.switch(20, 1, 9, 0, 1);
    let found = told.end(100);
    assert_eq!((found.inversions, found.by_speed[1]), (1, 1));
}

#[test]
fn without_frequencies_the_ticks_of_the_scheduler_tell_speeds() {
    let mut told = Told::new(&[1024, 1024]);
    for cpu in told.0.running.values_mut() {
        cpu.described.capacity = None;
    }
    told.wake(5, 7, 0);
    told.event(10, 0, Kind::Tick, 0, 0, 300);
    told.event(10, 1, Kind::Tick, 0, 0, 1024);
    told.wake(20, 8, 0);
    told.switch(30, 1, 9, 0, 1);
    let found = told.end(100);
    // The first wake-up is of a CPU whose speed was not known.
    let mut by_speed = [0; 8];
    by_speed[2] = 1;
    assert_eq!((found.inversions, found.by_speed), (1, by_speed));
    let text = found.to_string();
    assert!(text.contains("took them to be at its ticks"), "{text}");
}

#[test]
fn where_frequencies_tell_ticks_do_not() {
    let mut told = Told::new(&[1024]);
    for cpu in told.0.running.values_mut() {
        (cpu.described.max_khz, cpu.khz) = (Some(4_000_000), Some(4_000_000));
    }
    told.event(5, 0, Kind::Tick, 0, 0, 100);
    told.wake(10, 7, 0);
    let found = told.end(100);
    assert_eq!(found.by_speed[7], 1);
    assert!(!found.speeds_ticked);
}

#[test]
fn a_pid_that_comes_again_is_another_task() {
    let mut told = Told::new(&[1024]);
    let name = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
    told.event(1, 0, Kind::Fork, 7, 7, 1);
    let arg = name(b"first\0\0\0");
    told.event(2, 0, Kind::Name, 7, (arg >> 32) as u32, arg as u32);
    told.wake(3, 7, 0);
    told.switch(4, 0, 0, 7, 0);
    told.switch(5, 0, 7, 0, DEAD);
    told.event(6, 0, Kind::Fork, 7, 7, 1);
    assert_eq!(told.0.name(7).raw(), "one");
    told.wake(50, 7, 0);
    told.switch(60, 0, 0, 7, 0);
    assert_eq!(told.end(70).wake_waits.len(), 2);
}

#[test]
fn names_of_two_parts_and_hostile_ones_are_shown_harmless() {
    let mut told = Told::new(&[1024]);
    for (kind, bytes) in [(Kind::Name, b"01234567"), (Kind::NameRest, b"89abcde\0")] {
        let arg = u64::from_le_bytes(*bytes);
        told.event(1, 0, kind, 8, (arg >> 32) as u32, arg as u32);
    }
    assert_eq!(told.0.name(8).raw(), "0123456789abcde");
    told.0.tasks.get_mut(&1).unwrap().name = HOSTILE.into();
    told.wake(3, 1, 0);
    told.switch(9, 0, 0, 1, 0);
    let text = told.end(10).to_string();
    assert_eq!(lines(&text), text);
    assert_harmless(&text);
}
