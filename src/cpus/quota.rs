// SPDX-License-Identifier: GPL-2.0-only
//! Quotas of CPU time as cgroups have them, version 2 (cpu.max) and version 1
//! (cpu.cfs_quota_us over cpu.cfs_period_us): the kernel's Documentation,
//! admin-guide/cgroup-v2.rst and scheduler/sched-bwc.rst. Each of a cgroup and those
//! above it holds for all that is in it, so the least counts.

use procfs::process::{MountInfo, Process};
use procfs::ProcResult;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The cgroups that have the cpu controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchy {
    root: PathBuf,
    pub version: Version,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    V1,
    V2,
}

/// A quota and the cgroup that sets it.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    pub cgroup: String,
    pub cpus: f64,
}

impl Hierarchy {
    /// None where no cgroups are mounted.
    pub fn find() -> Option<Self> {
        let mounts = Process::myself().and_then(|me| me.mountinfo()).ok()?;
        Self::among(&mounts.0)
    }

    /// Version 2 has the controller unless a mount of version 1 took it.
    fn among(mounts: &[MountInfo]) -> Option<Self> {
        let at = |mount: &MountInfo, version| Self {
            root: mount.mount_point.clone(),
            version,
        };
        let v1 = |m: &&MountInfo| m.fs_type == "cgroup" && m.super_options.contains_key("cpu");
        let v1 = mounts.iter().find(v1).map(|m| at(m, Version::V1));
        let v2 = mounts.iter().find(|m| m.fs_type == "cgroup2");
        v1.or_else(|| v2.map(|m| at(m, Version::V2)))
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The cgroup of a process, a path below the root.
    pub fn cgroup_of(&self, pid: u32) -> ProcResult<Option<String>> {
        let groups = Process::new(pid as i32)?.cgroups()?;
        let mine = groups.0.into_iter().find(|group| match self.version {
            Version::V1 => group.controllers.iter().any(|name| name == "cpu"),
            Version::V2 => group.hierarchy == 0,
        });
        Ok(mine.map(|group| group.pathname))
    }

    fn folder(&self, cgroup: &str) -> PathBuf {
        self.root.join(cgroup.trim_start_matches('/'))
    }

    /// The inode of its folder, none if it is gone.
    pub fn id(&self, cgroup: &str) -> Option<u64> {
        Some(self.folder(cgroup).metadata().ok()?.ino())
    }

    /// CPUs that the cgroup itself may use; none if it has no quota.
    pub fn quota(&self, cgroup: &str) -> Option<f64> {
        self.quota_in(&self.folder(cgroup))
    }

    /// The same of the cgroup that has this folder.
    pub fn quota_in(&self, folder: &Path) -> Option<f64> {
        let read = |name: &str| fs::read_to_string(folder.join(name)).ok();
        match self.version {
            Version::V2 => parse(&read("cpu.max")?),
            Version::V1 => {
                let quota = read("cpu.cfs_quota_us")?;
                let period = read("cpu.cfs_period_us")?;
                parse(&format!("{} {}", quota.trim(), period.trim()))
            }
        }
    }

    /// The least quota of the cgroup and those above it.
    pub fn limit(&self, cgroup: &str) -> Option<Limit> {
        std::iter::successors(Some(cgroup), |cgroup| above(cgroup))
            .filter_map(|cgroup| {
                Some(Limit {
                    cgroup: cgroup.into(),
                    cpus: self.quota(cgroup)?,
                })
            })
            .min_by(|a, b| a.cpus.total_cmp(&b.cpus))
    }
}

/// The cgroup that another is in.
pub fn above(cgroup: &str) -> Option<&str> {
    match cgroup.rsplit_once('/')? {
        (_, "") => None,
        ("", _) => Some("/"),
        (above, _) => Some(above),
    }
}

/// Quota and period in us; "max" and -1 are none.
fn parse(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period): (u64, u64) = (quota.parse().ok()?, period.parse().ok()?);
    (period > 0).then_some(quota as f64 / period as f64)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    #[test]
    fn quotas_are_read_as_cpus() {
        assert_eq!(parse("150000 100000\n"), Some(1.5));
        assert_eq!(parse("5000 100000"), Some(0.05));
        for none in ["max 100000", "-1 100000", "", "5000", "5000 0", "x y"] {
            assert_eq!(parse(none), None, "{none}");
        }
    }

    #[test]
    fn the_way_up_ends_at_the_root() {
        assert_eq!(above("/a/b"), Some("/a"));
        assert_eq!(above("/a"), Some("/"));
        assert_eq!(above("/"), None);
        assert_eq!(above(""), None);
    }

    pub fn hierarchy(version: Version, files: &[(&str, &str)]) -> (tempfile::TempDir, Hierarchy) {
        let dir = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let root = dir.path().into();
        (dir, Hierarchy { root, version })
    }

    #[test]
    fn the_least_quota_on_the_way_up_counts() {
        let (_dir, two) = hierarchy(
            Version::V2,
            &[
                ("a/cpu.max", "150000 100000"),
                ("a/b/cpu.max", "max 100000"),
                ("a/b/c/cpu.max", "100000 50000"),
                ("d/cpu.max", "max 100000"),
            ],
        );
        let limit = |cgroup| two.limit(cgroup).map(|l| (l.cgroup, l.cpus));
        assert_eq!(limit("/a/b/c"), Some(("/a".into(), 1.5)));
        assert_eq!(limit("/a"), Some(("/a".into(), 1.5)));
        assert_eq!(limit("/d"), None);
        assert_eq!(limit("/gone"), None);
        assert_eq!(limit("/"), None);
        assert!(two.id("/a/b").is_some_and(|id| Some(id) != two.id("/a")));
        assert_eq!(two.id("/gone"), None);
    }

    #[test]
    fn version_1_has_two_files_for_it() {
        let (_dir, one) = hierarchy(
            Version::V1,
            &[
                ("a/cpu.cfs_quota_us", "50000\n"),
                ("a/cpu.cfs_period_us", "100000\n"),
                ("a/b/cpu.cfs_quota_us", "-1\n"),
                ("a/b/cpu.cfs_period_us", "100000\n"),
            ],
        );
        assert_eq!(one.quota("/a/b"), None);
        assert_eq!(one.limit("/a/b").map(|l| l.cpus), Some(0.5));
    }

    fn mount(line: &str) -> MountInfo {
        MountInfo::from_line(line).unwrap()
    }

    #[test]
    fn the_hierarchy_with_the_controller_is_found() {
        let v2 = "31 23 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw";
        let cpu = "33 23 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct";
        let pids = "34 23 0:29 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids";
        let found = |lines: &[&str]| {
            let mounts: Vec<_> = lines.iter().map(|line| mount(line)).collect();
            Hierarchy::among(&mounts).map(|h| (h.root.display().to_string(), h.version))
        };
        let unified = ("/sys/fs/cgroup/unified".into(), Version::V2);
        assert_eq!(found(&[pids, v2]), Some(unified));
        let one = ("/sys/fs/cgroup/cpu".into(), Version::V1);
        assert_eq!(found(&[v2, pids, cpu]), Some(one));
        assert_eq!(found(&[pids]), None);
    }
}
