// SPDX-License-Identifier: MIT
//! What stands in a thread's hint, and that it is laid out as `bpf/hint.h` says.

use super::*;
use crate::thread::HintWords;
use crate::Lock;
use std::ffi::CString;
use std::mem::offset_of;
use std::process::Command;

fn holds() -> u64 {
    thread::with(|me| me.hint.holds.load(Relaxed))
}

fn address(lock: &Lock) -> u64 {
    std::ptr::from_ref(lock) as u64
}

#[test]
fn a_hint_is_laid_out_as_the_scheduler_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("hint.c"), folder.path().join("hint"));
    let bpf = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bpf");
    let text = r#"
        #include <stddef.h>
        #include <stdint.h>
        #include <stdio.h>
        typedef uint32_t u32; typedef int32_t s32; typedef uint64_t u64;
        #include "hint.h"
        int main(void) {
            printf("%u %u %zu %zu %zu %zu %zu", FL_HINT_VERSION, FL_HINT_SHOW, sizeof(struct fl_hint),
                   offsetof(struct fl_hint, version), offsetof(struct fl_hint, owner),
                   offsetof(struct fl_hint, holds), offsetof(struct fl_hint, waits_for));
        }"#;
    std::fs::write(&source, text).unwrap();
    assert!(Command::new("cc")
        .arg("-I")
        .arg(bpf)
        .arg("-o")
        .args([&program, &source])
        .status()
        .unwrap()
        .success());
    let printed = String::from_utf8(Command::new(&program).output().unwrap().stdout).unwrap();
    let ours = format!(
        "{} {SHOW} {} {} {} {} {}",
        thread::with(|me| me.hint.version.load(Relaxed)),
        size_of::<HintWords>(),
        offset_of!(HintWords, version),
        offset_of!(HintWords, owner),
        offset_of!(HintWords, holds),
        offset_of!(HintWords, waits_for)
    );
    assert_eq!(printed, ours);
}

#[test]
fn the_lock_taken_last_is_reported_in_whatever_order_they_are_released() {
    let locks = [Lock::new(), Lock::new(), Lock::new()];
    for order in [
        [0, 1, 2],
        [0, 2, 1],
        [1, 0, 2],
        [1, 2, 0],
        [2, 0, 1],
        [2, 1, 0],
    ] {
        let mut held: Vec<usize> = Vec::new();
        for (at, lock) in locks.iter().enumerate() {
            lock.lock().unwrap();
            held.push(at);
            assert_eq!(holds(), address(lock));
        }
        for at in order {
            locks[at].unlock().unwrap();
            held.retain(|&other| other != at);
            assert_eq!(
                holds(),
                held.last().map_or(0, |&last| address(&locks[last]))
            );
        }
    }
}

#[test]
fn locks_of_the_program_s_own_go_with_those_of_the_library() {
    let (lock, own) = (Lock::new(), 0u32);
    let own = std::ptr::from_ref(&own).cast();
    lock.lock().unwrap();
    hold(own);
    assert_eq!(holds(), own as u64);
    release();
    assert_eq!(holds(), address(&lock));
    lock.unlock().unwrap();
    wait(own, 17);
    thread::with(|me| {
        assert_eq!(
            (me.hint.waits_for.load(Relaxed), me.hint.owner.load(Relaxed)),
            (own as u64, 17)
        )
    });
    wait_over();
    thread::with(|me| assert_eq!(me.hint.waits_for.load(Relaxed), 0));
}

#[test]
fn only_our_scheduler_is_shown_hints() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ops");
    for (name, is_ours) in [
        ("freqlock_0.1.0\n", true),
        ("freqlock", true),
        ("lavd_1.0\n", false),
        ("", false),
    ] {
        std::fs::write(&path, name).unwrap();
        assert_eq!(
            scheduler_is_there(&CString::new(path.to_str().unwrap()).unwrap()),
            is_ours,
            "{name}"
        );
    }
    assert!(!scheduler_is_there(c"/nonexistent"));
}

#[test]
fn a_child_shows_its_own() {
    wait(std::ptr::null(), 1);
    assert_ne!(thread::with(|me| me.shown.get()), 0);
    // SAFETY: the child looks at its own memory and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let shown = thread::with(|me| me.shown.get());
        // SAFETY: without what the test's process does at its end.
        unsafe { libc::_exit(i32::from(shown != 0)) };
    }
    let mut status = -1;
    // SAFETY: our child, and a place for its status.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(status, 0);
}
