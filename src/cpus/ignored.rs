// SPDX-License-Identifier: GPL-2.0-only
//! What cgroups ask of a scheduler and this one does not follow with `--cgroups 0`: weights,
//! quotas and cpu.idle. Users who rely on them have to know it at start.

use super::quota::{Hierarchy, Version};
use crate::foreign::Escaped;
use std::fs;
use std::path::{Path, PathBuf};

/// More cgroups are not looked at.
const MOST: usize = 20_000;

/// One line about those that ask for something; none if nobody does.
pub fn ignored() -> Option<String> {
    let hierarchy = Hierarchy::find()?;
    let mut number = 0;
    let mut example = None;
    let mut folders = vec![hierarchy.root().to_path_buf()];
    for _ in 0..MOST {
        let Some(folder) = folders.pop() else { break };
        if let Some(asked) = asked(&hierarchy, &folder) {
            number += 1;
            example.get_or_insert((folder.clone(), asked));
        }
        folders.extend(below(&folder));
    }
    let (folder, asked) = example?;
    let path = folder.strip_prefix(hierarchy.root()).unwrap_or(&folder);
    let have = if number == 1 { "has" } else { "have" };
    Some(format!(
        "cgroups: {number} {have} a CPU weight, a quota or cpu.idle, which --cgroups 0 does not follow (/{}: {asked})",
        Escaped(&path.to_string_lossy())
    ))
}

fn below(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
}

/// What the cgroup of this folder asks for beyond what all have to begin with.
fn asked(hierarchy: &Hierarchy, folder: &Path) -> Option<String> {
    let read = |name: &str| {
        let text = fs::read_to_string(folder.join(name)).ok()?;
        Some(text.trim().to_owned())
    };
    let weight = match hierarchy.version {
        Version::V1 => ("cpu.shares", "1024"),
        Version::V2 => ("cpu.weight", "100"),
    };
    if let Some(cpus) = hierarchy.quota_in(folder) {
        return Some(format!("a quota of {cpus} CPUs"));
    }
    [("cpu.idle", "0"), weight]
        .into_iter()
        .find_map(|(name, usual)| {
            let value = read(name).filter(|value| value != usual)?;
            Some(format!("{name} {}", Escaped(&value)))
        })
}

#[cfg(test)]
mod tests {
    use super::super::quota::tests::hierarchy;
    use super::*;

    #[test]
    fn what_is_not_as_it_is_to_begin_with_is_reported() {
        let (dir, two) = hierarchy(
            Version::V2,
            &[
                ("usual/cpu.weight", "100\n"),
                ("usual/cpu.max", "max 100000\n"),
                ("usual/cpu.idle", "0\n"),
                ("heavy/cpu.weight", "1000\n"),
                ("short/cpu.max", "20000 100000\n"),
                ("idle/cpu.idle", "1\n"),
            ],
        );
        let asked = |name: &str| asked(&two, &dir.path().join(name));
        assert_eq!(asked("usual"), None);
        assert_eq!(asked("gone"), None);
        assert_eq!(asked("heavy").unwrap(), "cpu.weight 1000");
        assert_eq!(asked("short").unwrap(), "a quota of 0.2 CPUs");
        assert_eq!(asked("idle").unwrap(), "cpu.idle 1");
        assert_eq!(below(dir.path()).count(), 4);
    }
}
