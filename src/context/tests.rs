// SPDX-License-Identifier: GPL-2.0-only
//! Files of contexts, right and wrong.

use super::file::parse;
use super::*;
use crate::knobs::{Knob, Tunables, KNOBS, RETIRED};
use crate::mode::Mode;
use proptest::prelude::*;
use std::path::Path;

const GOOD: &str = r#"# Which services are special here.
[[context]]
name = "database"
match = { cgroup = "/system.slice/db*.service", user = 0 }
mode = "nest"
slice_us = 2_000
prefer_big = true

[[context]]
match.command = "make*"
weight_max = 0x100
"#;

fn error(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

/// One context with these lines after its rule, which are 3 and following.
fn with(lines: &str) -> String {
    format!("[[context]]\nmatch.command = \"a\"\n{lines}\n")
}

#[test]
fn a_file_says_what_it_says() {
    let Contexts(contexts) = parse(GOOD).unwrap();
    let [database, make] = contexts.as_slice() else {
        panic!("{contexts:?}");
    };
    assert_eq!(database.name, Some("database".into()));
    assert_eq!((database.line, make.line), (2, 9));
    assert_eq!(
        database.rule.to_string(),
        "cgroup /system.slice/db*.service, user 0"
    );
    let mut expected = Tunables::new(Mode::Nest);
    expected.slice_us = 2000;
    expected.prefer_big = 1;
    assert_eq!(database.over(&Tunables::new(Mode::Off)), expected);
    let slice = database.values.iter().find(|v| v.key == "slice_us");
    assert_eq!(slice.map(|v| v.line), Some(6));
    let mut expected = Tunables::new(Mode::Off);
    expected.weight_max = 256;
    assert_eq!(make.over(&Tunables::new(Mode::Off)), expected);
    assert_eq!(parse("").unwrap(), Contexts::default());
}

#[test]
fn a_retired_name_stands_for_the_knob_that_it_was() {
    for retired in RETIRED {
        let (old, knob) = (retired.old, Knob::find(retired.new).unwrap());
        let text = with(&format!("{old} = {}", knob.max));
        if !knob.task {
            let message = error(&text);
            assert!(message.contains("the same for all tasks"), "{message}");
            continue;
        }
        let values = parse(&text).unwrap().0.remove(0).values;
        let got: Vec<_> = (values.iter().map(|v| (v.key, v.value, v.line))).collect();
        assert_eq!(got, [(retired.new, knob.max, 3)]);
        assert_eq!(values[0].retired, Some(retired));
        let both = with(&format!("{old} = {0}\n{1} = {0}", knob.max, retired.new));
        let message = error(&both);
        assert!(message.contains("is set twice"), "{message}");
    }
}

#[test]
fn a_mistake_is_reported_with_line_and_column() {
    for (text, want) in [
        (
            with("slice_u = 1000"),
            "3:1: there is no `slice_u` here (did you mean slice_us?)",
        ),
        (
            with("slice_us = 1"),
            "3:12: slice_us=1: not a whole number in 100..=100000 (us)",
        ),
        (
            with("slice_us = \"1000\""),
            "3:12: `slice_us` is a whole number",
        ),
        (
            with("slice_us = true"),
            "3:12: `slice_us` is a whole number",
        ),
        (
            with("slice_us = -1"),
            "3:12: slice_us=-1: not a whole number",
        ),
        (with("slice_us = 1e3"), "3:12: `slice_us` is a whole number"),
        (
            with("slice_us = 99999999999999999999999"),
            "3:12: slice_us=9999",
        ),
        (with("mode = \"fast\""), "3:8: mode=fast: not one of off, "),
        (with("mode = 3"), "3:8: mode=3: not one of off, "),
        (
            with("balance_us = 4000"),
            "3:1: `balance_us` is the same for all tasks",
        ),
        (with("locks = 0"), "3:1: `locks` is the same for all tasks"),
        (with("name = 7"), "3:8: this has to be a text in quotes"),
        (with("slice_us = 200\nslice_us = 300"), "4:1: duplicate key"),
        (
            with("weight_min = 9\nweight_max = 8"),
            "weight_min = 9 is more than weight_max = 8",
        ),
        (
            "[[contexts]]".into(),
            "1:3: there is no `contexts` here (did you mean context?)",
        ),
        ("[context]".into(), "write each context as [[context]]"),
        (
            "context = 1".into(),
            "1:11: write each context as [[context]]",
        ),
        (
            "context = [1]".into(),
            "1:12: write each context as [[context]]",
        ),
        (
            "[[context]]\nmode = \"off\"".into(),
            "1:1: which tasks is it for?",
        ),
        (
            "[[context]]\nmatch = {}".into(),
            "1:1: which tasks is it for?",
        ),
        (
            "[[context]]\nmatch = \"a\"".into(),
            "2:9: write it as match = {",
        ),
        (
            "[[context]]\nmatch.comand = \"a\"".into(),
            "2:7: there is no `comand` here (did you mean command?)",
        ),
        (
            "[[context]]\nmatch.command = 1".into(),
            "2:17: this has to be a text",
        ),
        (
            "[[context]]\nmatch.cgroup = \"db.slice\"".into(),
            "2:16: a cgroup is a path from the root",
        ),
        (
            "[[context]]\nmatch.user = \"no-such-user\"".into(),
            "2:14: there is no user `no-such-user`",
        ),
        (
            "[[context]]\nmatch.user = 4294967296".into(),
            "2:14: not the number of a user",
        ),
        ("[[context]\n".into(), "1:11: "),
        ("# ü\n[[context]] ü".into(), "2:13: "),
    ] {
        let message = error(&text);
        assert!(message.contains(want), "{text}\n{message}");
    }
}

#[test]
fn what_no_task_would_get_to_is_refused() {
    let two = |a: &str, b: &str| format!("[[context]]\n{a}\n[[context]]\n{b}\n");
    for first in [
        "match.command = \"*\"",
        "match.cgroup = \"/\"",
        "match.command = \"b\"",
    ] {
        let message = error(&two(first, "match.command = \"b\""));
        assert!(
            message.contains("3:1: no task would be in this context"),
            "{message}"
        );
        assert!(message.contains("context 1 in line 1"), "{message}");
    }
    // The other way round, the first is an exception.
    let last = two("match.command = \"b\"", "match.command = \"*\"");
    assert_eq!(parse(&last).unwrap().0.len(), 2);
    let names = two(
        "name = \"n\"\nmatch.command = \"a\"",
        "name = \"n\"\nmatch.command = \"b\"",
    );
    assert!(error(&names).contains("has this name already"));
}

#[test]
fn as_many_as_there_is_room_for_and_no_more() {
    let many = |n: usize| -> String {
        (0..n)
            .map(|i| format!("[[context]]\nmatch.command = \"c{i}\"\n"))
            .collect()
    };
    assert_eq!(parse(&many(MAX_CONTEXTS)).unwrap().0.len(), MAX_CONTEXTS);
    let message = error(&many(10_000));
    assert!(
        message.contains("10000 contexts are more than the 64"),
        "{message}"
    );
    assert!(message.starts_with("129:1:"), "{message}");
}

#[test]
fn what_is_no_file_of_contexts_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("contexts.toml");
    let refused = |path: &Path| {
        format!(
            "{:#}",
            anyhow::Error::new(Contexts::load(path).unwrap_err())
        )
    };
    std::os::unix::fs::symlink(&path, &path).unwrap();
    let message = refused(&path);
    assert_eq!(message.matches("symbolic links").count(), 1, "{message}");
    assert!(
        message.contains("cannot read") && message.contains("symbolic links"),
        "{message}"
    );
    std::fs::remove_file(&path).unwrap();
    for bytes in [vec![b'#'; (1 << 20) + 1], vec![0xff, 0xfe]] {
        std::fs::write(&path, bytes).unwrap();
        let message = refused(&path);
        assert!(message.contains("cannot read"), "{message}");
    }
    std::fs::remove_file(&path).unwrap();
    // From which reading would not end.
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    for not in [path.as_path(), dir.path(), "/dev/zero".as_ref()] {
        let message = refused(not);
        assert!(message.contains("no plain file"), "{message}");
    }
}

/// A context of a proptest: a command and a value for one knob.
fn any_context() -> impl Strategy<Value = (usize, u64)> {
    let knobs: Vec<usize> = (0..KNOBS.len()).filter(|i| KNOBS[*i].task).collect();
    (proptest::sample::select(knobs), any::<u64>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn what_was_written_is_read(contexts in proptest::collection::vec(any_context(), 0..20)) {
        let value = |(i, value): &(usize, u64)| {
            let knob = &KNOBS[*i];
            (knob.name, knob.min + value % (knob.max - knob.min + 1))
        };
        let text: String = contexts.iter().enumerate().map(|(n, context)| {
            let (key, value) = value(context);
            format!("[[context]]\nmatch.command = \"c{n}\"\n{key} = {value}\n")
        }).collect();
        let read = parse(&text).unwrap();
        prop_assert_eq!(read.0.len(), contexts.len());
        for (n, (read, written)) in read.0.iter().zip(&contexts).enumerate() {
            let (key, value) = value(written);
            let expected = Value { key, value, line: 3 * n + 3, retired: None };
            prop_assert_eq!(&read.values, &vec![expected]);
        }
    }

    /// Whatever a file holds: contexts whose values are in their ranges, or an error at a
    /// place that there is.
    #[test]
    fn any_text_is_answered(text in "(\\[\\[context\\]\\]|match|mode|slice_us|=|\\.|\"|\\{|\\}|\n| |[a-z0-9/*\u{0}-\u{ff}]){0,60}") {
        judge(&text)?;
    }

    #[test]
    fn a_good_file_with_a_piece_changed_is_answered(
        at in 0..GOOD.len(),
        long in 0..20usize,
        piece in "[\\[\\]{}=\".,#\n a-z0-9_-]{0,6}",
    ) {
        let mut text = GOOD.to_string();
        text.replace_range(at..(at + long).min(GOOD.len()), &piece);
        judge(&text)?;
    }
}

fn judge(text: &str) -> Result<(), TestCaseError> {
    match parse(text) {
        Ok(Contexts(contexts)) => {
            for context in contexts {
                let mut tunables = context.over(&Tunables::new(Mode::Auto));
                for knob in KNOBS {
                    let value = *tunables.knob_mut(knob.name).unwrap();
                    prop_assert!((knob.min..=knob.max).contains(&value));
                }
                prop_assert!((1..=text.lines().count()).contains(&context.line));
                context.rule.encode();
            }
        }
        Err(wrong) => {
            prop_assert!((1..=text.matches('\n').count() + 1).contains(&wrong.line));
            prop_assert!(wrong.column >= 1 && !wrong.why.is_empty());
        }
    }
    Ok(())
}
