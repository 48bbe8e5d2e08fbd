// SPDX-License-Identifier: GPL-2.0-only
//! The page of lib/cpus_page.h: the agent writes it, anybody reads it.

use super::count::Figures;
use super::layout::{self, fl_cpus_cgroup, fl_cpus_figures, fl_cpus_page, fl_cpus_process};
use crate::page_file;
use anyhow::Result;
use memmap2::{MmapMut, MmapOptions};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{fence, AtomicU64, Ordering};
use std::time::Duration;

const SIZE: usize = size_of::<fl_cpus_page>();
pub const MOST_PROCESSES: usize = layout::fl_cpus_consts_FL_CPUS_PROCESSES as usize;
pub const MOST_CGROUPS: usize = layout::fl_cpus_consts_FL_CPUS_CGROUPS as usize;

/// All that a page has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contents {
    /// When it was written, by CLOCK_MONOTONIC.
    pub updated: Duration,
    /// How often it is; zero when it no longer is.
    pub period: Duration,
    /// Of the last period; zero when there was none yet.
    pub length: Duration,
    /// The process that writes it.
    pub agent: u32,
    /// By pid.
    pub processes: Vec<ProcessEntry>,
    /// By id.
    pub cgroups: Vec<CgroupEntry>,
    pub processes_left_out: u32,
    pub cgroups_left_out: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ProcessEntry {
    pub pid: u32,
    /// When it was born, as in field 22 of /proc/PID/stat.
    pub start: u64,
    pub cgroup: u64,
    pub figures: Figures,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CgroupEntry {
    pub id: u64,
    pub figures: Figures,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("there is no page of CPUs at {0}: its period is 0 (scx_freqlock set cpus_ms=100)")]
    Missing(PathBuf),
    #[error("{0} is not a page of this version of scx_freqlock")]
    Foreign(PathBuf),
    #[error("the page of CPUs stays half written: process {0}, which writes it, stands still")]
    HalfWritten(u32),
    #[error("cannot read {path}: {source}", path = path.display())]
    Read { path: PathBuf, source: io::Error },
}

impl Contents {
    /// How long ago it was written, if that is too long ago for a page that is kept up.
    pub fn stale(&self, now: Duration) -> Option<Duration> {
        let grace = Duration::from_millis(u64::from(layout::fl_cpus_consts_FL_CPUS_GRACE_MS));
        let age = now.saturating_sub(self.updated);
        (self.period.is_zero() || age >= 3 * self.period + grace).then_some(age)
    }

    /// Reads a page, again if it is written meanwhile.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => Error::Missing(path.into()),
            _ => Error::Read {
                path: path.into(),
                source,
            },
        };
        let file = File::open(path).map_err(failed)?;
        if file.metadata().map_err(failed)?.len() < SIZE as u64 {
            return Err(Error::Foreign(path.into()));
        }
        let map = MmapOptions::new().len(SIZE).map_raw_read_only(&file);
        let map = map.map_err(failed)?;
        let page = map.as_ptr().cast::<fl_cpus_page>();
        // SAFETY: the mapping is as long as the page, begins where a page of memory does,
        // and lives until the end of this; it is read as what others may write to.
        unsafe {
            if (&raw const (*page).magic).read_volatile() != layout::fl_cpus_consts_FL_CPUS_MAGIC
                || (&raw const (*page).version).read_volatile()
                    != layout::fl_cpus_consts_FL_CPUS_VERSION
            {
                return Err(Error::Foreign(path.into()));
            }
            let seq = seq_of(page);
            for _ in 0..READ_TRIES {
                let before = seq.load(Ordering::Acquire);
                let contents = copy(page);
                fence(Ordering::Acquire);
                if before & 1 == 0 && seq.load(Ordering::Relaxed) == before {
                    return Ok(contents);
                }
                std::thread::sleep(READ_AGAIN);
            }
            Err(Error::HalfWritten(
                (&raw const (*page).agent).read_volatile(),
            ))
        }
    }
}

/// To write a page takes microseconds, unless its writer loses the CPU.
const READ_AGAIN: Duration = Duration::from_millis(1);
const READ_TRIES: u32 = 2000;

/// SAFETY: for callers to have `page` mapped for as long as they use what is returned.
unsafe fn seq_of<'a>(page: *const fl_cpus_page) -> &'a AtomicU64 {
    // SAFETY: aligned, as all fields of the struct are, and mapped, as the caller promises.
    unsafe { AtomicU64::from_ptr((&raw const (*page).seq).cast_mut()) }
}

/// SAFETY: for callers to have all of `page` mapped.
unsafe fn copy(page: *const fl_cpus_page) -> Contents {
    // SAFETY: all of it are integers; numbers of entries are cut to what there is room for.
    unsafe {
        let u64_at = |field: *const u64| Duration::from_nanos(field.read_volatile());
        let nr = |field: *const u32, most: usize| (field.read_volatile() as usize).min(most);
        let processes = (&raw const (*page).process).cast::<fl_cpus_process>();
        let cgroups = (&raw const (*page).cgroup).cast::<fl_cpus_cgroup>();
        Contents {
            updated: u64_at(&raw const (*page).updated),
            period: u64_at(&raw const (*page).period),
            length: u64_at(&raw const (*page).length),
            agent: (&raw const (*page).agent).read_volatile(),
            processes: (0..nr(&raw const (*page).nr_processes, MOST_PROCESSES))
                .map(|i| processes.add(i).read_volatile().into())
                .collect(),
            cgroups: (0..nr(&raw const (*page).nr_cgroups, MOST_CGROUPS))
                .map(|i| cgroups.add(i).read_volatile().into())
                .collect(),
            processes_left_out: (&raw const (*page).processes_left_out).read_volatile(),
            cgroups_left_out: (&raw const (*page).cgroups_left_out).read_volatile(),
        }
    }
}

/// What never changes, before anybody sees it.
fn begin(map: &mut MmapMut) {
    let page = map.as_mut_ptr().cast::<fl_cpus_page>();
    // SAFETY: the mapping is as long as the page, and nobody else has it as yet.
    unsafe {
        (&raw mut (*page).magic).write_volatile(layout::fl_cpus_consts_FL_CPUS_MAGIC);
        (&raw mut (*page).version).write_volatile(layout::fl_cpus_consts_FL_CPUS_VERSION);
        (&raw mut (*page).agent).write_volatile(std::process::id());
    }
}

/// A page that is written, until this is dropped.
pub struct Writer {
    path: PathBuf,
    map: MmapMut,
}

impl Writer {
    /// Puts an empty page in the place of whatever is at `path`, at once.
    pub fn create(path: &Path) -> Result<Self> {
        let map = page_file::replace(path, SIZE, begin)?;
        Ok(Self {
            path: path.into(),
            map,
        })
    }

    fn page(&mut self) -> *mut fl_cpus_page {
        self.map.as_mut_ptr().cast()
    }

    /// Writes all of it; what is beyond the room that there is, is left out and counted.
    pub fn write(&mut self, contents: &Contents) {
        let page = self.page();
        let ns = |time: Duration| time.as_nanos() as u64;
        let processes = &contents.processes[..contents.processes.len().min(MOST_PROCESSES)];
        let cgroups = &contents.cgroups[..contents.cgroups.len().min(MOST_CGROUPS)];
        // SAFETY: the mapping is as long as the page and lives as long as `self`, which alone
        // writes to it; there is room for as many entries.
        unsafe {
            let seq = seq_of(page);
            let before = seq.load(Ordering::Relaxed);
            seq.store(before + 1, Ordering::Relaxed);
            fence(Ordering::Release);
            (&raw mut (*page).updated).write_volatile(ns(contents.updated));
            (&raw mut (*page).period).write_volatile(ns(contents.period));
            (&raw mut (*page).length).write_volatile(ns(contents.length));
            (&raw mut (*page).nr_processes).write_volatile(processes.len() as u32);
            (&raw mut (*page).nr_cgroups).write_volatile(cgroups.len() as u32);
            (&raw mut (*page).processes_left_out).write_volatile(contents.processes_left_out);
            (&raw mut (*page).cgroups_left_out).write_volatile(contents.cgroups_left_out);
            let to = (&raw mut (*page).process).cast::<fl_cpus_process>();
            for (i, entry) in processes.iter().enumerate() {
                to.add(i).write_volatile(entry.into());
            }
            let to = (&raw mut (*page).cgroup).cast::<fl_cpus_cgroup>();
            for (i, entry) in cgroups.iter().enumerate() {
                to.add(i).write_volatile(entry.into());
            }
            seq.store(before + 2, Ordering::Release);
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Readers that have it mapped see that it is over, others find none.
        self.write(&Contents::default());
        drop(fs::remove_file(&self.path));
    }
}

fn thousandths(cpus: f64) -> u32 {
    (cpus * 1000.0).round() as u32
}

impl From<&Figures> for fl_cpus_figures {
    fn from(figures: &Figures) -> Self {
        Self {
            affinity: thousandths(figures.affinity),
            quota: figures.quota.map_or(layout::FL_CPUS_NO_QUOTA, thousandths),
            neighbours: thousandths(figures.neighbours),
            cpus: thousandths(figures.cpus),
            ran: thousandths(figures.ran),
            waited: thousandths(figures.waited),
            throttled: thousandths(figures.throttled),
        }
    }
}

impl From<fl_cpus_figures> for Figures {
    fn from(raw: fl_cpus_figures) -> Self {
        let cpus = |thousandths: u32| f64::from(thousandths) / 1000.0;
        Self {
            affinity: cpus(raw.affinity),
            quota: (raw.quota != layout::FL_CPUS_NO_QUOTA).then(|| cpus(raw.quota)),
            neighbours: cpus(raw.neighbours),
            cpus: cpus(raw.cpus),
            ran: cpus(raw.ran),
            waited: cpus(raw.waited),
            throttled: cpus(raw.throttled),
        }
    }
}

impl From<&ProcessEntry> for fl_cpus_process {
    fn from(entry: &ProcessEntry) -> Self {
        Self {
            start: entry.start,
            cgroup: entry.cgroup,
            pid: entry.pid,
            figures: (&entry.figures).into(),
        }
    }
}

impl From<fl_cpus_process> for ProcessEntry {
    fn from(raw: fl_cpus_process) -> Self {
        Self {
            pid: raw.pid,
            start: raw.start,
            cgroup: raw.cgroup,
            figures: raw.figures.into(),
        }
    }
}

impl From<&CgroupEntry> for fl_cpus_cgroup {
    fn from(entry: &CgroupEntry) -> Self {
        Self {
            id: entry.id,
            figures: (&entry.figures).into(),
            reserved: 0,
        }
    }
}

impl From<fl_cpus_cgroup> for CgroupEntry {
    fn from(raw: fl_cpus_cgroup) -> Self {
        Self {
            id: raw.id,
            figures: raw.figures.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page_file::monotonic;
    use std::os::unix::fs::PermissionsExt;
    use std::sync::atomic::AtomicBool;

    fn contents(n: u32) -> Contents {
        // All of it says n, so that halves of two would be seen.
        let figures = Figures {
            affinity: f64::from(n),
            quota: n.is_multiple_of(2).then_some(f64::from(n)),
            neighbours: 0.25,
            ..Default::default()
        };
        Contents {
            updated: monotonic(),
            period: Duration::from_millis(100),
            length: Duration::from_nanos(n.into()),
            agent: std::process::id(),
            processes: (1..=n)
                .map(|pid| ProcessEntry {
                    pid,
                    start: n.into(),
                    cgroup: 3,
                    figures,
                })
                .collect(),
            cgroups: vec![CgroupEntry { id: 9, figures }],
            processes_left_out: n,
            cgroups_left_out: n,
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cpus");
        fs::write(&path, "of one that died").unwrap();
        assert!(matches!(Contents::read(&path), Err(Error::Foreign(_))));
        let mut writer = Writer::create(&path).unwrap();
        assert!(Contents::read(&path).unwrap().stale(monotonic()).is_some());
        for n in [5, 4] {
            let wanted = contents(n);
            writer.write(&wanted);
            let got = Contents::read(&path).unwrap();
            assert_eq!(got, wanted);
            assert_eq!(got.stale(got.updated), None);
            assert!(got.stale(got.updated + Duration::from_secs(3)).is_some());
        }
        let mode = path.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o444);
        assert_eq!(
            fs::read_dir(dir.path()).unwrap().count(),
            1,
            "nothing else is left"
        );
        drop(writer);
        assert!(matches!(Contents::read(&path), Err(Error::Missing(_))));
    }

    #[test]
    fn more_than_there_is_room_for_is_cut() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cpus");
        let mut writer = Writer::create(&path).unwrap();
        writer.write(&contents(MOST_PROCESSES as u32 + 7));
        let got = Contents::read(&path).unwrap();
        assert_eq!(got.processes.len(), MOST_PROCESSES);
        assert_eq!(got.processes_left_out, MOST_PROCESSES as u32 + 7);
    }

    #[test]
    fn readers_never_see_halves_of_two() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cpus");
        let mut writer = Writer::create(&path).unwrap();
        writer.write(&contents(1));
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in 0..3000 {
                    writer.write(&contents(1 + n % 50));
                }
                done.store(true, Ordering::Relaxed);
            });
            while !done.load(Ordering::Relaxed) {
                let got = Contents::read(&path).unwrap();
                let n = got.processes.len() as u64;
                assert_eq!(got.length, Duration::from_nanos(n));
                assert!(got.processes.iter().all(|entry| entry.start == n));
                assert_eq!(u64::from(got.processes_left_out), n);
            }
        });
    }
}
