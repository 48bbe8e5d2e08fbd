// SPDX-License-Identifier: GPL-2.0-only
//! What the scheduler promises, judged by what scripts/measure has measured:
//! a folder with a file for each situation and scheduler. The same situations
//! under other schedulers are shown beside, and judged by nothing.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::Serialize;

use freqlock::cost::Cost;
use freqlock::memory::{self, Memory};
use freqlock::observe::Report;

/// The scheduler that promises are made for, unless they name another mode.
const OURS: &str = "auto";

const CONFIGURE_SHARE: f64 = 0.90;
const SPREAD_MS: f64 = 5.0;
const FORK_LOCAL_SHARE: f64 = 0.99;
/// After its timer, which is set for `smove_delay_us`: how late a timer comes is
/// the machine's part, and a virtual one's may be milliseconds late.
const SMOVE_US: f64 = 200.0;
const SMOVE_DELAY_US: u32 = 50;
const FAIRNESS: f64 = 0.05;
const WASTED_SHARE: f64 = 0.001;
const LOAD_MS: f64 = 3_000.0;

/// Weights of the nice values that are measured, as the kernel has them.
const WEIGHTS: [(i32, f64); 3] = [(0, 1024.0), (5, 335.0), (-5, 3121.0)];

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot read {0}: {1}")]
    Unreadable(PathBuf, std::io::Error),
    #[error("{0} is not what scripts/measure writes: {1}; measure again")]
    Malformed(PathBuf, String),
}

/// One line of the table.
#[derive(Debug, Serialize)]
pub struct Line {
    pub promise: &'static str,
    pub scheduler: String,
    pub wanted: String,
    pub got: String,
    pub verdict: Verdict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Met,
    NotMet,
    /// Of another scheduler, to compare with.
    Compare,
    /// The figure cannot be trusted, or there is none.
    Unknown,
}

#[derive(Debug, Serialize)]
pub struct Table {
    /// Where it was measured.
    pub machine: Vec<String>,
    pub lines: Vec<Line>,
}

/// A figure with the words to show it in; none when it is not valid.
struct Figure {
    text: String,
    met: Option<bool>,
}

impl Figure {
    fn new(text: String, met: bool) -> Self {
        Self {
            text,
            met: Some(met),
        }
    }

    fn unknown(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            met: None,
        }
    }
}

/// A promise: in which files its figures are, and how to read them.
struct Promise {
    words: &'static str,
    wanted: String,
    /// The file's name is this, a dot and the scheduler.
    situation: &'static str,
    /// Whose figure is judged.
    scheduler: &'static str,
    read: fn(&Path) -> Result<Figure, Error>,
}

fn promises() -> Vec<Promise> {
    vec![
        Promise {
            words: "configure: forks and wake-ups on one or two CPUs",
            wanted: format!(">= {}", percent(CONFIGURE_SHARE)),
            situation: "configure",
            scheduler: OURS,
            read: configure,
        },
        Promise {
            words: "hogs started at once reach every CPU (median)",
            wanted: format!("<= {SPREAD_MS} ms"),
            situation: "spread",
            scheduler: OURS,
            read: spread,
        },
        Promise {
            words: "children of a lone parent start on its CPU",
            wanted: format!(">= {}", percent(FORK_LOCAL_SHARE)),
            situation: "children",
            scheduler: "fork-local",
            read: children,
        },
        Promise {
            words: "a child migrated by its timer runs, after that (p99)",
            wanted: format!("<= {SMOVE_US} us"),
            situation: "migrated",
            scheduler: "smove",
            read: migrated,
        },
        Promise {
            words: "nice 0, 5, -5 on one CPU: share off its weight",
            wanted: format!("<= {}", percent(FAIRNESS)),
            situation: "nice",
            scheduler: OURS,
            read: nice,
        },
        Promise {
            words: "8 equal hogs a CPU: least and most CPU time apart",
            wanted: format!("<= {}", percent(FAIRNESS)),
            situation: "hogs",
            scheduler: OURS,
            read: hogs,
        },
        Promise {
            words: "CPU time idle while a task waits over 1 ms",
            wanted: format!("< {}", percent(WASTED_SHARE)),
            situation: "mix",
            scheduler: OURS,
            read: mix,
        },
        Promise {
            words: "BPF maps on 512 CPUs with 10000 tasks",
            wanted: format!("< {} MiB", memory::MAPS_LIMIT >> 20),
            situation: "memory",
            scheduler: OURS,
            read: maps,
        },
        Promise {
            words: "agent, resident",
            wanted: format!("< {} MiB", memory::AGENT_LIMIT >> 20),
            situation: "memory",
            scheduler: OURS,
            read: agent,
        },
        Promise {
            words: "load to enabled (median)",
            wanted: format!("< {} ms", LOAD_MS),
            situation: "load",
            scheduler: OURS,
            read: load,
        },
    ]
}

/// Judges what is in the folder: promises of situations that were not measured
/// are left out.
pub fn judge(results: &Path) -> Result<Table, Error> {
    let mut lines = Vec::new();
    for promise in promises() {
        for (scheduler, path) in measured(results, promise.situation)? {
            let figure = (promise.read)(&path)?;
            let judged = scheduler == promise.scheduler;
            lines.push(Line {
                promise: promise.words,
                wanted: if judged {
                    promise.wanted.clone()
                } else {
                    String::new()
                },
                verdict: verdict(judged, figure.met),
                scheduler,
                got: figure.text,
            });
        }
    }
    lines.extend(cost(results)?);
    let machine = results.join("machine");
    let machine = if machine.exists() {
        lines_of(&machine)?
    } else {
        Vec::new()
    };
    Ok(Table { machine, lines })
}

fn verdict(judged: bool, met: Option<bool>) -> Verdict {
    match (judged, met) {
        (_, None) => Verdict::Unknown,
        (false, Some(_)) => Verdict::Compare,
        (true, Some(true)) => Verdict::Met,
        (true, Some(false)) => Verdict::NotMet,
    }
}

/// The cost of a callback is promised against a peer's, not a number.
fn cost(results: &Path) -> Result<Vec<Line>, Error> {
    const PEER: &str = "scx_bpfland";
    let mut figures = Vec::new();
    for (scheduler, path) in measured(results, "cost")? {
        // One report after the other.
        let text = text_of(&path)?;
        let runs: Vec<Cost> = serde_json::Deserializer::from_str(&text)
            .into_iter()
            .collect::<Result<_, _>>()
            .map_err(|error| malformed(&path, error))?;
        let paths: Option<Vec<f64>> = runs.iter().map(|run| run.path_ns).collect();
        let share = median(runs.iter().map(|run| run.cpu_share).collect());
        figures.push((scheduler, paths.and_then(median), share));
    }
    let peer = figures.iter().find(|f| f.0 == PEER).and_then(|f| f.1);
    Ok(figures
        .into_iter()
        .map(|(scheduler, path, share)| {
            let judged = scheduler == OURS;
            let met = match (judged, path, peer) {
                (true, Some(ours), Some(peer)) => Some(ours <= peer),
                (true, _, _) => None,
                (false, path, _) => path.map(|_| true),
            };
            Line {
                promise: "select_cpu + enqueue + dispatch (median)",
                wanted: match (judged, peer) {
                    (false, _) => String::new(),
                    (true, Some(peer)) => format!("<= {peer:.0} ns"),
                    (true, None) => format!("<= {PEER}'s"),
                },
                verdict: verdict(judged, met),
                scheduler,
                got: match (path, share) {
                    (Some(ns), Some(share)) => {
                        format!("{ns:.0} ns ({} of CPU time in callbacks)", percent(share))
                    }
                    _ => "not all of them ran".to_owned(),
                },
            }
        })
        .collect())
}

/// The files of a situation, by scheduler, ours last.
fn measured(results: &Path, situation: &str) -> Result<Vec<(String, PathBuf)>, Error> {
    let unreadable = |error| Error::Unreadable(results.to_owned(), error);
    let mut found = Vec::new();
    for entry in fs::read_dir(results).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some((of, scheduler)) = name.split_once('.') {
            if of == situation {
                found.push((scheduler.to_owned(), entry.path()));
            }
        }
    }
    found.sort_by_key(|(scheduler, _)| (scheduler == OURS, scheduler.clone()));
    Ok(found)
}

fn malformed(path: &Path, why: impl ToString) -> Error {
    Error::Malformed(path.to_owned(), why.to_string())
}

fn text_of(path: &Path) -> Result<String, Error> {
    fs::read_to_string(path).map_err(|error| Error::Unreadable(path.to_owned(), error))
}

fn lines_of(path: &Path) -> Result<Vec<String>, Error> {
    Ok(text_of(path)?.lines().map(str::to_owned).collect())
}

fn json<T: DeserializeOwned>(path: &Path) -> Result<T, Error> {
    serde_json::from_str(&text_of(path)?).map_err(|error| malformed(path, error))
}

fn numbers(path: &Path) -> Result<Vec<f64>, Error> {
    lines_of(path)?
        .iter()
        .map(|line| {
            line.trim()
                .parse()
                .map_err(|_| malformed(path, format!("`{line}` is no number")))
        })
        .collect()
}

fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent >= 10.0 {
        format!("{percent:.1}%")
    } else {
        format!("{percent:.2}%")
    }
}

/// The lower of the two in the middle.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len().checked_sub(1)? / 2).copied()
}

/// An observation whose figures can be trusted.
fn observed(path: &Path) -> Result<Result<Report, Figure>, Error> {
    let report: Report = json(path)?;
    Ok(match report.valid {
        true => Ok(report),
        false => Err(Figure::unknown(
            "not valid: events were lost, or CPUs came or went",
        )),
    })
}

fn configure(path: &Path) -> Result<Figure, Error> {
    Ok(observed(path)?.map_or_else(
        |invalid| invalid,
        |r| {
            let share = r.started.busiest_two;
            Figure::new(
                format!(
                    "{} (on one: {})",
                    percent(share),
                    percent(r.started.busiest_one)
                ),
                share >= CONFIGURE_SHARE,
            )
        },
    ))
}

/// Each line is a round: ms until every CPU was reached, and ms until the
/// last hog's fork began, which no scheduler can make faster.
fn spread(path: &Path) -> Result<Figure, Error> {
    let (mut reached, mut forked) = (Vec::new(), Vec::new());
    for line in lines_of(path)? {
        let mut round = line.split_whitespace().map(str::parse::<f64>);
        match (round.next(), round.next()) {
            (Some(Ok(all)), Some(Ok(last))) => {
                reached.push(all);
                forked.push(last);
            }
            _ => return Err(malformed(path, format!("`{line}` is not two numbers"))),
        }
    }
    if reached.iter().any(|ms| *ms < 0.0) {
        return Ok(Figure::new("never, in one round or more".to_owned(), false));
    }
    let worst = reached.iter().copied().fold(0.0, f64::max);
    Ok(match (median(reached), median(forked)) {
        (Some(ms), Some(forks)) => Figure::new(
            format!("{ms:.2} ms (worst {worst:.2} ms; {forks:.2} ms until the last fork began)"),
            ms <= SPREAD_MS,
        ),
        _ => Figure::unknown("nothing was measured"),
    })
}

fn children(path: &Path) -> Result<Figure, Error> {
    Ok(observed(path)?.map_or_else(
        |invalid| invalid,
        |r| {
            let (share, of) = (r.forks.parent_alone_on_parent_cpu, r.forks.parent_alone);
            if of == 0 {
                return Figure::unknown("no parent was alone on its CPU");
            }
            Figure::new(
                format!("{} of {of}", percent(share)),
                share >= FORK_LOCAL_SHARE,
            )
        },
    ))
}

fn migrated(path: &Path) -> Result<Figure, Error> {
    Ok(observed(path)?.map_or_else(
        |invalid| invalid,
        |r| {
            let (timer, ran) = (r.forks.migrated_us, r.forks.migrated_to_run_us);
            if ran.count == 0 {
                return Figure::unknown("no child was migrated");
            }
            Figure::new(
                format!(
                    "{:.0} us (p50 {:.0} us, {} of {}; the timer set for {SMOVE_DELAY_US} us came after {:.0} us, p50, and {:.0} us, p99)",
                    ran.p99, ran.p50, ran.count, r.forks.all, timer.p50, timer.p99
                ),
                ran.p99 <= SMOVE_US,
            )
        },
    ))
}

/// Each line is a nice value and the CPU time that a hog of that value had.
fn nice(path: &Path) -> Result<Figure, Error> {
    let mut hogs = Vec::new();
    for line in lines_of(path)? {
        let (nice, ms) = line
            .split_once(' ')
            .ok_or_else(|| malformed(path, "no CPU time"))?;
        let nice: i32 = nice.parse().map_err(|_| malformed(path, "no nice value"))?;
        let ms: f64 = ms.parse().map_err(|_| malformed(path, "no CPU time"))?;
        let weight = WEIGHTS
            .iter()
            .find(|(of, _)| *of == nice)
            .ok_or_else(|| malformed(path, format!("nice {nice} has no weight here")))?
            .1;
        hogs.push((weight, ms));
    }
    let weights: f64 = hogs.iter().map(|hog| hog.0).sum();
    let total: f64 = hogs.iter().map(|hog| hog.1).sum();
    if total <= 0.0 {
        return Ok(Figure::unknown("no hog ran"));
    }
    let off = hogs
        .iter()
        .map(|(weight, ms)| (ms / total / (weight / weights) - 1.0).abs())
        .fold(0.0, f64::max);
    let shares: Vec<String> = hogs.iter().map(|(_, ms)| percent(ms / total)).collect();
    Ok(Figure::new(
        format!("{} at most ({})", percent(off), shares.join(", ")),
        off <= FAIRNESS,
    ))
}

fn hogs(path: &Path) -> Result<Figure, Error> {
    let times: Vec<f64> = lines_of(path)?
        .iter()
        .map(|line| line.split(' ').nth(1).and_then(|ms| ms.parse().ok()))
        .collect::<Option<_>>()
        .ok_or_else(|| malformed(path, "no CPU time"))?;
    let most = times.iter().copied().fold(0.0, f64::max);
    let least = times.iter().copied().fold(f64::INFINITY, f64::min);
    if most <= 0.0 {
        return Ok(Figure::unknown("no hog ran"));
    }
    let apart = (most - least) / most;
    Ok(Figure::new(
        format!(
            "{} ({} hogs, {least:.0} to {most:.0} ms)",
            percent(apart),
            times.len()
        ),
        apart <= FAIRNESS,
    ))
}

fn mix(path: &Path) -> Result<Figure, Error> {
    Ok(observed(path)?.map_or_else(
        |invalid| invalid,
        |r| {
            let work = r.work_conservation;
            Figure::new(
                format!(
                    "{:.3}% (with idle CPUs that were slow to answer: {:.3}%; they answer in {:.0} us, p99)",
                    work.share_unplaced * 100.0,
                    work.share * 100.0,
                    r.wait_us.answer.p99
                ),
                work.share_unplaced < WASTED_SHARE,
            )
        },
    ))
}

fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

fn maps(path: &Path) -> Result<Figure, Error> {
    let bytes = json::<Memory>(path)?.maps_on(512, 10_000);
    Ok(Figure::new(mib(bytes), bytes < memory::MAPS_LIMIT))
}

fn agent(path: &Path) -> Result<Figure, Error> {
    let memory: Memory = json(path)?;
    Ok(Figure::new(
        format!(
            "{} (at most so far {})",
            mib(memory.agent),
            mib(memory.agent_peak)
        ),
        memory.agent < memory::AGENT_LIMIT,
    ))
}

fn load(path: &Path) -> Result<Figure, Error> {
    let starts = numbers(path)?;
    let (of, worst) = (starts.len(), starts.iter().copied().fold(0.0, f64::max));
    Ok(match median(starts) {
        Some(ms) => Figure::new(
            format!("{ms:.0} ms (worst of {of}: {worst:.0} ms)"),
            ms < LOAD_MS,
        ),
        None => Figure::unknown("nothing was measured"),
    })
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Met => "met",
            Self::NotMet => "NOT MET",
            Self::Compare => "",
            Self::Unknown => "UNKNOWN",
        })
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.machine {
            writeln!(f, "{line}")?;
        }
        let mut row = |promise: &str, scheduler: &str, wanted: &str, verdict: &str, got: &str| {
            let line = format!("{promise:<51} {scheduler:<11} {wanted:>10}  {verdict:<7}  {got}");
            writeln!(f, "{}", line.trim_end())
        };
        row("promise", "scheduler", "wanted", "", "got")?;
        let mut last = "";
        for line in &self.lines {
            let promise = if line.promise == last {
                ""
            } else {
                line.promise
            };
            last = line.promise;
            row(
                promise,
                &line.scheduler,
                &line.wanted,
                &line.verdict.to_string(),
                &line.got,
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
