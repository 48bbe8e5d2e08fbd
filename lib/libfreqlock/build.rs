// SPDX-License-Identifier: MIT
//! Compiles the one file that Rust has no words for.

fn main() {
    println!("cargo:rerun-if-changed=src/thread.c");
    cc::Build::new()
        .file("src/thread.c")
        .opt_level(2)
        .compile("freqlock_thread");
}
