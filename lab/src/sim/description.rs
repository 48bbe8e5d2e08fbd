// SPDX-License-Identifier: GPL-2.0-only
//! Descriptions of machines: the files machine/*.toml, read strictly. A name
//! that is not known and a value that no machine has are errors that say where
//! and what would do.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Speeds and capacities are parts of this, as the kernel counts them.
pub const FULL: u32 = 1024;

/// As many virtual CPUs as one host thread can still emulate in useful time.
const MAX_CPUS: u32 = 128;

/// As many as the plugin has room for.
const MAX_OPPS: usize = 40;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no machine {name} in {}{}: there are {}", dir.display(), freqlock::spelling::did_you_mean(.nearest), .known.join(", "))]
    Unknown {
        name: String,
        dir: PathBuf,
        nearest: Option<String>,
        known: Vec<String>,
    },
    #[error("cannot read {}", path.display())]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("{}: {reason}", path.display())]
    Wrong { path: PathBuf, reason: String },
}

/// A machine as its file has it.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// The file's name without its ending.
    #[serde(skip)]
    pub name: String,
    /// One line: what it is like.
    pub description: String,
    /// Instructions per µs of the fastest core at its highest frequency.
    pub mips: u32,
    /// How far the CPUs' clocks may be apart.
    #[serde(default = "default_quantum")]
    pub quantum_ns: u32,
    /// Bytes of `rep movs` and `rep stos` that count as one instruction.
    #[serde(default = "default_rep_bytes")]
    pub rep_bytes_per_insn: u32,
    /// Memory of the guest.
    pub memory_mb: u32,
    /// Power of an idle CPU.
    pub idle_mw: u32,
    pub governor: Governor,
    /// Frequency limits by the number of active cores.
    #[serde(default)]
    pub turbo: Vec<Turbo>,
    /// What a migration costs, where that is asked for.
    pub migration: Migration,
    /// CPUs of one kind each, numbered in this order.
    #[serde(rename = "cluster")]
    pub clusters: Vec<Cluster>,
}

fn default_quantum() -> u32 {
    20_000
}

fn default_rep_bytes() -> u32 {
    8
}

/// What changes the frequencies.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Governor {
    /// Nothing: every CPU is at its highest operating point.
    Fixed,
    /// The hardware: it follows how busy the CPU is.
    Hardware {
        /// Busy time from the lowest to the highest frequency.
        ramp_ms: f64,
        /// Idle time before it begins to fall.
        hold_ms: f64,
        /// Idle time from the highest to the lowest frequency.
        decay_ms: f64,
    },
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Turbo {
    /// With at most this many cores active,
    pub active: u32,
    /// none is faster than this.
    pub mhz: u32,
}

/// After a migration the first instructions of a task run slower.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Migration {
    /// To another hardware thread of the same core.
    pub core: Cold,
    /// To another core with the same last-level cache.
    pub llc: Cold,
    /// Farther.
    pub far: Cold,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Cold {
    /// This many instructions
    pub insns: u32,
    /// run at this speed, of 1024.
    pub speed: u32,
}

impl Cold {
    pub const FREE: Self = Self {
        insns: 0,
        speed: FULL,
    };
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    pub cpus: u32,
    /// CPUs that share a last-level cache.
    pub cpus_per_llc: u32,
    #[serde(default = "one")]
    pub threads_per_core: u32,
    /// Work per time at the highest frequency; the fastest cluster's is 1024.
    pub capacity: u32,
    /// Rising.
    pub opps: Vec<Opp>,
}

fn one() -> u32 {
    1
}

/// An operating point: a frequency and what a busy CPU consumes at it.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Opp {
    pub mhz: u32,
    pub mw: u32,
}

impl Cluster {
    pub fn top_mhz(&self) -> u32 {
        self.opps.last().map_or(0, |opp| opp.mhz)
    }

    /// A frequency as a part of this cluster's highest.
    pub fn speed(&self, mhz: u32) -> u32 {
        let top = u64::from(self.top_mhz().max(1));
        let speed = (u64::from(mhz) * u64::from(FULL) + top / 2) / top;
        // No more than FULL, for mhz is at most the highest.
        speed.clamp(1, u64::from(FULL)) as u32
    }
}

/// What is wrong with a text of TOML, with the line where one can be named.
pub fn with_line(error: &toml::de::Error, text: &str) -> String {
    let before = |at: usize| text[..at.min(text.len())].matches('\n').count();
    match error.span() {
        Some(span) => format!("line {}: {}", before(span.start) + 1, error.message()),
        None => error.message().to_string(),
    }
}

impl Description {
    /// Reads machine `name` of `dir`, or a file given by its path.
    pub fn load(name: &str, dir: &Path) -> Result<Self, Error> {
        let path = if name.contains('/') || name.ends_with(".toml") {
            PathBuf::from(name)
        } else {
            let known = names(dir)?;
            if !known.iter().any(|other| other == name) {
                return Err(Error::Unknown {
                    name: name.into(),
                    dir: dir.into(),
                    nearest: freqlock::spelling::nearest(name, known.iter().map(String::as_str)),
                    known,
                });
            }
            dir.join(format!("{name}.toml"))
        };
        let text = std::fs::read_to_string(&path).map_err(|source| Error::Read {
            path: path.clone(),
            source,
        })?;
        let name = path
            .file_stem()
            .map(|stem| stem.to_string_lossy().into_owned())
            .unwrap_or_default();
        Self::parse(&name, &text).map_err(|reason| Error::Wrong { path, reason })
    }

    /// The reason is for people, with the line where one can be named.
    pub fn parse(name: &str, text: &str) -> Result<Self, String> {
        let mut description: Self =
            toml::from_str(text).map_err(|error| with_line(&error, text))?;
        description.name = name.into();
        description.check()?;
        Ok(description)
    }

    pub fn cpus(&self) -> u32 {
        self.clusters.iter().map(|cluster| cluster.cpus).sum()
    }

    /// The same machine with fewer CPUs, as many of each kind as before in
    /// proportion.
    pub fn cut(mut self, cpus: u32) -> Result<Self, String> {
        let all = self.cpus();
        if cpus == 0 || cpus > all {
            return Err(format!(
                "{} has {all} CPUs: --cpus {cpus} is not in 1..={all}",
                self.name
            ));
        }
        for cluster in &mut self.clusters {
            if !(cluster.cpus * cpus).is_multiple_of(all) || cluster.cpus * cpus < all {
                return Err(format!(
                    "{} cannot be cut to {cpus} CPUs with its kinds of cores in proportion",
                    self.name
                ));
            }
            cluster.cpus = cluster.cpus * cpus / all;
            cluster.cpus_per_llc = cluster.cpus_per_llc.min(cluster.cpus);
            cluster.threads_per_core = cluster.threads_per_core.min(cluster.cpus);
        }
        // The limit for all of them may now be one for fewer.
        let last = self.turbo.iter().position(|turbo| turbo.active >= cpus);
        if let Some(last) = last {
            self.turbo.truncate(last + 1);
            self.turbo[last].active = cpus;
        }
        self.check()?;
        Ok(self)
    }

    fn check(&self) -> Result<(), String> {
        within("mips", self.mips, 10..=100_000)?;
        within("quantum_ns", self.quantum_ns, 1_000..=1_000_000)?;
        within("rep_bytes_per_insn", self.rep_bytes_per_insn, 1..=4096)?;
        within("memory_mb", self.memory_mb, 256..=65_536)?;
        within("idle_mw", self.idle_mw, 0..=100_000)?;
        if self.description.trim().is_empty() || self.description.contains('\n') {
            return Err("description has to be one line that says what the machine is".into());
        }
        self.check_clusters()?;
        self.check_governor()?;
        self.check_turbo()?;
        for (name, cold) in [
            ("migration.core", self.migration.core),
            ("migration.llc", self.migration.llc),
            ("migration.far", self.migration.far),
        ] {
            within(&format!("{name}.insns"), cold.insns, 0..=1_000_000_000)?;
            within(&format!("{name}.speed"), cold.speed, 1..=FULL)?;
        }
        Ok(())
    }

    fn check_clusters(&self) -> Result<(), String> {
        if self.clusters.is_empty() {
            return Err("a machine needs at least one [[cluster]]".into());
        }
        for (i, cluster) in self.clusters.iter().enumerate() {
            cluster
                .check(self.idle_mw)
                .map_err(|reason| format!("cluster {}: {reason}", i + 1))?;
        }
        let total: u64 = self.clusters.iter().map(|c| u64::from(c.cpus)).sum();
        if total > u64::from(MAX_CPUS) {
            return Err(format!(
                "{total} CPUs are more than the {MAX_CPUS} that there may be"
            ));
        }
        if self.clusters.iter().all(|cluster| cluster.capacity != FULL) {
            return Err(format!(
                "no cluster has capacity {FULL}, which is what the fastest one has"
            ));
        }
        Ok(())
    }

    fn check_governor(&self) -> Result<(), String> {
        let Governor::Hardware {
            ramp_ms,
            hold_ms,
            decay_ms,
        } = self.governor
        else {
            return Ok(());
        };
        // Nothing that is built takes longer to change its frequency.
        let range = 0.001..=1000.0;
        for (name, ms, range) in [
            ("governor.ramp_ms", ramp_ms, range.clone()),
            ("governor.hold_ms", hold_ms, 0.0..=1000.0),
            ("governor.decay_ms", decay_ms, range),
        ] {
            if !range.contains(&ms) {
                return Err(format!("{name} = {ms} is not in {range:?}"));
            }
        }
        Ok(())
    }

    fn check_turbo(&self) -> Result<(), String> {
        let Some(last) = self.turbo.last() else {
            return Ok(());
        };
        let [cluster] = self.clusters.as_slice() else {
            return Err("turbo is for machines with one cluster: its frequencies are those of one kind of core".into());
        };
        for pair in self.turbo.windows(2) {
            if pair[0].active >= pair[1].active || pair[0].mhz < pair[1].mhz {
                return Err(format!(
                    "turbo: more active cores are not faster; after {} at {} MHz comes {} at {} MHz",
                    pair[0].active, pair[0].mhz, pair[1].active, pair[1].mhz
                ));
            }
        }
        let floor = cluster.opps.first().map_or(0, |opp| opp.mhz);
        for turbo in &self.turbo {
            if turbo.active == 0 || turbo.mhz < floor || turbo.mhz > cluster.top_mhz() {
                return Err(format!(
                    "turbo: {} active at {} MHz: active counts from 1, and the frequency is in {floor}..={} MHz",
                    turbo.active, turbo.mhz, cluster.top_mhz()
                ));
            }
        }
        let cores = cluster.cpus / cluster.threads_per_core;
        if last.active != cores {
            return Err(format!(
                "turbo: the last line has to be for all {cores} cores, not for {}",
                last.active
            ));
        }
        Ok(())
    }
}

impl Cluster {
    fn check(&self, idle_mw: u32) -> Result<(), String> {
        within("cpus", self.cpus, 1..=MAX_CPUS)?;
        within("threads_per_core", self.threads_per_core, 1..=8)?;
        within("capacity", self.capacity, 1..=FULL)?;
        within("cpus_per_llc", self.cpus_per_llc, 1..=self.cpus)?;
        if !self.cpus.is_multiple_of(self.cpus_per_llc)
            || !self.cpus_per_llc.is_multiple_of(self.threads_per_core)
        {
            return Err(format!(
                "{} CPUs cannot be split into caches of {} and cores of {}",
                self.cpus, self.cpus_per_llc, self.threads_per_core
            ));
        }
        if self.opps.is_empty() || self.opps.len() > MAX_OPPS {
            return Err("opps has to name 1 to 40 operating points".into());
        }
        let mut below = Opp {
            mhz: 0,
            mw: idle_mw,
        };
        for opp in &self.opps {
            within("opps: mhz", opp.mhz, 10..=20_000)?;
            within("opps: mw", opp.mw, 1..=1_000_000)?;
            if opp.mhz <= below.mhz || opp.mw <= below.mw {
                return Err(format!(
                    "opps: {} MHz at {} mW comes after {} MHz at {} mW: frequency and power have to rise, from the idle power",
                    opp.mhz, opp.mw, below.mhz, below.mw
                ));
            }
            below = *opp;
        }
        Ok(())
    }
}

fn within(name: &str, value: u32, range: RangeInclusive<u32>) -> Result<(), String> {
    if range.contains(&value) {
        Ok(())
    } else {
        Err(format!("{name} = {value} is not in {range:?}"))
    }
}

/// The machines of a folder.
pub fn names(dir: &Path) -> Result<Vec<String>, Error> {
    let unreadable = |source| Error::Read {
        path: dir.into(),
        source,
    };
    let mut names = Vec::new();
    for entry in dir.read_dir().map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|ending| ending == "toml") {
            names.extend(
                path.file_stem()
                    .map(|stem| stem.to_string_lossy().into_owned()),
            );
        }
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
pub mod tests {
    use super::*;

    const DIR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../machine");

    pub const SMALL: &str = r#"
description = "for tests"
mips = 1000
memory_mb = 512
idle_mw = 100
turbo = [{ active = 1, mhz = 2000 }, { active = 4, mhz = 1500 }]

[governor]
kind = "hardware"
ramp_ms = 8
hold_ms = 1
decay_ms = 20

[migration]
core = { insns = 0, speed = 1024 }
llc = { insns = 1000, speed = 512 }
far = { insns = 5000, speed = 256 }

[[cluster]]
cpus = 4
cpus_per_llc = 2
capacity = 1024
opps = [{ mhz = 500, mw = 200 }, { mhz = 2000, mw = 3000 }]
"#;

    pub fn small() -> Description {
        Description::parse("small", SMALL).unwrap()
    }

    fn refused(from: &str, to: &str) -> String {
        assert!(SMALL.contains(from), "{from}");
        Description::parse("small", &SMALL.replacen(from, to, 1)).unwrap_err()
    }

    #[test]
    fn every_machine_of_the_project_is_sound() {
        let names = names(Path::new(DIR)).unwrap();
        assert!(names.len() >= 4, "{names:?}");
        for name in names {
            let machine = Description::load(&name, Path::new(DIR)).unwrap();
            assert_eq!(machine.name, name);
        }
    }

    #[test]
    fn a_fixed_machine_needs_no_times() {
        let text = SMALL
            .replace("\"hardware\"", "\"fixed\"")
            .replace("ramp_ms = 8\nhold_ms = 1\ndecay_ms = 20\n", "");
        let machine = Description::parse("small", &text).unwrap();
        assert_eq!(machine.governor, Governor::Fixed);
    }

    #[test]
    fn unknown_keys_are_refused_with_their_line() {
        let reason = refused("memory_mb", "memory_gb");
        assert!(
            reason.starts_with("line 4: ") && reason.contains("memory_gb"),
            "{reason}"
        );
        for (from, to) in [
            ("ramp_ms = 8", "ramp_ms = 8\nrampms = 9"),
            ("mw = 200 }", "mw = 200, volt = 1 }"),
            ("cpus = 4", "cpus = 4\ncolour = 3"),
            ("\"hardware\"", "\"ondemand\""),
            ("mips = 1000", ""),
            ("mips = 1000", "mips = -5"),
        ] {
            refused(from, to);
        }
    }

    #[test]
    fn silly_values_are_refused_with_what_would_do() {
        for (from, to, hint) in [
            ("mips = 1000", "mips = 0", "mips = 0 is not in 10..=100000"),
            ("ramp_ms = 8", "ramp_ms = 0", "governor.ramp_ms"),
            ("decay_ms = 20", "decay_ms = nan", "governor.decay_ms"),
            ("hold_ms = 1", "hold_ms = -1", "governor.hold_ms"),
            ("cpus = 4", "cpus = 0", "cpus = 0"),
            ("cpus = 4", "cpus = 5", "caches of 2"),
            ("cpus = 4", "cpus = 129", "1..=128"),
            ("capacity = 1024", "capacity = 512", "capacity 1024"),
            ("capacity = 1024", "capacity = 2048", "1..=1024"),
            ("mhz = 500", "mhz = 2500", "have to rise"),
            ("mw = 3000", "mw = 100", "have to rise"),
            ("mw = 200 ", "mw = 50 ", "idle power"),
            ("active = 4", "active = 3", "all 4 cores"),
            ("mhz = 1500", "mhz = 2100", "not faster"),
            (
                "active = 1, mhz = 2000",
                "active = 1, mhz = 2001",
                "500..=2000 MHz",
            ),
            ("speed = 512", "speed = 0", "migration.llc.speed"),
            ("memory_mb = 512", "memory_mb = 16", "memory_mb"),
            ("\"for tests\"", "\"\"", "description"),
        ] {
            let reason = refused(from, to);
            assert!(reason.contains(hint), "{to}: {reason}");
        }
        let two = SMALL.to_string() + &SMALL[SMALL.find("[[cluster]]").unwrap()..];
        let reason = Description::parse("small", &two).unwrap_err();
        assert!(reason.contains("one cluster"), "{reason}");
    }

    #[test]
    fn a_wrong_name_is_answered_with_the_nearest() {
        let error = Description::load("e7-8870-v4", Path::new(DIR)).unwrap_err();
        assert!(
            error.to_string().contains("did you mean e7-8870v4?"),
            "{error}"
        );
        let error = Description::load("/nowhere/x.toml", Path::new(DIR)).unwrap_err();
        assert!(error.to_string().contains("/nowhere/x.toml"), "{error}");
    }

    #[test]
    fn speeds_are_parts_of_the_highest_frequency() {
        let cluster = &small().clusters[0];
        assert_eq!(
            [500, 1500, 2000].map(|mhz| cluster.speed(mhz)),
            [256, 768, 1024]
        );
    }

    #[test]
    fn a_cut_keeps_proportions_and_the_turbo_table_whole() {
        let two = small().cut(2).unwrap();
        assert_eq!((two.cpus(), two.clusters[0].cpus_per_llc), (2, 2));
        assert_eq!(
            two.turbo,
            [
                Turbo {
                    active: 1,
                    mhz: 2000
                },
                Turbo {
                    active: 2,
                    mhz: 1500
                }
            ]
        );
        assert_eq!(small().cut(1).unwrap().turbo.len(), 1);
        for wrong in [0, 5] {
            assert!(small().cut(wrong).unwrap_err().contains("1..=4"));
        }
        assert!(small().cut(3).unwrap_err().contains("caches of 2"));
        let hybrid = Description::load("hybrid-4p4e", Path::new(DIR)).unwrap();
        assert_eq!(hybrid.clone().cut(4).unwrap().clusters[1].cpus, 2);
        assert!(hybrid.cut(3).unwrap_err().contains("in proportion"));
    }
}
