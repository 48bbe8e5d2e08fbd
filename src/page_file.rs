// SPDX-License-Identifier: GPL-2.0-only
//! Files that the agent writes as memory and anybody reads: the pages of lib/page.h.

use anyhow::{Context, Result};
use memmap2::{MmapMut, MmapOptions};
use nix::time::{clock_gettime, ClockId};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

/// Time of CLOCK_MONOTONIC.
pub fn monotonic() -> Duration {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from)
}

/// Puts a page of `size` bytes in the place of whatever is at `path`, at once, after `begin` has
/// written what never changes.
pub fn replace(path: &Path, size: usize, begin: impl FnOnce(&mut MmapMut)) -> Result<MmapMut> {
    let dir = path.parent().context("no folder")?;
    let name = path.file_name().context("no name")?.to_string_lossy();
    let new = dir.join(format!(".{name}.{}", std::process::id()));
    let mut map = make(&new, size).with_context(|| format!("cannot make {}", new.display()))?;
    begin(&mut map);
    fs::rename(&new, path).with_context(|| format!("cannot make {}", path.display()))?;
    Ok(map)
}

/// A file that all may read.
fn make(path: &Path, size: usize) -> io::Result<MmapMut> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(true);
    let file = options.open(path)?;
    file.set_len(size as u64)?;
    file.set_permissions(Permissions::from_mode(0o444))?;
    // SAFETY: nobody else may write to the file, nor make it shorter.
    unsafe { MmapOptions::new().len(size).map_mut(&file) }
}
