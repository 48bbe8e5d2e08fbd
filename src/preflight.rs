// SPDX-License-Identifier: GPL-2.0-only
//! What must be so before anything is loaded; each lack is one line that says
//! what to do.

use std::path::Path;

/// What is lacking; the text says what to do.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// /sys/kernel/sched_ext is not there; with the kernel's release.
    #[error("this kernel ({0}) has no sched_ext: boot Linux 6.16 or newer built with CONFIG_SCHED_CLASS_EXT=y")]
    NoSchedExt(String),
    /// By the kernel's command line: no kernel takes a scheduler then.
    #[error("this kernel takes no sched_ext scheduler, for it was booted with isolcpus=: boot it without, and isolate CPUs by a partition of cpusets instead (cpuset.cpus.partition)")]
    Isolcpus,
    /// By CapEff of this process.
    #[error("loading BPF programs needs CAP_SYS_ADMIN, or CAP_BPF with CAP_PERFMON: run it as root, with sudo for example")]
    NotAllowed,
    /// With the kernel's release.
    #[error("this kernel ({0}) does not describe its types: boot one built with CONFIG_DEBUG_INFO_BTF=y (/sys/kernel/btf/vmlinux is missing)")]
    NoBtf(String),
    /// With the name of that scheduler.
    #[error("the scheduler {0} is loaded already: end it first (it is in /sys/kernel/sched_ext/root/ops)")]
    Loaded(String),
    /// With the kernel's release.
    #[error("the kernel's configuration cannot be read: put it at /boot/config-{0}, or name the file with --kconfig")]
    NoKconfig(String),
}

/// The facts that [`check`] judges.
#[derive(Clone, Debug, Default)]
struct Found {
    release: String,
    sched_ext: bool,
    /// Booted with CPUs taken out of the kernel's scheduling domains.
    isolcpus: bool,
    btf: bool,
    /// CapEff of /proc/self/status.
    capabilities: u64,
    /// Name of the scheduler that is loaded.
    loaded: Option<String>,
}

const CAP_SYS_ADMIN: u64 = 1 << 21;
const CAP_PERFMON: u64 = 1 << 38;
const CAP_BPF: u64 = 1 << 39;

/// Is all there that loading the scheduler needs?
pub fn run() -> Result<(), Error> {
    check(&look())
}

/// Is all there that other BPF programs need?
pub fn bpf() -> Result<(), Error> {
    check_bpf(&look())
}

/// What there is to say where a policy of sched_ext's is refused.
pub fn no_sched_ext() -> Error {
    Error::NoSchedExt(release())
}

/// Can the CONFIG_ values be read that a BPF object may ask for?
pub fn kconfig() -> Result<(), Error> {
    let release = release();
    let found = ["/proc/config.gz", &format!("/boot/config-{release}")]
        .iter()
        .any(|path| Path::new(path).exists());
    found.then_some(()).ok_or(Error::NoKconfig(release))
}

/// What sched_ext does, in the kernel's word; none where there is no sched_ext.
pub fn state() -> Option<String> {
    Some(sched_ext("state")?.trim().into())
}

fn sched_ext(file: &str) -> Option<String> {
    std::fs::read_to_string(Path::new("/sys/kernel/sched_ext").join(file)).ok()
}

/// The name of the scheduler that is loaded, if one is.
pub fn loaded() -> Option<String> {
    if state()? == "disabled" {
        return None;
    }
    // While one is being enabled or disabled it may have no name.
    let name = sched_ext("root/ops").unwrap_or_default();
    Some(match name.trim() {
        "" => "that is just being changed".into(),
        name => name.into(),
    })
}

/// Whether it has all normal tasks, and not those of policy SCHED_EXT alone; none where no
/// scheduler is loaded.
pub fn has_all_tasks() -> Option<bool> {
    loaded()?;
    Some(sched_ext("switch_all")?.trim() == "1")
}

fn look() -> Found {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    Found {
        release: release(),
        sched_ext: Path::new("/sys/kernel/sched_ext").exists(),
        isolcpus: takes_out_of_domains(
            &std::fs::read_to_string("/proc/cmdline").unwrap_or_default(),
        ),
        btf: Path::new("/sys/kernel/btf/vmlinux").exists(),
        capabilities: capabilities(&status),
        loaded: loaded(),
    }
}

/// The kernel's release.
pub fn release() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease")
        .map(|release| release.trim().into())
        .unwrap_or_else(|_| "of unknown version".into())
}

/// Whether the kernel's `isolcpus=` says so: it does unless it names other things only.
fn takes_out_of_domains(command_line: &str) -> bool {
    let mut values = command_line.split_whitespace();
    let Some(value) = values.find_map(|word| word.strip_prefix("isolcpus=")) else {
        return false;
    };
    let mut flags = value
        .split(',')
        .take_while(|flag| flag.starts_with(|first: char| first.is_ascii_lowercase()))
        .peekable();
    flags.peek().is_none() || flags.any(|flag| flag == "domain")
}

fn capabilities(status: &str) -> u64 {
    status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
        .unwrap_or(0)
}

fn check(found: &Found) -> Result<(), Error> {
    if !found.sched_ext {
        return Err(Error::NoSchedExt(found.release.clone()));
    }
    check_bpf(found)?;
    if found.isolcpus {
        return Err(Error::Isolcpus);
    }
    match &found.loaded {
        Some(name) => Err(Error::Loaded(name.clone())),
        None => Ok(()),
    }
}

/// Can BPF programs be loaded?
fn check_bpf(found: &Found) -> Result<(), Error> {
    let has = |wanted: u64| found.capabilities & wanted == wanted;
    if !has(CAP_SYS_ADMIN) && !has(CAP_BPF | CAP_PERFMON) {
        return Err(Error::NotAllowed);
    }
    if !found.btf {
        return Err(Error::NoBtf(found.release.clone()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Found {
        Found {
            release: "7.2.0".into(),
            sched_ext: true,
            isolcpus: false,
            btf: true,
            capabilities: u64::MAX,
            loaded: None,
        }
    }

    #[test]
    fn a_good_machine_passes() {
        assert_eq!(check(&good()), Ok(()));
        let capabilities = CAP_BPF | CAP_PERFMON;
        assert_eq!(
            check(&Found {
                capabilities,
                ..good()
            }),
            Ok(())
        );
        let capabilities = CAP_SYS_ADMIN;
        assert_eq!(
            check(&Found {
                capabilities,
                ..good()
            }),
            Ok(())
        );
    }

    #[test]
    fn every_lack_is_named() {
        let no_sched_ext = Found {
            sched_ext: false,
            ..good()
        };
        assert_eq!(check(&no_sched_ext), Err(Error::NoSchedExt("7.2.0".into())));
        for capabilities in [0, CAP_BPF, CAP_PERFMON] {
            assert_eq!(
                check(&Found {
                    capabilities,
                    ..good()
                }),
                Err(Error::NotAllowed)
            );
        }
        assert_eq!(
            check(&Found {
                btf: false,
                ..good()
            }),
            Err(Error::NoBtf("7.2.0".into()))
        );
        // They need no sched_ext, and disturb nobody.
        assert_eq!(check_bpf(&no_sched_ext), Ok(()));
        let loaded = Found {
            loaded: Some("bpfland_1".into()),
            ..good()
        };
        let message = check(&loaded).unwrap_err().to_string();
        assert!(message.contains("bpfland_1"), "{message}");
    }

    #[test]
    fn the_kernel_is_named_before_the_missing_rights() {
        let neither = Found {
            sched_ext: false,
            capabilities: 0,
            ..good()
        };
        assert!(matches!(check(&neither), Err(Error::NoSchedExt(_))));
    }

    #[test]
    fn isolcpus_takes_cpus_out_of_domains_unless_it_is_about_others() {
        for (line, takes) in [
            ("quiet nohz_full=2,3", false),
            ("isolcpus=3", true),
            ("quiet isolcpus=domain,nohz,2-3 ro", true),
            ("isolcpus=managed_irq,nohz,3", false),
        ] {
            assert_eq!(takes_out_of_domains(line), takes, "{line}");
        }
        let isolcpus = Found {
            isolcpus: true,
            ..good()
        };
        assert_eq!(check(&isolcpus), Err(Error::Isolcpus));
    }

    #[test]
    fn capabilities_are_read_from_status() {
        let status = "Name:\tx\nCapPrm:\t0000000000000000\nCapEff:\t000000c000000000\n";
        assert_eq!(capabilities(status), CAP_BPF | CAP_PERFMON);
        assert_eq!(capabilities("Name:\tx\n"), 0);
    }
}
