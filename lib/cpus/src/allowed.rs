// SPDX-License-Identifier: MIT
//! What a program may use whatever its neighbours do: its affinity, and its cgroups' quotas.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// CPUs that the calling thread may run on; 1 at least.
pub fn affinity() -> usize {
    affine_cpus().len().max(1)
}

/// Their numbers, the least first; none where the kernel does not say.
pub(crate) fn affine_cpus() -> Vec<usize> {
    // More CPUs than Linux can have.
    let mut mask = [0u64; 1 << 10];
    // SAFETY: mask is ours, and as long as is said.
    let bytes = unsafe {
        libc::syscall(
            libc::SYS_sched_getaffinity,
            0,
            size_of_val(&mask),
            mask.as_mut_ptr(),
        )
    };
    let bits = usize::try_from(bytes).unwrap_or(0) * 8;
    (0..bits)
        .filter(|cpu| mask[cpu / 64] >> (cpu % 64) & 1 != 0)
        .collect()
}

/// The calling process's cgroup with the cpu controller, and its quotas.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    /// Its folder and those above it up to where the hierarchy is mounted; none without cgroups.
    folders: Vec<PathBuf>,
    hierarchy: Hierarchy,
}

/// Where cgroups are that have the cpu controller.
#[derive(Clone, Debug, Default)]
struct Hierarchy {
    is_v1: bool,
    root: String,
    top: PathBuf,
}

impl Limits {
    /// Finds the cgroup that the process is in now.
    pub fn find() -> Self {
        let read = |file| fs::read_to_string(file).unwrap_or_default();
        Self::parse(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"))
    }

    /// Version 2 has the controller unless a mount of version 1 took it.
    fn parse(mountinfo: &str, cgroups: &str) -> Self {
        let mounts: Vec<_> = mountinfo.lines().filter_map(Mount::parse).collect();
        let v1 = |mount: &&Mount| mount.kind == "cgroup" && mount.has_cpu;
        let Some(mount) = mounts
            .iter()
            .find(v1)
            .or_else(|| mounts.iter().find(|mount| mount.kind == "cgroup2"))
        else {
            return Self::default();
        };
        let hierarchy = Hierarchy {
            is_v1: mount.kind == "cgroup",
            root: mount.root.into(),
            top: mount.at.into(),
        };
        let folder = hierarchy.folder(cgroups).unwrap_or(hierarchy.top.clone());
        Self {
            folders: folder
                .ancestors()
                .take_while(|folder| folder.starts_with(&hierarchy.top))
                .map(Path::to_path_buf)
                .collect(),
            hierarchy,
        }
    }

    /// The id by which the page knows the cgroup: the inode of its folder.
    pub fn cgroup(&self) -> Option<u64> {
        Some(self.folders.first()?.metadata().ok()?.ino())
    }

    /// The quotas of the cgroup and those above it, in CPUs, the outermost first, with their folders.
    pub(crate) fn quotas(&self) -> Vec<(&Path, f64)> {
        let outermost_first = self.folders.iter().rev();
        outermost_first
            .filter_map(|folder| Some((folder.as_path(), quota_in(folder)?)))
            .collect()
    }

    /// In how many of these quotas, from the outermost, a process has a part; in all, if that is not known.
    pub(crate) fn parts_of(&self, pid: u32, quotas: &[(&Path, f64)]) -> usize {
        if quotas.is_empty() {
            return 0;
        }
        let cgroups = fs::read_to_string(format!("/proc/{pid}/cgroup"));
        cgroups.map_or(quotas.len(), |cgroups| self.parts(&cgroups, quotas))
    }

    fn parts(&self, cgroups: &str, quotas: &[(&Path, f64)]) -> usize {
        let Some(folder) = self.hierarchy.folder(cgroups) else {
            return quotas.len();
        };
        let has_part = |(of, _): &&(&Path, f64)| folder.starts_with(of);
        quotas.iter().take_while(has_part).count()
    }
}

impl Hierarchy {
    /// Of the cgroup of a process, as /proc/PID/cgroup names it.
    fn folder(&self, cgroups: &str) -> Option<PathBuf> {
        let path = cgroups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (number, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            let fits = if self.is_v1 {
                controllers.split(',').any(|name| name == "cpu")
            } else {
                number == "0"
            };
            fits.then_some(path)
        })?;
        // In a container the mount may begin below the hierarchy's root.
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        Some(self.top.join(below.trim_start_matches('/')))
    }
}

struct Mount<'a> {
    root: &'a str,
    at: &'a str,
    kind: &'a str,
    has_cpu: bool,
}

impl<'a> Mount<'a> {
    /// A line of mountinfo, as proc(5) has it.
    fn parse(line: &'a str) -> Option<Self> {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(3);
        let (root, at) = (before.next()?, before.next()?);
        let mut after = after.split(' ');
        let (kind, _, options) = (after.next()?, after.next()?, after.next()?);
        Some(Self {
            root,
            at,
            kind,
            has_cpu: options.split(',').any(|option| option == "cpu"),
        })
    }
}

fn quota_in(folder: &Path) -> Option<f64> {
    let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
    if let Some(v2) = read("cpu.max") {
        let (quota, period) = v2.trim().split_once(' ')?;
        return cpus(quota, period);
    }
    cpus(
        read("cpu.cfs_quota_us")?.trim(),
        read("cpu.cfs_period_us")?.trim(),
    )
}

/// Both in us; "max" and -1 are none.
fn cpus(quota: &str, period: &str) -> Option<f64> {
    let (quota, period): (u64, u64) = (quota.parse().ok()?, period.parse().ok()?);
    (period > 0).then_some(quota as f64 / period as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    fn cpus_of(limits: &Limits) -> Vec<f64> {
        limits.quotas().iter().map(|(_, cpus)| *cpus).collect()
    }

    #[test]
    fn each_quota_on_the_way_up_counts_and_who_is_below_has_part_in_it() {
        let root = tree(&[
            ("a/cpu.max", "150000 100000\n"),
            ("a/b/cpu.max", "max 100000\n"),
            ("a/b/c/cpu.max", "400000 100000\n"),
        ]);
        let at = root.path().display();
        let mounts = format!("30 20 0:26 / {at} rw,nosuid - cgroup2 cgroup2 rw\n");
        let limits = Limits::parse(&mounts, "0::/a/b/c\n");
        assert_eq!(cpus_of(&limits), [1.5, 4.0]);
        let inode = root.path().join("a/b/c").metadata().unwrap().ino();
        assert_eq!(limits.cgroup(), Some(inode));
        for (cgroups, parts) in [
            ("0::/a/b/c\n", 2),
            ("0::/a/b/c/d\n", 2),
            ("0::/a/b\n", 1),
            ("0::/a/bc\n", 1),
            ("0::/ab\n", 0),
            ("0::/\n", 0),
            // Not known.
            ("", 2),
        ] {
            assert_eq!(limits.parts(cgroups, &limits.quotas()), parts, "{cgroups}");
        }
        assert_eq!(limits.parts_of(u32::MAX, &limits.quotas()), 2);
    }

    #[test]
    fn version_1_counts_where_it_has_the_controller() {
        let root = tree(&[
            ("v1/x/cpu.cfs_quota_us", "50000\n"),
            ("v1/x/cpu.cfs_period_us", "100000\n"),
            ("v1/cpu.cfs_quota_us", "-1\n"),
            ("v1/cpu.cfs_period_us", "100000\n"),
        ]);
        let at = root.path().display();
        let mounts = format!(
            "30 20 0:26 / {at}/v2 rw - cgroup2 cgroup2 rw\n\
             31 20 0:27 / {at}/set rw shared:1 - cgroup cgroup rw,cpuset\n\
             32 20 0:28 / {at}/v1 rw - cgroup cgroup rw,cpu,cpuacct\n"
        );
        let limits = Limits::parse(&mounts, "4:cpuset:/other\n3:cpu,cpuacct:/x\n0::/\n");
        assert_eq!(cpus_of(&limits), [0.5]);
        assert_eq!(limits.parts("3:cpu:/x/y\n0::/\n", &limits.quotas()), 1);
        assert_eq!(limits.parts("3:cpu:/\n0::/x\n", &limits.quotas()), 0);
    }

    #[test]
    fn a_mount_that_begins_below_the_root_is_no_other_folder() {
        let root = tree(&[("cpu.max", "200000 100000")]);
        let at = root.path().display();
        let mounts = format!("30 20 0:26 /box {at} ro - cgroup2 cgroup rw\n");
        assert_eq!(cpus_of(&Limits::parse(&mounts, "0::/box\n")), [2.0]);
    }

    #[test]
    fn nothing_mounted_or_nonsense_is_no_quota() {
        for (mounts, cgroups) in [
            ("", ""),
            ("x - y", "z"),
            ("1 2 3 / /nowhere - cgroup2 a b", ""),
        ] {
            assert!(Limits::parse(mounts, cgroups).quotas().is_empty());
        }
        assert!(affinity() >= 1);
    }
}
