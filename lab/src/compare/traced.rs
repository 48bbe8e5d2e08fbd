// SPDX-License-Identifier: GPL-2.0-only
//! A run in a guest once more, under the recorder, with what the guest cannot see: an x86 guest
//! knows no frequencies of its CPUs, the machine does.

use crate::sim::description::{Description, FULL};
use crate::sim::error::Error;
use crate::sim::flat::places;
use crate::sim::guest;
use crate::sim::job::Outcome;
use crate::sim::record::Record;
use freqlock::trace::format::Cpu;
use freqlock::trace::frequencies::{self, Frequencies};
use freqlock::trace::reader::Trace;
use std::collections::BTreeMap;
use std::io::Cursor;

/// What a guest runs to record a command, whose output counts in another run.
const RECORDED: &str = r#"mark clock && scx_freqlock record -o /tmp/trace -- "$@" >/dev/null && mark clock && cat /tmp/trace"#;

/// The same command under the recorder.
pub fn command(mut command: Vec<String>) -> Vec<String> {
    command.splice(0..0, ["sh", "-c", RECORDED, "sh"].map(String::from));
    command
}

/// The trace of such a run.
pub fn trace(machine: &Description, outcome: Outcome) -> Result<Vec<u8>, Error> {
    let bytes = printed(outcome.report)?;
    let no_trace = |why: &dyn std::fmt::Display| Error::NoTrace(why.to_string());
    let trace = Trace::open(Cursor::new(&bytes)).map_err(|why| no_trace(&why))?;
    if trace.head.cpus.iter().any(Cpu::has_frequency) {
        return Ok(bytes);
    }
    let known = known(machine, &outcome.record).map_err(|why| no_trace(&why))?;
    frequencies::add(trace, &known, Vec::new()).map_err(|why| no_trace(&why))
}

/// What it printed: the trace, as the guest has it.
fn printed(report: guest::Report) -> Result<Vec<u8>, Error> {
    if report.status == 0 {
        return Ok(report.stdout);
    }
    let said = String::from_utf8_lossy(&report.stderr);
    let last = said.lines().next_back().unwrap_or("it said nothing");
    Err(Error::NoTrace(last.into()))
}

/// The frequencies of all CPUs, by the guest's clock; else why they are not known.
fn known(
    machine: &Description,
    record: &Record,
) -> Result<BTreeMap<u16, Frequencies>, &'static str> {
    if record.totals.timeline_dropped > 0 {
        return Err("it is too long: the machine's record does not have all frequencies");
    }
    let mut known: BTreeMap<u16, Frequencies> = (0..)
        .zip(places(machine))
        .map(|(cpu, place)| {
            let cluster = &machine.clusters[place.cluster];
            let frequencies = Frequencies {
                capacity: cluster.capacity,
                max_khz: cluster.top_mhz() * 1000,
                changes: Vec::new(),
            };
            (cpu, frequencies)
        })
        .collect();
    for change in &record.changes {
        let time = (record.monotonic(change.ns)).ok_or("the guest's clock was not looked at")?;
        if let Some(cpu) = u16::try_from(change.cpu)
            .ok()
            .and_then(|cpu| known.get_mut(&cpu))
        {
            let khz = u64::from(cpu.max_khz) * u64::from(change.speed) / u64::from(FULL);
            cpu.changes.push((time, khz as u32));
        }
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::folders::machines_dir;
    use crate::sim::record::tests::sample;

    #[test]
    fn a_recorded_run_is_the_same_under_the_recorder_and_gives_the_trace() {
        let report = |status, stderr: &str| guest::Report {
            status,
            loaded: "disabled - 0".into(),
            stdout: b"FLTRACE\n".to_vec(),
            stderr: stderr.into(),
        };
        assert_eq!(printed(report(0, "")).unwrap(), b"FLTRACE\n");
        let failed = printed(report(1, "a\nno room\n")).unwrap_err();
        assert_eq!(failed.to_string(), "the guest made no trace: no room");
        let words = command(vec!["bench/x/run".into(), "a b".into()]);
        assert_eq!(words[0..2], ["sh", "-c"]);
        assert!(words[2].contains("scx_freqlock record "));
        assert_eq!(words[3..], ["sh", "bench/x/run", "a b"]);
    }

    #[test]
    fn frequencies_are_the_machines_by_the_guests_clock() {
        let machine = Description::load("hybrid-4p4e", &machines_dir(None).unwrap()).unwrap();
        let mut record = sample();
        assert!(known(&machine, &record).unwrap_err().contains("clock"));
        record.clocks = vec![(0, 1_000_000), (4_000_000, 5_000_000)];
        let all = known(&machine, &record).unwrap();
        assert_eq!(all.len(), machine.cpus() as usize);
        let (first, last) = (&all[&1], &all[&7]);
        let top = machine.clusters[0].top_mhz() * 1000;
        assert_eq!((first.capacity, first.max_khz), (1024, top));
        assert_eq!(first.changes, [(0, top / 4), (1_000_000, top)]);
        assert_eq!(last.capacity, machine.clusters[1].capacity);
        assert_eq!(last.changes, []);
        record.totals.timeline_dropped = 1;
        assert!(known(&machine, &record).unwrap_err().contains("too long"));
    }
}
