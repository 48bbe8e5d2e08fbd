// SPDX-License-Identifier: GPL-2.0-only
//! Whatever a file of contexts says: reloaded as the running scheduler does it, it is in
//! force wholly, with values in their ranges, or nothing has changed.

use super::*;
use crate::control::{Answer, Peer, Request, Settings};
use crate::fuzz::{changed, for_a_while};
use crate::intf;
use crate::knobs::{Tunables, KNOBS};
use crate::mode::Mode;
use clap::ValueEnum;
use proptest::collection::vec;
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestCaseResult;

const GOOD: &str = "[[context]]\nmatch.command = \"first\"\nslice_us = 2000\n";

/// KEY = VALUE of a knob, in some of the ways to write a number.
fn knob() -> impl Strategy<Value = String> {
    let task: Vec<_> = KNOBS.iter().filter(|knob| knob.task).collect();
    let right = (select(task), any::<u64>(), 0..5).prop_map(|(knob, value, form)| {
        let value = knob.min + value % (knob.max - knob.min + 1);
        match form {
            0 => format!("{} = {value:#x}", knob.name),
            1 => format!("\"{}\" = {value:#o} # so", knob.name),
            2 if knob.is_switch() => format!("{} = {}", knob.name, value == 1),
            _ => format!("{} = {value}", knob.name),
        }
    });
    let names: Vec<_> = KNOBS
        .iter()
        .map(|knob| knob.name)
        .chain(["name", "mode"])
        .collect();
    let values =
        "-?[0-9]{1,20}|true|\"[a-z]{0,5}\"|[0-9]\\.[0-9]|\\[1, 2\\]|1979-05-27|\\{ a = 1 \\}|inf";
    let wrong = (select(names), values).prop_map(|(name, value)| format!("{name} = {value}"));
    prop_oneof![20 => right, 1 => wrong]
}

/// What a context asks for.
fn rule() -> impl Strategy<Value = String> {
    let command = "command = \"[a-z?*]{1,18}\"";
    let cgroup = "cgroup = \"(/[a-z?*.]{0,9}){1,6}\"";
    let user = "user = ([0-9]{1,10}|\"root\"|\"no-such-user\")";
    (
        weighted(0.8, command),
        weighted(0.3, cgroup),
        weighted(0.3, user),
        any::<bool>(),
    )
        .prop_map(|(command, cgroup, user, inline)| {
            let all: Vec<_> = [command, cgroup, user].into_iter().flatten().collect();
            if inline {
                format!("match = {{ {} }}", all.join(", "))
            } else {
                all.iter().map(|one| format!("match.{one}\n")).collect()
            }
        })
}

fn context() -> impl Strategy<Value = String> {
    let modes: Vec<_> = Mode::value_variants()
        .iter()
        .map(|mode| mode.name())
        .collect();
    let mode = select(modes).prop_map(|mode| format!("mode = '{mode}'"));
    let name = "name = \"\\PC{0,8}\"";
    (
        rule(),
        weighted(0.3, name),
        weighted(0.3, mode),
        vec(knob(), 0..4),
    )
        .prop_map(|(rule, name, mode, knobs)| {
            let lines = [Some("[[context]]".into()), Some(rule), name, mode]
                .into_iter()
                .flatten();
            lines.chain(knobs).collect::<Vec<String>>().join("\n") + "\n"
        })
}

fn file() -> impl Strategy<Value = Vec<u8>> {
    let contexts = |n| vec(context(), n).prop_map(|all| all.concat().into_bytes());
    prop_oneof![
        6 => contexts(0..5),
        6 => changed(contexts(0..5)),
        1 => contexts(60..70),
        1 => vec(any::<u8>(), 0..100),
    ]
}

/// All that the BPF side is given.
fn given(settings: &Settings) -> (u32, Vec<String>, Vec<(usize, Tunables)>) {
    let (contexts, base) = (settings.contexts(), settings.tunables());
    let rules = contexts.rules().map(|rule| format!("{rule:?}"));
    (
        contexts.version(),
        rules.collect(),
        contexts.policies(base).collect(),
    )
}

fn judge(settings: &Settings) -> TestCaseResult {
    let contexts = settings.contexts();
    prop_assert!(contexts.len() <= MAX_CONTEXTS);
    for (_, rule) in contexts.rules() {
        prop_assert!(rule.asks != 0);
        for glob in rule.glob {
            prop_assert_eq!(glob.pattern.last(), Some(&0), "a string of C");
        }
    }
    for (_, mut values) in contexts.policies(settings.tunables()) {
        prop_assert!(values.mode < u64::from(intf::fl_mode_FL_NR_MODES));
        for knob in KNOBS {
            let value = *values.knob_mut(knob.name).unwrap();
            prop_assert!(
                (knob.min..=knob.max).contains(&value),
                "{}={}",
                knob.name,
                value
            );
        }
    }
    for number in 1..=contexts.len() as u32 {
        let values = &contexts.get(number).unwrap().values;
        let value = |key| values.iter().find(|v| v.key == key).map(|v| v.value);
        if let (Some(min), Some(max)) = (value("weight_min"), value("weight_max")) {
            prop_assert!(min <= max);
        }
    }
    Ok(())
}

#[test]
fn any_file_is_taken_wholly_or_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("contexts.toml");
    for_a_while(file(), |bytes| {
        std::fs::write(&path, GOOD).unwrap();
        let contexts = InForce::start(Some(&path)).unwrap();
        let mut settings = Settings::new(Tunables::new(Mode::Auto), contexts);
        let before = given(&settings);
        std::fs::write(&path, &bytes).unwrap();
        let reload = |settings: &mut Settings| {
            settings.answer(&Request::Reload, Peer::default(), 1, |_| Ok(None))
        };
        match reload(&mut settings) {
            Answer::Reloaded(text) => {
                let count = format!("contexts: {}", settings.contexts().len());
                prop_assert!(text.starts_with(&count), "{}", text);
                prop_assert_ne!(given(&settings).0, before.0, "tasks are to look again");
                judge(&settings)?;
            }
            Answer::Error(why) => {
                prop_assert_eq!(&given(&settings), &before);
                prop_assert!(why.contains("contexts.toml"), "{}", why);
                let place = why.split("contexts.toml:").nth(1);
                let line = place.and_then(|place| place.split(':').next()?.parse().ok());
                let lines = 1 + bytes.iter().filter(|byte| **byte == b'\n').count();
                match std::str::from_utf8(&bytes) {
                    Ok(_) => prop_assert!((1..=lines).contains(&line.unwrap_or(0)), "{}", why),
                    Err(_) => prop_assert!(why.contains("cannot read"), "{}", why),
                }
                std::fs::write(&path, GOOD).unwrap();
                prop_assert!(matches!(reload(&mut settings), Answer::Reloaded(_)));
                prop_assert_eq!(&given(&settings).1.len(), &before.1.len());
            }
            other => return Err(TestCaseError::fail(format!("{other:?}"))),
        }
        Ok(())
    });
}
