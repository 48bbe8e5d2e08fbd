// SPDX-License-Identifier: GPL-2.0-only
//! What the program does with its command, with a fifo for all, and on bad days.
#![allow(clippy::unwrap_used)]

mod common;

use common::{said, until, Build, Scene};
use nix::sys::signal::{kill, Signal};
use nix::unistd::Pid;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A client: takes `count` tokens, says so by a file, and keeps them until it is ended.
fn client(scene: &Scene, count: usize) -> Child {
    let take = format!("exec 9<>fifo; head -c {count} <&9 >got-it; exec sleep 1000");
    let child = Command::new("bash")
        .args(["-c", &take])
        .current_dir(scene.folder.path())
        .spawn()
        .unwrap();
    let has_all = || {
        scene
            .at("got-it")
            .metadata()
            .is_ok_and(|got| got.len() == count as u64)
    };
    until("the client has its tokens", has_all);
    fs::remove_file(scene.at("got-it")).unwrap();
    child
}

/// A server for all, once it serves.
fn serve(scene: &Scene) -> Build {
    let mut program = scene.jobserver();
    program.args(["--fifo", "fifo"]).stdout(Stdio::piped());
    let mut server = Build::start(&mut program);
    let mut line = String::new();
    let stdout = server.0.stdout.as_mut().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    assert!(line.starts_with("MAKEFLAGS= -j"), "{line}");
    assert!(
        line.trim()
            .ends_with(&format!("fifo:{}", scene.at("fifo").display())),
        "{line}"
    );
    server
}

/// Tokens that are in the fifo.
fn tokens(fifo: &File) -> u64 {
    rustix::io::ioctl_fionread(fifo).unwrap()
}

fn open(path: &Path) -> File {
    File::options().read(true).write(true).open(path).unwrap()
}

#[test]
fn the_status_is_the_commands() {
    let scene = Scene::new(2);
    let status = |words: &[&str]| {
        let output = scene.jobserver().arg("--").args(words).output().unwrap();
        (
            output.status.code().unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    assert_eq!(status(&["true"]), (0, String::new()));
    assert_eq!(status(&["sh", "-c", "exit 3"]), (3, String::new()));
    assert_eq!(status(&["sh", "-c", "kill -9 $$"]), (137, String::new()));
    let (code, said) = status(&["no-such-command"]);
    assert_eq!(
        (code, said.contains("no-such-command: command not found")),
        (127, true)
    );
    assert_eq!(status(&["/"]).0, 126);
    let wrong = scene.jobserver().output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
}

#[test]
fn signals_reach_the_command() {
    let scene = Scene::new(2);
    let wait =
        "trap 'echo hit >caught; exit 7' TERM; echo >ready; while test -d now; do sleep 0.01; done";
    let mut build = Build::start(scene.jobserver().args(["--", "sh", "-c", wait]));
    until("the command is there", || scene.at("ready").exists());
    kill(Pid::from_raw(build.0.id() as i32), Signal::SIGTERM).unwrap();
    assert_eq!(build.0.wait().unwrap().code(), Some(7));
    assert!(scene.at("caught").exists());
}

#[test]
fn a_job_server_that_is_gone_is_replaced() {
    let scene = Scene::new(2);
    let mut program = scene.jobserver();
    program.env(
        "MAKEFLAGS",
        "k -j4 --jobserver-auth=fifo:/nowhere/fifo -- A=b",
    );
    let output = program
        .args(["--", "sh", "-c", "echo \"$MAKEFLAGS\""])
        .output()
        .unwrap();
    let flags = String::from_utf8(output.stdout).unwrap();
    assert!(
        flags.starts_with("k -j") && flags.ends_with(" -- A=b\n"),
        "{flags}"
    );
    assert!(!flags.contains("nowhere"), "{flags}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("is gone (fifo:/nowhere/fifo)"), "{said}");
}

#[test]
fn a_page_that_is_none_is_mentioned_once() {
    let scene = Scene::new(2);
    let page = File::options().write(true).open(scene.at("cpus")).unwrap();
    page.write_all_at(&7u32.to_ne_bytes(), 4).unwrap();
    let mut program = scene.jobserver();
    let output = program.args(["--", "sleep", "0.3"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.matches("counting by /proc").count(), 1, "{said}");
    assert!(output.status.success());
}

#[test]
fn tokens_of_clients_that_are_killed_come_back_to_all() {
    let scene = Scene::new(5);
    let mut server = serve(&scene);
    let fifo = open(&scene.at("fifo"));
    // One job needs no token: that of the only client.
    until("all tokens are there", || tokens(&fifo) == 4);
    let mut keeps = client(&scene, 1);
    let mut dies = client(&scene, 2);
    dies.kill().unwrap();
    dies.wait().unwrap();
    // While others live.
    let mut rest = client(&scene, 1);
    said(&mut server.0, "were lost");
    keeps.kill().unwrap();
    rest.kill().unwrap();
    keeps.wait().unwrap();
    rest.wait().unwrap();
    // Who has the fifo open and waits for a CPU could have a token for that.
    drop(fifo);
    until("all tokens are there", || {
        tokens(&open(&scene.at("fifo"))) == 4
    });
    kill(Pid::from_raw(server.0.id() as i32), Signal::SIGTERM).unwrap();
    assert!(server.0.wait().unwrap().success());
    assert!(!scene.at("fifo").exists());
}

#[test]
fn tokens_that_nobody_took_do_not_count() {
    let scene = Scene::new(4);
    let _server = serve(&scene);
    let mut fifo = open(&scene.at("fifo"));
    until("all tokens are there", || tokens(&fifo) == 3);
    fifo.write_all(b"+++++").unwrap();
    until("the new ones are gone", || tokens(&fifo) == 3);
    fifo.read_exact(&mut [0; 2]).unwrap();
    fifo.write_all(b"++").unwrap();
    until("all tokens are there", || tokens(&fifo) == 3);
}

#[test]
fn a_fifo_that_is_removed_is_put_back() {
    let scene = Scene::new(4);
    let mut server = serve(&scene);
    let fifo = open(&scene.at("fifo"));
    until("all tokens are there", || tokens(&fifo) == 3);
    fs::remove_file(scene.at("fifo")).unwrap();
    said(&mut server.0, "was removed, and is there again");
    assert_eq!(tokens(&open(&scene.at("fifo"))), 3, "it is the same one");
    let second = scene.jobserver().args(["--fifo", "fifo"]).output().unwrap();
    assert_eq!(second.status.code(), Some(125));
    let said = String::from_utf8(second.stderr).unwrap();
    assert!(said.contains("another job server serves"), "{said}");
}
