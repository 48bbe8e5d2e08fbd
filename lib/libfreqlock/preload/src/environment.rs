// SPDX-License-Identifier: MIT
//! Variables of the environment, also before libc has them: a program's first functions run before those
//! that initialise libc. Nothing is allocated.

use std::ffi::CStr;
use std::fs::File;
use std::io::Read;

/// More than any value that is understood, the path of a temporary file among them.
const LONGEST: usize = 256;

/// A value, cut after LONGEST bytes.
pub struct Value {
    start: [u8; LONGEST],
    len: usize,
}

impl Value {
    const EMPTY: Value = Value {
        start: [0; LONGEST],
        len: 0,
    };

    pub fn bytes(&self) -> &[u8] {
        &self.start[..self.len]
    }

    /// As a string of C's; none if it was cut.
    pub fn c_str(&self) -> Option<&CStr> {
        CStr::from_bytes_until_nul(&self.start).ok()
    }

    fn push(&mut self, byte: u8) {
        if self.len < LONGEST {
            self.start[self.len] = byte;
            self.len += 1;
        }
    }
}

extern "C" {
    static environ: *const *const libc::c_char;
}

/// None: it is not set.
pub fn get(name: &str) -> Option<Value> {
    // SAFETY: libc's, written before there are threads, and later by programs that know it to be unsafe.
    let mut at = unsafe { environ };
    if at.is_null() {
        return find(name, proc_bytes());
    }
    loop {
        // SAFETY: a list that ends with NULL.
        let variable = unsafe { *at };
        if variable.is_null() {
            return None;
        }
        // SAFETY: a string of that list.
        let bytes = unsafe { CStr::from_ptr(variable) }.to_bytes_with_nul();
        if let Some(value) = find(name, bytes.iter().copied()) {
            return Some(value);
        }
        // SAFETY: not the end of the list yet.
        at = unsafe { at.add(1) };
    }
}

/// In `NAME=VALUE` strings, each with a zero at its end.
fn find(name: &str, bytes: impl Iterator<Item = u8>) -> Option<Value> {
    let name = name.as_bytes();
    let mut value: Option<Value> = None;
    // Of the name, in the present string; none after another byte.
    let mut matched = Some(0);
    for byte in bytes {
        match (&mut value, byte) {
            (Some(_), 0) => break,
            (Some(value), _) => value.push(byte),
            (None, 0) => matched = Some(0),
            (None, _) => {
                if byte == b'=' && matched == Some(name.len()) {
                    value = Some(Value::EMPTY);
                }
                matched = matched
                    .filter(|&at| name.get(at) == Some(&byte))
                    .map(|at| at + 1);
            }
        }
    }
    value
}

/// What the kernel has of the environment with which the process began; nothing without /proc.
fn proc_bytes() -> impl Iterator<Item = u8> {
    let mut file = File::open("/proc/self/environ").ok();
    let mut chunk = [0; 256];
    let (mut at, mut len) = (0, 0);
    std::iter::from_fn(move || {
        if at == len {
            (at, len) = (0, file.as_mut()?.read(&mut chunk).ok()?);
        }
        at += 1;
        chunk[..len].get(at - 1).copied()
    })
}
