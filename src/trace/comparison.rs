// SPDX-License-Identifier: GPL-2.0-only
//! The figures of two traces beside each other, with the change from the first to the second.

use super::analysis::{Analysis, CpuTimes};
use super::analysis_text::{band_text, share};
use super::phases::{Phase, Phases};
use super::Kind;
use crate::units::time;
use hdrhistogram::Histogram;
use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};

/// Two traces that are compared.
pub struct Comparison<'a> {
    /// What it was before.
    pub a: &'a Analysis,
    /// What it is now.
    pub b: &'a Analysis,
}

/// A figure; what a trace does not know has none.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Figure {
    Count(u64),
    /// ns.
    Time(u64),
    /// Per second.
    Rate(f64),
    /// Per cent.
    Share(f64),
    Unknown,
}

impl Display for Figure {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        f.pad(&match self {
            Self::Count(n) => n.to_string(),
            Self::Time(ns) => time(*ns),
            Self::Rate(rate) => format!("{rate:.1}"),
            Self::Share(share) => format!("{share:.1}%"),
            Self::Unknown => "-".into(),
        })
    }
}

/// In per cent of the first; shares, which are per cent already, in points.
fn change(a: Figure, b: Figure) -> String {
    let (a, b) = match (a, b) {
        (Figure::Count(a), Figure::Count(b)) | (Figure::Time(a), Figure::Time(b)) => {
            (a as f64, b as f64)
        }
        (Figure::Rate(a), Figure::Rate(b)) => (a, b),
        (Figure::Share(a), Figure::Share(b)) => return format!("{:+.1} points", b - a),
        _ => return String::new(),
    };
    match a == 0.0 {
        true if b == 0.0 => String::new(),
        true => "from none".into(),
        false => format!("{:+.1}%", 100.0 * (b - a) / a),
    }
}

fn row(f: &mut Formatter, name: &str, a: Figure, b: Figure) -> fmt::Result {
    let line = format!("  {name:<24} {a:>12} {b:>12}  {:>12}", change(a, b));
    writeln!(f, "{}", line.trim_end())
}

fn rate(count: u64, ns: u64) -> Figure {
    match ns {
        0 => Figure::Unknown,
        _ => Figure::Rate(count as f64 / (ns as f64 / 1e9)),
    }
}

/// Counts mean little where the traces differ in length, so rates come too.
const BY_SECOND: &str = "  a second";

impl Comparison<'_> {
    fn row(&self, f: &mut Formatter, name: &str, of: impl Fn(&Analysis) -> Figure) -> fmt::Result {
        row(f, name, of(self.a), of(self.b))
    }

    fn count(&self, f: &mut Formatter, name: &str, of: impl Fn(&Analysis) -> u64) -> fmt::Result {
        self.row(f, name, |one| Figure::Count(of(one)))?;
        self.row(f, BY_SECOND, |one| rate(of(one), one.elapsed))
    }

    fn cpus(&self, f: &mut Formatter) -> fmt::Result {
        let ids: BTreeSet<u16> = (self.a.cpus.keys().chain(self.b.cpus.keys()))
            .copied()
            .collect();
        for id in ids {
            let busy = |one: &Analysis| match one.cpus.get(&id) {
                Some(cpu) => Figure::Share(share(cpu.busy, one.elapsed)),
                None => Figure::Unknown,
            };
            self.row(f, &format!("CPU {id} busy"), busy)?;
        }
        for (name, of) in [
            ("all busy", (|cpu| cpu.busy) as fn(&CpuTimes) -> u64),
            ("all idle", |cpu| cpu.idle),
            ("all unknown", |cpu| cpu.unknown),
        ] {
            self.row(f, name, |one| {
                let elapsed = one.elapsed.saturating_mul(one.cpus.len() as u64);
                Figure::Share(share(of(&one.all_cpus()), elapsed))
            })?;
        }
        self.count(f, "switches", |one| one.all_cpus().switches)?;
        self.count(f, "wake-ups", |one| one.all_cpus().wakeups)
    }

    fn phases(&self, f: &mut Formatter) -> fmt::Result {
        for (name, of) in [
            ("no CPU ran a task", (|one| one.idle) as fn(&Phases) -> u64),
            ("one did", |one| one.time[Phase::Sequential as usize]),
            ("several did", |one| one.time[Phase::Parallel as usize]),
        ] {
            self.row(f, name, |one| {
                Figure::Share(share(of(&one.phases), one.elapsed))
            })?;
        }
        Ok(())
    }

    fn waits(
        &self,
        f: &mut Formatter,
        name: &str,
        of: impl Fn(&Analysis) -> &Histogram<u64>,
    ) -> fmt::Result {
        self.row(f, name, |one| Figure::Count(of(one).len()))?;
        for (name, quantile) in [
            ("  median", 0.5),
            ("  p90", 0.9),
            ("  p99", 0.99),
            ("  longest", 1.0),
        ] {
            self.row(f, name, |one| match of(one) {
                none if none.is_empty() => Figure::Unknown,
                waits if quantile == 1.0 => Figure::Time(waits.max()),
                waits => Figure::Time(waits.value_at_quantile(quantile)),
            })?;
        }
        Ok(())
    }

    fn speeds(&self, f: &mut Formatter) -> fmt::Result {
        for eighth in (0..self.a.by_speed.len()).rev() {
            if self.a.by_speed[eighth] + self.b.by_speed[eighth] == 0 {
                continue;
            }
            self.row(f, &band_text(eighth), |one| match one.speeds_known {
                true => Figure::Share(share(one.by_speed[eighth], one.by_speed.iter().sum())),
                false => Figure::Unknown,
            })?;
        }
        self.row(f, "frequency inversions", |one| match one.speeds_known {
            true => Figure::Count(one.inversions),
            false => Figure::Unknown,
        })
    }
}

impl Display for Comparison<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        for (name, one) in [("A", self.a), ("B", self.b)] {
            writeln!(f, "{name}: {}", one.title())?;
            for caveat in one.caveats() {
                writeln!(f, "{name}: {caveat}")?;
            }
        }
        writeln!(
            f,
            "\n  {:<24} {:>12} {:>12}  {:>12}",
            "", "A", "B", "change"
        )?;
        self.row(f, "events", |one| Figure::Count(one.events))?;
        self.row(f, "time", |one| Figure::Time(one.elapsed))?;
        writeln!(f, "\nCPUs")?;
        self.cpus(f)?;
        writeln!(f, "\nPhases")?;
        self.phases(f)?;
        writeln!(f, "\nWaits for a CPU")?;
        self.waits(f, "woken", |one| &one.wake_waits)?;
        self.waits(f, "preempted", |one| &one.preempted_waits)?;
        self.row(f, "not counted", |one| Figure::Count(one.uncounted))?;
        writeln!(f, "\nTasks")?;
        for (name, kind) in [
            ("forks", Kind::Fork),
            ("exec", Kind::Exec),
            ("exits", Kind::Exit),
            ("migrations", Kind::Migrate),
        ] {
            self.count(f, name, |one| one.count(kind))?;
        }
        writeln!(f, "\nSpeed of the CPUs that tasks were woken for")?;
        self.speeds(f)
    }
}

#[cfg(test)]
mod tests {
    use super::super::format::{Cpu, End, Event, Head, Task};
    use super::super::reader::Trace;
    use super::super::writer::Writer;
    use super::*;
    use crate::foreign::lines;
    use crate::foreign::tests::HOSTILE;
    use std::io::Cursor;

    /// A task that is woken, waits for so long, and runs for as long, on one of the CPUs.
    fn analysis(cpus: u16, waits: &[u64], scheduler: Option<&str>) -> Analysis {
        let cpu = |id| Cpu {
            id,
            capacity: Some(512 * (u32::from(id) + 1)),
            running: Some(0),
            ..Cpu::default()
        };
        let head = Head {
            cpus: (0..cpus).map(cpu).collect(),
            wanted: vec!["switch".into(), "wakeup".into()],
            scheduler: scheduler.map(Into::into),
            tasks: vec![Task {
                pid: 1,
                tgid: 1,
                name: HOSTILE.into(),
            }],
            ..Head::default()
        };
        let mut events = Vec::new();
        let mut now = 0;
        for wait in waits {
            let mut push = |time, kind: Kind, pid, arg| {
                events.push(Event {
                    time,
                    pid,
                    kind: kind as u16,
                    cpu: 0,
                    arg,
                })
            };
            push(now, Kind::Wakeup, 1, 0);
            push(now + wait, Kind::Switch, 1, 0);
            push(now + 2 * wait, Kind::Switch, 0, 1 << 32 | 1);
            now += 2 * wait;
        }
        let mut writer = Writer::new(Vec::new(), &head).unwrap();
        writer.events(0, &events).unwrap();
        let end = End {
            end_ns: now,
            ..End::default()
        };
        let bytes = writer.end(&end).unwrap();
        Analysis::of(Trace::open(Cursor::new(bytes)).unwrap()).unwrap()
    }

    fn row_of<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
        let line = text
            .lines()
            .find(|line| line.trim_start().starts_with(name));
        let line = line.unwrap_or_else(|| panic!("no {name} in {text}"));
        line.trim_start()[name.len()..].split_whitespace().collect()
    }

    #[test]
    fn figures_of_both_stand_beside_each_other_with_the_change() {
        let a = analysis(1, &[1000, 1000], None);
        let b = analysis(2, &[1000, 1000, 1000, 4000], Some(HOSTILE));
        let text = Comparison { a: &a, b: &b }.to_string();
        assert_eq!(row_of(&text, "events"), ["6", "12", "+100.0%"]);
        assert_eq!(
            row_of(&text, "time"),
            ["4.00", "us", "14.0", "us", "+250.0%"]
        );
        assert_eq!(
            row_of(&text, "CPU 0 busy"),
            ["50.0%", "50.0%", "+0.0", "points"]
        );
        assert_eq!(row_of(&text, "CPU 1 busy"), ["-", "0.0%"]);
        assert_eq!(
            row_of(&text, "all busy"),
            ["50.0%", "25.0%", "-25.0", "points"]
        );
        assert_eq!(
            row_of(&text, "one did"),
            ["50.0%", "50.0%", "+0.0", "points"]
        );
        assert_eq!(row_of(&text, "switches"), ["4", "8", "+100.0%"]);
        assert_eq!(row_of(&text, "woken"), ["2", "4", "+100.0%"]);
        // Waits are kept to three digits: 4000 ns as 4001.
        let longest = row_of(&text, "longest");
        assert_eq!(longest, ["1.00", "us", "4.00", "us", "+300.1%"]);
        // Of one CPU no other is known to differ.
        assert_eq!(row_of(&text, "37.5 ..  50.0%"), ["-", "100.0%"]);
        assert_eq!(row_of(&text, "forks"), ["0", "0"]);
        assert!(text.starts_with("A: 6 events in 4.00 us under the kernel's own scheduler\nB: "));
        assert_eq!(lines(&text), text, "hostile names are harmless");
    }

    #[test]
    fn what_was_none_has_no_per_cent_and_what_is_missing_is_said() {
        let (a, mut b) = (analysis(1, &[], None), analysis(1, &[1000], None));
        b.lost = 7;
        b.is_whole = false;
        let text = Comparison { a: &a, b: &b }.to_string();
        assert_eq!(row_of(&text, "switches"), ["0", "2", "from", "none"]);
        assert_eq!(row_of(&text, "median"), ["-", "1.00", "us"]);
        assert!(text.contains("\nB: 7 events are missing"), "{text}");
        assert!(text.contains("\nB: the file has no end"), "{text}");
    }
}
