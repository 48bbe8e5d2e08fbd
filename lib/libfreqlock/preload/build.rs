// SPDX-License-Identifier: MIT
//! Compiles the one function that a thread can be cancelled in, and says how the library is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/cond.c");
    cc::Build::new()
        .file("src/cond.c")
        .opt_level(2)
        .compile("freqlock_cond");
    // Programs call it until the process ends.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
