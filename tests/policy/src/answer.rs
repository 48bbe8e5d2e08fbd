// SPDX-License-Identifier: GPL-2.0-only
//! policy/answer.h: who answers whom, as wake-ups say.

use crate::{config, policy, sys};
use proptest::prelude::*;

const MOST: u8 = sys::ANSWERS_MAX as u8;
const USUAL: u8 = sys::ANSWERS_USUAL as u8;
/// Levels of nice -10, 0 and 19.
const HIGH: u32 = 31;
const MIDDLE: u32 = 21;
const LOW: u32 = sys::LEVEL_NICE_19;

fn nothing_known() -> sys::answers {
    // SAFETY: made of integers, and all 0 is that nothing is known.
    unsafe { std::mem::zeroed() }
}

/// Tasks by number, each called by its number and one, and what bpf/answer.bpf.c does with them.
struct Tasks {
    answers: Vec<sys::answers>,
    levels: Vec<u32>,
}

impl Tasks {
    fn new(levels: &[u32]) -> Self {
        Self {
            answers: levels.iter().map(|_| nothing_known()).collect(),
            levels: levels.to_vec(),
        }
    }

    fn name(task: usize) -> u64 {
        task as u64 + 1
    }

    fn wakes(&mut self, waker: usize, wakee: usize) {
        let (by, of) = (Self::name(waker), Self::name(wakee));
        self.answers[wakee].timed = 0;
        if !policy!(answer_matters(
            self.levels[waker],
            self.levels[wakee],
            false
        )) {
            return;
        }
        let is = policy!(answer_is(
            &self.answers[waker],
            by,
            &self.answers[wakee],
            of
        ));
        if is {
            policy!(answers_add(
                &mut self.answers[wakee],
                by,
                self.levels[waker]
            ));
            if self.answers[wakee].asked == by {
                self.answers[wakee].asked = 0;
            }
            return;
        }
        if self.answers[waker].timed != 0 {
            policy!(answers_wrong(&mut self.answers[wakee], by));
        }
        self.answers[waker].asked = of;
    }

    /// Sleeps, and is woken by a timer.
    fn pauses(&mut self, task: usize) {
        self.answers[task].timed = 1;
    }

    /// Whom it waits for as it falls asleep, and whether it was asked.
    fn awaits(&self, task: usize) -> Option<(usize, bool)> {
        let awaited = policy!(answer_awaited(&self.answers[task], self.levels[task]));
        (awaited.self_ != 0).then(|| (awaited.self_ as usize - 1, awaited.asked))
    }
}

const CLIENT: usize = 0;
const SERVER: usize = 1;

#[test]
fn a_client_waits_for_its_server_from_the_second_request_on() {
    let mut tasks = Tasks::new(&[HIGH, LOW]);
    for round in 0..100 {
        tasks.wakes(CLIENT, SERVER);
        let awaited = (round > 0).then_some((SERVER, true));
        assert_eq!(tasks.awaits(CLIENT), awaited, "round {round}");
        tasks.wakes(SERVER, CLIENT);
        assert_eq!(
            tasks.awaits(SERVER),
            None,
            "one that serves waits for nobody"
        );
    }
}

/// Of one that waits for several servers in turn, two are known.
#[test]
fn two_servers_in_turn_are_both_known() {
    let mut tasks = Tasks::new(&[HIGH, LOW, MIDDLE]);
    for round in 0..100 {
        for server in [1, 2] {
            tasks.wakes(CLIENT, server);
            let awaited = (round > 0).then_some((server, true));
            assert_eq!(tasks.awaits(CLIENT), awaited, "round {round}");
            tasks.wakes(server, CLIENT);
        }
    }
}

/// The server was still awake as the next request came, so that this woke nobody.
#[test]
fn a_usual_server_is_waited_for_without_a_request_that_was_seen() {
    let mut tasks = Tasks::new(&[HIGH, LOW]);
    tasks.wakes(CLIENT, SERVER);
    for round in 0..20 {
        tasks.wakes(SERVER, CLIENT);
        let awaited = (round + 1 >= USUAL).then_some((SERVER, false));
        assert_eq!(tasks.awaits(CLIENT), awaited, "round {round}");
    }
    assert_eq!(tasks.awaits(SERVER), None, "and roles stay");
}

/// A task of little weight that wakes a heavy one, whose answers wake it in turn.
#[test]
fn who_wakes_a_heavy_task_of_its_own_accord_gets_nothing() {
    let mut tasks = Tasks::new(&[LOW, HIGH]);
    for round in 0..1000 {
        tasks.wakes(CLIENT, SERVER);
        assert_eq!(tasks.awaits(SERVER), None, "round {round}");
        if round % 3 > 0 {
            tasks.wakes(SERVER, CLIENT);
        }
        assert_eq!(tasks.awaits(SERVER), None, "round {round}");
    }
}

/// The scheduler came as a request was under way: the first wake-up that it saw was an answer.
#[test]
fn roles_that_were_taken_wrongly_are_put_right_by_a_pause() {
    let mut tasks = Tasks::new(&[HIGH, LOW]);
    for _ in 0..100 {
        tasks.wakes(SERVER, CLIENT);
        tasks.wakes(CLIENT, SERVER);
    }
    assert_eq!(tasks.awaits(CLIENT), None);
    for _ in 0..6 {
        tasks.wakes(SERVER, CLIENT);
        tasks.pauses(CLIENT);
        tasks.wakes(CLIENT, SERVER);
    }
    assert_eq!(tasks.awaits(CLIENT), Some((SERVER, true)));
    tasks.wakes(SERVER, CLIENT);
    for _ in 0..100 {
        tasks.wakes(CLIENT, SERVER);
        assert_eq!(tasks.awaits(CLIENT), Some((SERVER, true)));
        tasks.wakes(SERVER, CLIENT);
    }
}

/// One that sleeps for something else is believed less each time.
#[test]
fn wrong_guesses_end() {
    let mut answers = nothing_known();
    for _ in 0..100 {
        policy!(answers_add(&mut answers, 7, LOW));
    }
    assert_eq!(policy!(answers_by(&answers, 7)), u32::from(MOST));
    let mut wrong = 0;
    while policy!(answer_awaited(&answers, HIGH)).self_ != 0 {
        policy!(answers_wrong(&mut answers, 7));
        wrong += 1;
    }
    assert_eq!(wrong, 2);
    assert_ne!(policy!(answers_by(&answers, 7)), 0, "it may still be asked");
}

proptest! {
    #![proptest_config(config())]

    /// Tasks of equal weight have nothing to do with each other.
    #[test]
    fn nothing_is_learned_among_equals(wakes in prop::collection::vec((0..4usize, 0..4usize), 0..200)) {
        let mut tasks = Tasks::new(&[MIDDLE; 4]);
        for (waker, wakee) in wakes {
            if waker != wakee {
                tasks.wakes(waker, wakee);
            }
            prop_assert_eq!(tasks.answers[waker].asked, 0);
            prop_assert_eq!(tasks.awaits(waker), None);
        }
    }

    /// Whatever comes: who is waited for weighs less, has answered, and has been asked or is usual.
    #[test]
    fn only_who_was_asked_and_answered_is_waited_for(
        levels in prop::collection::vec(1..=sys::LEVEL_NICE_BEST, 5),
        events in prop::collection::vec((0..5usize, 0..5usize, 0..4u8), 0..300)
    ) {
        let mut tasks = Tasks::new(&levels);
        for (a, b, what) in events {
            if a != b {
                match what {
                    0 => tasks.pauses(a),
                    1 => policy!(answers_wrong(&mut tasks.answers[a], Tasks::name(b))),
                    _ => tasks.wakes(a, b),
                }
            }
            for (task, answers) in tasks.answers.iter().enumerate() {
                prop_assert!(answers.nr.iter().all(|nr| *nr <= MOST));
                let Some((other, asked)) = tasks.awaits(task) else { continue };
                prop_assert!(levels[other] < levels[task]);
                let nr = policy!(answers_by(answers, Tasks::name(other)));
                let least = if asked { 1 } else { u32::from(USUAL) };
                prop_assert!(nr >= least);
                prop_assert_eq!(asked, answers.asked == Tasks::name(other));
            }
        }
    }

    /// Who answers more often than all others together stays known.
    #[test]
    fn most_answers_keep_their_place(others in prop::collection::vec(2..200u64, 0..100)) {
        let mut answers = nothing_known();
        policy!(answers_add(&mut answers, 1, LOW));
        policy!(answers_add(&mut answers, 1, LOW));
        for other in others {
            policy!(answers_add(&mut answers, other, LOW));
            policy!(answers_add(&mut answers, 1, LOW));
            prop_assert!(policy!(answers_by(&answers, 1)) > 0);
        }
    }
}
