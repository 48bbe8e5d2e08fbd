// SPDX-License-Identifier: MIT
//! Who is big: whether a thread is on a fast CPU.

use crate::os;
use crate::present::{is_nearer_to_most, Present, PAGE};
use std::ffi::CStr;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

/// Something that says how fast CPUs can be: relative numbers by CPU, none if it says nothing.
struct Source {
    name: &'static str,
    read: fn(&Path) -> Option<Vec<u32>>,
}

/// The first one that says something counts; else all CPUs are equal.
const SOURCES: &[Source] = &[
    Source {
        name: "cpu_capacity",
        read: capacities,
    },
    Source {
        name: "hybrid types",
        read: hybrid_types,
    },
];

/// Of each CPU, whether it is big; empty where all are.
struct Speeds {
    source: &'static str,
    is_big: Vec<bool>,
}

impl Speeds {
    fn read(root: &Path) -> Speeds {
        let found = SOURCES
            .iter()
            .find_map(|source| Some((source.name, (source.read)(root)?)));
        let (source, speeds) = found.unwrap_or(("all equal", Vec::new()));
        let least = speeds.iter().copied().min().unwrap_or(0);
        let most = speeds.iter().copied().max().unwrap_or(0);
        if least == most {
            return Speeds {
                source,
                is_big: Vec::new(),
            };
        }
        let is_big = speeds
            .iter()
            .map(|&speed| is_nearer_to_most(speed, least, most))
            .collect();
        Speeds { source, is_big }
    }
}

/// Arm and others: what the device tree or the firmware says, 1024 for the biggest.
fn capacities(root: &Path) -> Option<Vec<u32>> {
    let folder = root.join("sys/devices/system/cpu");
    (0..)
        .map(|cpu| folder.join(format!("cpu{cpu}")))
        .take_while(|cpu| cpu.exists())
        .map(|cpu| {
            fs::read_to_string(cpu.join("cpu_capacity"))
                .ok()?
                .trim()
                .parse()
                .ok()
        })
        .collect::<Option<Vec<u32>>>()
        .filter(|found| !found.is_empty())
}

/// Intel's: a list of CPUs for each type of core.
fn hybrid_types(root: &Path) -> Option<Vec<u32>> {
    let list =
        |name: &str| fs::read_to_string(root.join("sys/devices").join(name).join("cpus")).ok();
    let (cores, atoms) = (
        parse_list(&list("cpu_core")?)?,
        parse_list(&list("cpu_atom")?)?,
    );
    let count = cores.iter().chain(&atoms).max()? + 1;
    let mut speeds = vec![1; count];
    atoms.iter().for_each(|&cpu| speeds[cpu] = 0);
    Some(speeds)
}

/// The kernel's form, as in `0-3,8`. None if it is not that, or has CPUs beyond what Linux can have.
fn parse_list(text: &str) -> Option<Vec<usize>> {
    let mut found = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if last >= 1 << 16 {
            return None;
        }
        found.extend(first..=last);
    }
    Some(found)
}

/// All that there is to ask.
struct Sources {
    /// The scheduler's page, if there is one.
    present: Option<Present>,
    speeds: Speeds,
}

impl Sources {
    fn find(page: &CStr, root: &Path) -> Sources {
        Sources {
            present: Present::open(page),
            speeds: Speeds::read(root),
        }
    }

    fn is_big(&self, cpu: usize) -> bool {
        let now = self.present.as_ref().and_then(|page| page.is_big(cpu));
        now.unwrap_or_else(|| self.speeds.is_big.get(cpu).copied().unwrap_or(true))
    }

    fn name(&self) -> &'static str {
        match &self.present {
            Some(page) if page.is_fresh() => "present speeds",
            _ => self.speeds.source,
        }
    }
}

/// Found once, when the first thread has to wait for a lock.
fn sources() -> &'static Sources {
    static SOURCES: OnceLock<Sources> = OnceLock::new();
    SOURCES.get_or_init(|| Sources::find(PAGE, Path::new("/")))
}

/// True if the CPU that the thread is on is a big one, also where all are alike or nothing is known:
/// at present where scx_freqlock writes its page of speeds, else by what the CPU is.
pub fn on_big_cpu() -> bool {
    sources().is_big(os::cpu())
}

/// What says which CPUs are big: `present speeds`, `cpu_capacity`, `hybrid types` or `all equal`.
pub fn speed_source() -> &'static str {
    sources().name()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::present::page_tests::{page, LONG};
    use proptest::prelude::*;
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;

    fn machine(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    fn capacity(values: &[u32]) -> tempfile::TempDir {
        let files: Vec<_> = values
            .iter()
            .enumerate()
            .map(|(cpu, value)| {
                (
                    format!("sys/devices/system/cpu/cpu{cpu}/cpu_capacity"),
                    format!("{value}\n"),
                )
            })
            .collect();
        machine(
            &files
                .iter()
                .map(|(name, text)| (name.as_str(), text.as_str()))
                .collect::<Vec<_>>(),
        )
    }

    #[test]
    fn three_kinds_of_cpus_are_big_or_little() {
        let speeds = Speeds::read(capacity(&[250, 250, 760, 1024]).path());
        assert_eq!(
            (speeds.source, speeds.is_big),
            ("cpu_capacity", vec![false, false, true, true])
        );
    }

    #[test]
    fn hybrid_types_count_where_there_is_no_capacity() {
        let root = machine(&[
            ("sys/devices/system/cpu/cpu0/online", "1"),
            ("sys/devices/cpu_core/cpus", "0-1,4\n"),
            ("sys/devices/cpu_atom/cpus", "2-3\n"),
        ]);
        let speeds = Speeds::read(root.path());
        assert_eq!(
            (speeds.source, speeds.is_big),
            ("hybrid types", vec![true, true, false, false, true])
        );
    }

    #[test]
    fn nothing_known_or_all_alike_makes_all_big() {
        for root in [
            machine(&[]),
            capacity(&[1024, 1024]),
            machine(&[("sys/devices/cpu_core/cpus", "0-3")]),
        ] {
            assert!(Speeds::read(root.path()).is_big.is_empty());
        }
    }

    #[test]
    fn what_a_cpu_is_counts_where_nobody_says_how_fast_it_is_now() {
        let root = capacity(&[250, 1024]);
        let sources = Sources::find(c"/nonexistent/speeds", root.path());
        assert_eq!(sources.name(), "cpu_capacity");
        assert_eq!(
            [0, 1, 2].map(|cpu| sources.is_big(cpu)),
            [false, true, true]
        );
    }

    #[test]
    fn what_a_cpu_does_now_counts_before_what_it_is() {
        let (root, folder) = (capacity(&[250, 1024, 1024]), tempfile::tempdir().unwrap());
        let at = page(folder.path(), LONG, &[1024, 300]);
        let at = CString::new(at.as_os_str().as_bytes()).unwrap();
        let sources = Sources::find(&at, root.path());
        assert_eq!(sources.name(), "present speeds");
        assert_eq!(
            [0, 1, 2].map(|cpu| sources.is_big(cpu)),
            [true, false, true]
        );
        page(folder.path(), 0, &[1024, 300]);
        assert_eq!(sources.name(), "cpu_capacity");
        assert_eq!([0, 1].map(|cpu| sources.is_big(cpu)), [false, true]);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(core in "[0-9,\\-x \n]{0,12}", atom in any::<String>(), capacity in any::<String>()) {
            let root = machine(&[
                ("sys/devices/system/cpu/cpu0/cpu_capacity", &capacity),
                ("sys/devices/cpu_core/cpus", &core),
                ("sys/devices/cpu_atom/cpus", &atom),
            ]);
            Speeds::read(root.path());
        }
    }
}
