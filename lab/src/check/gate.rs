// SPDX-License-Identifier: GPL-2.0-only
//! `scx_freqlock machine gate`: the exact runs of a set in two trees of the project, what
//! changed, and which decisions of the scheduler changed with it.

mod changes;

use std::process::ExitCode;

use super::{cases_now, runs, Check, Error, Wanted};
use crate::recorded::{differences, Case, Inputs, PROJECT};
use crate::sim::batch::{side_by_side, Interrupt};
use crate::sim::run::to_stdout;
use crate::sim::workload::measured;
use changes::{common, text, Counted, Reasons};
use freqlock::lab_args::GateArgs;
use freqlock::output;

/// What a guest runs: the workload, with the scheduler's statistics before and after it, each in
/// a line of its own after what the workload prints. The figures are those of other runs.
const COUNT: &str = "\
scx_freqlock counters --json >/tmp/before && \"$@\" && scx_freqlock counters --json >/tmp/after && \
for file in before after; do tr -d '\\n' </tmp/$file && echo || exit 1; done";

pub fn run(args: &GateArgs) -> Result<ExitCode, Error> {
    let interrupt = Interrupt::on_signal()?;
    let load = |root| -> Result<Check, Error> {
        let root: &std::path::Path = root;
        let kit = root.join("target/machine/check/kit.toml");
        let (jobs, timeout_s) = (args.jobs, args.timeout_s);
        Check::load(root, &args.set, &kit, jobs, timeout_s, interrupt.clone())
    };
    let sides = [load(&args.before)?, load(&args.after)?];
    let (before, after) = common(
        &figures(&sides[0], "BEFORE")?,
        &figures(&sides[1], "AFTER")?,
    );
    to_stdout(others(&sides[0].here, &sides[1].here))?;
    let reasons = reasons(&sides, &before, &after);
    let report = text(&before, &after, &reasons, args.within);
    to_stdout(&report.text)?;
    Ok(if report.good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// What the two are run with, as far as that is another: then they differ by that as well.
fn others(before: &Inputs, after: &Inputs) -> String {
    let others = differences(before, after).into_iter();
    // The agent is part of it.
    let others = others.filter(|other| !other.starts_with("image "));
    others
        .map(|other| format!("Not only the project is another: {other}\n"))
        .collect()
}

/// The recorded figures of a tree if they are its own, else those of runs.
fn figures(check: &Check, name: &str) -> Result<Vec<Case>, Error> {
    let recorded = &check.recorded;
    let unrecorded = |case: &Case| case.metric.is_none() && case.values.contains(&0.0);
    if recorded.inputs == check.here && !recorded.cases.iter().any(unrecorded) {
        output::say(format_args!(
            "{name}: its recorded figures count, for nothing that they depend on is another"
        ));
        return Ok(recorded.cases.clone());
    }
    let wanted = runs(&recorded.cases);
    let why = match recorded.inputs.get(PROJECT) == check.here.get(PROJECT) {
        true => differences(&recorded.inputs, &check.here).join("; "),
        false => "the times were not recorded with its bpf/, machine/ and bench/".into(),
    };
    output::say(format_args!(
        "{name}: {} runs are made: {why}",
        wanted.len()
    ));
    let ran = check.run(&wanted);
    cases_now(&recorded.cases, &ran).ok_or_else(|| Error::NoFigures(name.into()))
}

/// Makes the runs that changed once more in both trees, and counts what the scheduler did.
fn reasons(sides: &[Check; 2], before: &[Case], after: &[Case]) -> Reasons {
    let wanted = changes::to_explain(before, after);
    let both: Vec<_> = (wanted.iter())
        .flat_map(|wanted| sides.iter().map(move |side| (side, *wanted)))
        .collect();
    if !both.is_empty() {
        output::say(format_args!(
            "{} runs are made once more, to count decisions",
            both.len()
        ));
    }
    let memory = sides.iter().flat_map(|side| side.machines.values());
    let memory = memory.map(|machine| machine.memory_mb).max();
    let counted = side_by_side(
        &both,
        crate::sim::batch::jobs(sides[0].jobs, memory.unwrap_or(0)),
        &sides[0].interrupt,
        |(side, wanted)| count(side, *wanted),
        |(_, wanted), counted| {
            if let Some(Err(reason)) = counted {
                let name = wanted.setup.name(wanted.seed);
                output::say(format_args!("{name}: nothing counted: {reason}"));
            }
        },
    );
    let mut counted = counted.into_iter().map(|ran| ran.and_then(Result::ok));
    (wanted.iter())
        .map(|wanted| {
            let both = (counted.next().flatten(), counted.next().flatten());
            (wanted.setup.clone(), wanted.seed, both)
        })
        .collect()
}

fn count(check: &Check, wanted: Wanted) -> Result<Counted, String> {
    let command = ["bash", "-c", COUNT, "bash"].map(String::from);
    let mut report = check.simulate(wanted, command.into())?.report;
    let metrics = Counted::take(&mut report.stdout);
    Ok(Counted {
        metrics: measured(&report)?,
        statistics: metrics?,
    })
}
