// SPDX-License-Identifier: GPL-2.0-only
//! Where a comparison was run, as far as it matters for its figures.

use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The simulated machine whose CPUs never change their speed: what a scheduler
/// gains there it does not gain by frequencies.
pub const CONTROL: &str = "symmetric-fixed";

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Bare,
    /// A virtual machine whose instructions the CPU runs.
    Virtual,
    /// A virtual machine whose instructions are emulated (QEMU's TCG).
    Emulated,
    /// A simulated one, whose CPUs have the speeds of a model.
    Simulated {
        migration_cost: bool,
    },
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Machine {
    pub kernel: String,
    pub cpus: usize,
    pub model: String,
    pub kind: Kind,
    /// The kernel has a cpufreq driver, so frequencies change and are known.
    pub cpufreq: bool,
}

impl Machine {
    /// Looks below `root`.
    pub fn look(root: &Path) -> Self {
        let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
        let cpuinfo = read("proc/cpuinfo");
        let model = field(&cpuinfo, "model name").unwrap_or("unknown CPU");
        // x86 says so in a flag; elsewhere the firmware names the machine.
        let firmware = read("sys/class/dmi/id/sys_vendor") + &read("proc/device-tree/compatible");
        let in_vm = field(&cpuinfo, "flags")
            .is_some_and(|flags| flags.split(' ').any(|f| f == "hypervisor"))
            || ["QEMU", "dummy-virt"]
                .iter()
                .any(|name| firmware.contains(name));
        let kind = match in_vm {
            _ if model.contains("TCG") => Kind::Emulated,
            true => Kind::Virtual,
            false => Kind::Bare,
        };
        Self {
            kernel: read("proc/sys/kernel/osrelease").trim().to_string(),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            model: model.into(),
            kind,
            cpufreq: root.join("sys/devices/system/cpu/cpufreq/policy0").exists(),
        }
    }
}

/// Value of the first line `name : value`.
fn field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    cpuinfo.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then_some(value.trim())
    })
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Self {
            kernel,
            cpus,
            model,
            ..
        } = self;
        if let Kind::Simulated { migration_cost } = self.kind {
            let moves = if migration_cost {
                "A migration costs what the machine's file says"
            } else {
                "Migrations are free"
            };
            return write!(
                f,
                "Simulated machine {model}; {cpus} CPUs, Linux {kernel}. {moves}. Not modelled: caches otherwise, hardware threads, memory and its bandwidth, heat, the time that a frequency change stops a core; every instruction takes the same time."
            );
        }
        write!(f, "Linux {kernel}, {cpus} CPUs ({model}), ")?;
        match (self.kind, self.cpufreq) {
            (Kind::Bare, true) => write!(f, "frequencies change (cpufreq)"),
            (Kind::Bare, false) => {
                write!(f, "no cpufreq driver: frequencies change unseen, if at all")
            }
            (Kind::Virtual, true) => write!(f, "in a VM with a cpufreq driver"),
            (Kind::Virtual, false) => write!(f, "in a VM: no frequency changes here"),
            // Above.
            (Kind::Simulated { .. }, _) => Ok(()),
            (Kind::Emulated, true) => write!(f, "in an emulated VM with a cpufreq driver"),
            (Kind::Emulated, false) => write!(f, "in an emulated VM: no frequency changes here"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> Machine {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Machine::look(root.path())
    }

    #[test]
    fn bare_virtual_and_emulated_machines_are_distinguished() {
        let cpuinfo = |model: &str, flags: &str| {
            format!("processor\t: 0\nmodel name\t: {model}\nflags\t\t: fpu {flags} sse\n")
        };
        let kind = |cpuinfo: String| machine(&[("proc/cpuinfo", &cpuinfo)]).kind;
        assert_eq!(kind(cpuinfo("Xeon", "vme")), Kind::Bare);
        assert_eq!(kind(cpuinfo("Xeon", "hypervisor")), Kind::Virtual);
        assert_eq!(
            kind(cpuinfo("QEMU TCG CPU version 2.5+", "hypervisor")),
            Kind::Emulated
        );
        let arm = machine(&[("proc/device-tree/compatible", "linux,dummy-virt")]);
        assert_eq!(arm.kind, Kind::Virtual);
    }

    #[test]
    fn a_title_says_whether_frequencies_change() {
        let vm = machine(&[
            (
                "proc/cpuinfo",
                "model name : QEMU TCG CPU\nflags : hypervisor\n",
            ),
            ("proc/sys/kernel/osrelease", "7.2.1\n"),
        ]);
        let title = vm.to_string();
        assert!(title.starts_with("Linux 7.2.1, "), "{title}");
        assert!(
            title.ends_with("in an emulated VM: no frequency changes here"),
            "{title}"
        );
        let bare = machine(&[("sys/devices/system/cpu/cpufreq/policy0/x", "")]);
        assert!(bare.to_string().ends_with("frequencies change (cpufreq)"));
    }
}
