// SPDX-License-Identifier: GPL-2.0-only
//! How fast each CPU is now, in a page of memory for programs (lib/speeds_page.h).

mod bindings;

use crate::page_file::{self, monotonic};
use anyhow::Result;
use bindings::fl_speeds_page;
use memmap2::{MmapMut, MmapOptions};
use std::fs::File;
use std::path::Path;
use std::time::Duration;

/// Where the page is, `FL_SPEEDS_PATH`.
pub const PATH: &str = "/run/scx_freqlock/speeds";

const MAGIC: u32 = bindings::fl_speeds_consts_FL_SPEEDS_MAGIC;
const VERSION: u32 = bindings::fl_speeds_consts_FL_SPEEDS_VERSION;
const SIZE: usize = size_of::<fl_speeds_page>();
const CPUS: usize = bindings::fl_speeds_consts_FL_SPEEDS_CPUS as usize;
const FULL: u32 = bindings::fl_speeds_consts_FL_SPEEDS_FULL;

/// Writes the page; dropped, it leaves one that says that nobody writes it.
pub struct SpeedsPage {
    map: MmapMut,
}

impl SpeedsPage {
    /// Takes over the page at `path`, which programs may have mapped, or makes one in the place
    /// of whatever else is there.
    pub fn open(path: &Path) -> Result<Self> {
        if let Some(map) = take_over(path) {
            return Ok(Self { map });
        }
        let map = page_file::replace(path, SIZE, begin)?;
        Ok(Self { map })
    }

    /// The present speed, 0..1024, of each CPU that there is. The next is written in `period`.
    pub fn write(&mut self, speeds: impl Iterator<Item = (usize, u32)>, period: Duration) {
        let mut by_cpu = [0; CPUS];
        for (cpu, speed) in speeds {
            by_cpu[cpu] = speed.clamp(1, FULL) as u16;
        }
        let there = by_cpu.iter().copied().filter(|speed| *speed > 0);
        let (least, most) = (there.clone().min(), there.max());
        let page = self.page();
        // SAFETY: the mapping is as long as the page and lives as long as `self`, which alone
        // writes to it; all fields are aligned, so that each is written whole.
        unsafe {
            let to = (&raw mut (*page).speed).cast::<u16>();
            for (cpu, speed) in by_cpu.iter().enumerate() {
                to.add(cpu).write_volatile(*speed);
            }
            (&raw mut (*page).least).write_volatile(least.unwrap_or(0).into());
            (&raw mut (*page).most).write_volatile(most.unwrap_or(0).into());
            (&raw mut (*page).agent).write_volatile(std::process::id());
            (&raw mut (*page).period).write_volatile(period.as_nanos() as u64);
            (&raw mut (*page).updated).write_volatile(monotonic().as_nanos() as u64);
        }
    }

    fn page(&mut self) -> *mut fl_speeds_page {
        self.map.as_mut_ptr().cast()
    }
}

impl Drop for SpeedsPage {
    fn drop(&mut self) {
        self.write(std::iter::empty(), Duration::ZERO);
    }
}

/// The page that is there, if it is one of this version.
fn take_over(path: &Path) -> Option<MmapMut> {
    let file = File::options().read(true).write(true).open(path).ok()?;
    (file.metadata().ok()?.len() == SIZE as u64).then_some(())?;
    // SAFETY: nobody else may write to the file, nor make it shorter.
    let mut map = unsafe { MmapOptions::new().len(SIZE).map_mut(&file) }.ok()?;
    let page = map.as_mut_ptr().cast::<fl_speeds_page>();
    // SAFETY: the mapping is as long as the page.
    let found = unsafe {
        (
            (&raw const (*page).magic).read_volatile(),
            (&raw const (*page).version).read_volatile(),
        )
    };
    (found == (MAGIC, VERSION)).then_some(map)
}

/// What never changes, before anybody sees it.
fn begin(map: &mut MmapMut) {
    let page = map.as_mut_ptr().cast::<fl_speeds_page>();
    // SAFETY: the mapping is as long as the page, and nobody else has it as yet.
    unsafe {
        (&raw mut (*page).magic).write_volatile(MAGIC);
        (&raw mut (*page).version).write_volatile(VERSION);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    /// Period, least, most, and speeds of the first three CPUs.
    fn read(map: &[u8]) -> (u64, [u32; 2], [u16; 3]) {
        // SAFETY: as long as the page, and aligned as memory that is mapped is.
        let page = unsafe { map.as_ptr().cast::<fl_speeds_page>().read_volatile() };
        let [a, b, c, ..] = page.speed;
        (page.period, [page.least, page.most], [a, b, c])
    }

    fn map(path: &Path) -> memmap2::Mmap {
        // SAFETY: of this test alone.
        unsafe { MmapOptions::new().map(&File::open(path).unwrap()) }.unwrap()
    }

    #[test]
    fn the_page_is_where_the_header_says() {
        let path = std::ffi::CStr::from_bytes_with_nul(bindings::FL_SPEEDS_PATH).unwrap();
        assert_eq!(path.to_str().unwrap(), PATH);
    }

    #[test]
    fn who_has_it_mapped_sees_the_next_writer_too() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("speeds");
        let period = Duration::from_millis(4);
        let mut page = SpeedsPage::open(&path).unwrap();
        let reader = map(&path);
        assert_eq!(read(&reader), (0, [0, 0], [0, 0, 0]), "nobody wrote it");
        page.write([(0, 0), (2, 2000)].into_iter(), period);
        assert_eq!(read(&reader), (4_000_000, [1, 1024], [1, 0, 1024]));
        drop(page);
        assert_eq!(read(&reader), (0, [0, 0], [0, 0, 0]), "it ended");
        let mut next = SpeedsPage::open(&path).unwrap();
        next.write([(1, 500)].into_iter(), period);
        assert_eq!(read(&reader), (4_000_000, [500, 500], [0, 500, 0]));
        let mode = path.metadata().unwrap().mode();
        assert_eq!(mode & 0o777, 0o444);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing else");
    }

    #[test]
    fn another_file_gives_way_to_a_new_page() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("speeds");
        let mut other_version = vec![0; SIZE];
        other_version[..4].copy_from_slice(&MAGIC.to_ne_bytes());
        other_version[4..8].copy_from_slice(&(VERSION + 1).to_ne_bytes());
        for bytes in [vec![], vec![0; SIZE], other_version, vec![1; SIZE + 1]] {
            fs::write(&path, &bytes).unwrap();
            let old = map_if_any(&path, &bytes);
            SpeedsPage::open(&path)
                .unwrap()
                .write([(0, 7)].into_iter(), Duration::ZERO);
            assert_eq!(map(&path).len(), SIZE);
            assert_eq!(map(&path)[..4], MAGIC.to_ne_bytes());
            assert!(
                old.is_none_or(|old| old[..] == bytes[..]),
                "readers keep theirs"
            );
            fs::remove_file(&path).unwrap();
        }
    }

    fn map_if_any(path: &Path, bytes: &[u8]) -> Option<memmap2::Mmap> {
        (!bytes.is_empty()).then(|| map(path))
    }
}
