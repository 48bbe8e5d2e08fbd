// SPDX-License-Identifier: GPL-2.0-only
//! GNU make with the tokens of freqlock-jobserver, by pipe and by fifo.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod common;

use common::{make_with_fifos, makefile, program, said, wait_for, Build, Scene};
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use std::fs;
use std::io::Read;

/// Each style, with a make that knows it.
fn styles() -> Vec<(&'static str, String)> {
    let mut styles = vec![("pipe", "make".into())];
    match make_with_fifos() {
        Some(make) => styles.push(("fifo", make)),
        None => {
            println!("make is older than 4.4 (FREQLOCK_MAKE may name another): fifo is not tried")
        }
    }
    styles
}

#[test]
fn as_many_jobs_as_the_page_allows_also_when_it_changes() {
    for (style, make) in styles() {
        let scene = Scene::new(3);
        let wait = format!("{}; echo >>begun; sleep 0.05", wait_for("go"));
        scene.write("Makefile", &makefile(80, &wait));
        let mut program = scene.jobserver();
        program.args(["--verbose", "--style", style, "--", &make, "-j"]);
        let mut build = Build::start(&mut program);
        assert_eq!(scene.most_until(|now| now == 3), 3, "{style}");
        // More at once, without any job that ends.
        scene.allow(6);
        assert_eq!(scene.most_until(|now| now == 6), 6, "{style}");
        // Fewer as jobs end.
        scene.allow(2);
        said(&mut build.0, "jobs: 2, by the page");
        assert_eq!(scene.now(), 6);
        scene.write("go", "");
        let mut few = 0;
        scene.most_until(|now| {
            few = if (1..=2).contains(&now) { few + 1 } else { 0 };
            few == 50
        });
        let begun = fs::read_to_string(scene.at("begun")).unwrap().len();
        assert!(
            begun < 60,
            "{style}: make kept what was to go for {begun} jobs"
        );
        let most = scene.most_until(|_| build.0.try_wait().unwrap().is_some());
        assert!(most <= 2, "{style}: {most} jobs");
        assert!(build.0.wait().unwrap().success());
    }
}

#[test]
fn tokens_of_a_make_that_is_killed_come_back() {
    for (style, make) in styles() {
        let scene = Scene::new(4);
        let first = format!("first:\n\t-+@echo $$$$ >first.pid; exec {make} -f first.mk\n");
        let then = format!("then: first\n\t+@{make} -f then.mk\n");
        scene.write("Makefile", &format!("all: first then\n{first}{then}"));
        scene.write("first.mk", &makefile(10, "exec sleep 1000"));
        scene.write("then.mk", &makefile(8, &wait_for("go")));
        let mut program = scene.jobserver();
        program.args(["--style", style, "--", &make, "-j"]);
        let mut build = Build::start(&mut program);
        scene.most_until(|now| now == 4);
        let first = fs::read_to_string(scene.at("first.pid")).unwrap();
        let first: u32 = first.trim().parse().unwrap();
        let all = freqlock_cpus::Processes::look();
        let jobs = all.0.iter().filter(|(_, job)| job.parent == first);
        // Before its jobs, so that it gives no token back.
        for pid in std::iter::once(&first).chain(jobs.map(|(pid, _)| pid)) {
            kill(Pid::from_raw(*pid as i32), Signal::SIGKILL).unwrap();
        }
        for job in fs::read_dir(scene.at("now")).unwrap() {
            fs::remove_file(job.unwrap().path()).unwrap();
        }
        said(&mut build.0, "3 tokens were lost");
        assert_eq!(scene.most_until(|now| now == 4), 4, "{style}");
        scene.write("go", "");
        assert!(build.0.wait().unwrap().success(), "{style}");
    }
}

#[test]
fn the_commands_own_number_is_the_most() {
    let scene = Scene::new(9);
    let jobs = makefile(20, &format!("{}; sleep 0.02", wait_for("go")));
    scene.write("Makefile", &jobs);
    let mut build = Build::start(scene.jobserver().args(["--", "make", "-sj2"]));
    assert_eq!(scene.most_until(|now| now == 2), 2);
    scene.write("go", "");
    let most = scene.most_until(|_| build.0.try_wait().unwrap().is_some());
    assert_eq!(most, 2);
}

#[test]
fn one_job_needs_no_job_server() {
    let scene = Scene::new(9);
    scene.write("Makefile", "all:\n\t@echo \"flags $(MAKEFLAGS)\"\n");
    let mut build = scene.jobserver();
    let output = build.args(["--", "make", "-j1"]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        !said.contains("jobserver") && said.contains("flags"),
        "{said}"
    );
    assert!(output.stderr.is_empty());
}

#[test]
fn within_a_build_its_own_job_server_is_used() {
    let scene = Scene::new(9);
    let inner = program();
    let inner = inner.display();
    scene.write(
        "Makefile",
        &format!("all:\n\t+@{inner} -- make -j -f sub.mk\n"),
    );
    let jobs = makefile(20, &format!("{}; sleep 0.02", wait_for("go")));
    scene.write("sub.mk", &jobs);
    let mut build = Build::start(scene.jobserver().args(["--", "make", "-j3"]));
    assert_eq!(scene.most_until(|now| now == 3), 3);
    scene.write("go", "");
    let most = scene.most_until(|_| build.0.try_wait().unwrap().is_some());
    assert_eq!(most, 3);
    let mut said = String::new();
    build
        .0
        .stderr
        .as_mut()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert_eq!(said, "");
}
