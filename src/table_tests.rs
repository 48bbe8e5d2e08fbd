// SPDX-License-Identifier: GPL-2.0-only
//! What the tables' parser takes and refuses, and the Rust that it makes.

use super::*;

const KNOB: &str =
    r#"KNOB(slice_us, "us", 4000, 100, 100000, live, "Time slice: how long, at most")"#;

#[test]
fn a_knob_line_gives_its_seven_fields() {
    let text = format!("/* a\n * comment */\n#ifndef KNOB\n#endif\n\n{KNOB}\n");
    let (knobs, retired) = parse_knobs("k.h", &text).unwrap();
    assert_eq!(retired, []);
    assert_eq!(
        knobs,
        [KnobLine {
            name: "slice_us".into(),
            unit: "us".into(),
            default: 4000,
            min: 100,
            max: 100000,
            live: true,
            task: false,
            meaning: "Time slice: how long, at most".into(),
        }]
    );
    let source = knobs_source(&knobs, &retired);
    assert!(source.contains(
        "pub mode: u64,\n    /// Time slice: how long, at most (us)\n    pub slice_us: u64,"
    ));
    assert!(source.contains("$to.slice_us = $from.slice_us;"));
}

#[test]
fn a_malformed_line_is_named_by_file_and_line() {
    for (bad, why) in [
        (
            "KNOB(a, \"us\", 1, 0, 2)",
            "k.h:2: expected 7 arguments, found 5",
        ),
        (
            "KNOB(A, \"us\", 1, 0, 2, live, \"m\")",
            "k.h:2: `A` is not a name in lower case",
        ),
        (
            "KNOB(a, us, 1, 0, 2, live, \"m\")",
            "k.h:2: `us` is not a string literal with text",
        ),
        (
            "KNOB(a, \"us\", 0x1, 0, 2, live, \"m\")",
            "k.h:2: `0x1` is not a plain decimal number",
        ),
        (
            "KNOB(a, \"us\", 3, 0, 2, live, \"m\")",
            "k.h:2: default 3 is outside 0..2",
        ),
        (
            "KNOB(a, \"us\", 1, 0, 2, \"m",
            "k.h:2: expected KNOB(...) on one line",
        ),
        (
            "KNOB(a, \"us\", 1, 0, 2, \"m)",
            "k.h:2: string literal without end",
        ),
        (
            "KNOB(a, \"us\", 1, 0, 2, always, \"m\")",
            "k.h:2: `always` is neither start, live nor task",
        ),
        ("int x;", "k.h:2: expected KNOB(...) on one line"),
    ] {
        assert_eq!(parse_knobs("k.h", &format!("\n{bad}\n")).unwrap_err(), why);
    }
    let twice = format!("{KNOB}\n{KNOB}\n");
    assert_eq!(
        parse_knobs("k.h", &twice).unwrap_err(),
        "k.h:2: `slice_us` is defined twice"
    );
    assert_eq!(
        parse_stats("s.h", "").unwrap_err(),
        "s.h: no STAT(...) line found"
    );
}

#[test]
fn a_retired_name_stands_for_a_knob_that_there_is() {
    let parse = |was: &str| parse_knobs("k.h", &format!("{KNOB}\n{was}\n"));
    let (knobs, retired) = parse("KNOB_WAS(turn_us, slice_us)").unwrap();
    let source = knobs_source(&knobs, &retired);
    assert!(
        source.contains("Retired { old: \"turn_us\", old_flag: \"turn-us\", new: \"slice_us\" }")
    );
    for (bad, why) in [
        ("KNOB_WAS(a, b)", "there is no knob `b`"),
        (
            "KNOB_WAS(slice_us, slice_us)",
            "`slice_us` is defined twice",
        ),
        ("KNOB_WAS(a)", "expected 2 arguments, found 1"),
    ] {
        assert_eq!(parse(bad).unwrap_err(), format!("k.h:2: {why}"));
    }
}

#[test]
fn a_statistic_of_tasks_says_its_unit() {
    let text = "TASK_STAT(run, ns, \"On a CPU\")\nTASK_STAT(moved, count, \"Moves\")";
    let stats = parse_task_stats("t.h", text).unwrap();
    let source = task_stats_source(&stats);
    assert!(source.contains("#[stat(desc = \"On a CPU\")]\n    pub run_ns: u64,"));
    assert!(source.contains("moved: values[1],"));
    let error = parse_task_stats("t.h", "TASK_STAT(run, us, \"m\")").unwrap_err();
    assert_eq!(error, "t.h:1: `us` is neither ns nor count");
}

#[test]
fn a_mode_line_becomes_a_variant_with_its_names() {
    let text = "MODE(off, \"off\", 0, \"Plain\")\nMODE(fork_local, \"fork-local\", SCANS | WARM, \"Near\")";
    let modes = parse_choices(&MODES, "m.h", text).unwrap();
    assert_eq!(modes[0].flags, [""; 0]);
    assert_eq!(modes[1].flags, ["SCANS", "WARM"]);
    let source = choices_source(&MODES, &modes);
    for part in [
        "    /// Near\n    #[value(name = \"fork-local\")]\n    ForkLocal = crate::intf::fl_mode_FL_MODE_fork_local,",
        "Self::ForkLocal => \"fork-local\",",
        "Self::Off => 0,",
        "Self::ForkLocal => crate::intf::fl_mode_flags_SCANS | crate::intf::fl_mode_flags_WARM,",
    ] {
        assert!(source.contains(part), "{part} in {source}");
    }
    let sources = parse_choices(
        &SOURCES,
        "s.h",
        "SOURCE(aperf, \"aperf\", COUNTERS, \"Cycles\")",
    );
    let source = choices_source(&SOURCES, &sources.unwrap());
    let variant =
        "#[value(name = \"aperf\")]\n    Aperf = crate::intf::fl_freq_source_FL_FREQ_aperf,";
    assert!(source.contains(variant), "{source}");
    let events = parse_choices(
        &EVENTS,
        "e.h",
        "EVENT(idle_end, \"idle-end\", TRACED, \"Up\")",
    );
    let source = choices_source(&EVENTS, &events.unwrap());
    let variant = "IdleEnd = crate::intf::fl_trace_FL_TRACE_idle_end,";
    assert!(source.contains(variant), "{source}");
    let twice = format!("{text}\nMODE(nest, \"off\", 0, \"Twice\")");
    let error = parse_choices(&MODES, "m.h", &twice).unwrap_err();
    assert_eq!(error, "m.h:3: `nest` or \"off\" is defined twice");
    let hooks = parse_choices(
        &HOOKS,
        "h.h",
        "HOOK(may_wait, \"may_wait\", HOOK_LOCKS, \"Whether\")",
    );
    let source = choices_source(&HOOKS, &hooks.unwrap());
    assert!(source.contains("MayWait = crate::intf::fl_hook_name_FL_HOOK_may_wait,"));
}

#[test]
fn a_stat_line_becomes_a_documented_field() {
    let stats = parse_stats("s.h", "STAT(fork, event, \"Forked tasks\")").unwrap();
    assert_eq!(stats[0].group, "event");
    let source = metrics_source(&stats);
    assert!(source.contains("#[stat(desc = \"Forked tasks\")]\n    pub fork: u64,"));
    assert!(source.contains("fork: counts[0],"));
}
