// SPDX-License-Identifier: GPL-2.0-only
//! A page of CPUs, jobs that say when they begin and end, and the program.
#![allow(dead_code)]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const HERE: &str = env!("CARGO_MANIFEST_DIR");
/// A process that never was.
const NOBODY: &str = "4194305";
/// Jobs for each CPU of the page: there are more of these than the host has CPUs.
const OVERCOMMIT: usize = 100;

/// Something that should happen soon did not. Less than the 17 s for which a page counts as written.
const TOO_LONG: Duration = Duration::from_secs(12);

/// A folder with a page of CPUs, a makefile and what jobs say.
pub struct Scene {
    pub folder: TempDir,
}

impl Scene {
    pub fn new(jobs: usize) -> Self {
        let scene = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        scene.allow(jobs);
        fs::create_dir(scene.at("now")).unwrap();
        scene
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What the page allows from now on.
    pub fn allow(&self, jobs: usize) {
        let thousandths = 1000 * jobs / OVERCOMMIT;
        let cgroup = freqlock_cpus::Limits::find().cgroup().unwrap_or(1);
        let mut write = Command::new(page_program());
        write.arg(self.at("cpus")).arg(cgroup.to_string());
        write.args([&thousandths.to_string(), NOBODY, "0", "0"]);
        assert!(write.status().unwrap().success());
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.at(name), text).unwrap();
    }

    /// The program with this page, not as yet with a command.
    pub fn jobserver(&self) -> Command {
        let mut program = Command::new(program());
        program
            .arg("--page")
            .arg(self.at("cpus"))
            .args(["--overcommit", &OVERCOMMIT.to_string(), "--period", "10"])
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        for name in ["MAKEFLAGS", "MFLAGS", "CARGO_MAKEFLAGS", "MAKELEVEL"] {
            program.env_remove(name);
        }
        program
    }

    /// Jobs that run now: each has a file.
    pub fn now(&self) -> usize {
        fs::read_dir(self.at("now")).unwrap().count()
    }

    /// The most jobs that ran at a time until `done` is true.
    pub fn most_until(&self, mut done: impl FnMut(usize) -> bool) -> usize {
        let (start, mut most) = (Instant::now(), 0);
        loop {
            let now = self.now();
            most = most.max(now);
            if done(now) {
                return most;
            }
            assert!(start.elapsed() < TOO_LONG, "at most {most} jobs, {now} now");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// The program. Shells, as the wrapper of rustc is one, keep cargo's variable for it from the test:
/// its name has a hyphen.
pub fn program() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.ancestors().nth(2).unwrap().join("freqlock-jobserver")
}

/// A build that ends with the test, also where that fails.
pub struct Build(pub Child);

impl Build {
    pub fn start(command: &mut Command) -> Self {
        Self(command.stderr(Stdio::piped()).spawn().unwrap())
    }
}

impl Drop for Build {
    fn drop(&mut self) {
        if let Ok(None) = self.0.try_wait() {
            // Passed on to make, which ends its jobs.
            let pid = nix::unistd::Pid::from_raw(self.0.id() as i32);
            let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
        }
    }
}

/// Waits until it is true, for 12 s at most.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < TOO_LONG, "not after 12 s: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A makefile of `count` jobs, each of which has a file in now/ while it runs, for as long as
/// `wait` of the shell takes.
pub fn makefile(count: usize, wait: &str) -> String {
    let names: Vec<_> = (0..count).map(|job| format!("job{job}")).collect();
    let all = names.join(" ");
    format!("all: {all}\n{all}:\n\t@touch now/$@; {wait}; rm now/$@\n")
}

/// A shell's wait until there is a file of this name, or the folder is gone with the test.
pub fn wait_for(name: &str) -> String {
    format!("while test -d now && ! test -e {name}; do sleep 0.01; done")
}

/// The first line of what the program says that contains `what`.
pub fn said(child: &mut Child, what: &str) -> String {
    let lines = BufReader::new(child.stderr.as_mut().unwrap()).lines();
    lines
        .map(Result::unwrap)
        .find(|line| line.contains(what))
        .unwrap_or_else(|| panic!("it never said {what}"))
}

/// lib/cpus/tests/page.c, which writes pages as the C header has them.
fn page_program() -> &'static Path {
    static PROGRAM: OnceLock<(TempDir, PathBuf)> = OnceLock::new();
    let (_, program) = PROGRAM.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("page");
        let mut cc = Command::new("cc");
        cc.args(["-std=gnu11", "-o"]).arg(&program);
        cc.arg(format!("{HERE}/../cpus/tests/page.c"))
            .arg(format!("-I{HERE}/.."));
        assert!(cc.status().unwrap().success());
        (folder, program)
    });
    program
}

/// A make that knows fifos, if there is one; FREQLOCK_MAKE may name it.
pub fn make_with_fifos() -> Option<String> {
    let make = std::env::var("FREQLOCK_MAKE").unwrap_or("make".into());
    let said = Command::new(&make)
        .arg("--version")
        .output()
        .unwrap()
        .stdout;
    let said = String::from_utf8_lossy(&said).into_owned();
    let version = said.strip_prefix("GNU Make ")?.lines().next()?.to_owned();
    let mut numbers = version
        .split('.')
        .map(|number| number.parse::<u32>().unwrap_or(0));
    let version = (numbers.next()?, numbers.next()?);
    (version >= (4, 4)).then_some(make)
}
