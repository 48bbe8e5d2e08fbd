// SPDX-License-Identifier: GPL-2.0-only
//! freqlock-jobserver: make's job server, with as many tokens as there are CPUs to count on.
//!
//! `makeflags` is where clients look for it, `command` the command's own wishes, `pool` the
//! tokens, `place` the fifo's name, `clients` who has tokens, `forwarding` what the command gets and
//! how it ended, `messages` what is said, and `token_server` puts them together.

mod clients;
mod command;
mod forwarding;
mod makeflags;
mod messages;
mod place;
mod pool;
mod token_server;

use anyhow::{bail, ensure, Context, Result};
use clap::{CommandFactory, Parser, ValueEnum};
use command::{take_jobs, Jobs, Tool};
use forwarding::Signals;
use makeflags::Auth;
use messages::say;
use place::Place;
use pool::Pool;
use std::ffi::OsString;
use std::io::Write;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;
use token_server::{Policy, Server};

/// Runs a build with as many jobs at a time as there are CPUs to count on, which changes as its
/// neighbours come and go: make, ninja from 1.13 on, cargo, and what else takes tokens of GNU
/// make's job server.
///
/// How many that are, scx_freqlock says in its page of CPUs (scx_freqlock set cpus_ms=100); without
/// it, affinity, quotas of cgroups and what other processes run say so.
#[derive(Debug, Parser)]
#[command(name = "freqlock-jobserver", version, after_help = AFTER_HELP)]
#[command(
    override_usage = "freqlock-jobserver [OPTIONS] -- COMMAND [ARGUMENT]...\n       \
                            freqlock-jobserver [OPTIONS] --fifo PATH"
)]
struct Arguments {
    /// Serves all who find it by MAKEFLAGS, until it is ended, instead of running a command
    #[arg(
        long,
        value_name = "PATH",
        conflicts_with = "command",
        required_unless_present = "command"
    )]
    fifo: Option<PathBuf>,
    /// Who may use that fifo, as of chmod(1)
    #[arg(long, value_name = "MODE", default_value = "600", value_parser = parse_mode, requires = "fifo")]
    mode: u32,
    /// How clients get tokens
    #[arg(long, value_enum, default_value_t = Style::Auto, conflicts_with = "fifo")]
    style: Style,
    /// Jobs for each CPU to count on
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = parse_factor)]
    overcommit: f64,
    /// How often it looks, ms; less often if looking takes more than a hundredth of that
    #[arg(long, value_name = "MS", default_value_t = 100, value_parser = clap::value_parser!(u64).range(10..=60_000))]
    period: u64,
    /// The page of CPUs
    #[arg(long, value_name = "PATH", default_value = freqlock_cpus::DEFAULT_PAGE)]
    page: PathBuf,
    /// Says how many jobs there are, whenever that changes
    #[arg(long, short)]
    verbose: bool,
    /// Prints the manual page
    #[arg(long, hide = true, exclusive = true)]
    manual: bool,
    /// The command and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

const AFTER_HELP: &str = "\
Its exit status is the command's: 128 and the signal's number if one ended it, 127 if there is no
such command, 126 if it cannot be run, 125 if the job server itself failed, 2 for a wrong option.

-j of make and ninja is the most jobs there are; with -j1 there is no job server. Where MAKEFLAGS
has a job server already, the command uses that one.";

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum Style {
    /// A fifo, unless make is older than 4.4
    Auto,
    /// GNU make from 4.4 on, ninja, GCC, cargo
    Fifo,
    /// All versions of GNU make, and cargo
    Pipe,
}

fn parse_mode(text: &str) -> Result<u32, String> {
    u32::from_str_radix(text, 8)
        .ok()
        .filter(|mode| *mode <= 0o777 && mode & 0o600 == 0o600)
        .ok_or_else(|| "600 to 777, and the server itself has to read and write".into())
}

fn parse_factor(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|factor: &f64| (0.1..=100.0).contains(factor))
        .ok_or_else(|| "a number from 0.1 to 100".into())
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(status) => status.into(),
        Err(why) => {
            say(&format!("{why:#}"));
            forwarding::FAILED.into()
        }
    }
}

fn run(arguments: &Arguments) -> Result<u8> {
    if arguments.manual {
        let page = clap_mangen::Man::new(Arguments::command());
        page.render(&mut std::io::stdout()).context("stdout")?;
        return Ok(0);
    }
    let policy = Policy {
        overcommit: arguments.overcommit,
        most: pool::MOST,
        period: Duration::from_millis(arguments.period),
        verbose: arguments.verbose,
    };
    if let Some(fifo) = &arguments.fifo {
        return serve_all(fifo, arguments, policy);
    }
    let (program, rest) = arguments.command.split_first().context("no command")?;
    let tool = Tool::of(program);
    let (jobs, kept) = take_jobs(tool, rest);
    let mut command = Command::new(program);
    if jobs == Jobs::Most(1) {
        // Nothing to share.
        return Ok(replace(command.args(rest)));
    }
    command.args(kept);
    let makeflags = std::env::var_os("MAKEFLAGS").unwrap_or_default();
    let makeflags = makeflags.to_str().context("MAKEFLAGS is no text")?;
    if let Some(outer) = Auth::parse(makeflags) {
        if outer.works() {
            return Ok(replace(&mut command));
        }
        say(&format!(
            "MAKEFLAGS has a job server that is gone ({outer}): a new one is made"
        ));
    }
    let most = match jobs {
        Jobs::Any => policy.most,
        Jobs::Most(most) => most.min(policy.most),
    };
    serve_command(
        command,
        tool,
        makeflags,
        arguments,
        Policy { most, ..policy },
    )
}

/// Becomes the command; the status if that fails.
fn replace(command: &mut Command) -> u8 {
    let why = command.exec();
    let (what, status) = forwarding::not_started(command, &why);
    say(&what);
    status
}

fn serve_command(
    mut command: Command,
    tool: Tool,
    makeflags: &str,
    arguments: &Arguments,
    policy: Policy,
) -> Result<u8> {
    // What clients inherit, until all are started.
    let inherited: Option<(OwnedFd, OwnedFd)>;
    let (auth, pool, place) = match style(arguments.style, tool, &command) {
        Style::Pipe => {
            let (read, write) = std::io::pipe().context("cannot make a pipe")?;
            let ends = (OwnedFd::from(read), OwnedFd::from(write));
            for end in [&ends.0, &ends.1] {
                rustix::io::fcntl_setfd(end, rustix::io::FdFlags::empty())?;
            }
            let auth = Auth::Pipe(ends.0.as_raw_fd(), ends.1.as_raw_fd());
            let path = format!("/proc/self/fd/{}", ends.0.as_raw_fd());
            let pool = Pool::open(Path::new(&path))?;
            inherited = Some(ends);
            (auth, pool, None)
        }
        Style::Fifo | Style::Auto => {
            let place = Place::private()?;
            let pool = Pool::open(place.path())?;
            inherited = None;
            (Auth::Fifo(place.path().into()), pool, Some(place))
        }
    };
    let shown = freqlock_cpus::affinity().min(policy.most);
    command.env("MAKEFLAGS", auth.put_into(makeflags, shown));
    let signals = Signals::block()?;
    let child = match command.spawn() {
        Ok(child) => child,
        Err(why) => {
            let (what, status) = forwarding::not_started(&command, &why);
            say(&what);
            return Ok(status);
        }
    };
    drop(inherited);
    Server::new(pool, place, false, &arguments.page, policy).serve(&signals, Some(child))
}

fn serve_all(fifo: &Path, arguments: &Arguments, policy: Policy) -> Result<u8> {
    let is_root = nix::unistd::geteuid().is_root();
    ensure!(
        arguments.mode & 0o066 == 0 || is_root,
        "only root can see which clients of others still live: --mode 600, or run it as root"
    );
    let fifo = std::path::absolute(fifo).context("no such place")?;
    if fifo.as_os_str().as_encoded_bytes().contains(&b' ') {
        bail!(
            "MAKEFLAGS cannot have a path with a space: {}",
            fifo.display()
        );
    }
    let signals = Signals::block()?;
    let place = Place::public(&fifo, arguments.mode)?;
    let pool = Pool::open(place.path())?;
    let shown = freqlock_cpus::affinity();
    let makeflags = Auth::Fifo(fifo).put_into("", shown);
    drop(writeln!(std::io::stdout(), "MAKEFLAGS={makeflags}"));
    Server::new(pool, Some(place), true, &arguments.page, policy).serve(&signals, None)
}

/// The style that clients know. The oldest make that may come is the command, or the one on PATH.
fn style(wanted: Style, tool: Tool, command: &Command) -> Style {
    if wanted != Style::Auto {
        return wanted;
    }
    let make = match tool {
        Tool::Ninja => return Style::Fifo,
        Tool::Make => command.get_program().to_owned(),
        Tool::Other => OsString::from("make"),
    };
    match Command::new(make).arg("--version").output() {
        Ok(output) if !knows_fifo(&String::from_utf8_lossy(&output.stdout)) => Style::Pipe,
        _ => Style::Fifo,
    }
}

/// True unless this is what a GNU make before 4.4 says of its version.
fn knows_fifo(said: &str) -> bool {
    let version = said.strip_prefix("GNU Make ").unwrap_or_default();
    let mut numbers = version
        .split(|c: char| !c.is_ascii_digit())
        .map_while(|number| number.parse::<u32>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), minor) => (major, minor.unwrap_or(0)) >= (4, 4),
        (None, _) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::knows_fifo;

    #[test]
    fn make_knows_fifos_from_4_4_on() {
        for old in ["GNU Make 4.3\nBuilt for", "GNU Make 3.82", "GNU Make 4\n"] {
            assert!(!knows_fifo(old), "{old}");
        }
        for new in [
            "GNU Make 4.4\n",
            "GNU Make 4.4.1\n",
            "GNU Make 5.0",
            "bmake",
            "",
        ] {
            assert!(knows_fifo(new), "{new}");
        }
    }
}
