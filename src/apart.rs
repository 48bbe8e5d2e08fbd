// SPDX-License-Identifier: GPL-2.0-only
//! CPUs that the kernel was told to treat apart from the others.

use std::collections::BTreeSet;

/// CPUs without ticks while a task runs alone, by the kernel's argument `nohz_full`.
const TICKLESS: &str = "/sys/devices/system/cpu/nohz_full";

/// Those of isolated partitions of cpusets, which come and go.
const ISOLATED: &str = "/sys/fs/cgroup/cpuset.cpus.isolated";

/// CPUs, by their ids.
pub type Cpus = BTreeSet<usize>;

/// CPUs whose tick the kernel may stop while they run a task; it never changes.
pub fn tickless() -> Cpus {
    read(TICKLESS)
}

/// CPUs on which only what is bound to them is to run, now.
pub fn isolated() -> Cpus {
    read(ISOLATED)
}

/// Those of a file; none where the kernel has no such file, or says of none in words.
fn read(path: &str) -> Cpus {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    parse(&text)
}

fn parse(text: &str) -> Cpus {
    let cpus = scx_utils::read_cpulist(text.trim()).unwrap_or_default();
    cpus.into_iter().collect()
}

/// As the kernel writes them: 2-4,7.
pub fn list(cpus: &Cpus) -> String {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for &cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let range = |&(first, last): &(usize, usize)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    ranges.iter().map(range).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written_alike() {
        for text in ["", "3", "2-3", "1,3-5,9"] {
            assert_eq!(list(&parse(&format!("{text}\n"))), text);
        }
    }

    #[test]
    fn a_kernel_without_any_names_none() {
        assert!(parse("\n").is_empty());
        assert!(parse("  (null)\n").is_empty());
        assert!(read("/sys/devices/system/cpu/no-such-file").is_empty());
    }
}
