// SPDX-License-Identifier: GPL-2.0-only
//! The log of decisions: a line of JSON each, with the names of bpf/record.h and bpf/host/replay.h.

use crate::choice::Inputs;
use anyhow::{Context, Result};
use freqlock::commands::trace_files;
use freqlock::trace::replay::abi;
use freqlock::trace::what_if::why;
use serde_json::{json, Value};
use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A file that is being written.
pub struct ChoiceLog {
    path: PathBuf,
    file: BufWriter<std::fs::File>,
}

impl ChoiceLog {
    /// For its owner alone: it says what others do.
    pub fn create(path: &Path) -> Result<Self> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(path)
            .with_context(|| trace_files::cannot_write(path))?;
        Ok(Self {
            path: path.into(),
            file: BufWriter::new(file),
        })
    }

    /// One decision.
    pub fn write(&mut self, inputs: &Inputs, result: &abi::replay_result) -> Result<()> {
        writeln!(self.file, "{}", line(inputs, result))
            .with_context(|| trace_files::cannot_write(&self.path))
    }

    /// What is still in memory goes out.
    pub fn finish(mut self) -> Result<()> {
        (self.file.flush()).with_context(|| trace_files::cannot_write(&self.path))
    }
}

fn line(inputs: &Inputs, result: &abi::replay_result) -> Value {
    let d = &inputs.decision;
    json!({
        "at": inputs.at,
        "pid": inputs.pid,
        "prev_cpu": d.prev_cpu,
        "this_cpu": d.this_cpu,
        "flags": names(u32::from(d.flags), &DECIDES),
        "burst": d.burst,
        "soon": d.soon,
        "leave": (d.leave != u32::MAX).then_some(d.leave),
        "share": d.share,
        "exit": d.exit,
        "exit_age": d.exit_age,
        "active": d.active,
        "candidates": inputs.candidates.iter().map(|c| candidate(c, result)).collect::<Vec<_>>(),
        "chosen": {
            "cpu": (result.best >= 0).then_some(result.best),
            "why": why(result.why),
            "bought": result.bought != 0,
        },
    })
}

/// With what it costs, unless it is not considered.
fn candidate(c: &abi::rec_candidate, result: &abi::replay_result) -> Value {
    let cost = result.cost.get(usize::from(c.why));
    let cost = cost.filter(|cost| cost.cpu >= 0).map(|cost| {
        json!({
            "wait": cost.wait,
            "run": cost.run,
            "migration": cost.migration,
            "displaced": cost.displaced,
            "others": cost.others,
            "finish": cost.finish,
        })
    });
    json!({
        "cpu": c.cpu,
        "why": why(c.why.into()),
        "flags": names(u32::from(c.flags), &CANDIDATE),
        "speed": c.speed,
        "speed_age": c.speed_age,
        "busy": c.busy,
        "busy_age": c.busy_age,
        "running_age": c.running_age,
        "rest": c.rest,
        "away": c.away,
        "slice": c.slice,
        "leave": c.leave,
        "queued": c.queued,
        "stopped_age": c.stopped_age,
        "exit": c.exit,
        "exit_age": c.exit_age,
        "overrun": c.overrun,
        "overrun_age": c.overrun_age,
        "rent": c.rent,
        "rent_age": c.rent_age,
        "rent_life": c.rent_life,
        "given": c.given,
        "cost": cost,
    })
}

const DECIDES: [(u32, &str); 6] = [
    (abi::rec_decides_REC_DECIDES_FORK, "fork"),
    (abi::rec_decides_REC_DECIDES_FROM_TASK, "from_task"),
    (abi::rec_decides_REC_DECIDES_ANY_IDLE, "any_idle"),
    (abi::rec_decides_REC_DECIDES_SET, "set"),
    (abi::rec_decides_REC_DECIDES_BACK, "back"),
    (abi::rec_decides_REC_DECIDES_AGAIN, "again"),
];

const CANDIDATE: [(u32, &str); 5] = [
    (abi::rec_candidate_flags_REC_CANDIDATE_IDLE, "idle"),
    (abi::rec_candidate_flags_REC_CANDIDATE_RUNS, "runs"),
    (abi::rec_candidate_flags_REC_CANDIDATE_SHARED, "shared"),
    (abi::rec_candidate_flags_REC_CANDIDATE_TAKEN, "taken"),
    (abi::rec_candidate_flags_REC_CANDIDATE_LEAVES, "leaves"),
];

fn names(flags: u32, table: &[(u32, &'static str)]) -> Vec<&'static str> {
    let set = table.iter().filter(|(flag, _)| flags & flag != 0);
    set.map(|(_, name)| *name).collect()
}
