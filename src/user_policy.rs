// SPDX-License-Identifier: GPL-2.0-only
//! Policies by users: which decisions they may make (bpf/hook_names.h), what is said of those that
//! are loaded, and why the kernel refuses one, in words.

use crate::foreign::Escaped;
use crate::intf;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

include!(concat!(env!("OUT_DIR"), "/hooks.rs"));

/// The header that policies are compiled with.
pub const HEADER: &str = include_str!("../bpf/freqlock_policy.bpf.h");
/// Its name.
pub const HEADER_NAME: &str = "freqlock_policy.bpf.h";
/// Larger objects are not read.
pub const MAX_BYTES: u64 = 1 << 20;
/// Characters of a name.
const MAX_NAME: usize = 64;

impl Hook {
    /// All of them.
    pub fn all() -> &'static [Self] {
        <Self as clap::ValueEnum>::value_variants()
    }

    /// The one that a function of this name is for.
    pub fn find(name: &str) -> Option<Self> {
        Self::all().iter().copied().find(|hook| hook.name() == name)
    }

    /// The scheduler's own function, which one of a policy replaces.
    pub fn target(self) -> String {
        format!("fl_hook_{}", self.name())
    }

    /// Without --locks nobody is asked.
    pub fn needs_locks(self) -> bool {
        self.flags() & intf::fl_hook_flags_HOOK_LOCKS != 0
    }

    /// Asked by programs that trace the kernel too, not by the scheduler's operations alone.
    pub fn is_traced(self) -> bool {
        self.flags() & intf::fl_hook_flags_HOOK_TRACES != 0
    }
}

/// What is asked about one policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// What it is called from then on.
    pub name: String,
    /// The object, which the agent reads.
    pub object: PathBuf,
    /// The tasks of this context only.
    pub context: Option<String>,
    /// The kernel only verifies it.
    pub check: bool,
}

/// A policy as it is loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loaded {
    /// As it was called.
    pub name: String,
    /// Whose tasks it is asked about; all, if there is none.
    pub context: Option<String>,
    /// What it decides.
    pub hooks: Vec<String>,
    /// The scheduler's programs that ask it.
    pub programs: usize,
    /// What it took to attach it, and to detach the one before; none if it was only verified.
    pub swap_us: Option<u64>,
    /// Calls that were timed, one in 16, ...
    pub timed: u64,
    /// ... and what they took on average.
    pub mean_ns: u64,
}

impl fmt::Display for Loaded {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.hooks.join(", "))?;
        match &self.context {
            Some(context) => write!(f, "; tasks of context `{}`", Escaped(context))?,
            None => f.write_str("; all tasks")?,
        }
        match self.swap_us {
            Some(us) => write!(f, "; {} programs, swapped in {us} us", self.programs)?,
            None => write!(f, "; verified for {} programs", self.programs)?,
        }
        if self.timed > 0 {
            write!(f, "; {} ns a call", self.mean_ns)?;
        }
        Ok(())
    }
}

/// Why a policy is refused, beyond what the kernel says.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A function that is none of a policy.
    #[error("`{0}` is no function of a policy: {HEADER_NAME} describes them")]
    NoHook(String),
    /// Compiled with another header.
    #[error(
        "it was compiled for version {0} of {HEADER_NAME}, and the scheduler has {version}: \
         compile it again with the header of this scheduler", version = abi()
    )]
    OtherAbi(String),
    /// There is no function in it.
    #[error("it has no function of a policy: {HEADER_NAME} describes them")]
    Empty,
    /// The kernel's own functions.
    #[error("`{0}` calls a function of the kernel: a policy may call only its own")]
    Calls(String),
    /// Two that decide one thing.
    #[error("the policy `{by}` decides {hook} already: unload that first")]
    Taken {
        /// Of this name.
        hook: &'static str,
        /// That policy.
        by: String,
    },
    /// It would never be asked.
    #[error("{0} is never asked, since the scheduler runs with --locks 0")]
    NoLocks(&'static str),
    /// Of such a name.
    #[error("there is no policy `{0}`: `scx_freqlock policy list` has those that are loaded")]
    NoPolicy(String),
    /// Of such a name.
    #[error("there is no context `{0}`: `scx_freqlock contexts` has those of the file")]
    NoContext(String),
    /// Of the agent.
    #[error(
        "the kernel does not let the agent attach programs to its own: that needs CAP_SYS_ADMIN, \
         which the packaged unit leaves out (CapabilityBoundingSet=CAP_SYS_ADMIN in a drop-in)"
    )]
    NoCapability,
    /// For files and lists.
    #[error("a policy's name has 1 to {MAX_NAME} letters, digits, `-`, `_` and `.`")]
    Name,
}

/// Of the header that this program was built with.
pub fn abi() -> &'static str {
    let line = HEADER
        .lines()
        .find_map(|line| line.strip_prefix("#define FREQLOCK_POLICY_ABI "));
    line.unwrap_or_default().trim()
}

/// What a function in this section of an object decides; none for what belongs to no section
/// of a program.
pub fn hook_of(section: &str) -> Result<Hook, Error> {
    let no_hook = || Error::NoHook(section.into());
    let mut parts = section
        .strip_prefix("fentry/")
        .ok_or_else(no_hook)?
        .splitn(2, '/');
    let (version, name) = (
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default(),
    );
    if version != abi() {
        return Err(Error::OtherAbi(version.into()));
    }
    Hook::find(name).ok_or_else(|| Error::NoHook(name.into()))
}

/// What a policy in this file is called unless it is given a name.
pub fn name_of(file: &Path) -> Option<&str> {
    let name = file.file_name()?.to_str()?;
    let short = [".bpf.c", ".bpf.o", ".c", ".o"]
        .iter()
        .find_map(|end| name.strip_suffix(end));
    Some(short.unwrap_or(name))
}

/// Whether it can stand in lists as it is.
pub fn check_name(name: &str) -> Result<(), Error> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match (1..=MAX_NAME).contains(&name.len()) && name.chars().all(fits) {
        true => Ok(()),
        false => Err(Error::Name),
    }
}

/// What the verifier says after its reason.
const NO_REASONS: [&str; 3] = ["processed ", "cur state: ", "old state: "];

/// From what libbpf prints where the kernel refuses a function: the reason and the line of the
/// source that it is about.
pub fn refusal(printed: &str) -> Option<String> {
    let function = printed.lines().find_map(|line| {
        let (_, rest) = line.split_once("prog '")?;
        let (name, rest) = rest.split_once('\'')?;
        rest.contains("BPF program load failed").then_some(name)
    })?;
    let log = printed.lines().map(str::trim);
    let log = log
        .skip_while(|line| !line.contains("BEGIN PROG LOAD LOG"))
        .skip(1);
    let mut reason = None;
    let mut at = None;
    for line in log.take_while(|line| !line.contains("END PROG LOAD LOG")) {
        if let Some(source) = line.strip_prefix("; ") {
            at = Some(source);
        } else if !line.is_empty() && !NO_REASONS.iter().any(|no| line.starts_with(no)) {
            reason = Some(line);
        }
    }
    let reason = reason.unwrap_or("it gives no reason");
    let mut text = format!(
        "the kernel refuses {}: {}",
        Escaped(function),
        Escaped(reason)
    );
    match at.map(|at| at.rsplit_once(" @ ")) {
        Some(Some((code, place))) => {
            text += &format!("\n{}: {}", Escaped(place), Escaped(code));
        }
        Some(None) => text += &format!("\nat: {}", Escaped(at.unwrap_or_default())),
        None => {}
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_section_says_what_a_function_decides_and_for_which_version() {
        let of = |name: &str| hook_of(&format!("fentry/{}/{name}", abi()));
        for hook in Hook::all() {
            assert_eq!(of(hook.name()), Ok(*hook));
            // The header declares what the table has.
            let described = format!(" * {}(const struct freqlock_", hook.name());
            assert!(HEADER.contains(&described), "{described}");
        }
        assert_eq!(of("nothing"), Err(Error::NoHook("nothing".into())));
        assert_eq!(
            hook_of("fentry/999/place"),
            Err(Error::OtherAbi("999".into()))
        );
        assert_eq!(hook_of("tc"), Err(Error::NoHook("tc".into())));
    }

    #[test]
    fn names_come_from_files() {
        assert_eq!(name_of("a/one.bpf.c".as_ref()), Some("one"));
        assert_eq!(name_of("one.o".as_ref()), Some("one"));
        assert_eq!(name_of("/".as_ref()), None);
        for wrong in ["", "a b", "a/b", "\u{1b}", &"x".repeat(65)] {
            assert_eq!(check_name(wrong), Err(Error::Name));
        }
        assert_eq!(check_name("no-preempt_2.x"), Ok(()));
    }

    #[test]
    fn the_verifiers_reason_comes_with_the_line() {
        let log = "libbpf: prog 'place': BPF program load failed: -EINVAL\n\
            libbpf: prog 'place': -- BEGIN PROG LOAD LOG --\n\
            0: R1=mem() R10=fp0\n\
            ; return about->weights[i]; @ one.bpf.c:12\n\
            3: (79) r0 = *(u64 *)(r1 +800)\n\
            invalid access to memory, mem_size=80 off=800 size=8\n\
            R1 min value is outside of the allowed memory range\n\
            old state: R1=mem()\n\
            processed 4 insns (limit 1000000) max_states_per_insn 0\n\
            -- END PROG LOAD LOG --\n";
        let text = refusal(log).unwrap();
        assert_eq!(
            text,
            "the kernel refuses place: R1 min value is outside of the allowed memory range\n\
             one.bpf.c:12: return about->weights[i];"
        );
        assert_eq!(refusal("libbpf: something else"), None);
        assert!(
            !refusal("libbpf: prog '\u{1b}[2J': BPF program load failed: x\n")
                .unwrap()
                .contains('\u{1b}')
        );
    }
}
