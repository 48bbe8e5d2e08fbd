// SPDX-License-Identifier: GPL-2.0-only
//! policy/spin.h: who is taken for a spinner, and where it goes.

use crate::{any_time, config, policy, sys};
use proptest::prelude::*;

const CODE: usize = sys::SPIN_CODE as usize;
const REGS: usize = sys::SPIN_REGS as usize;
const DRIFT: u32 = sys::SPIN_DRIFT;
const LITTLE: u32 = sys::SPIN_LITTLE;
const APART: u64 = sys::SPIN_APART_NS as u64;
const LOOP: u32 = sys::SPIN_LOOP;
const PAUSE: u32 = sys::SPIN_PAUSE;
const CMPXCHG: u32 = sys::SPIN_CMPXCHG;
const WORKS: u32 = sys::SPIN_WORKS;
const WINDOW: u64 = 64;

/// Instructions of a loop, each a group of bytes.
type Loop = &'static [&'static [u8]];

const LOAD: &[u8] = &[0x8b, 0x07]; // mov (%rdi),%eax
const TEST: &[u8] = &[0x85, 0xc0]; // test %eax,%eax
const PAUSE_X86: &[u8] = &[0xf3, 0x90];

/// What x86 compilers make of loops, without the jump back, and the marks.
const X86: [(&str, Loop, u32); 7] = [
    ("load", &[LOAD, TEST], LOOP),
    ("pause", &[PAUSE_X86, LOAD, TEST], LOOP | PAUSE),
    // lock cmpxchg %edx,(%rdi)
    (
        "cmpxchg",
        &[&[0x89, 0xc8], &[0xf0, 0x0f, 0xb1, 0x17]],
        LOOP | CMPXCHG,
    ),
    // lock cmpxchg %rdx,(%rdi)
    (
        "cmpxchg of 64 bits",
        &[&[0xf0, 0x48, 0x0f, 0xb1, 0x17]],
        LOOP | CMPXCHG,
    ),
    // lock xadd %rax,(%rdi)
    (
        "xadd",
        &[&[0xf0, 0x48, 0x0f, 0xc1, 0x07], TEST],
        LOOP | WORKS,
    ),
    // lock addl $1,(%rdi)
    ("add", &[&[0xf0, 0x83, 0x07, 0x01], TEST], LOOP | WORKS),
    // xchg %eax,(%rdi)
    ("exchange", &[&[0x87, 0x07], TEST], LOOP),
];

/// The same for arm64.
const ARM64: [(&str, &[u32], u32); 5] = [
    ("load", &[0xb940_0001, 0x3400_0000], LOOP), // ldr w1,[x0]; cbz w1
    (
        "yield",
        &[0xd503_203f, 0xb940_0001, 0x3400_0000],
        LOOP | PAUSE,
    ),
    // ldaxr w1,[x0]; stxr w2,w3,[x0]; cbnz w2
    (
        "exclusive",
        &[0x885f_fc01, 0x8802_7c03, 0x3500_0000],
        LOOP | CMPXCHG,
    ),
    // cas w1,w2,[x0]; b.ne
    ("cas", &[0x88a1_7c02, 0x5400_0001], LOOP | CMPXCHG),
    // ldadd w1,w2,[x0]; tbz w3,#0
    ("ldadd", &[0xb821_0002, 0x3600_0000], LOOP | WORKS),
];

/// A buffer of NOPs (0x90 would follow any F3 and look like PAUSE, so CLC).
fn nops() -> [u8; CODE] {
    [0xf8; CODE]
}

/// The code at `begin` with a jump back to it, and where each instruction is.
fn assemble(code: &mut [u8; CODE], begin: usize, instructions: Loop) -> Vec<usize> {
    let (mut at, mut starts) = (begin, vec![]);
    for bytes in instructions {
        starts.push(at);
        code[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    }
    starts.push(at);
    code[at] = 0x74; // je
    code[at + 1] = (begin as i8 - at as i8 - 2) as u8;
    starts
}

/// What is known of the code before it was looked at; nothing of it may last.
fn code(bytes: &[u8; CODE], at: usize) -> sys::spin_code {
    sys::spin_code {
        bytes: *bytes,
        at: at as u32,
        begin: 7,
        end: 9,
        marks: u32::MAX,
    }
}

fn marks_x86(bytes: &[u8; CODE], at: usize) -> u32 {
    let mut code = code(bytes, at);
    policy!(spin_marks_x86(&mut code));
    code.marks
}

fn marks_arm64(bytes: &[u8; CODE], at: usize) -> u32 {
    let mut code = code(bytes, at);
    policy!(spin_marks_arm64(&mut code));
    code.marks
}

/// An immediate that jumps `words` back, put into a branch without one.
fn branch(op: u32, words: i32) -> u32 {
    match op >> 24 {
        0x36 => op | ((words as u32 & 0x3fff) << 5),
        _ => op | ((words as u32 & 0x7_ffff) << 5),
    }
}

fn watch() -> sys::spin_watch {
    // SAFETY: integers and a bool, for all of which zeroes are a value.
    unsafe { std::mem::zeroed() }
}

fn sample(ip: u64, first_reg: u32) -> sys::spin_sample {
    let mut regs = [7; REGS];
    regs[3] = first_reg;
    sys::spin_sample { ip, regs }
}

/// Ticks that each come after a good deal of CPU time, with these registers.
fn ticks(w: &mut sys::spin_watch, ips: &[u64], regs: &[u32], need: u64) -> Vec<bool> {
    ips.iter()
        .zip(regs)
        .map(|(ip, reg)| {
            let ran = w.ran + APART;
            policy!(spin_watch_tick(w, &sample(*ip, *reg), ran, WINDOW, need))
        })
        .collect()
}

#[test]
fn x86_loops_are_read_at_every_instruction() {
    for (name, instructions, want) in X86 {
        for begin in [0, 1, 20, 32] {
            let mut code = nops();
            for at in assemble(&mut code, begin, instructions) {
                assert_eq!(marks_x86(&code, at), want, "{name} from {begin} at {at}");
            }
        }
    }
}

#[test]
fn what_stands_beside_an_x86_loop_is_not_in_it() {
    let outside: [&[u8]; 3] = [
        &[0xf0, 0x48, 0x0f, 0xc1, 0x07],
        &[0xf0, 0x0f, 0xb1, 0x17],
        PAUSE_X86,
    ];
    for bytes in outside {
        let mut code = nops();
        let starts = assemble(&mut code, 24, X86[0].1);
        code[10..10 + bytes.len()].copy_from_slice(bytes);
        code[50..50 + bytes.len()].copy_from_slice(bytes);
        for at in starts {
            assert_eq!(marks_x86(&code, at), LOOP, "{bytes:x?} at {at}");
        }
    }
}

/// A long loop calls a function that does nothing but PAUSE.
#[test]
fn pause_at_the_instruction_pointer_needs_no_loop() {
    let mut code = nops();
    code[30..32].copy_from_slice(PAUSE_X86);
    assert_eq!(marks_x86(&code, 30), PAUSE);
    assert_eq!(marks_x86(&code, 32), PAUSE);
    assert_eq!(marks_x86(&code, 33), 0);
}

#[test]
fn arm64_loops_are_read_at_every_instruction() {
    for (name, words, want) in ARM64 {
        for begin in [0usize, 4, 8] {
            let mut code = [0u8; CODE];
            let last = words.len() - 1;
            for (i, word) in words.iter().enumerate() {
                let word = if i == last {
                    branch(*word, -(last as i32))
                } else {
                    *word
                };
                code[4 * (begin + i)..][..4].copy_from_slice(&word.to_le_bytes());
            }
            for i in 0..words.len() {
                let at = 4 * (begin + i);
                let got = marks_arm64(&code, at);
                assert_eq!(got, want, "{name} from {begin} at {at}");
            }
        }
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn any_bytes_are_read_within_the_buffer(code: [[u8; 32]; CODE / 32], at in 0..CODE) {
        let code: [u8; CODE] = code.concat().try_into().unwrap();
        let all = LOOP | PAUSE | CMPXCHG | WORKS;
        let x86 = marks_x86(&code, at);
        let arm64 = marks_arm64(&code, at & !3);
        prop_assert!(x86 & !all == 0 && arm64 & !all == 0);
        // No compare-exchange and no locked operation outside of a loop.
        prop_assert!(x86 & LOOP != 0 || x86 & (CMPXCHG | WORKS) == 0);
        prop_assert!(arm64 & LOOP != 0 || arm64 & (CMPXCHG | WORKS) == 0);
    }

    #[test]
    fn code_is_read_from_the_page_that_runs(ip in any::<u64>()) {
        let begin = policy!(spin_code_begin(ip));
        prop_assert!(begin <= ip && ip - begin < CODE as u64, "{begin:x}");
        prop_assert_eq!(begin >> 12, ip >> 12);
        prop_assert_eq!((begin + (CODE as u64 - 1)) >> 12, ip >> 12);
    }

    /// The bound below which all registers stayed is what the thresholds ask for.
    #[test]
    fn change_says_how_far_registers_moved(a in any::<[u32; REGS]>(), moves in any::<[i32; REGS]>(), bits in 0..32u32) {
        let mask = (1i64 << bits) - 1;
        let moves = moves.map(|m| (i64::from(m) & mask) as i32);
        let mut b = a;
        for (i, (reg, by)) in b.iter_mut().zip(moves).enumerate() {
            *reg = if i % 2 == 0 { reg.wrapping_add_signed(by) } else { reg.wrapping_sub(by as u32) };
        }
        let a = sys::spin_sample { ip: 0, regs: a };
        let b = sys::spin_sample { ip: 0, regs: b };
        let got = policy!(spin_change(&a, &b));
        prop_assert!(u64::from(got) < 1 << bits, "{got}");
        prop_assert!(got >= moves.iter().map(|m| *m as u32).max().unwrap_or_default());
        prop_assert_eq!(got, policy!(spin_change(&b, &a)));
    }

    /// Not before this many ticks, and then always.
    #[test]
    fn standing_still_is_seen_after_so_many_ticks(ip in any_time(), offsets in prop::collection::vec(0..=WINDOW, 20), need in 2..10u64) {
        let mut w = watch();
        // Around the first of them.
        let base = ip.clamp(WINDOW, u64::MAX - WINDOW);
        let ips: Vec<_> = std::iter::once(base).chain(offsets.iter().map(|o| base - WINDOW / 2 + o / 2)).collect();
        let seen = ticks(&mut w, &ips, &[5; 21], need);
        for (i, seen) in seen.iter().enumerate() {
            prop_assert_eq!(*seen, i as u64 + 1 >= need, "tick {}", i);
        }
    }

    #[test]
    fn whoever_moves_is_not_looked_at(ip in 1000..any_ip(), steps in prop::collection::vec(DRIFT..u32::MAX - DRIFT, 20), need in 2..10u64) {
        let mut w = watch();
        let mut reg = 0u32;
        let regs: Vec<_> = steps.iter().map(|s| { reg = reg.wrapping_add(*s); reg }).collect();
        prop_assert!(ticks(&mut w, &[ip; 20], &regs, need).iter().all(|seen| !seen));
        let mut w = watch();
        let ips: Vec<_> = (0..20).map(|i| ip + i * (WINDOW + 1)).collect();
        prop_assert!(ticks(&mut w, &ips, &[5; 20], need).iter().all(|seen| !seen));
    }

    /// Ticks one upon the other find the same registers because nothing ran.
    #[test]
    fn ticks_without_cpu_time_do_not_count(gaps in prop::collection::vec(0..APART / 50, 40), need in 2..5u64) {
        let mut w = watch();
        let mut ran = 1;
        for gap in gaps {
            ran += gap;
            let seen = policy!(spin_watch_tick(&mut w, &sample(4096, 5), ran, WINDOW, need));
            prop_assert!(!seen && w.ticks <= 1);
        }
    }

    /// A place where a spinner was found is known, until work is seen in it.
    #[test]
    fn a_known_place_is_looked_at_at_once(ip in 1000..any_ip(), reg in any::<u32>(), by in DRIFT..u32::MAX - DRIFT) {
        let mut w = watch();
        w.known = ip;
        prop_assert!(ticks(&mut w, &[ip + WINDOW], &[reg], 100)[0]);
        prop_assert!(!ticks(&mut w, &[ip + WINDOW], &[reg.wrapping_add(by)], 100)[0], "worked there");
        prop_assert_eq!(w.known, 0);
    }

    /// No loop is a spinner's if its registers change, except that it says that it
    /// waits and they hardly do; and none that works in memory.
    #[test]
    fn work_is_not_taken_for_waiting(change in 1..u32::MAX, marks in 0..16u32, count in 2..100u16, need in 2..100u64) {
        let mut w = watch();
        (w.ticks, w.change) = (count, change);
        let spins = policy!(spin_verdict(&w, marks, need));
        prop_assert!(!spins || marks & (PAUSE | CMPXCHG) != 0);
        prop_assert!(!spins || change < DRIFT);
        prop_assert!(!spins || marks & PAUSE != 0 || change < LITTLE);
        w.change = 0;
        if marks & (PAUSE | CMPXCHG) == 0 {
            let want = marks == LOOP && u64::from(count) > need;
            prop_assert_eq!(policy!(spin_verdict(&w, marks, need)), want);
        }
    }

    #[test]
    fn at_its_first_tick_only_pause_counts(change in any::<u32>(), marks in 0..16u32) {
        let mut w = watch();
        (w.ticks, w.change) = (1, change);
        prop_assert_eq!(policy!(spin_verdict(&w, marks, 2)), marks & PAUSE != 0);
    }

    #[test]
    fn sleep_ends_it(count in any::<u16>(), yields in any::<u16>(), ran in any_time()) {
        let mut w = watch();
        (w.ticks, w.yields, w.spinning, w.last.ip) = (count, yields, true, 5000);
        policy!(spin_watch_reset(&mut w));
        prop_assert!(!w.spinning && !policy!(spin_storms(&w, ran)));
        prop_assert!(!policy!(spin_watch_tick(&mut w, &sample(5000, 7), APART, WINDOW, 2)));
    }

    /// Yields in a row are a storm, and those with work between them are none.
    #[test]
    fn a_storm_is_many_yields_with_little_between(gaps in prop::collection::vec(0..2 * sys::SPIN_YIELD_NS as u64, 1..60)) {
        let mut w = watch();
        let (mut ran, mut row) = (1u64 << 40, 0);
        for gap in gaps {
            ran += gap;
            row = if gap < sys::SPIN_YIELD_NS as u64 && row > 0 { row + 1 } else { 1 };
            prop_assert_eq!(policy!(spin_watch_yield(&mut w, ran)), row >= sys::SPIN_STORM);
            prop_assert_eq!(policy!(spin_storms(&w, ran)), row >= sys::SPIN_STORM);
            prop_assert!(!policy!(spin_storms(&w, ran + sys::SPIN_YIELD_NS as u64)));
        }
    }

    /// It goes behind those of its process, but not beyond the bound, and is never
    /// favoured by giving way.
    #[test]
    fn a_spinner_goes_behind_within_the_bound(vtime in any::<u64>(), slice in 1..100_000_000u64, weight in 3..=88761u64, least in 3..=88761u64, behind in 0..1u64 << 40, bound in 0..1u64 << 40) {
        let base = vtime;
        let (behind, bound) = (base.wrapping_add(behind), base.wrapping_add(bound));
        let own = policy!(vtime_deadline(vtime, 0, slice, weight));
        let got = policy!(spin_deadline(vtime, slice, weight, least, behind, bound)).wrapping_sub(base);
        let (own, behind, bound) = (own.wrapping_sub(base), behind.wrapping_sub(base), bound.wrapping_sub(base));
        prop_assert!(got >= own);
        prop_assert!(got <= own.max(bound));
        prop_assert!(got > behind || got == own.max(bound), "{got} {own} {behind} {bound}");
        let equal = policy!(vtime_deadline(vtime, 0, slice, least.min(weight))).wrapping_sub(base);
        prop_assert!(got >= equal || got == own.max(bound));
    }
}

/// Beyond any address of user space, with room for what tests add.
fn any_ip() -> u64 {
    1 << 56
}
