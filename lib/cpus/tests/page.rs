// SPDX-License-Identifier: MIT
//! The page as the C header lays it out, and pages that are none.
#![allow(clippy::unwrap_used)]

use freqlock_cpus::{affinity, Counter, Limits, OwnCounter, Page, PageError, Process, Processes};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const HERE: &str = env!("CARGO_MANIFEST_DIR");
/// A process that never was.
const NOBODY: u32 = 4_194_305;

/// The program of page.c.
fn compile(folder: &Path) -> PathBuf {
    let program = folder.join("page");
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-o"]);
    cc.arg(&program).arg(format!("{HERE}/tests/page.c"));
    let status = cc.arg(format!("-I{HERE}/..")).status().unwrap();
    assert!(status.success());
    program
}

/// A page with the cgroup of this test, and one process.
fn page(folder: &Path, cpus: u32, (pid, ran, waited): (u32, u32, u32)) -> PathBuf {
    let at = folder.join("cpus");
    let cgroup = Limits::find().cgroup().unwrap_or(1);
    let numbers = [cgroup, cpus.into(), pid.into(), ran.into(), waited.into()];
    let mut write = Command::new(compile(folder));
    write
        .arg(&at)
        .args(numbers.map(|number| number.to_string()));
    assert!(write.status().unwrap().success());
    at
}

fn count(at: &Path) -> f64 {
    let counted = Counter::new(at).count(&Processes::look());
    assert!(counted.without_page.is_none(), "{counted:?}");
    counted.cpus
}

#[test]
fn what_the_header_writes_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let at = page(folder.path(), 1500, (NOBODY, 700, 300));
    let (rows, figures) = Page::open(&at)
        .unwrap()
        .read(Some(Limits::find().cgroup().unwrap_or(1)))
        .unwrap();
    assert_eq!(figures.unwrap().cpus, 1500);
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].pid, rows[0].figures.ran), (NOBODY, 700));
    assert_eq!(rows[0].figures.waited, 300);
}

#[test]
fn a_cgroup_counts_on_its_figure() {
    let folder = tempfile::tempdir().unwrap();
    let at = page(folder.path(), 500, (NOBODY, 0, 0));
    assert_eq!(count(&at), 0.5);
}

#[test]
fn a_neighbour_in_the_same_cgroup_takes_its_part() {
    let folder = tempfile::tempdir().unwrap();
    // Its shell ends, so that it is not below this test.
    let sleep = "sleep 60 >/dev/null 2>&1 & echo $!";
    let started = Command::new("sh").args(["-c", sleep]).output().unwrap();
    let pid = String::from_utf8(started.stdout).unwrap();
    let pid: u32 = pid.trim().parse().unwrap();
    let counted = count(&page(folder.path(), 800, (pid, 3000, 2000)));
    let small = count(&page(folder.path(), 800, (pid, 50, 50)));
    Command::new("kill").arg(pid.to_string()).status().unwrap();
    assert_eq!(counted, 0.4);
    assert!((small - 0.7).abs() < 1e-9, "{small}");
    let above = count(&page(folder.path(), 800, (1, 5000, 0)));
    assert_eq!(above, 0.8, "the first process is above us");
}

#[test]
fn pages_that_are_none_are_not_asked() {
    let folder = tempfile::tempdir().unwrap();
    let at = page(folder.path(), 1, (NOBODY, 0, 0));
    let file = File::options().write(true).open(&at).unwrap();
    let why = |at: &Path| {
        let mut counter = Counter::new(at);
        counter.count(&Processes::look());
        let counted = counter.count(&Processes::look());
        assert!(
            counted.cpus > 0.0 && counted.cpus <= affinity() as f64,
            "{counted:?}"
        );
        counted.without_page.unwrap()
    };
    // Of another moment.
    file.write_all_at(&1u64.to_ne_bytes(), 16).unwrap();
    assert!(matches!(why(&at), PageError::Stale(_)));
    file.write_all_at(&9u32.to_ne_bytes(), 4).unwrap();
    assert!(matches!(why(&at), PageError::Foreign(_)));
    file.set_len(4096).unwrap();
    assert!(matches!(why(&at), PageError::Foreign(_)));
    assert!(matches!(
        why(folder.path()),
        PageError::Unreadable(..) | PageError::Foreign(_)
    ));
    assert!(matches!(
        why(&folder.path().join("none")),
        PageError::Missing
    ));
}

/// What the calling process can count on by the page alone.
fn own(at: &Path) -> f64 {
    let counted = OwnCounter::new(at).count();
    assert!(counted.without_page.is_none(), "{counted:?}");
    assert!(counted.again_in >= Duration::from_millis(1));
    counted.cpus
}

#[test]
fn a_process_counts_on_its_own_figure_or_on_its_cgroups() {
    let folder = tempfile::tempdir().unwrap();
    let at = page(folder.path(), 500, (NOBODY, 0, 0));
    assert_eq!(own(&at), 0.5, "it did not run");
    let me = std::process::id();
    let at = page(folder.path(), 500, (me, 0, 0));
    let file = File::options().write(true).open(&at).unwrap();
    assert_eq!(own(&at), 0.5, "another process of that number");
    file.write_all_at(&Process::own().unwrap().start.to_ne_bytes(), 64)
        .unwrap();
    file.write_all_at(&250u32.to_ne_bytes(), 64 + 20 + 12)
        .unwrap();
    assert_eq!(own(&at), 0.25);
    file.write_all_at(&900_000u32.to_ne_bytes(), 64 + 20 + 12)
        .unwrap();
    assert!(own(&at) <= affinity() as f64, "more than there are");
    file.write_all_at(&1u64.to_ne_bytes(), 16).unwrap();
    let stale = OwnCounter::new(&at).count();
    assert!(matches!(stale.without_page, Some(PageError::Stale(_))));
}

#[test]
fn half_written_for_long_is_stale() {
    let folder = tempfile::tempdir().unwrap();
    let at = page(folder.path(), 1, (NOBODY, 0, 0));
    let file = File::options().write(true).open(&at).unwrap();
    file.write_all_at(&3u64.to_ne_bytes(), 8).unwrap();
    let found = Page::open(&at).unwrap().read(None);
    assert!(matches!(found, Err(PageError::Stale(_))));
}
