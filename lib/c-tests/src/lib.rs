// SPDX-License-Identifier: MIT
//! Compiles and runs C programs with the libraries here, for tests: whatever fails ends the test.

use std::collections::HashSet;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

/// As every program of a test is compiled.
const FLAGS: [&str; 7] = [
    "-std=gnu11",
    "-O2",
    "-pthread",
    "-Wall",
    "-Wextra",
    "-Werror",
    // What a test asserts is looked at.
    "-UNDEBUG",
];

/// What a program printed that did not fail.
#[derive(Debug)]
pub struct Printed {
    /// On standard output.
    pub out: String,
    /// On standard error.
    pub err: String,
}

fn value<T, E: Display>(result: Result<T, E>, what: &dyn Display) -> T {
    result.unwrap_or_else(|error| panic!("{what}: {error}"))
}

/// Panics with what was printed if `what` has failed.
pub fn succeeded(what: &dyn Display, output: &Output) -> Printed {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let printed = Printed {
        out: text(&output.stdout),
        err: text(&output.stderr),
    };
    let status = output.status;
    assert!(
        status.success(),
        "{what}: {status}\n{}{}",
        printed.out,
        printed.err
    );
    printed
}

/// Runs a program to its end, which is to be a success.
pub fn run(command: &mut Command) -> Printed {
    let name = format!("{command:?}");
    let output = value(command.output(), &name);
    succeeded(&name, &output)
}

/// The folder with cargo's programs and libraries, where the test's own program is one floor below.
pub fn target() -> PathBuf {
    let test = value(std::env::current_exe(), &"the test's program");
    match test.ancestors().nth(2) {
        Some(folder) => folder.to_owned(),
        None => panic!("{}: not where cargo puts tests", test.display()),
    }
}

/// Builds the libraries of a package, once for each test program; where they are. Cargo builds none for tests
/// that cannot link them as Rust.
pub fn libraries(package: &str) -> PathBuf {
    static BUILT: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    let target = target();
    if built.get_or_insert_default().insert(package.to_owned()) {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--release", "--locked", "--offline", "--lib"]);
        cargo.args(["--package", package, "--target-dir"]);
        cargo.arg(target.join(".."));
        run(cargo.current_dir(env!("CARGO_MANIFEST_DIR")));
    }
    target
}

/// Compiles a program of one file; `more` comes last: folders of headers, and libraries.
pub fn compile<'a>(source: &Path, program: &Path, more: impl IntoIterator<Item = &'a str>) {
    let mut cc = Command::new("cc");
    cc.args(FLAGS).arg("-o").args([program, source]).args(more);
    run(&mut cc);
}

/// Puts a shared library into a folder by its soname, as once it is installed, for LD_LIBRARY_PATH.
pub fn install(library: &Path, soname: &str, folder: &Path) {
    let made = std::os::unix::fs::symlink(library, folder.join(soname));
    value(made, &library.display());
}
