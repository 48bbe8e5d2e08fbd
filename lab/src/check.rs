// SPDX-License-Identifier: GPL-2.0-only
//! `scx_freqlock machine check`: the machine's times of a fixed set of runs,
//! held against those recorded in tests/times/SET.toml, to the nanosecond. So a
//! change that makes a scheduler slower is seen at once, and one that is meant
//! to change times has to record them anew.
//!
//! Times depend on more than the scheduler: any other kernel, QEMU, package of
//! the guest, compiler or change of the agent makes another image or machine,
//! and moves single times by some per cent. Where only such things are others
//! than recorded, it says so, and holds what can be held: a run twice gives the
//! same, and each scheduler is about as fast, beside the kernel's own, as it was.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc;
use std::time::Duration;

use crate::recorded::{differences, Case, Inputs, Recorded, Wrong, PROJECT};
use crate::sim;
use crate::sim::batch::{jobs, side_by_side, Interrupt};
use crate::sim::description::Description;
use crate::sim::flat::Variant;
use crate::sim::folders::machines_dir;
use crate::sim::job::{simulate, write, Base, Job};
use crate::sim::run::to_stdout;
use crate::sim::workload::{measured, one_line, shift_us, LIMIT_S};
use crate::sim::{guest, image};
use freqlock::lab_args::{Arch, CheckArgs};
use freqlock::output;

/// The kernel's own scheduler, with which ratios are made.
const BASELINE: &str = "eevdf";

/// How much more or less than recorded a scheduler's time may be beside the
/// kernel's own, where single times cannot be compared. Another image alone moved
/// single runs by 3%, and one of these ratios, of three seeds each, by 6.6%.
const TOLERANCE: f64 = 0.08;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Sim(#[from] sim::error::Error),
    #[error(transparent)]
    Wrong(#[from] Wrong),
    #[error("cannot catch Ctrl-C")]
    Signal(#[from] ctrlc::Error),
}

impl Error {
    /// The exit status: what the simulation says, else that the machine failed.
    pub fn status(&self) -> u8 {
        match self {
            Self::Sim(error) => error.status(),
            Self::Wrong(_) | Self::Signal(_) => 125,
        }
    }
}

/// One run that is to be made, and its result.
#[derive(Clone, Copy)]
struct Wanted {
    case: usize,
    seed: u32,
}

struct Ran {
    wanted: Wanted,
    result: Result<u64, String>,
}

/// What the times depend on.
fn inputs(base: &Base, machines: &Path, cases: &[Case]) -> Result<Inputs, sim::error::Error> {
    let mut project = image::Tree::default();
    let root = machines.with_file_name("");
    for path in ["bpf", "bench/lib.sh", "machine/plugin", "machine/guest"] {
        project.add(&root.join(path), path)?;
    }
    for case in cases {
        let machine = format!("machine/{}.toml", case.machine);
        let workload = format!("bench/{}", case.workload);
        for path in [machine, workload] {
            project.add(&root.join(&path), &path)?;
        }
    }
    let project = project
        .archive()
        .map_err(|source| sim::error::Error::Write { path: root, source })?;
    Ok([
        ("image", base.digest.clone()),
        ("kernel", base.kit.kernel_version.clone()),
        (PROJECT, image::digest(&project)),
        ("qemu", base.kit.qemu_version.clone()),
    ]
    .map(|(name, value)| (name.to_string(), value))
    .into())
}

struct Check<'a> {
    args: &'a CheckArgs,
    base: Base,
    machines: BTreeMap<String, Description>,
    recorded: Recorded,
    interrupt: Interrupt,
}

pub fn run(args: &CheckArgs) -> Result<ExitCode, Error> {
    let dir = machines_dir(None)?;
    let times = dir
        .with_file_name("tests")
        .join("times")
        .join(format!("{}.toml", args.set));
    let recorded = Recorded::load(&times)?;
    let machines = machines(&recorded.cases, &dir)?;
    let base = Base::load(&args.kit, Arch::X86_64)?;
    let here = inputs(&base, &dir, &recorded.cases)?;
    let interrupt = Interrupt::default();
    let on_signal = interrupt.clone();
    ctrlc::set_handler(move || on_signal.interrupt())?;
    let check = Check {
        args,
        base,
        machines,
        recorded,
        interrupt,
    };
    if args.record {
        check.record(here, &times)
    } else {
        check.compare(&here)
    }
}

/// The machines of the cases, by name.
fn machines(
    cases: &[Case],
    dir: &Path,
) -> Result<BTreeMap<String, Description>, sim::error::Error> {
    let names: BTreeSet<&String> = cases.iter().map(|case| &case.machine).collect();
    names
        .into_iter()
        .map(|name| Ok((name.clone(), Description::load(name, dir)?)))
        .collect()
}

impl Check<'_> {
    fn all(&self) -> Vec<Wanted> {
        let cases = self.recorded.cases.iter().enumerate();
        cases
            .flat_map(|(case, of)| {
                (1..)
                    .zip(&of.ns)
                    .map(move |(seed, _)| Wanted { case, seed })
            })
            .collect()
    }

    fn run(&self, wanted: &[Wanted]) -> Vec<Ran> {
        let memory = self.machines.values().map(|machine| machine.memory_mb);
        let total = wanted.len();
        let mut done = 0;
        side_by_side(
            wanted,
            jobs(self.args.jobs, memory.max().unwrap_or(0)),
            &self.interrupt,
            |wanted| Ran {
                wanted: *wanted,
                result: self.time(*wanted),
            },
            |wanted, ran| {
                let Some(ran) = ran else { return };
                done += 1;
                let name = self.recorded.cases[wanted.case].name(wanted.seed);
                match &ran.result {
                    Ok(ns) => output::say(format_args!("[{done}/{total}] {name}: {}", ms(*ns))),
                    Err(reason) => {
                        output::say(format_args!("[{done}/{total}] {name}: failed: {reason}"));
                    }
                }
            },
        )
        .into_iter()
        .flatten()
        .collect()
    }

    fn time(&self, wanted: Wanted) -> Result<u64, String> {
        let case = &self.recorded.cases[wanted.case];
        let machine = &self.machines[&case.machine];
        let mut command = vec!["env".to_string()];
        command.extend_from_slice(&case.parameters);
        command.push(format!("{}/bench/{}/run", guest::FOLDER, case.workload));
        let (sender, events) = mpsc::channel();
        self.interrupt.tell(sender.clone());
        let outcome = self
            .base
            .scheduler(&case.scheduler)
            .and_then(|scheduler| {
                let job = Job {
                    machine: machine.clone(),
                    variant: Variant::default(),
                    seed: wanted.seed,
                    shift_us: shift_us(wanted.seed - 1),
                    limit_s: LIMIT_S,
                    memory_mb: machine.memory_mb.into(),
                    timeout: Duration::from_secs(self.args.timeout_s),
                    scheduler,
                    command,
                };
                simulate(&self.base, &job, &sender, &events)
            })
            .map_err(|error| one_line(&error))?;
        measured(&outcome.report)?;
        Ok(outcome.record.command_ns())
    }

    /// The recorded cases with the times of now; none if any run has failed or
    /// is missing.
    fn cases_now(&self, ran: &[Ran]) -> Option<Vec<Case>> {
        let mut cases = self.recorded.cases.clone();
        let mut left = self.all().len();
        for run in ran {
            let seed = usize::try_from(run.wanted.seed - 1).ok()?;
            cases[run.wanted.case].ns[seed] = *run.result.as_ref().ok()?;
            left -= 1;
        }
        (left == 0).then_some(cases)
    }

    fn record(&self, inputs: Inputs, times: &Path) -> Result<ExitCode, Error> {
        let ran = self.run(&self.all());
        let Some(cases) = self.cases_now(&ran) else {
            to_stdout("Not every run gave a time: nothing is recorded.\n")?;
            return Ok(ExitCode::FAILURE);
        };
        to_stdout(changes(&self.recorded.cases, &cases))?;
        write(times, Recorded { inputs, cases }.text().as_bytes())?;
        to_stdout(format!("Recorded in {}.\n", times.display()))?;
        Ok(ExitCode::SUCCESS)
    }

    fn compare(&self, here: &Inputs) -> Result<ExitCode, Error> {
        let others = differences(&self.recorded.inputs, here);
        let changed = self.recorded.inputs.get(PROJECT) != here.get(PROJECT);
        let mut wanted = self.all();
        if !others.is_empty() {
            // Once more, as the last one.
            wanted.extend(wanted.first().copied());
        }
        let mut ran = self.run(&wanted);
        let again = if others.is_empty() { None } else { ran.pop() };
        let Some(cases) = self.cases_now(&ran) else {
            to_stdout("FAILED: not every run gave a time.\n")?;
            return Ok(ExitCode::FAILURE);
        };
        let verdict = verdict(&self.recorded.cases, &cases, changed, &others);
        to_stdout(&verdict.text)?;
        let same = again
            .is_none_or(|again| again.result.as_ref().ok() == cases[again.wanted.case].ns.first());
        if !same {
            to_stdout("FAILED: the same run twice gave two times.\n")?;
        }
        Ok(if verdict.good && same {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
    }
}

fn ms(ns: u64) -> String {
    format!("{}.{:06} ms", ns / 1_000_000, ns % 1_000_000)
}

fn percent(now: f64, recorded: f64) -> String {
    format!("{:+.2}%", (now / recorded - 1.0) * 100.0)
}

fn sum(case: &Case) -> f64 {
    case.ns.iter().sum::<u64>() as f64
}

/// A line for each time that is another, and for each case.
fn changes(recorded: &[Case], now: &[Case]) -> String {
    let mut out = String::new();
    for (old, new) in recorded.iter().zip(now) {
        if old.ns == new.ns {
            continue;
        }
        for (seed, (old_ns, new_ns)) in (1..).zip(old.ns.iter().zip(&new.ns)) {
            if old_ns != new_ns {
                // Writing to a string cannot fail.
                let was = match old_ns {
                    0 => "new".into(),
                    ns => format!(
                        "recorded {} ({})",
                        ms(*ns),
                        percent(*new_ns as f64, *ns as f64)
                    ),
                };
                writeln!(out, "  {}: {}, {was}", old.name(seed), ms(*new_ns)).ok();
            }
        }
        if !old.ns.contains(&0) {
            let all = percent(sum(new), sum(old));
            writeln!(out, "{}, {}: {all} in all", old.what(), old.scheduler).ok();
        }
    }
    out
}

struct Verdict {
    good: bool,
    text: String,
}

/// `changed`: the project is not that of the record; `others`: nor are these.
fn verdict(recorded: &[Case], now: &[Case], changed: bool, others: &[String]) -> Verdict {
    let mut text = changes(recorded, now);
    if text.is_empty() {
        let runs: usize = now.iter().map(|case| case.ns.len()).sum();
        text = format!("{runs} times as recorded, to the nanosecond.\n");
        return Verdict { good: true, text };
    }
    if others.is_empty() || changed {
        text.push_str(match (others.is_empty(), changed) {
            (true, false) => "FAILED: nothing that times depend on is another, and yet they are.\n",
            (true, true) => "FAILED: times are others since bpf/, machine/ or bench/ was changed. If they are to be: scripts/machine check --record\n",
            (false, _) => "FAILED: bpf/, machine/ or bench/ was changed, and the times were not recorded since: scripts/machine check --record\n",
        });
        return Verdict { good: false, text };
    }
    let away = ratios_away(recorded, now);
    text.push_str("NOT COMPARABLE to the nanosecond, because this is another machine or image:\n");
    for other in others {
        writeln!(text, "  {other}").ok();
    }
    for line in &away {
        writeln!(text, "FAILED: {line}").ok();
    }
    if away.is_empty() {
        writeln!(
            text,
            "Each scheduler is as fast beside {BASELINE} as recorded, within {:.0}%.",
            TOLERANCE * 100.0
        )
        .ok();
    }
    Verdict {
        good: away.is_empty(),
        text,
    }
}

/// A line for each scheduler that is not as fast as it was, beside the kernel's own.
fn ratios_away(recorded: &[Case], now: &[Case]) -> Vec<String> {
    let ratio = |cases: &[Case], of: &Case| {
        let base = cases.iter().find(|case| {
            case.scheduler == BASELINE
                && (&case.machine, &case.workload, &case.parameters)
                    == (&of.machine, &of.workload, &of.parameters)
        })?;
        Some(sum(of) / sum(base))
    };
    let mut away = Vec::new();
    for (old, new) in recorded.iter().zip(now) {
        let (Some(was), Some(is)) = (ratio(recorded, old), ratio(now, new)) else {
            continue;
        };
        if (is / was - 1.0).abs() > TOLERANCE {
            away.push(format!(
                "{}, {}: {is:.3} of {BASELINE}'s time, recorded {was:.3}",
                old.what(),
                old.scheduler
            ));
        }
    }
    away
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(scheduler: &str, ns: &[u64]) -> Case {
        Case {
            machine: "m".into(),
            workload: "w".into(),
            parameters: vec!["W_JOBS=\"4\"".into()],
            scheduler: scheduler.into(),
            ns: ns.into(),
        }
    }

    fn cases() -> Vec<Case> {
        vec![
            case("eevdf", &[1_000_000, 1_000_000]),
            case("auto", &[800_000, 800_000]),
        ]
    }

    #[test]
    fn what_is_written_is_read() {
        let recorded = Recorded {
            inputs: [("qemu".to_string(), "QEMU \"10\"".to_string())].into(),
            cases: cases(),
        };
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("times.toml");
        std::fs::write(&path, recorded.text()).unwrap();
        assert_eq!(Recorded::load(&path).unwrap(), recorded);
        std::fs::write(&path, recorded.text().replace("800000, 800000", "")).unwrap();
        let error = Recorded::load(&path).unwrap_err().to_string();
        assert!(error.contains("auto has no seeds"), "{error}");
        std::fs::write(&path, "[inputs]\nx = 1\n").unwrap();
        assert!(Recorded::load(&path).is_err());
    }

    #[test]
    fn one_nanosecond_is_a_difference() {
        let good = verdict(&cases(), &cases(), false, &[]);
        assert_eq!(good.text, "4 times as recorded, to the nanosecond.\n");
        assert!(good.good);
        let mut now = cases();
        now[1].ns[1] += 1;
        let bad = verdict(&cases(), &now, false, &[]);
        assert!(!bad.good);
        assert!(
            bad.text.contains(
                "m, w W_JOBS=\"4\", auto, seed 2: 0.800001 ms, recorded 0.800000 ms (+0.00%)"
            ),
            "{}",
            bad.text
        );
    }

    #[test]
    fn a_changed_scheduler_has_to_be_recorded_with_its_change_in_per_cent() {
        let mut now = cases();
        now[1].ns = vec![808_000, 824_000];
        for others in [vec![], vec!["kernel 2, recorded with 1".to_string()]] {
            let bad = verdict(&cases(), &now, true, &others);
            assert!(!bad.good, "{}", bad.text);
            assert!(bad.text.contains("auto: +2.00% in all"), "{}", bad.text);
            assert!(bad.text.contains("check --record"), "{}", bad.text);
        }
        assert!(
            verdict(&cases(), &cases(), true, &[]).good,
            "no other times"
        );
    }

    #[test]
    fn another_kernel_is_said_and_ratios_are_held() {
        let others = ["kernel 2, recorded with 1".to_string()];
        let mut now = cases();
        now[0].ns = vec![2_000_000, 2_000_000];
        now[1].ns = vec![1_650_000, 1_650_000];
        let good = verdict(&cases(), &now, false, &others);
        assert!(good.good, "{}", good.text);
        assert!(
            good.text.contains("NOT COMPARABLE") && good.text.contains("kernel 2"),
            "{}",
            good.text
        );
        for away in [1_740_000, 1_460_000] {
            now[1].ns = vec![away, away];
            let bad = verdict(&cases(), &now, false, &others);
            assert!(!bad.good);
            assert!(
                bad.text.contains("FAILED: m, w W_JOBS=\"4\", auto: 0."),
                "{}",
                bad.text
            );
        }
    }

    #[test]
    fn what_is_another_is_named_with_both_values() {
        let inputs = |kernel: &str, project: &str| -> Inputs {
            [("kernel", kernel), (PROJECT, project)]
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .into()
        };
        assert!(differences(&inputs("1", "a"), &inputs("1", "b")).is_empty());
        assert_eq!(
            differences(&inputs("1", "a"), &inputs("2", "a")),
            ["kernel 2, recorded with 1"]
        );
        assert_eq!(
            differences(&Inputs::new(), &inputs("2", "a")),
            ["kernel 2, recorded with none"]
        );
    }
}
