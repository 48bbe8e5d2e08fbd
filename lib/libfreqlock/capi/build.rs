// SPDX-License-Identifier: MIT
//! How the shared library is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Programs keep working with it while FREQLOCK_VERSION is what it was.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libfreqlock.so.1");
    // Hints, and handlers for forks, are used until the process ends.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
