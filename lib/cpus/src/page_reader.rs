// SPDX-License-Identifier: MIT
//! Reads the page of lib/cpus_page.h, which says what each field means.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{fence, Ordering};
use std::time::Duration;

/// Where scx_freqlock keeps it, `FL_CPUS_PATH`.
pub const DEFAULT_PAGE: &str = "/run/scx_freqlock/cpus";

const MAGIC: u32 = 0x7375_7063;
const VERSION: u32 = 2;
const PROCESSES: usize = 4096;
const CGROUPS: usize = 1024;
const GRACE_NS: u64 = 2_000_000_000;
/// A writer takes microseconds; one that lost its CPU comes back before so many tries are over, or
/// what it wrote is as good as old.
const TRIES: u32 = 1000;

/// Thousandths of a CPU, as they stand in the page.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// CPUs that it may run on.
    pub affinity: u32,
    /// The least quota; all ones without one.
    pub quota: u32,
    /// What the others leave it, or have to.
    pub neighbours: u32,
    /// The least of the three.
    pub cpus: u32,
    /// What it had in the last period.
    pub ran: u32,
    /// Threads that waited for a CPU.
    pub waited: u32,
    /// Threads that could have run but for a quota.
    pub throttled: u32,
}

/// What the page has of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Row {
    /// When it was born, as in field 22 of /proc/PID/stat.
    pub start: u64,
    /// The id of its cgroup: the inode of the folder.
    pub cgroup: u64,
    /// By the machine's numbers, not a container's.
    pub pid: u32,
    /// What it can count on and had.
    pub figures: Figures,
}

const HEAD_SIZE: usize = 64;
const ROW_SIZE: usize = 48;
const CGROUP_SIZE: usize = 40;
const CGROUPS_AT: usize = HEAD_SIZE + ROW_SIZE * PROCESSES;
const SIZE: usize = CGROUPS_AT + CGROUP_SIZE * CGROUPS;

/// Bytes of the page, from which fields are taken by their places.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn u32(&self, at: usize) -> u32 {
        let mut value = [0; 4];
        value.copy_from_slice(&self.0[at..at + 4]);
        u32::from_ne_bytes(value)
    }

    fn u64(&self, at: usize) -> u64 {
        let mut value = [0; 8];
        value.copy_from_slice(&self.0[at..at + 8]);
        u64::from_ne_bytes(value)
    }

    fn figures(&self, at: usize) -> Figures {
        let field = |index: usize| self.u32(at + 4 * index);
        Figures {
            affinity: field(0),
            quota: field(1),
            neighbours: field(2),
            cpus: field(3),
            ran: field(4),
            waited: field(5),
            throttled: field(6),
        }
    }

    fn row(&self) -> Row {
        Row {
            start: self.u64(0),
            cgroup: self.u64(8),
            pid: self.u32(16),
            figures: self.figures(20),
        }
    }
}

/// What stands before the tables.
struct Head {
    seq: u64,
    updated: u64,
    period: u64,
    processes: usize,
    cgroups: usize,
}

/// Why there is no page to read.
#[derive(Debug)]
pub enum PageError {
    /// No scheduler publishes one.
    Missing,
    /// It is too short, or of another version.
    Foreign(PathBuf),
    /// Nobody writes it any more.
    Stale(PathBuf),
    /// It is there and cannot be read.
    Unreadable(PathBuf, io::Error),
}

impl std::fmt::Display for PageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Missing => write!(f, "there is no page of CPUs"),
            Self::Foreign(path) => {
                let path = path.display();
                write!(f, "{path} is no page of CPUs of version {VERSION}")
            }
            Self::Stale(path) => write!(f, "{} is not written any more", path.display()),
            Self::Unreadable(path, why) => write!(f, "cannot read {}: {why}", path.display()),
        }
    }
}

impl std::error::Error for PageError {}

/// The page, open. It is read rather than mapped: whatever happens to the file, a program that
/// reads it gets an error and no signal.
#[derive(Debug)]
pub struct Page {
    file: File,
    path: PathBuf,
}

impl Page {
    /// Opens the page at `path`, usually [`DEFAULT_PAGE`].
    pub fn open(path: &Path) -> Result<Self, PageError> {
        let unreadable = |why: io::Error| match why.kind() {
            io::ErrorKind::NotFound => PageError::Missing,
            _ => PageError::Unreadable(path.into(), why),
        };
        let file = File::open(path).map_err(unreadable)?;
        if file.metadata().map_err(unreadable)?.len() < SIZE as u64 {
            return Err(PageError::Foreign(path.into()));
        }
        let page = Self {
            file,
            path: path.into(),
        };
        let mut first = [0; 8];
        page.bytes(&mut first, 0)?;
        let first = Bytes(&first);
        if (first.u32(0), first.u32(4)) != (MAGIC, VERSION) {
            return Err(PageError::Foreign(path.into()));
        }
        Ok(page)
    }

    /// How often it is written; zero if it is not any more.
    pub fn period(&self) -> Result<Duration, PageError> {
        Ok(Duration::from_nanos(self.head()?.period))
    }

    /// What each process that ran did in the last period, and what the cgroup of this id can
    /// count on, if it is known; both of one moment.
    pub fn read(&self, cgroup: Option<u64>) -> Result<(Vec<Row>, Option<Figures>), PageError> {
        for _ in 0..TRIES {
            let before = self.head()?;
            let end = before
                .updated
                .saturating_add(before.period.saturating_mul(3))
                .saturating_add(GRACE_NS);
            if before.period == 0 || now() >= end {
                break;
            }
            fence(Ordering::Acquire);
            let rows = self.table(HEAD_SIZE, ROW_SIZE, before.processes)?;
            let cgroups = self.table(CGROUPS_AT, CGROUP_SIZE, before.cgroups)?;
            fence(Ordering::Acquire);
            if before.seq & 1 == 0 && self.head()?.seq == before.seq {
                let rows = rows.chunks_exact(ROW_SIZE).map(|row| Bytes(row).row());
                let figures = cgroups
                    .chunks_exact(CGROUP_SIZE)
                    .map(Bytes)
                    .find(|entry| Some(entry.u64(0)) == cgroup)
                    .map(|entry| entry.figures(8));
                return Ok((rows.collect(), figures));
            }
            std::hint::spin_loop();
        }
        Err(PageError::Stale(self.path.clone()))
    }

    fn head(&self) -> Result<Head, PageError> {
        let mut head = [0; HEAD_SIZE];
        self.bytes(&mut head, 0)?;
        let head = Bytes(&head);
        let nr = |at, most: usize| (head.u32(at) as usize).min(most);
        Ok(Head {
            seq: head.u64(8),
            updated: head.u64(16),
            period: head.u64(24),
            processes: nr(44, PROCESSES),
            cgroups: nr(48, CGROUPS),
        })
    }

    fn table(&self, at: usize, size: usize, entries: usize) -> Result<Vec<u8>, PageError> {
        let mut table = vec![0; size * entries];
        self.bytes(&mut table, at)?;
        Ok(table)
    }

    fn bytes(&self, into: &mut [u8], at: usize) -> Result<(), PageError> {
        let read = self.file.read_exact_at(into, at as u64);
        read.map_err(|why| match why.kind() {
            io::ErrorKind::UnexpectedEof => PageError::Foreign(self.path.clone()),
            _ => PageError::Unreadable(self.path.clone(), why),
        })
    }
}

/// Nanoseconds of CLOCK_MONOTONIC.
fn now() -> u64 {
    let mut ts = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: ts is ours; the clock is always there.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut ts) };
    ts.tv_sec as u64 * 1_000_000_000 + ts.tv_nsec as u64
}
