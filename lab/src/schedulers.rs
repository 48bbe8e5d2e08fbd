// SPDX-License-Identifier: GPL-2.0-only
//! The schedulers that one can name, and the programs that load them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use freqlock::mode::Mode;
use freqlock::spelling::{did_you_mean, nearest};

/// No scheduler of sched_ext: the kernel's own.
pub const KERNEL: &str = "eevdf";

/// What the name of each scheduler of ours in /sys begins with.
pub const OURS: &str = "freqlock";

/// No scheduler of sched_ext either: the kernel's own with every CPU always at its highest
/// speed, which is what no scheduler can be much better than.
pub const LIMIT: &str = "limit";

/// The kernel's own with the workload on the first CPUs, `pinned:K`; on one without a number.
pub const PINNED: &str = "pinned";

/// Whichever of those does best.
pub const BEST_OF_PINNED: &str = "best-of-pinned";

/// What shows what is to be gained, on simulated machines only.
const BOUNDS: [&str; 3] = [LIMIT, PINNED, BEST_OF_PINNED];

/// The programs of the scx project, for suggestions only: any other program
/// whose name begins with `scx_` will do.
const PEERS: [&str; 16] = [
    "scx_beerland",
    "scx_bpfland",
    "scx_cake",
    "scx_cosmos",
    "scx_eevdf",
    "scx_flash",
    "scx_floor",
    "scx_lavd",
    "scx_layered",
    "scx_nest",
    "scx_p2dq",
    "scx_pandemonium",
    "scx_rustland",
    "scx_rusty",
    "scx_simple",
    "scx_tickless",
];

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("unknown scheduler {name}{}: there are {}, and installed programs such as scx_bpfland", did_you_mean(.nearest), .known.join(", "))]
    UnknownScheduler {
        name: String,
        nearest: Option<String>,
        known: Vec<&'static str>,
    },
    #[error("{name} is the kernel's own scheduler and takes no arguments: {spec}")]
    KernelArguments { name: &'static str, spec: String },
    #[error("{PINNED} takes a number of CPUs, and here are {cpus}: {spec}")]
    PinnedTo { spec: String, cpus: u32 },
    #[error("{0} is for comparisons on simulated machines only: compare --machine NAME")]
    OnlySimulated(String),
    #[error("cannot take the arguments of {spec} apart: {reason}")]
    Arguments { spec: String, reason: String },
}

fn modes() -> Vec<&'static str> {
    Mode::value_variants()
        .iter()
        .map(|mode| mode.name())
        .collect()
}

/// A scheduler that a program loads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loader {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    /// What its name in /sys/kernel/sched_ext/root/ops begins with.
    pub ops: String,
}

/// The kernel's own scheduler in a situation that shows what is to be gained.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// Every CPU is always at its highest speed.
    Limit,
    /// The workload is on so many CPUs, the fastest first.
    Pinned(u32),
    /// Whichever of those that are compared does best; it is no run of its own.
    BestOfPinned,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scheduler {
    /// As it was named, and unique.
    pub label: String,
    /// None for the kernel's own.
    pub loader: Option<Loader>,
    pub bound: Option<Bound>,
}

/// The workload on 1, 2, 3, 4, 6, 8, 12, 16 ... CPUs, and on all of them: each step is a
/// half or a third more, which is how exact a best one is.
pub fn pinned_to_few_and_many(cpus: u32) -> Vec<Scheduler> {
    let mut numbers: Vec<u32> = (0..u32::BITS - 1)
        .flat_map(|power| [1 << power, 3 << power])
        .filter(|number| *number < cpus)
        .chain([cpus])
        .collect();
    numbers.sort_unstable();
    let pinned = |number| Scheduler {
        label: format!("{PINNED}:{number}"),
        loader: None,
        bound: Some(Bound::Pinned(number)),
    };
    numbers.into_iter().map(pinned).collect()
}

/// The programs that load schedulers.
pub struct Programs<'a> {
    /// This one.
    pub ours: &'a Path,
    pub find: &'a dyn Fn(&str) -> Option<PathBuf>,
    /// CPUs of the simulated machine; elsewhere there are no bounds.
    pub simulated: Option<u32>,
}

/// Splits a list at its commas, those in quotes left alone.
pub fn split_specs(list: &str) -> Vec<String> {
    let mut quote = None;
    let mut specs = vec![String::new()];
    for c in list.chars() {
        match quote {
            None if c == ',' => {
                specs.push(String::new());
                continue;
            }
            None if c == '\'' || c == '"' => quote = Some(c),
            Some(open) if c == open => quote = None,
            _ => {}
        }
        if let Some(spec) = specs.last_mut() {
            spec.push(c);
        }
    }
    specs
        .iter()
        .map(|spec| spec.trim().to_string())
        .filter(|spec| !spec.is_empty())
        .collect()
}

/// None if that is no name of a bound.
fn bound(name: &str, spec: &str, simulated: Option<u32>) -> Result<Option<Bound>, Error> {
    let Some(name) = BOUNDS.into_iter().find(|other| *other == name) else {
        return Ok(None);
    };
    let Some(cpus) = simulated else {
        return Err(Error::OnlySimulated(name.into()));
    };
    let argument = spec.split_once(':').map(|(_, rest)| rest.trim());
    if name == PINNED {
        let number = argument.map_or(Ok(1), str::parse);
        return match number {
            Ok(number) if (1..=cpus).contains(&number) => Ok(Some(Bound::Pinned(number))),
            _ => Err(Error::PinnedTo {
                spec: spec.into(),
                cpus,
            }),
        };
    }
    if argument.is_some() {
        let spec = spec.into();
        return Err(Error::KernelArguments { name, spec });
    }
    Ok(Some(if name == LIMIT {
        Bound::Limit
    } else {
        Bound::BestOfPinned
    }))
}

/// None if it is a program that is not installed.
pub fn scheduler(spec: &str, programs: &Programs) -> Result<Option<Scheduler>, Error> {
    let (name, rest) = spec.split_once(':').unwrap_or((spec, ""));
    let arguments = shell_words::split(rest).map_err(|error| Error::Arguments {
        spec: spec.into(),
        reason: error.to_string(),
    })?;
    let arguments = arguments.into_iter().map(OsString::from);
    let bound = bound(name, spec, programs.simulated)?;
    let loader = if bound.is_some() {
        None
    } else if name == KERNEL {
        if arguments.len() > 0 {
            return Err(Error::KernelArguments {
                name: KERNEL,
                spec: spec.into(),
            });
        }
        None
    } else if modes().contains(&name) {
        Some(Loader {
            program: programs.ours.into(),
            arguments: std::iter::once(format!("--mode={name}").into())
                .chain(arguments)
                .collect(),
            ops: OURS.into(),
        })
    } else if let Some(program) = (programs.find)(name).filter(|_| name.starts_with("scx_")) {
        Some(Loader {
            program,
            arguments: arguments.collect(),
            ops: name.trim_start_matches("scx_").into(),
        })
    } else if PEERS.contains(&name) {
        return Ok(None);
    } else {
        let mut known = vec![KERNEL];
        known.extend(modes());
        known.extend(programs.simulated.map_or(&[][..], |_| &BOUNDS));
        return Err(Error::UnknownScheduler {
            name: name.into(),
            nearest: nearest(name, known.iter().copied().chain(PEERS)),
            known,
        });
    };
    Ok(Some(Scheduler {
        label: spec.into(),
        loader,
        bound,
    }))
}

/// A scheduler may be compared with itself, which shows how much of a
/// difference is chance.
pub fn make_unique(schedulers: &mut [Scheduler]) {
    for i in 1..schedulers.len() {
        let (before, rest) = schedulers.split_at_mut(i);
        let same = before
            .iter()
            .filter(|other| other.label.split('#').next() == Some(&rest[0].label))
            .count();
        if same > 0 {
            rest[0].label = format!("{}#{}", rest[0].label, same + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(spec: &str, simulated: Option<u32>) -> Result<Option<Bound>, String> {
        let programs = Programs {
            ours: Path::new("scx_freqlock"),
            find: &|_| None,
            simulated,
        };
        let found = scheduler(spec, &programs).map_err(|error| error.to_string())?;
        Ok(found.and_then(|scheduler| scheduler.bound))
    }

    #[test]
    fn bounds_have_names_on_simulated_machines() {
        for (spec, bound) in [
            ("eevdf", None),
            ("auto", None),
            ("limit", Some(Bound::Limit)),
            ("pinned", Some(Bound::Pinned(1))),
            ("pinned:1", Some(Bound::Pinned(1))),
            ("pinned:8", Some(Bound::Pinned(8))),
            ("best-of-pinned", Some(Bound::BestOfPinned)),
        ] {
            assert_eq!(named(spec, Some(8)), Ok(bound), "{spec}");
        }
        for name in BOUNDS {
            let reason = named(name, None).unwrap_err();
            assert_eq!(
                reason,
                format!(
                    "{name} is for comparisons on simulated machines only: compare --machine NAME"
                )
            );
        }
    }

    #[test]
    fn nonsense_about_bounds_is_refused_in_a_line() {
        for spec in [
            "pinned:0",
            "pinned:9",
            "pinned:-1",
            "pinned:",
            "pinned:1,2",
            "pinned:all",
        ] {
            assert_eq!(
                named(spec, Some(8)),
                Err(format!(
                    "pinned takes a number of CPUs, and here are 8: {spec}"
                ))
            );
        }
        for (spec, name) in [("limit:1", "limit"), ("best-of-pinned:2", "best-of-pinned")] {
            assert_eq!(
                named(spec, Some(8)),
                Err(format!(
                    "{name} is the kernel's own scheduler and takes no arguments: {spec}"
                ))
            );
        }
        let reason = named("best-of-pined", Some(8)).unwrap_err();
        assert!(reason.contains("did you mean best-of-pinned?"), "{reason}");
        let reason = named("nothing-like-it", Some(8)).unwrap_err();
        assert!(
            reason.contains("limit, pinned, best-of-pinned,"),
            "{reason}"
        );
        let reason = named("nothing-like-it", None).unwrap_err();
        assert!(!reason.contains("pinned"), "{reason}");
    }

    #[test]
    fn few_cpus_are_tried_one_by_one_and_many_in_steps() {
        let tried = |cpus| -> String {
            let all = pinned_to_few_and_many(cpus);
            let labels: Vec<_> = all
                .iter()
                .map(|s| s.label.trim_start_matches("pinned:"))
                .collect();
            labels.join(" ")
        };
        assert_eq!(tried(1), "1");
        assert_eq!(tried(5), "1 2 3 4 5");
        assert_eq!(tried(6), "1 2 3 4 6");
        assert_eq!(tried(16), "1 2 3 4 6 8 12 16");
        assert_eq!(tried(128), "1 2 3 4 6 8 12 16 24 32 48 64 96 128");
        for scheduler in pinned_to_few_and_many(16) {
            assert_eq!(named(&scheduler.label, Some(16)), Ok(scheduler.bound));
        }
    }
}
