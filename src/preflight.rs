// SPDX-License-Identifier: GPL-2.0-only
//! What must be so before anything is loaded; each lack is one line that says
//! what to do.

use std::path::Path;

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("this kernel ({0}) has no sched_ext: boot Linux 6.16 or newer built with CONFIG_SCHED_CLASS_EXT=y")]
    NoSchedExt(String),
    #[error("loading a scheduler needs CAP_SYS_ADMIN, or CAP_BPF with CAP_PERFMON: run it as root, with sudo for example")]
    NotAllowed,
    #[error("this kernel ({0}) does not describe its types: boot one built with CONFIG_DEBUG_INFO_BTF=y (/sys/kernel/btf/vmlinux is missing)")]
    NoBtf(String),
    #[error("the scheduler {0} is loaded already: end it first (it is in /sys/kernel/sched_ext/root/ops)")]
    Loaded(String),
    #[error("the kernel's configuration cannot be read: put it at /boot/config-{0}, or name the file with --kconfig")]
    NoKconfig(String),
}

/// The facts that [`check`] judges.
#[derive(Clone, Debug, Default)]
struct Found {
    release: String,
    sched_ext: bool,
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

/// Can the CONFIG_ values be read that a BPF object may ask for?
pub fn kconfig() -> Result<(), Error> {
    let release = release();
    let found = ["/proc/config.gz", &format!("/boot/config-{release}")]
        .iter()
        .any(|path| Path::new(path).exists());
    found.then_some(()).ok_or(Error::NoKconfig(release))
}

/// The name of the scheduler that is loaded, if one is.
pub fn loaded() -> Option<String> {
    let read = |name: &str| std::fs::read_to_string(Path::new("/sys/kernel/sched_ext").join(name));
    if read("state").ok()?.trim() == "disabled" {
        return None;
    }
    // While one is being enabled or disabled it may have no name.
    let name = read("root/ops").unwrap_or_default();
    Some(match name.trim() {
        "" => "that is just being changed".into(),
        name => name.into(),
    })
}

fn look() -> Found {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    Found {
        release: release(),
        sched_ext: Path::new("/sys/kernel/sched_ext").exists(),
        btf: Path::new("/sys/kernel/btf/vmlinux").exists(),
        capabilities: capabilities(&status),
        loaded: loaded(),
    }
}

fn release() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease")
        .map(|release| release.trim().into())
        .unwrap_or_else(|_| "of unknown version".into())
}

fn capabilities(status: &str) -> u64 {
    status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
        .unwrap_or(0)
}

fn check(found: &Found) -> Result<(), Error> {
    let has = |wanted: u64| found.capabilities & wanted == wanted;
    if !found.sched_ext {
        return Err(Error::NoSchedExt(found.release.clone()));
    }
    if !has(CAP_SYS_ADMIN) && !has(CAP_BPF | CAP_PERFMON) {
        return Err(Error::NotAllowed);
    }
    if !found.btf {
        return Err(Error::NoBtf(found.release.clone()));
    }
    match &found.loaded {
        Some(name) => Err(Error::Loaded(name.clone())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Found {
        Found {
            release: "7.2.0".into(),
            sched_ext: true,
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
    fn capabilities_are_read_from_status() {
        let status = "Name:\tx\nCapPrm:\t0000000000000000\nCapEff:\t000000c000000000\n";
        assert_eq!(capabilities(status), CAP_BPF | CAP_PERFMON);
        assert_eq!(capabilities("Name:\tx\n"), 0);
    }
}
