// SPDX-License-Identifier: GPL-2.0-only
//! Folders of cgroups, by the numbers that the kernel has for them: their inodes.

use crate::foreign::Foreign;
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const CGROUPS: &str = "/sys/fs/cgroup";

/// What was asked for is kept.
#[derive(Debug)]
pub struct Cgroups {
    root: PathBuf,
    found: HashMap<u64, Foreign>,
}

impl Default for Cgroups {
    fn default() -> Self {
        Self::at(Path::new(CGROUPS))
    }
}

impl Cgroups {
    /// Those of the hierarchy that is mounted there.
    pub fn at(root: &Path) -> Self {
        Self {
            root: root.into(),
            found: HashMap::new(),
        }
    }

    /// The folder of a cgroup below the root of all, its inode where it is gone.
    pub fn path(&mut self, inode: u64) -> Foreign {
        if !self.found.contains_key(&inode) {
            self.found.extend(cgroups(&self.root));
        }
        let path = self
            .found
            .entry(inode)
            .or_insert_with(|| inode.to_string().into());
        path.clone()
    }

    /// Those are looked for again when they are asked for.
    pub fn forget(&mut self, which: impl Fn(u64) -> bool) {
        self.found.retain(|inode, _| !which(*inode));
    }
}

/// Whether a cgroup is another or below it. Whole folders: /a is not above /ab.
pub fn is_below(cgroup: &str, path: &str) -> bool {
    let path = path.trim_end_matches('/');
    (cgroup.strip_prefix(path)).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Inode and path of every cgroup below a folder.
fn cgroups(root: &Path) -> HashMap<u64, Foreign> {
    let mut found = HashMap::new();
    let mut folders: Vec<PathBuf> = vec![root.into()];
    while let Some(folder) = folders.pop() {
        // One that goes away meanwhile is not listed.
        let Ok(meta) = folder.metadata() else {
            continue;
        };
        let path = folder.strip_prefix(root).unwrap_or(&folder);
        found.insert(meta.ino(), format!("/{}", path.display()).into());
        let below = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        folders.extend(
            below
                .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
                .map(|entry| entry.path()),
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cgroups_are_reported_by_their_folders() {
        let dir = tempfile::tempdir().unwrap();
        let inner = dir.path().join("system.slice/a.service");
        std::fs::create_dir_all(&inner).unwrap();
        let found = cgroups(dir.path());
        let inode = inner.metadata().unwrap().ino();
        assert_eq!(found[&inode].raw(), "/system.slice/a.service");
        assert_eq!(found.len(), 3);
        assert_eq!(found[&dir.path().metadata().unwrap().ino()].raw(), "/");
    }
}
