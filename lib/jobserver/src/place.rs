// SPDX-License-Identifier: GPL-2.0-only
//! Where the fifo is. A second name beside it keeps it, should somebody remove the first one.

use anyhow::{bail, ensure, Context, Result};
use rustix::fs::{flock, mknodat, FileType, FlockOperation, Mode, CWD};
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A fifo that is there until this is dropped.
#[derive(Debug)]
pub struct Place {
    fifo: PathBuf,
    kept: PathBuf,
    inode: u64,
    has_failed: bool,
    /// None is dropped before the names above are removed.
    _home: Home,
}

/// What else goes when it goes.
#[derive(Debug)]
enum Home {
    /// A folder of its own.
    Folder { _of: TempDir },
    /// A lock, by which another server sees that this one lives.
    Lock { _on: File },
}

impl Place {
    /// One for a command and its children.
    pub fn private() -> Result<Self> {
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let base = runtime
            .filter(|folder| folder.is_dir())
            .unwrap_or_else(std::env::temp_dir);
        let folder = tempfile::Builder::new()
            .prefix("freqlock-jobserver.")
            .tempdir_in(&base)
            .with_context(|| format!("cannot make a folder in {}", base.display()))?;
        let fifo = folder.path().join("fifo");
        ensure!(
            !fifo.as_os_str().as_encoded_bytes().contains(&b' '),
            "MAKEFLAGS cannot have a path with a space: {}",
            fifo.display()
        );
        Self::make(fifo, 0o600, Home::Folder { _of: folder })
    }

    /// One at a known place, for all who may use it by its mode.
    pub fn public(fifo: &Path, mode: u32) -> Result<Self> {
        let lock_path = beside(fifo, "lock")?;
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&lock_path)
            .with_context(|| format!("cannot make {}", lock_path.display()))?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            bail!("another job server serves {}", fifo.display());
        }
        match fifo.symlink_metadata() {
            // Of a server that was killed: those who still have it open keep what tokens it has.
            Ok(meta) if meta.file_type().is_fifo() => fs::remove_file(fifo)
                .with_context(|| format!("cannot replace {}", fifo.display()))?,
            Ok(_) => bail!("{} is there and is no fifo", fifo.display()),
            Err(_) => {}
        }
        Self::make(fifo.into(), mode, Home::Lock { _on: lock })
    }

    fn make(fifo: PathBuf, mode: u32, home: Home) -> Result<Self> {
        let kept = beside(&fifo, "kept")?;
        drop(fs::remove_file(&kept));
        let make = || -> std::io::Result<u64> {
            mknodat(CWD, &kept, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
            fs::set_permissions(&kept, Permissions::from_mode(mode))?;
            fs::hard_link(&kept, &fifo)?;
            Ok(kept.metadata()?.ino())
        };
        let inode = make().with_context(|| format!("cannot make {}", fifo.display()))?;
        Ok(Self {
            fifo,
            kept,
            inode,
            has_failed: false,
            _home: home,
        })
    }

    /// The fifo's path.
    pub fn path(&self) -> &Path {
        &self.fifo
    }

    /// Puts the fifo back if somebody removed it. What to say of that, once if it fails.
    pub fn keep(&mut self) -> Option<String> {
        let at = self.fifo.display();
        match self.fifo.symlink_metadata() {
            Ok(meta) if meta.ino() == self.inode => return None,
            Ok(_) if self.has_failed => return None,
            Ok(_) => {
                self.has_failed = true;
                return Some(format!(
                    "{at} is another file now: new clients find no tokens"
                ));
            }
            Err(_) => {}
        }
        match fs::hard_link(&self.kept, &self.fifo) {
            Ok(()) => Some(format!("{at} was removed, and is there again")),
            Err(_) if self.has_failed => None,
            Err(why) => {
                self.has_failed = true;
                Some(format!(
                    "{at} was removed and cannot be put back ({why}): new clients find no tokens"
                ))
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let is_ours = |path: &Path| {
            path.symlink_metadata()
                .is_ok_and(|meta| meta.ino() == self.inode)
        };
        for path in [&self.fifo, &self.kept] {
            if is_ours(path) {
                drop(fs::remove_file(path));
            }
        }
    }
}

/// A name for another file beside the fifo.
fn beside(fifo: &Path, what: &str) -> Result<PathBuf> {
    let name = fifo
        .file_name()
        .with_context(|| format!("{} names no file", fifo.display()))?;
    Ok(fifo.with_file_name(format!(".{}.{what}", name.to_string_lossy())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifo_that_was_removed_comes_back_as_itself() {
        let mut place = Place::private().unwrap();
        let inode = place.path().metadata().unwrap().ino();
        assert_eq!(place.keep(), None);
        fs::remove_file(place.path()).unwrap();
        assert!(place.keep().unwrap().contains("is there again"));
        assert_eq!(place.path().metadata().unwrap().ino(), inode);
        fs::remove_dir_all(place.path().parent().unwrap()).unwrap();
        assert!(place.keep().unwrap().contains("cannot be put back"));
        assert_eq!(place.keep(), None, "said once");
    }

    #[test]
    fn nothing_is_left_behind() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::private().unwrap();
        let private = place.path().parent().unwrap().to_owned();
        drop(place);
        assert!(!private.exists());
        drop(Place::public(&folder.path().join("fifo"), 0o600).unwrap());
        let left: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .flatten()
            .map(|e| e.file_name())
            .collect();
        assert_eq!(left, [".fifo.lock"]);
    }

    #[test]
    fn places_of_others_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        let first = Place::public(&fifo, 0o600).unwrap();
        let second = Place::public(&fifo, 0o600).unwrap_err().to_string();
        assert!(second.contains("another job server"), "{second}");
        drop(first);
        fs::write(&fifo, "precious").unwrap();
        let refused = Place::public(&fifo, 0o600).unwrap_err().to_string();
        assert!(refused.contains("no fifo"), "{refused}");
        assert_eq!(fs::read_to_string(&fifo).unwrap(), "precious");
    }

    #[test]
    fn what_a_killed_server_left_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR, 0).unwrap();
        mknodat(
            CWD,
            beside(&fifo, "kept").unwrap(),
            FileType::Fifo,
            Mode::RUSR,
            0,
        )
        .unwrap();
        let place = Place::public(&fifo, 0o640).unwrap();
        let mode = place.path().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
    }
}
