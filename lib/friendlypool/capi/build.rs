// SPDX-License-Identifier: MIT
//! How the shared library is linked.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    // Programs keep working with it while FRIENDLYPOOL_VERSION is what it was.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libfriendlypool.so.1");
    // Its threads run its code.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
