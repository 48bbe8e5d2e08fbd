// SPDX-License-Identifier: GPL-2.0-only
//! What bench/calibrate has printed.

use std::collections::BTreeMap;
use std::str::FromStr;

/// How many in a row, and the nanoseconds that each took.
pub type Runs = Vec<(u64, f64)>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// The lowest CPU of its core.
    pub core: u32,
    /// The lowest CPU that shares its last-level cache.
    pub llc: u32,
    /// The highest frequency by cpufreq; 0 without it.
    pub max_khz: u64,
}

/// Passes through a working set after a migration.
#[derive(Clone, Debug, PartialEq)]
pub struct Move {
    /// core, llc or far
    pub distance: String,
    pub insns: f64,
    pub passes: Runs,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measured {
    pub about: BTreeMap<String, String>,
    pub cpus: Vec<Cpu>,
    pub insns_of_step: f64,
    pub cycles_of_step: f64,
    /// Steps.
    pub chunk: f64,
    pub ramps: Vec<Runs>,
    /// Idle time, and a chunk after it: ns.
    pub decays: Vec<(f64, f64)>,
    /// A chunk while so many cores run: ns.
    pub turbo: Vec<(u32, f64)>,
    pub moves: Vec<Move>,
    /// `wake`, `syscall` and `switch`: ns.
    pub costs: BTreeMap<String, f64>,
    /// Why something is not there.
    pub absent: BTreeMap<String, String>,
}

impl Measured {
    /// The reason says which line is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut measured = Self::default();
        for (at, line) in text.lines().enumerate() {
            measured
                .take(line)
                .ok_or_else(|| format!("line {} is not of bench/calibrate: {line:?}", at + 1))?;
        }
        let missing = [
            ("cpu", measured.cpus.is_empty()),
            ("step", measured.insns_of_step <= 0.0),
            ("chunk", measured.chunk <= 0.0),
            ("ramp", measured.ramps.is_empty()),
            ("decay", measured.decays.is_empty()),
            ("switch", !measured.costs.contains_key("switch")),
        ];
        match missing.iter().find(|(_, missing)| *missing) {
            Some((what, _)) => Err(format!("there is no line {what}: it did not end")),
            None => Ok(measured),
        }
    }

    fn take(&mut self, line: &str) -> Option<()> {
        let (kind, rest) = line.split_once(' ')?;
        let mut words = rest.split(' ');
        match kind {
            "about" | "absent" => {
                let (key, value) = rest.split_once(' ')?;
                let to = match kind {
                    "about" => &mut self.about,
                    _ => &mut self.absent,
                };
                to.insert(key.into(), value.into());
            }
            "cpu" => {
                next::<u32>(&mut words)?;
                self.cpus.push(Cpu {
                    core: next(&mut words)?,
                    llc: next(&mut words)?,
                    max_khz: next(&mut words)?,
                });
            }
            "step" => {
                self.insns_of_step = next(&mut words)?;
                self.cycles_of_step = next(&mut words)?;
            }
            "chunk" => self.chunk = next(&mut words)?,
            "ramp" => self.ramps.push(runs(words)?),
            "decay" => self.decays.push((next(&mut words)?, next(&mut words)?)),
            "turbo" => self.turbo.push((next(&mut words)?, next(&mut words)?)),
            "move" => self.moves.push(Move {
                distance: next(&mut words)?,
                insns: next(&mut words)?,
                passes: runs(words)?,
            }),
            "wake" | "syscall" | "switch" => {
                self.costs.insert(kind.into(), next(&mut words)?);
            }
            _ => return None,
        }
        Some(())
    }

    pub fn says(&self, key: &str) -> &str {
        self.about.get(key).map_or("none", String::as_str)
    }

    pub fn cores(&self) -> u32 {
        distinct(self.cpus.iter().map(|cpu| cpu.core))
    }

    pub fn llcs(&self) -> u32 {
        distinct(self.cpus.iter().map(|cpu| cpu.llc))
    }
}

fn distinct(all: impl Iterator<Item = u32>) -> u32 {
    let all: std::collections::BTreeSet<u32> = all.collect();
    // There are at most as many as CPUs.
    all.len() as u32
}

fn next<'a, T: FromStr>(words: &mut impl Iterator<Item = &'a str>) -> Option<T> {
    words.next()?.parse().ok()
}

fn runs<'a>(words: impl Iterator<Item = &'a str>) -> Option<Runs> {
    let one = |word: &str| {
        let (count, ns) = word.split_once(':')?;
        Some((count.parse().ok()?, ns.parse().ok()?))
    };
    words.map(one).collect()
}
