// SPDX-License-Identifier: MIT
//! The page as the C header lays it out, and pages that are none.

use super::*;
use std::ffi::CString;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const HERE: &str = env!("CARGO_MANIFEST_DIR");
/// So long that no test is slower, ms.
pub const LONG: u32 = 3_600_000;
const UPDATED_AT: u64 = 8;
const VERSION_AT: u64 = 4;

/// A page of CPUs of these speeds, written a moment ago by the C header.
pub fn page(folder: &Path, period_ms: u32, speeds: &[u32]) -> PathBuf {
    let program = folder.join("page");
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-o"]);
    cc.arg(&program).arg(format!("{HERE}/src/present/page.c"));
    assert!(cc.arg(format!("-I{HERE}/..")).status().unwrap().success());
    let at = folder.join("speeds");
    let mut write = Command::new(program);
    write.arg(&at).arg(period_ms.to_string());
    write.args(speeds.iter().map(u32::to_string));
    assert!(write.status().unwrap().success());
    at
}

fn open(at: &Path) -> Option<Present> {
    Present::open(&CString::new(at.as_os_str().as_bytes()).unwrap())
}

fn write(at: &Path, bytes: &[u8], offset: u64) {
    let file = File::options().write(true).open(at).unwrap();
    file.write_all_at(bytes, offset).unwrap();
}

#[test]
fn what_the_header_writes_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let present = open(&page(folder.path(), LONG, &[1024, 400, 700, 800])).unwrap();
    // 712 is half of the way.
    let is_big =
        |cpus: &[usize]| -> Vec<_> { cpus.iter().map(|&cpu| present.is_big(cpu)).collect() };
    assert_eq!(
        is_big(&[0, 1, 2, 3]),
        [Some(true), Some(false), Some(false), Some(true)]
    );
    assert_eq!(is_big(&[4, CPUS, usize::MAX]), [None; 3], "no such CPU");
}

#[test]
fn speeds_that_differ_by_little_are_alike() {
    let folder = tempfile::tempdir().unwrap();
    let present = open(&page(folder.path(), LONG, &[1024, 769])).unwrap();
    assert_eq!(present.is_big(1), Some(true));
    let present = open(&page(folder.path(), LONG, &[1024, 768])).unwrap();
    assert_eq!(present.is_big(1), Some(false));
}

#[test]
fn a_page_that_nobody_writes_says_nothing_until_somebody_does() {
    let folder = tempfile::tempdir().unwrap();
    let at = page(folder.path(), 0, &[1024, 500]);
    let present = open(&at).unwrap();
    assert_eq!(present.is_big(1), None, "its writer ended");
    page(folder.path(), LONG, &[1024, 500]);
    assert_eq!(present.is_big(1), Some(false), "the next one writes");
    // It was killed long ago, since the machine's start is.
    page(folder.path(), 4, &[1024, 500]);
    write(&at, &0u64.to_ne_bytes(), UPDATED_AT);
    assert_eq!(present.is_big(1), None);
    write(&at, &u64::MAX.to_ne_bytes(), UPDATED_AT + 8);
    write(&at, &u64::MAX.to_ne_bytes(), UPDATED_AT);
    assert_eq!(present.is_big(1), Some(false), "no sum is too large");
}

#[test]
fn pages_that_are_none_are_not_mapped() {
    let folder = tempfile::tempdir().unwrap();
    assert!(open(&folder.path().join("none")).is_none());
    assert!(open(folder.path()).is_none());
    let at = page(folder.path(), LONG, &[1024, 500]);
    assert!(open(&at).is_some());
    let file = File::options().write(true).open(&at).unwrap();
    file.set_len(size_of::<Page>() as u64 - 1).unwrap();
    assert!(open(&at).is_none(), "too short");
    let at = page(folder.path(), LONG, &[1024, 500]);
    write(&at, &(VERSION + 1).to_ne_bytes(), VERSION_AT);
    assert!(open(&at).is_none(), "of another version");
    let at = page(folder.path(), LONG, &[1024, 500]);
    write(&at, b"sped", 0);
    assert!(open(&at).is_none(), "of something else");
}
