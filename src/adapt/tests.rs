// SPDX-License-Identifier: GPL-2.0-only
//! The adapter in a world of made-up loads, whose modes are as good as the test says.

use super::*;
use crate::mode::Mode;
use fastrand::Rng;
use proptest::prelude::*;
use std::convert::Infallible;
use std::time::{Duration, Instant};

const TUNING: Tuning = Tuning {
    slot: Duration::from_millis(200),
    margin: 0.03,
    share: 0.1,
};
const TRIAL: Duration = Duration::from_secs(4);
/// What may be spent at once: a trial of each mode.
const BURST: Duration = Duration::from_secs(12);

/// A load: CPUs at full speed that it uses, and its score in each mode.
struct Load {
    cpus: f64,
    score: Box<dyn Fn(Mode) -> f64>,
    /// Scores are off by this share either way.
    noise: f64,
}

impl Load {
    fn new(noise: f64, score: impl Fn(Mode) -> f64 + 'static) -> Self {
        Self {
            cpus: 2.0,
            score: Box::new(score),
            noise,
        }
    }
}

struct World {
    adapter: Adapter,
    /// The mode of all groups, until another is chosen.
    given: Mode,
    start: Instant,
    now: Instant,
    loads: Vec<Load>,
    sums: Vec<Done>,
    rng: Rng,
    decisions: Vec<Decision>,
    /// Time with something on trial.
    on_trial: Duration,
}

fn group(number: u32, given: Mode) -> Group {
    Group {
        number,
        name: format!("c{number}"),
        given,
        pinned: None,
    }
}

impl World {
    /// One group for each load, from 0, all in this mode.
    fn new(given: Mode, loads: Vec<Load>, seed: u64) -> Self {
        let start = Instant::now();
        let mut adapter = Adapter::new(DEFAULT_MODES.to_vec());
        let groups = (0..loads.len() as u32).map(|number| group(number, given));
        adapter.set_groups(groups.collect(), start);
        Self {
            adapter,
            given,
            start,
            now: start,
            sums: vec![Done::default(); loads.len()],
            loads,
            rng: Rng::with_seed(seed),
            decisions: Vec::new(),
            on_trial: Duration::ZERO,
        }
    }

    /// The mode that a group is in now.
    fn mode(&self, number: u32) -> Mode {
        let chosen = self.adapter.chosen().get(&number).copied();
        chosen.unwrap_or(self.given)
    }

    /// The best mode so far, trials apart.
    fn found(&self, number: u32) -> String {
        let status = self.adapter.status(self.now, &TUNING);
        status.contexts[number as usize].mode.clone()
    }

    fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(next) = self.adapter.next().filter(|next| *next <= end) {
            let passed = next - self.now;
            for number in 0..self.loads.len() {
                let mode = self.mode(number as u32);
                let load = &self.loads[number];
                let noise = 1.0 + load.noise * (2.0 * self.rng.f64() - 1.0);
                let work = load.cpus * passed.as_nanos() as f64;
                let sums = &mut self.sums[number];
                sums.work += work as u64;
                sums.run += work as u64;
                sums.wait += (work * ((load.score)(mode) * noise - 1.0).max(0.0)) as u64;
            }
            // Steps of a trial are shorter than any others.
            if passed < TUNING.slot {
                self.on_trial += passed;
            }
            self.now = next;
            let sums = &self.sums;
            let read = |number| Ok::<_, Infallible>(sums[number as usize]);
            let Ok(decision) = self.adapter.step(next, 0, &TUNING, read);
            self.decisions.extend(decision);
        }
        self.now = end;
    }

    fn taken(&self) -> usize {
        self.decisions.iter().filter(|d| d.taken).count()
    }
}

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn a_bad_mode_is_left_within_one_round_and_not_come_back_to() {
    let score = |mode| if mode == Mode::Nest { 1.2 } else { 1.5 };
    let mut world = World::new(Mode::Off, vec![Load::new(0.05, score)], 1);
    world.run(Duration::from_secs(15));
    assert_eq!(world.found(0), "nest", "{:?}", world.decisions);
    world.run(120 * MINUTE);
    assert_eq!((world.found(0).as_str(), world.taken()), ("nest", 1));
    let taken = world.decisions.iter().find(|d| d.taken).unwrap();
    assert_eq!((taken.incumbent.as_str(), taken.pairs), ("off", 10));
    assert!((taken.ratio.unwrap() - 0.8).abs() < 0.05, "{taken:?}");
    assert!(taken.interval.unwrap().1 < 1.0);
}

#[test]
fn the_mode_given_is_a_candidate_too() {
    let score = |mode| if mode == Mode::Smove { 1.2 } else { 1.5 };
    let mut world = World::new(Mode::Smove, vec![Load::new(0.05, score)], 1);
    world.run(MINUTE);
    assert_eq!((world.found(0).as_str(), world.taken()), ("smove", 0));
    // Now it is the worst, and after that the best again.
    world.loads = vec![Load::new(
        0.05,
        |m| if m == Mode::Smove { 3.0 } else { 1.5 },
    )];
    world.run(10 * MINUTE);
    assert_eq!((world.found(0).as_str(), world.taken()), ("auto", 1));
    world.loads = vec![Load::new(
        0.05,
        |m| if m == Mode::Smove { 1.5 } else { 3.0 },
    )];
    world.run(10 * MINUTE);
    assert_eq!((world.found(0).as_str(), world.taken()), ("smove", 2));
}

#[test]
fn another_load_ends_the_rest() {
    let mut world = World::new(Mode::Auto, vec![Load::new(0.05, |_| 1.5)], 1);
    world.run(120 * MINUTE);
    let before = world.decisions.len();
    world.run(10 * MINUTE);
    assert_eq!(world.decisions.len(), before, "it rests");
    world.loads[0].cpus = 6.0;
    world.run(MINUTE);
    assert!(world.decisions.len() > before, "it does not rest any more");
}

#[test]
fn without_work_nothing_is_tried() {
    let mut world = World::new(Mode::Auto, vec![Load::new(0.05, |_| 1.5)], 1);
    world.loads[0].cpus = 0.01;
    world.run(10 * MINUTE);
    assert_eq!((world.decisions.len(), world.on_trial), (0, Duration::ZERO));
    world.loads[0].cpus = 1.0;
    world.run(MINUTE);
    assert!(!world.decisions.is_empty());
}

#[test]
fn a_load_that_goes_away_ends_its_trial() {
    let mut world = World::new(
        Mode::Auto,
        vec![Load::new(0.0, |m| 1.5 + m as u32 as f64)],
        1,
    );
    world.run(Duration::from_secs(2));
    assert!(world.mode(0) != Mode::Auto || world.on_trial > Duration::ZERO);
    world.loads[0].cpus = 0.0;
    world.run(MINUTE);
    let last = world.decisions.last().unwrap();
    assert!(last.why.starts_with("too little to do"), "{last:?}");
    assert_eq!(world.mode(0), Mode::Auto);
    assert_eq!(world.taken(), 0, "{:?}", world.decisions);
}

#[test]
fn contexts_have_modes_of_their_own_and_take_turns() {
    let best = |best: Mode| Load::new(0.05, move |m| if m == best { 1.2 } else { 1.5 });
    let loads = vec![best(Mode::Auto), best(Mode::Nest), best(Mode::Off)];
    let mut world = World::new(Mode::Auto, loads, 1);
    world.run(10 * MINUTE);
    let found: Vec<_> = (0..3).map(|number| world.found(number)).collect();
    assert_eq!(found, ["auto", "nest", "off"]);
    for decision in &world.decisions {
        assert_eq!(decision.context, format!("c{}", decision.number));
    }
}

#[test]
fn who_is_pinned_has_the_given_mode_at_once() {
    let score = |mode| if mode == Mode::Nest { 1.2 } else { 1.5 };
    let loads = || vec![Load::new(0.05, score), Load::new(0.05, score)];
    let mut world = World::new(Mode::Off, loads(), 1);
    world.run(MINUTE);
    assert_eq!((world.mode(0), world.mode(1)), (Mode::Nest, Mode::Nest));
    let pinned = Group {
        pinned: Some("line 9".into()),
        ..group(1, Mode::Off)
    };
    let groups = vec![group(0, Mode::Off), pinned.clone()];
    world.adapter.set_groups(groups, world.now);
    // What was found for the other holds.
    assert_eq!((world.mode(0), world.mode(1)), (Mode::Nest, Mode::Off));
    let before = world.decisions.len();
    world.loads[0].cpus = 0.0;
    world.run(60 * MINUTE);
    assert_eq!((world.mode(1), world.decisions.len()), (Mode::Off, before));
    let status = world.adapter.status(world.now, &TUNING);
    assert_eq!(status.contexts[1].state, "pinned by line 9");
    let all = (0..2).map(|number| Group {
        number,
        ..pinned.clone()
    });
    world.adapter.set_groups(all.collect(), world.now);
    assert_eq!(
        (world.adapter.next(), world.adapter.chosen().len()),
        (None, 0)
    );
}

#[test]
fn new_contexts_and_new_sums_end_a_trial_without_a_trace() {
    let score = |mode| if mode == Mode::Nest { 1.2 } else { 1.5 };
    let mut world = World::new(Mode::Off, vec![Load::new(0.05, score)], 1);
    for _ in 0..50 {
        // In the middle of a trial, each time.
        world.run(Duration::from_millis(2350));
        world.adapter.interrupt(world.now);
        assert_eq!(world.mode(0), Mode::Off);
        world.sums[0] = Done::default();
    }
    assert_eq!(world.taken(), 0);
    world.run(MINUTE);
    assert_eq!(world.found(0), "nest");
    // As after a reload: another context stands where this one stood.
    world.adapter.set_groups(
        vec![Group {
            name: "other".into(),
            ..group(0, Mode::Off)
        }],
        world.now,
    );
    assert_eq!(world.mode(0), Mode::Off);
}

#[test]
fn the_latest_decisions_are_kept_and_reported() {
    let mut world = World::new(Mode::Auto, vec![Load::new(0.05, |_| 1.5)], 1);
    for _ in 0..200 {
        world.loads[0].cpus = 8.0 - world.loads[0].cpus;
        world.run(3 * MINUTE);
    }
    assert!(world.decisions.len() > 100, "{}", world.decisions.len());
    let status = world.adapter.status(world.now, &TUNING);
    assert_eq!(
        status.decisions[..],
        world.decisions[world.decisions.len() - 100..]
    );
    let text = status.to_string();
    assert!(
        text.contains("c0: auto, not nest: no better in 2 of"),
        "{text}"
    );
    let json = serde_json::to_string(&status).unwrap();
    assert_eq!(
        serde_json::from_str::<Status>(&json).unwrap().contexts,
        status.contexts
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Modes that are alike, with a load that becomes another one every few minutes: hardly any of the trials changes anything.
    #[test]
    fn noise_does_not_make_it_flap(seed: u64, noise in 0.0..0.5_f64) {
        let mut world = World::new(Mode::Auto, vec![Load::new(noise, |_| 2.0)], seed);
        for _ in 0..80 {
            world.loads[0].cpus = 8.0 - world.loads[0].cpus;
            world.run(5 * MINUTE);
        }
        let trials = world.decisions.len();
        prop_assert!(trials >= 80, "{}", trials);
        // A trial has 11/1024 at most: of 200, more than 10 have a probability of 1e-5.
        prop_assert!(world.taken() as f64 <= 0.02 * trials as f64 + 6.0, "{} of {}", world.taken(), trials);
    }

    /// Whichever mode is the best by twice the margin, it is found and stays.
    #[test]
    fn the_best_mode_is_found(seed: u64, best in 0..3_usize, given in 0..3_usize) {
        let best = DEFAULT_MODES[best];
        let load = Load::new(0.01, move |m| if m == best { 1.41 } else { 1.5 });
        let mut world = World::new(DEFAULT_MODES[given], vec![load], seed);
        world.run(2 * MINUTE);
        prop_assert_eq!(world.found(0), best.name());
        world.run(60 * MINUTE);
        prop_assert_eq!(world.found(0), best.name());
        prop_assert!(world.taken() <= 1);
    }

    /// Whatever loads come and go: the time on trial is bounded.
    #[test]
    fn time_on_trial_is_bounded(
        seed: u64, noise in 0.0..0.9_f64, cpus in proptest::collection::vec(0.0..9.0_f64, 1..40),
    ) {
        let loads = (0..3).map(|_| Load::new(noise, |_| 2.0)).collect();
        let mut world = World::new(Mode::Off, loads, seed);
        for (i, cpus) in cpus.into_iter().enumerate() {
            world.loads[i % 3].cpus = cpus;
            world.run(MINUTE);
            let passed = world.now - world.start;
            // Void pairs may make the last trial longer by half.
            let bound = BURST + TRIAL + passed.mul_f64(TUNING.share);
            prop_assert!(world.on_trial <= bound, "{:?} of {:?}", world.on_trial, passed);
        }
    }
}
