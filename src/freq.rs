// SPDX-License-Identifier: GPL-2.0-only
//! Which source of CPU speeds to use on this machine, and why.

use crate::intf;
use libbpf_rs::btf::types::Typedef;
use libbpf_rs::btf::Btf;
use scx_utils::perf::bindings::perf_event_attr;
use scx_utils::perf::perf_event_open;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Why no source was chosen.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The wanted one is not here.
    #[error("frequency source {wanted} cannot be used: {why}; leave it to --freq-source=auto, or choose another one")]
    Lacking {
        /// Its name.
        wanted: &'static str,
        /// What the machine lacks.
        why: String,
    },
}

include!(concat!(env!("OUT_DIR"), "/sources.rs"));

impl Source {
    /// Whether bpf/sources.h gives it that flag of `enum fl_source_flags`.
    pub fn has(self, flag: u32) -> bool {
        self.flags() & flag != 0
    }
}

/// What the machine has; each lack with its reason.
#[derive(Debug)]
pub struct Machine {
    /// Some CPU's frequency is chosen by schedutil.
    pub schedutil: bool,
    /// Whether cpufreq has a policy for any CPU.
    pub cpufreq: Result<(), String>,
    /// Whether power:cpu_frequency is there.
    pub tracepoint: Result<(), String>,
    /// Of APERF and MPERF, open already.
    pub counters: Result<Counters, String>,
}

/// The source to begin with.
#[derive(Debug, PartialEq, Eq)]
pub struct Choice {
    /// In use until an upgrade.
    pub source: Source,
    /// Why that one, for people.
    pub why: String,
    /// Change over to cpuperf as soon as it is seen to vary.
    pub upgrade: bool,
}

/// Chooses the best source of the machine, or the wanted one if it is there.
pub fn choose(wanted: Option<Source>, machine: &Machine) -> Result<Choice, Error> {
    if let Some(source) = wanted {
        return match machine.has_for(source) {
            Ok(()) => Ok(Choice {
                source,
                why: "as asked for".into(),
                upgrade: false,
            }),
            Err(why) => Err(Error::Lacking {
                wanted: source.name(),
                why,
            }),
        };
    }

    let upgrade = machine.cpufreq.is_ok();
    let next = if upgrade {
        "; cpuperf follows once it is seen to vary"
    } else {
        ""
    };
    let (source, why) = match (&machine.counters, &machine.cpufreq, &machine.tracepoint) {
        (Ok(_), ..) => (Source::Aperf, format!("this machine counts cycles{next}")),
        (Err(_), Ok(()), Ok(())) => (Source::Tracepoint, format!("cpufreq is here{next}")),
        (Err(no), Ok(()), Err(nor)) => (Source::Recency, format!("{no}, {nor}{next}")),
        (Err(no), Err(nor), _) => (Source::Recency, format!("{no}, {nor}")),
    };
    Ok(Choice {
        source,
        why,
        upgrade,
    })
}

impl Machine {
    /// Whether all is there that `source` needs, or what is not.
    fn has_for(&self, source: Source) -> Result<(), String> {
        if source.has(intf::fl_source_flags_COUNTERS) {
            self.counters.as_ref().map_err(Clone::clone)?;
        }
        if source.has(intf::fl_source_flags_CPUFREQ) {
            self.cpufreq.clone()?;
        }
        if source.has(intf::fl_source_flags_HOOKED) {
            self.tracepoint.clone()?;
        }
        Ok(())
    }

    /// Looks at this machine; `cpus` are the online ones. Counters are opened
    /// only if they could be used.
    pub fn probe(wanted: Option<Source>, cpus: &[usize]) -> Self {
        let looks_for = |flag| wanted.is_none_or(|source| source.has(flag));
        let counters = if looks_for(intf::fl_source_flags_COUNTERS) {
            Counters::open(cpus)
        } else {
            Err("not looked for".into())
        };
        let policies: Vec<PathBuf> = std::fs::read_dir("/sys/devices/system/cpu/cpufreq")
            .into_iter()
            .flatten()
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("policy"))
            .map(|entry| entry.path())
            .collect();
        let governed = !policies.is_empty();
        let schedutil = policies.iter().any(|policy| {
            std::fs::read_to_string(policy.join("scaling_governor"))
                .is_ok_and(|governor| governor.trim() == "schedutil")
        });
        // Reading the kernel's types takes a while.
        let tracepoint = if governed && looks_for(intf::fl_source_flags_HOOKED) {
            has_tracepoint()
        } else {
            Err("not looked for".into())
        };
        Self {
            cpufreq: governed.then_some(()).ok_or("no cpufreq here".into()),
            tracepoint,
            counters,
            schedutil,
        }
    }
}

fn has_tracepoint() -> Result<(), String> {
    Btf::from_vmlinux()
        .ok()
        .and_then(|btf| {
            btf.type_by_name::<Typedef<'_>>("btf_trace_cpu_frequency")
                .map(|_| ())
        })
        .ok_or("no tracepoint power:cpu_frequency".into())
}

/// Open perf events of one counter on every CPU: (CPU, event).
pub type Events = Vec<(usize, OwnedFd)>;

/// The events of APERF and MPERF.
#[derive(Debug)]
pub struct Counters {
    /// Cycles at the actual frequency.
    pub aperf: Events,
    /// Cycles at a fixed frequency, while the CPU is not idle as for APERF.
    pub mperf: Events,
}

impl Counters {
    /// Of these CPUs, which are online.
    pub fn open(cpus: &[usize]) -> Result<Self, String> {
        let pmu = Path::new("/sys/bus/event_source/devices/msr");
        let read = |name: &str| {
            std::fs::read_to_string(pmu.join(name)).map_err(|_| "no APERF/MPERF counters here")
        };
        let kind: u32 = read("type")?
            .trim()
            .parse()
            .map_err(|_| "the msr PMU has no type")?;
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        if !schedulers_read_counters(&release) {
            return Err("schedulers cannot read counters before Linux 6.16".into());
        }
        let open = |name: &str| -> Result<Events, String> {
            let config = event_config(&read(&format!("events/{name}"))?)
                .ok_or("the msr PMU's events cannot be understood")?;
            cpus.iter()
                .map(|&cpu| Ok((cpu, open_event(kind, config, cpu)?)))
                .collect()
        };
        Ok(Self {
            aperf: open("aperf")?,
            mperf: open("mperf")?,
        })
    }
}

/// Whether a kernel of that release lets a scheduler's programs call
/// bpf_perf_event_read_value(), which only its version shows.
fn schedulers_read_counters(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let mut next = || numbers.next().and_then(|n| n.parse::<u32>().ok());
    (next(), next()) >= (Some(6), Some(16))
}

/// The number in `event=0x01`.
fn event_config(text: &str) -> Option<u64> {
    u64::from_str_radix(text.trim().strip_prefix("event=0x")?, 16).ok()
}

fn open_event(kind: u32, config: u64, cpu: usize) -> Result<OwnedFd, String> {
    let mut attr = perf_event_attr {
        type_: kind,
        size: std::mem::size_of::<perf_event_attr>() as u32,
        config,
        ..Default::default()
    };
    // SAFETY: attr is initialized, says its own size, and outlives the call.
    let fd = unsafe { perf_event_open(&mut attr, -1, cpu as i32, -1, 0) };
    if fd < 0 {
        let why = std::io::Error::last_os_error();
        return Err(format!("the counter of CPU {cpu} cannot be opened: {why}"));
    }
    // SAFETY: the kernel has just made this descriptor, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(cpufreq: bool, tracepoint: bool, counters: bool) -> Machine {
        let has = |has: bool, what: &str| has.then_some(()).ok_or(format!("no {what}"));
        Machine {
            schedutil: cpufreq,
            cpufreq: has(cpufreq, "cpufreq"),
            tracepoint: has(tracepoint, "tracepoint"),
            counters: has(counters, "counters").map(|()| Counters {
                aperf: vec![],
                mperf: vec![],
            }),
        }
    }

    fn auto(cpufreq: bool, tracepoint: bool, counters: bool) -> (Source, bool) {
        let choice = choose(None, &machine(cpufreq, tracepoint, counters)).unwrap();
        (choice.source, choice.upgrade)
    }

    #[test]
    fn auto_takes_the_best_that_is_there() {
        assert_eq!(auto(true, true, true), (Source::Aperf, true));
        assert_eq!(auto(false, true, true), (Source::Aperf, false));
        assert_eq!(auto(true, true, false), (Source::Tracepoint, true));
        assert_eq!(auto(true, false, false), (Source::Recency, true));
        assert_eq!(auto(false, true, false), (Source::Recency, false));
    }

    #[test]
    fn auto_says_why() {
        let choice = choose(None, &machine(false, true, false)).unwrap();
        assert_eq!(choice.why, "no counters, no cpufreq");
    }

    #[test]
    fn a_wanted_source_is_taken_or_refused_with_a_reason() {
        let none = machine(false, false, false);
        for source in [Source::Test, Source::Recency] {
            assert_eq!(choose(Some(source), &none).unwrap().source, source);
        }
        for (source, why) in [
            (Source::Cpuperf, "no cpufreq"),
            (Source::Aperf, "no counters"),
            (Source::Tracepoint, "no cpufreq"),
        ] {
            let refused = choose(Some(source), &none).unwrap_err().to_string();
            assert!(
                refused.contains(why) && refused.contains(source.name()),
                "{refused}"
            );
            let all = machine(true, true, true);
            assert_eq!(choose(Some(source), &all).unwrap().source, source);
        }
        let refused = choose(Some(Source::Tracepoint), &machine(true, false, true));
        assert!(refused.unwrap_err().to_string().contains("no tracepoint"));
    }

    #[test]
    fn counters_are_read_from_6_16_on() {
        let yes = ["6.16.3+deb13-cloud-amd64", "6.16-rc1", "7.0.0", "10.1"];
        let no = ["6.12.117", "6.15.9", "5.19.0", ""];
        assert!(yes.iter().all(|release| schedulers_read_counters(release)));
        assert!(!no.iter().any(|release| schedulers_read_counters(release)));
    }

    #[test]
    fn events_of_the_msr_pmu() {
        assert_eq!(event_config("event=0x01\n"), Some(1));
        assert_eq!(event_config("event=0x1f"), Some(31));
        assert_eq!(event_config("umask=0x01"), None);
    }
}
