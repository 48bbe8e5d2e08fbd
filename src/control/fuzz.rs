// SPDX-License-Identifier: GPL-2.0-only
//! Whatever comes over the socket: the server that listens and the values behind it,
//! asked with requests that are right, nearly right, cut off and too long.

use super::server::tests::{start, Running};
use super::*;
use crate::fuzz::{changed, for_a_while};
use crate::knobs::{current, KNOBS};
use crate::mode::Mode;
use crate::settings::{check_value, text, Assignment, MODE};
use clap::ValueEnum;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestCaseResult;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Longer waits are taken for endless.
const PATIENCE: Duration = Duration::from_secs(20);

type Values = BTreeMap<String, String>;

/// A key and a value, more often than not such as there are.
fn assignment() -> impl Strategy<Value = Assignment> {
    let keys: Vec<&str> = KNOBS.iter().map(|knob| knob.name).chain([MODE]).collect();
    let knob = (select(KNOBS), any::<u64>()).prop_map(|(knob, value)| {
        let value = knob.min + value % (knob.max - knob.min + 1);
        Assignment::new(knob.name, value)
    });
    let modes: Vec<&str> = Mode::value_variants().iter().map(|m| m.name()).collect();
    let mode = select(modes).prop_map(|mode| Assignment::new(MODE, mode));
    let wrong = (select(keys), "[-+ 0-9a-fx._]{0,6}").prop_map(|(k, v)| Assignment::new(k, v));
    prop_oneof![12 => knob, 2 => mode, 1 => wrong]
}

fn request() -> impl Strategy<Value = Request> {
    prop_oneof![
        6 => vec(assignment(), 0..4).prop_map(Request::Set),
        2 => Just(Request::Undo),
        1 => Just(Request::Get),
        1 => Just(Request::Changes),
        1 => Just(Request::Status),
        1 => Just(Request::Reload),
        1 => any::<u32>().prop_map(Request::Explain),
    ]
}

/// One line, without its end.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let meant = || request().prop_map(|request| serde_json::to_vec(&request).unwrap());
    let line = prop_oneof![meant(), changed(meant()), vec(any::<u8>(), 0..40)];
    line.prop_map(|mut line| {
        line.retain(|byte| *byte != b'\n');
        line
    })
}

/// What may come at the end of a connection.
#[derive(Clone, Debug)]
enum Last {
    Nothing,
    /// A line without its end.
    Half(Vec<u8>),
    Long(usize),
}

fn last() -> impl Strategy<Value = Last> {
    prop_oneof![
        4 => Just(Last::Nothing),
        4 => line().prop_map(Last::Half),
        1 => (60_000..100_000usize).prop_map(Last::Long),
    ]
}

/// One connection.
struct Talk {
    stream: UnixStream,
    answers: BufReader<UnixStream>,
    /// Bytes that are written at once.
    piece: usize,
}

impl Talk {
    fn begin(running: &Running, piece: usize) -> Self {
        let stream = running.connect();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let answers = BufReader::new(stream.try_clone().unwrap());
        Self {
            stream,
            answers,
            piece,
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        for piece in bytes.chunks(self.piece) {
            self.stream.write_all(piece).unwrap();
        }
    }

    fn ask(&mut self, line: &[u8]) -> Answer {
        self.write(&[line, b"\n"].concat());
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap()
    }

    fn values(&mut self) -> Values {
        match self.ask(b"\"get\"") {
            Answer::Values(values) => values.into_iter().map(|v| (v.key, v.value)).collect(),
            other => panic!("{other:?}"),
        }
    }
}

/// An answer to what was asked is well-formed and fits what it did.
fn judge(line: &[u8], answer: &Answer, before: &Values, after: &Values) -> TestCaseResult {
    for (key, value) in after {
        prop_assert!(
            key == MODE || check_value_of(key, value),
            "{}={}",
            key,
            value
        );
    }
    let request: Result<Request, _> = serde_json::from_slice(line);
    let changes = match (&request, answer) {
        (_, Answer::Error(why)) => {
            prop_assert!(!why.is_empty());
            &Vec::new()
        }
        (Ok(Request::Set(wanted)), Answer::Changed(changes)) => {
            for Assignment { key, value } in wanted {
                let number = check_value(key, value);
                prop_assert!(number.is_ok(), "{} was taken", value);
                prop_assert_eq!(&text(key, number.unwrap()), &after[current(key)]);
            }
            changes
        }
        (Ok(Request::Undo), Answer::Changed(changes)) => changes,
        (Ok(Request::Get), Answer::Values(_))
        | (Ok(Request::Changes), Answer::Changes(_))
        | (Ok(Request::Status), Answer::Status(_))
        | (Ok(Request::Reload), Answer::Reloaded(_)) => &Vec::new(),
        _ => return Err(TestCaseError::fail(format!("{request:?}: {answer:?}"))),
    };
    let mut expected = before.clone();
    for change in changes {
        let was = expected.insert(change.key.clone(), change.after.clone());
        prop_assert_eq!(was.as_ref(), Some(&change.before));
    }
    prop_assert_eq!(
        after,
        &expected,
        "what is reported, and no more, has changed"
    );
    Ok(())
}

fn check_value_of(key: &str, value: &str) -> bool {
    let knob = KNOBS.iter().find(|knob| knob.name == key);
    knob.is_some_and(|knob| knob.parse(value).is_ok())
}

#[test]
fn whatever_comes_is_answered_and_changes_all_or_nothing() {
    let running = start();
    for_a_while(
        (
            vec(line(), 1..12),
            last(),
            select(vec![1, 20, 500, 100_000]),
        ),
        |(lines, last, piece)| {
            let mut talk = Talk::begin(&running, piece);
            let mut before = talk.values();
            for line in &lines {
                let answer = talk.ask(line);
                let after = talk.values();
                judge(line, &answer, &before, &after)?;
                before = after;
            }
            let mut rest = String::new();
            match last {
                Last::Nothing => {}
                Last::Half(line) => talk.write(&line),
                // It may be closed before all is taken.
                Last::Long(bytes) => drop((&talk.stream).write_all(&vec![b'['; bytes])),
            }
            drop(talk.stream.shutdown(Shutdown::Write));
            // A reset is an end, too.
            drop(talk.answers.read_to_string(&mut rest));
            for line in rest.lines() {
                let answer: Answer = serde_json::from_str(line).unwrap();
                prop_assert!(matches!(answer, Answer::Error(_)), "{:?}", answer);
            }
            prop_assert_eq!(Talk::begin(&running, piece).values(), before);
            Ok(())
        },
    );
}
