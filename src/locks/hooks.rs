// SPDX-License-Identifier: GPL-2.0-only
//! Which of the hooks by which lock holders are found this kernel has: each is
//! switched on by itself.

use libbpf_rs::btf::types::{Func, Typedef};
use libbpf_rs::btf::Btf;

/// One line each in the agent's output: the hooks of one kind of lock, by
/// what they need of the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    /// Mutexes of glibc.
    pub futex: bool,
    /// Futexes with priority inheritance.
    pub futex_pi: bool,
    /// Mutexes and rwsems of the kernel.
    pub kernel: bool,
    /// What is missing.
    pub missing: Vec<&'static str>,
}

const FUTEX: &str = "__futex_wait";
const FUTEX_PI: &str = "futex_lock_pi";
const BY_TID: &str = "bpf_task_from_vpid";
const CONTENTION: &str = "contention_begin";

impl Hooks {
    /// Asks the kernel's types.
    pub fn probe() -> Self {
        match Btf::from_vmlinux() {
            Ok(btf) => Self::of(
                |name| btf.type_by_name::<Func<'_>>(name).is_some(),
                |name| {
                    let typedef = format!("btf_trace_{name}");
                    btf.type_by_name::<Typedef<'_>>(typedef.as_str()).is_some()
                },
            ),
            Err(_) => Self::of(|_| false, |_| false),
        }
    }

    fn of(has_function: impl Fn(&str) -> bool, has_tracepoint: impl Fn(&str) -> bool) -> Self {
        let by_tid = has_function(BY_TID);
        let (futex, pi) = (has_function(FUTEX), has_function(FUTEX_PI));
        let kernel = has_tracepoint(CONTENTION);
        let missing = [
            (by_tid, BY_TID),
            (futex, FUTEX),
            (pi, FUTEX_PI),
            (kernel, CONTENTION),
        ];
        Self {
            futex: futex && by_tid,
            futex_pi: pi && by_tid,
            kernel,
            missing: missing
                .into_iter()
                .filter(|(there, _)| !there)
                .map(|(_, name)| name)
                .collect(),
        }
    }

    /// What is on and what is missing.
    pub fn describe(&self) -> String {
        let kinds = [
            (self.futex, "futexes"),
            (self.futex_pi, "PI futexes"),
            (self.kernel, "kernel mutexes and rwsems"),
        ];
        let on: Vec<&str> = kinds.iter().filter(|k| k.0).map(|k| k.1).collect();
        let mut line = match on[..] {
            [] => "lock holders: not found out".to_string(),
            _ => format!("lock holders: found for {}", on.join(", ")),
        };
        if !self.missing.is_empty() {
            line += &format!("; this kernel lacks {}", self.missing.join(", "));
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_with_everything_lacks_nothing() {
        let hooks = Hooks::of(|_| true, |_| true);
        assert!(hooks.futex && hooks.futex_pi && hooks.kernel);
        assert_eq!(
            hooks.describe(),
            "lock holders: found for futexes, PI futexes, kernel mutexes and rwsems"
        );
    }

    #[test]
    fn what_is_missing_switches_one_thing_off() {
        let hooks = Hooks::of(|name| name != FUTEX_PI, |_| true);
        assert!(hooks.futex && !hooks.futex_pi && hooks.kernel);
        assert!(hooks
            .describe()
            .ends_with("this kernel lacks futex_lock_pi"));
        let hooks = Hooks::of(|name| name != BY_TID, |_| true);
        assert!(!hooks.futex && !hooks.futex_pi && hooks.kernel);
        let hooks = Hooks::of(|_| true, |_| false);
        assert!(hooks.futex && !hooks.kernel);
    }

    #[test]
    fn without_types_nothing_is_found_out() {
        let line = Hooks::of(|_| false, |_| false).describe();
        assert!(line.starts_with("lock holders: not found out; this kernel lacks"));
    }
}
