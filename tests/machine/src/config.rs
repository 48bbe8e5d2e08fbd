// SPDX-License-Identifier: GPL-2.0-only
//! The reader of the flat file: what it takes, and what it refuses and how.

use crate::{check, config, sys, ONE};
use std::ffi::{CStr, CString};
use std::io::Write;

const GOOD: &str = "version 1
cpus 2
mips 3000
quantum_ns 20000
governor hardware
ramp_us 29000
hold_us 10000
decay_us 98000
always_top 0
move_core 0 1024
move_llc 1000 512
move_far 2000 256
rep_bytes_per_insn 32
power_idle_mw 500 # a remark
cpu 0 capacity 1024 floor 410 core 0 llc 0
cpu 1 capacity 512 floor 300 core 1 llc 1
opp 0 410 1000
opp 0 1024 5000
opp 1 300 500

turbo 1 1024
turbo 2 900
";

fn read(text: &str) -> Result<Box<sys::model_config>, String> {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(text.as_bytes()).expect("to write to it");
    let path = CString::new(file.path().to_string_lossy().as_bytes()).expect("a path");
    // SAFETY: integers and booleans only: zeroes are valid.
    let mut config: Box<sys::model_config> = Box::new(unsafe { std::mem::zeroed() });
    let mut why = [0; 512];
    // SAFETY: the pointers are made from live values, with the right size.
    let good = unsafe {
        sys::config_read(
            path.as_ptr(),
            &mut *config,
            why.as_mut_ptr(),
            why.len() as _,
        )
    };
    if good {
        return Ok(config);
    }
    // SAFETY: a sentence that ends within the array, as config.h promises.
    let why = unsafe { CStr::from_ptr(why.as_ptr()) }.to_string_lossy();
    Err(why.replace(&*file.path().to_string_lossy(), "FILE"))
}

#[test]
fn every_value_arrives() {
    let c = read(GOOD).expect("a good file");
    assert_eq!((c.nr_cpus, c.mips, c.quantum_ns), (2, 3000, 20_000));
    assert_eq!((c.ramp_us, c.hold_us, c.decay_us), (29_000, 10_000, 98_000));
    assert_eq!((c.guest_governs, c.always_top), (false, false));
    assert_eq!((c.move_[1].insns, c.move_[1].speed), (1000, 512));
    assert_eq!((c.move_[2].insns, c.move_[2].speed), (2000, 256));
    assert_eq!((c.rep_bytes_per_insn, c.power_idle_mw), (32, 500));
    let cpu = &c.cpu[1];
    assert_eq!(
        (cpu.capacity, cpu.floor, cpu.core, cpu.llc),
        (512, 300, 1, 1)
    );
    assert_eq!(
        (cpu.nr_opps, cpu.opp[0].speed, cpu.opp[0].power_mw),
        (1, 300, 500)
    );
    assert_eq!(
        (c.nr_turbo, c.turbo[1].cores, c.turbo[1].speed),
        (2, 2, 900)
    );
}

#[test]
fn a_bad_line_is_named_with_its_number() {
    for (old, new, line, says) in [
        ("version 1", "version 2", 1, "version 1 only"),
        ("cpus 2", "cpus two", 2, "not a whole number"),
        ("mips 3000", "mips -3", 3, "not a whole number"),
        ("mips 3000", "mips 99999999999", 3, "too large"),
        ("governor hardware", "governor none", 5, "hardware or guest"),
        ("ramp_us 29000", "ramp 29000", 6, "not known"),
        ("hold_us 10000", "ramp_us 10000", 7, "given before"),
        ("decay_us 98000", "decay_us", 8, "too many or too few"),
        ("always_top 0", "always_top 0 1", 9, "too many or too few"),
        ("cpu 1 capacity", "cpu 1 kapazität", 16, "words"),
        ("cpu 1 cap", "cpu 0 cap", 16, "has a line already"),
        ("opp 1 300 500", "opp 128 300 500", 19, "too large"),
    ] {
        let why = read(&GOOD.replace(old, new)).expect_err(new);
        assert!(why.starts_with(&format!("FILE:{line}: ")), "{new}: {why}");
        assert!(why.contains(says), "{new}: {why}");
    }
}

#[test]
fn a_missing_key_is_named() {
    for line in GOOD.lines().filter(|l| !l.is_empty()) {
        let key = line.split(' ').next().expect("a key");
        if ["cpu", "opp", "turbo"].contains(&key) {
            continue;
        }
        let why = read(&GOOD.replace(&format!("{line}\n"), "")).expect_err(key);
        assert!(why.contains(&format!("the key {key} is missing")), "{why}");
    }
    let why = read(&GOOD.replace("governor hardware", "governor guest")).expect_err("no page");
    assert!(why.contains("the key guest_page is missing"), "{why}");
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let mut why = [0; 512];
    let mut c = config(1, 400);
    // SAFETY: the pointers are made from live values, with the right size.
    let good = unsafe {
        sys::config_read(
            c"/nowhere/file".as_ptr(),
            &mut *c,
            why.as_mut_ptr(),
            why.len() as _,
        )
    };
    assert!(!good);
    // SAFETY: a sentence that ends within the array, as config.h promises.
    let why = unsafe { CStr::from_ptr(why.as_ptr()) }.to_string_lossy();
    assert!(
        why.contains("cannot open /nowhere/file: No such file"),
        "{why}"
    );
}

#[test]
fn silly_machines_are_refused() {
    /// Of no CPU.
    const ALL: u32 = sys::MODEL_MAX_CPUS;
    type Change = fn(&mut sys::model_config);
    let silly: [(Change, u32, &str); 19] = [
        (|c| c.nr_cpus = 0, ALL, "cpus"),
        (|c| c.mips = 0, ALL, "mips"),
        (|c| c.quantum_ns = 10, ALL, "quantum_ns"),
        (|c| c.decay_us = 2_000_000, ALL, "decay_us"),
        (|c| c.rep_bytes_per_insn = 0, ALL, "rep_bytes_per_insn"),
        (|c| c.guest_governs = true, ALL, "guest_page"),
        (|c| c.guest_page = 12, ALL, "multiple of 4096"),
        (|c| c.move_[0].speed = 0, ALL, "after a move"),
        (|c| c.nr_turbo = 0, ALL, "turbo line"),
        (|c| c.turbo[0].speed = 2000, ALL, "turbo speed"),
        (
            |c| {
                c.nr_turbo = 2;
                c.turbo[1] = c.turbo[0];
            },
            ALL,
            "rising cores",
        ),
        (|c| c.cpu[3].present = true, 3, "no such CPU"),
        (|c| c.cpu[1].present = false, 1, "no cpu line"),
        (|c| c.cpu[1].capacity = 1025, 1, "capacity"),
        (|c| c.cpu[1].core = ALL, 1, "core"),
        (|c| c.cpu[1].nr_opps = 0, 1, "no operating point"),
        (|c| c.cpu[1].opp[2].speed = 0, 1, "operating point's speed"),
        (|c| c.cpu[1].opp[2].speed = ONE, 1, "rise in speed"),
        (
            |c| {
                c.mips = 1;
                c.cpu[0].capacity = 1;
            },
            0,
            "lowest speed",
        ),
    ];
    for (change, cpu, says) in silly {
        let mut c = config(2, 400);
        change(&mut c);
        let (why, about) = check(&c).expect(says);
        assert!(why.contains(says), "{says}: {why}");
        assert_eq!(about, cpu, "{why}");
    }
}
