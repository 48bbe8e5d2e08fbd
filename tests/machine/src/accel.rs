// SPDX-License-Identifier: GPL-2.0-only
//! What the plugin finds inside QEMU, and that it refuses a QEMU in which
//! anything is not as expected. The QEMUs here are made up.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_void, CStr};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::sys;
use proptest::prelude::*;

const USE_ICOUNT: u32 = sys::CF_USE_ICOUNT;
const PARALLEL: u32 = sys::CF_PARALLEL;
/// Words of a made-up AccelOpsClass and of a made-up CPUState.
const OPS: usize = 60;
const STATE: usize = 100;

/// The made-up QEMU that the functions below belong to.
struct Qemu {
    /// The heap's, as QEMU's own: the plugin asks how large it is.
    ops: Box<[usize; OPS]>,
    /// Where flags are that tcg_cflags_set() changes; the first is looked at.
    flags: Vec<usize>,
    /// Can they be taken away?
    sticky: bool,
    /// What asking a CPU to come back does to its bytes.
    asks: Vec<(usize, u8)>,
}

static QEMU: Mutex<Option<Qemu>> = Mutex::new(None);

fn qemu() -> MutexGuard<'static, Option<Qemu>> {
    QEMU.lock().unwrap_or_else(PoisonError::into_inner)
}

unsafe extern "C" fn cpus_get_accel() -> *mut c_void {
    qemu().as_mut().unwrap().ops.as_mut_ptr().cast()
}

/// One that is never called, but has an address of its own.
macro_rules! never {
    ($($name:ident($($argument:ty),*) -> $result:ty),* $(,)?) => {$(
        unsafe extern "C" fn $name($(_: $argument),*) -> $result {
            unreachable!(stringify!($name))
        }
    )*};
}
never!(
    rr_start_vcpu_thread(*mut sys::CPUState) -> (),
    rr_kick_vcpu_thread(*mut sys::CPUState) -> (),
    icount_handle_interrupt(*mut sys::CPUState, c_int) -> (),
    icount_get() -> i64,
    new_clock() -> i64,
    new_interrupt(*mut sys::CPUState, c_int) -> (),
    new_kick(*mut sys::CPUState) -> (),
);

unsafe extern "C" fn tcg_cflags_set(cpu: *mut sys::CPUState, flags: u32) {
    for &at in &qemu().as_ref().unwrap().flags {
        *cpu.cast::<u32>().add(at) |= flags;
    }
}

unsafe extern "C" fn tcg_cflags_has(cpu: *mut sys::CPUState, flags: u32) -> bool {
    let qemu = qemu();
    let qemu = qemu.as_ref().unwrap();
    let word = *cpu
        .cast::<u32>()
        .add(qemu.flags.first().copied().unwrap_or(0));
    word & flags != 0 || qemu.sticky && flags == USE_ICOUNT | PARALLEL
}

unsafe extern "C" fn tcg_kick_vcpu_thread(cpu: *mut sys::CPUState) {
    for &(at, value) in &qemu().as_ref().unwrap().asks {
        *cpu.cast::<u8>().add(at) = value;
    }
}

/// One test at a time: the plugin knows one QEMU.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn start(ops: BTreeMap<usize, usize>, flags: Vec<usize>, sticky: bool) -> MutexGuard<'static, ()> {
    let one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut table = Box::new([0x1234; OPS]);
    for (at, function) in ops {
        table[at] = function;
    }
    *qemu() = Some(Qemu {
        ops: table,
        flags,
        sticky,
        asks: Vec::new(),
    });
    // SAFETY: all who use it hold the lock that is held here.
    unsafe {
        sys::qemu.cpus_get_accel = Some(cpus_get_accel);
        sys::qemu.rr_start_vcpu_thread = Some(rr_start_vcpu_thread);
        sys::qemu.rr_kick_vcpu_thread = Some(rr_kick_vcpu_thread);
        sys::qemu.icount_handle_interrupt = Some(icount_handle_interrupt);
        sys::qemu.icount_get = Some(icount_get);
        sys::qemu.tcg_cflags_set = Some(tcg_cflags_set);
        sys::qemu.tcg_cflags_has = Some(tcg_cflags_has);
        sys::qemu.tcg_kick_vcpu_thread = Some(tcg_kick_vcpu_thread);
    }
    one
}

/// A sentence of the plugin, if there is one.
fn sentence(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: what is not NULL is a string.
    let text = unsafe { CStr::from_ptr(text) };
    Some(text.to_string_lossy().into_owned())
}

fn hook() -> Option<String> {
    let hooks = sys::accel_hooks {
        clock: Some(new_clock),
        interrupt: Some(new_interrupt),
        kick: Some(new_kick),
    };
    // SAFETY: start() has set what is called.
    sentence(unsafe { sys::accel_hook(&hooks) })
}

/// The state is the heap's, as QEMU's own: the plugin asks how large it is.
fn stop_counting(state: &mut Box<[u32; STATE]>) -> Option<String> {
    // SAFETY: start() has set what is called, which stays within the state.
    sentence(unsafe { sys::accel_stop_counting(state.as_mut_ptr().cast()) })
}

/// Looks for the wish that a CPU come back, and takes it back from one that has it.
fn begin_turn(asks: Vec<(usize, u8)>, state: &mut Box<[u32; STATE]>) -> Option<String> {
    qemu().as_mut().unwrap().asks = asks;
    let cpu = state.as_mut_ptr().cast();
    // SAFETY: as above.
    unsafe {
        let said = sentence(sys::accel_find_exit_request(cpu));
        if said.is_none() {
            sys::accel_begin_turn(cpu);
        }
        said
    }
}

const START: usize = 0;
const INTERRUPT: usize = 1;
const KICK: usize = 2;
const CLOCK: usize = 3;
const TICKS: usize = 4;

/// The functions whose slots matter, by the numbers above.
fn functions() -> [usize; 5] {
    [
        rr_start_vcpu_thread as *const () as usize,
        icount_handle_interrupt as *const () as usize,
        rr_kick_vcpu_thread as *const () as usize,
        icount_get as *const () as usize,
        icount_get as *const () as usize,
    ]
}

/// Five different places among the words that the plugin looks at.
fn places() -> impl Strategy<Value = Vec<usize>> {
    prop::sample::subsequence((0..48).collect::<Vec<_>>(), 5).prop_shuffle()
}

#[test]
fn a_program_without_qemus_functions_is_refused() {
    let _one = start(BTreeMap::new(), Vec::new(), false);
    // SAFETY: it only looks for names.
    let said = sentence(unsafe { sys::accel_find_functions() }).unwrap();
    assert!(said.contains("no function cpus_get_accel"), "{said}");
    assert!(said.contains("take one of version 10.0"), "{said}");
}

proptest! {
    #[test]
    fn the_slots_are_found_wherever_they_are(places in places()) {
        let _one = start(places.iter().copied().zip(functions()).collect(), vec![0], false);
        prop_assert_eq!(hook(), None);
        let words = *qemu().as_ref().unwrap().ops;
        prop_assert_eq!(words[places[START]], functions()[START]);
        prop_assert_eq!(words[places[INTERRUPT]], new_interrupt as *const () as usize);
        prop_assert_eq!(words[places[KICK]], new_kick as *const () as usize);
        prop_assert_eq!(words[places[CLOCK]], new_clock as *const () as usize);
        prop_assert_eq!(words[places[TICKS]], new_clock as *const () as usize);
        prop_assert_eq!(words.iter().filter(|&&word| word == 0x1234).count(), OPS - 5);
    }

    #[test]
    fn a_slot_too_few_or_too_many_is_refused(
        places in places(), wrong in 0usize..5, more in any::<bool>(), at in 48usize..OPS
    ) {
        let mut ops: BTreeMap<_, _> = places.iter().copied().zip(functions()).collect();
        if more {
            // Seen only where the plugin looks.
            let free = (0..48).find(|at| !places.contains(at)).unwrap();
            ops.insert(free, functions()[wrong]);
        } else {
            ops.remove(&places[wrong]);
            ops.insert(at, functions()[wrong]);
        }
        let _one = start(ops.clone(), vec![0], false);
        let said = hook().unwrap();
        let part = ["one thread", "count instructions", "not woken", "clocks", "clocks"][wrong];
        prop_assert!(said.contains(part), "{}", said);
        // And nothing was changed.
        let words = *qemu().as_ref().unwrap().ops;
        prop_assert!(ops.iter().all(|(&at, &function)| words[at] == function));
    }

    #[test]
    fn the_flags_are_found_wherever_they_are(at in 1..STATE, others in any::<[u32; 16]>()) {
        let _one = start(BTreeMap::new(), vec![at], false);
        let mut state = Box::new([0; STATE]);
        for (word, other) in state.iter_mut().zip(others.iter().cycle()) {
            *word = *other;
        }
        state[at] = 0x00ff_0000 | USE_ICOUNT;
        let mut expected = state.clone();
        expected[at] = 0x00ff_0000;
        prop_assert_eq!(stop_counting(&mut state), None);
        prop_assert_eq!(state, expected);
    }
}

proptest! {
    #[test]
    fn the_wish_to_come_back_is_found_and_taken_back(
        at in 1usize..300, counter in 76usize..100, others in any::<[u8; 32]>()
    ) {
        let _one = start(BTreeMap::new(), Vec::new(), false);
        let mut state = Box::new([u32::from_ne_bytes(others[..4].try_into().unwrap()); STATE]);
        let mut expected = state.clone();
        let word = expected[at / 4].to_ne_bytes();
        let kept = |i: usize| if i == at % 4 { 0 } else { word[i] };
        expected[at / 4] = u32::from_ne_bytes([kept(0), kept(1), kept(2), kept(3)]);
        let asks = vec![(at, 1), (counter * 4 + 2, 0xff), (counter * 4 + 3, 0xff)];
        prop_assert_eq!(begin_turn(asks, &mut state), None);
        prop_assert_eq!(state, expected);
    }
}

#[test]
fn a_wish_that_is_not_as_expected_is_refused() {
    for asks in [
        vec![],
        vec![(8, 1)],
        vec![(8, 2), (40, 0xff), (41, 0xff)],
        vec![(8, 1), (12, 1), (40, 0xff), (41, 0xff)],
        vec![(8, 1), (40, 0xff), (41, 0xff), (42, 0xff), (43, 0xff)],
        vec![(8, 1), (40, 0xfe), (41, 0xff)],
    ] {
        let _one = start(BTreeMap::new(), Vec::new(), false);
        let said = begin_turn(asks.clone(), &mut Box::new([0; STATE])).unwrap();
        assert!(said.contains("not stopped as"), "{asks:?}: {said}");
    }
}

#[test]
fn flags_that_are_not_as_expected_are_refused() {
    for (flags, value, sticky, part) in [
        // It does not count, or has the flag already.
        (vec![3], 0, false, "not translated as"),
        (vec![3], USE_ICOUNT | PARALLEL, false, "not translated as"),
        // Two places change.
        (vec![3, 9], USE_ICOUNT, false, "not where they are"),
        (vec![3], USE_ICOUNT, true, "cannot be changed"),
    ] {
        let _one = start(BTreeMap::new(), flags.clone(), sticky);
        let mut state = Box::new([0; STATE]);
        for at in flags {
            state[at] = value;
        }
        let said = stop_counting(&mut state).unwrap();
        assert!(said.contains(part), "{part}: {said}");
    }
}
