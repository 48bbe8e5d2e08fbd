// SPDX-License-Identifier: GPL-2.0-only
//! The commands that the lab's binary does (lab/): it is found as git finds its own, and
//! takes this process over, with the same arguments.

use anyhow::{Context, Result};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAM: &str = "scx_freqlock-lab";

/// Where packages put it, from the folder of this program on.
const LIBEXEC: &str = "../libexec/scx_freqlock";

#[derive(Debug, thiserror::Error)]
#[error(
    "`scx_freqlock {0}` needs {PROGRAM}, which is not installed: install the package \
     scx-freqlock-lab, or build it (cargo build --release --package freqlock_lab) and put it \
     beside scx_freqlock or on PATH"
)]
pub struct NotThere(&'static str);

/// Does not return unless the lab's program cannot be started.
pub fn run(command: &'static str) -> Result<()> {
    // Not there only without /proc; then PATH alone is looked at.
    let ours = std::env::current_exe().unwrap_or_default();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::split_paths(&path);
    let program = find(&ours, path).ok_or(NotThere(command))?;
    let error = Command::new(&program)
        .args(std::env::args_os().skip(1))
        .exec();
    Err(error).with_context(|| format!("cannot start {}", program.display()))
}

/// Beside our own program, in libexec, and on PATH, in this order.
fn find(ours: &Path, path: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    let beside = ours.parent().map(Path::to_path_buf);
    let libexec = beside.as_ref().map(|dir| dir.join(LIBEXEC));
    beside
        .into_iter()
        .chain(libexec)
        .chain(path)
        .map(|dir| dir.join(PROGRAM))
        .find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    file.metadata()
        .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn it_is_looked_for_beside_us_then_in_libexec_then_on_path() {
        let dir = tempfile::tempdir().unwrap();
        let ours = dir.path().join("bin/scx_freqlock");
        let places = ["local", "libexec/scx_freqlock", "bin"].map(|name| dir.path().join(name));
        for place in &places {
            fs::create_dir_all(place).unwrap();
        }
        let path = || [dir.path().join("none"), places[0].clone()].into_iter();
        assert_eq!(find(&ours, path()), None);
        fs::write(places[0].join(PROGRAM), "").unwrap();
        assert_eq!(find(&ours, path()), None, "it cannot be run");
        for place in &places {
            let file = place.join(PROGRAM);
            fs::write(&file, "").unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
            let found = find(&ours, path()).unwrap();
            assert_eq!(found.canonicalize().unwrap(), file.canonicalize().unwrap());
        }
    }
}
