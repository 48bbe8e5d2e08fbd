// SPDX-License-Identifier: GPL-2.0-only
//! What libbpf says: kept quiet, unless asked for, and searched for the cause
//! when a load fails; and what the kernel's verifier says of programs that it took.

use freqlock::{ending, output};
use libbpf_rs::libbpf_sys::bpf_object_open_opts;
use libbpf_rs::PrintLevel;
use log::debug;
use std::sync::{Mutex, MutexGuard, PoisonError};

static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// The kernel's BPF_LOG_STATS.
const LOG_STATS: u32 = 4;

#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct VerifierOpts {
    /// Print what the verifier followed of each program: instructions, states, and how many
    /// states at once. A program that it refuses then comes without its log
    #[arg(long, hide = true)]
    verifier_stats: bool,
}

impl VerifierOpts {
    /// Options to open an object with: `others`, if there are any, and what is to be logged.
    pub fn open_opts(self, others: Option<bpf_object_open_opts>) -> bpf_object_open_opts {
        let mut opts = others.unwrap_or_else(|| bpf_object_open_opts {
            sz: size_of::<bpf_object_open_opts>() as _,
            ..Default::default()
        });
        if self.verifier_stats {
            opts.kernel_log_level = LOG_STATS;
        }
        opts
    }
}

/// Takes what libbpf prints from now on, all of it if `verbose`, and prints what is asked
/// for of the verifier.
pub fn install(verbose: bool, verifier: VerifierOpts) {
    warnings().clear();
    let level = if verbose || verifier.verifier_stats {
        PrintLevel::Debug
    } else {
        PrintLevel::Warn
    };
    libbpf_rs::set_print(Some((level, |level, message| {
        debug!("{}", message.trim_end());
        if level == PrintLevel::Warn {
            warnings().push(message);
        } else if let Some(line) = verified(&message) {
            output::say(line);
        }
    })));
}

/// What the warnings since [`install`] say about a load that failed.
pub fn failure() -> Option<String> {
    ending::load_failure(&warnings())
}

/// What was said is not of what comes.
pub fn forget() {
    warnings().clear();
}

/// All warnings since then.
pub fn printed() -> String {
    warnings().concat()
}

fn warnings() -> MutexGuard<'static, Vec<String>> {
    WARNINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From libbpf's message with the log of a program that was loaded: without asking for
/// [`VerifierOpts`] there is none.
fn verified(message: &str) -> Option<String> {
    let (name, log) = message
        .strip_prefix("libbpf: prog '")?
        .split_once("': -- BEGIN PROG LOAD LOG --")?;
    let line = log.lines().find(|line| line.starts_with("processed "))?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let after = |word| {
        let at = words.iter().position(|w| *w == word)?;
        words.get(at + 1)
    };
    Some(format!(
        "verified {name} insns={} states={} peak={}",
        after("processed")?,
        after("total_states")?,
        after("peak_states")?
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_verifier_followed_is_read() {
        let message =
            "libbpf: prog 'x_tick': -- BEGIN PROG LOAD LOG --\nverification time 814 usec\n\
            stack depth 88+0\nprocessed 1207 insns (limit 1000000) max_states_per_insn 2 \
            total_states 93 peak_states 71 mark_read 12\n-- END PROG LOAD LOG --\n";
        let line = verified(message).unwrap();
        assert_eq!(line, "verified x_tick insns=1207 states=93 peak=71");
        assert_eq!(
            verified("libbpf: prog 'x_tick': relocation of 3 insns"),
            None
        );
        assert_eq!(verified("libbpf: loading freqlock"), None);
    }
}
