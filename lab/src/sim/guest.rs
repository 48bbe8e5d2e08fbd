// SPDX-License-Identifier: GPL-2.0-only
//! What passes between the runner and the guest's machine/guest/init: the
//! script that says what to run, and the report that comes back.

/// The guest's folder for the project's files, in which commands are run.
pub const FOLDER: &str = "/freqlock";

/// Where the guest looks for programs, as its init has it.
pub const PATH: [&str; 3] = ["/usr/bin", "/usr/sbin", "/usr/lib/busybox"];

/// The path in the image of the script that init reads.
pub const SCRIPT: &str = "run.sh";

/// A scheduler that the guest loads before the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheduler {
    /// As it was named.
    pub label: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// What its name in /sys/kernel/sched_ext/root/ops begins with.
    pub ops: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub status: u8,
    /// What /sys/kernel/sched_ext said: state, name, count; the same before and
    /// after the command.
    pub loaded: String,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the report is not complete")]
    Incomplete,
    #[error("{}", .0.reason)]
    Failed(Box<Failed>),
}

/// Why the guest gave up, and what the command had said until then.
#[derive(Debug, PartialEq, Eq)]
pub struct Failed {
    pub reason: String,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

pub fn script(
    command: &[String],
    scheduler: Option<&Scheduler>,
    shift_us: u64,
    limit_s: u64,
) -> String {
    let program = scheduler.map_or(String::new(), |s| shell_words::join(&s.command));
    let ops = scheduler.map_or("", |s| s.ops.as_str());
    format!(
        "shift_us={shift_us}\nlimit_s={limit_s}\nprogram={}\nops={}\nset -- {}\n",
        shell_words::quote(&program),
        shell_words::quote(ops),
        shell_words::join(command)
    )
}

pub fn parse(report: &[u8]) -> Result<Report, Error> {
    let end = report
        .windows(2)
        .position(|two| two == b"\n\n")
        .ok_or(Error::Incomplete)?;
    let head = String::from_utf8_lossy(&report[..end]);
    let value = |key: &str| {
        head.lines().find_map(|line| {
            let (name, value) = line.split_once(' ')?;
            (name == key).then_some(value)
        })
    };
    let length = |key| value(key)?.parse::<usize>().ok();
    let (Some(stdout), Some(stderr)) = (length("stdout"), length("stderr")) else {
        return Err(Error::Incomplete);
    };
    let outputs = &report[end + 2..];
    let both = stdout.saturating_add(stderr);
    if outputs.get(both..) != Some(b"end\n") {
        return Err(Error::Incomplete);
    }
    let stderr = outputs[stdout..both].to_vec();
    let stdout = outputs[..stdout].to_vec();
    if let Some(reason) = value("failed") {
        return Err(Error::Failed(Box::new(Failed {
            reason: reason.into(),
            stdout,
            stderr,
        })));
    }
    let (Some(loaded), Some(Ok(status))) = (value("loaded"), value("status").map(str::parse))
    else {
        return Err(Error::Incomplete);
    };
    Ok(Report {
        status,
        loaded: loaded.into(),
        stdout,
        stderr,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &[u8] =
        b"loaded enabled freqlock_1.0 1\nstatus 3\nstdout 4\nstderr 4\n\no\n\nterroend\n";

    #[test]
    fn a_report_has_both_outputs_byte_by_byte() {
        let report = parse(WHOLE).unwrap();
        assert_eq!(
            report,
            Report {
                status: 3,
                loaded: "enabled freqlock_1.0 1".into(),
                stdout: b"o\n\nt".to_vec(),
                stderr: b"erro".to_vec(),
            }
        );
    }

    #[test]
    fn half_a_report_is_none() {
        for length in 0..WHOLE.len() {
            assert_eq!(parse(&WHOLE[..length]), Err(Error::Incomplete), "{length}");
        }
        assert_eq!(parse(b"status 0\n\nend\n"), Err(Error::Incomplete));
        assert_eq!(
            parse(b"status 0\nstdout 18446744073709551615\nstderr 1\n\nend\n"),
            Err(Error::Incomplete)
        );
    }

    #[test]
    fn a_guest_says_why_it_gave_up_and_what_there_was() {
        let text = b"failed the scheduler ended: it said so\nstdout 3\nstderr 1\n\noutxend\n";
        assert_eq!(
            parse(text),
            Err(Error::Failed(Box::new(Failed {
                reason: "the scheduler ended: it said so".into(),
                stdout: b"out".to_vec(),
                stderr: b"x".to_vec(),
            })))
        );
    }

    /// What a shell makes of the script.
    fn sourced(script: &str, print: &str) -> String {
        let output = std::process::Command::new("sh")
            .args(["-c", &format!("{script}{print}")])
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn words_reach_the_guest_as_they_are() {
        let words = ["sh", "-c", "echo \"$1\" 'x'; exit 3", "", "a  b\n$HOME"];
        let command: Vec<String> = words.iter().map(|word| word.to_string()).collect();
        let script = script(&command, None, 250, 60);
        let printed = sourced(
            &script,
            "printf '%s|' \"$shift_us\" \"$limit_s\" \"$program\" \"$@\"",
        );
        assert_eq!(printed, format!("250|60||{}|", words.join("|")));
    }

    #[test]
    fn the_scheduler_is_a_command_line_of_its_own() {
        let scheduler = Scheduler {
            label: "auto".into(),
            command: ["scx_freqlock", "--mode=auto", "a b"]
                .map(String::from)
                .into(),
            ops: "freqlock".into(),
        };
        let script = script(&["true".into()], Some(&scheduler), 0, 60);
        let printed = sourced(
            &script,
            "eval \"set -- $program\"; printf '%s|' \"$ops\" \"$@\"",
        );
        assert_eq!(printed, "freqlock|scx_freqlock|--mode=auto|a b|");
    }
}
