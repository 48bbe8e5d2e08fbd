// SPDX-License-Identifier: GPL-2.0-only
//! Why the scheduler ended, or could not begin, in words.

use crate::foreign::{Escaped, Foreign};

/// Values of the kernel's `enum scx_exit_kind` that mean something to a user.
mod kind {
    pub const UNREG: u64 = 64;
    pub const UNREG_BPF: u64 = 65;
    pub const UNREG_KERN: u64 = 66;
    pub const SYSRQ: u64 = 67;
    pub const ERROR: u64 = 1024;
    pub const ERROR_STALL: u64 = 1026;
}

/// What the kernel says about the end of a scheduler.
#[derive(Clone, Debug, Default)]
pub struct ExitInfo {
    /// `enum scx_exit_kind`, 0 while it runs.
    pub kind: u64,
    /// The kernel's phrase for that kind.
    pub reason: Foreign,
    /// What the scheduler or the kernel adds; often empty.
    pub message: Foreign,
    /// It asked to be loaded again.
    pub restart: bool,
    /// A signal asked the agent to end.
    pub signalled: bool,
    /// It scheduled some tasks, beside the kernel's own scheduler.
    pub partial: bool,
}

/// An end, for people and for scripts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Someone who may do so ended it: exit status 0.
    Asked(String),
    /// It is to be loaded again.
    Restart(String),
    /// Something went wrong: exit status 1.
    Failed(String),
}

impl ExitInfo {
    /// Distinguishes a wanted end from a failure, in words for people.
    pub fn ending(&self) -> Ending {
        let said = match (self.reason.raw(), self.message.raw()) {
            ("", "") => "no reason given".into(),
            (_, "") => self.reason.to_string(),
            ("", _) => self.message.to_string(),
            _ => format!("{}: {}", self.reason, self.message),
        };
        match self.kind {
            _ if self.restart => {
                Ending::Restart(format!("CPUs came or went, loading again ({said})"))
            }
            kind::ERROR_STALL => Ending::Failed(format!(
                "the kernel's watchdog ended it: {} ({said}); {}",
                stall(self.message.raw()),
                if self.partial { BESIDE } else { WHAT_NOW }
            )),
            kind::ERROR.. => Ending::Failed(format!(
                "the kernel ended it after an error ({said}); {WHAT_NOW}"
            )),
            kind::SYSRQ => Ending::Asked("ended by sysrq-S".into()),
            0 | kind::UNREG if self.signalled => Ending::Asked("ended by a signal".into()),
            0 | kind::UNREG => Ending::Asked("ended from user space".into()),
            kind::UNREG_BPF => Ending::Failed(format!("its BPF side ended it ({said})")),
            kind::UNREG_KERN => Ending::Failed(format!("the kernel ended it ({said})")),
            _ => Ending::Failed(format!("the kernel ended it ({said})")),
        }
    }
}

/// After a fault of the scheduler.
const WHAT_NOW: &str = "all tasks are back on the kernel's own scheduler; this is a fault of \
    scx_freqlock: report it with the dump above, then start it again";

/// After a stall beside the kernel's own scheduler.
const BESIDE: &str = "all tasks are back on the kernel's own scheduler; with --partial, others go \
    before tasks of SCHED_EXT: if they had all its CPUs that long, give it others, else report \
    it with the dump above";

/// What the watchdog found, by its message `COMM[PID] failed to run for SECONDSs`: a name
/// may have anything in it.
fn stall(message: &str) -> String {
    let task = || {
        let (task, waited) = message.rsplit_once("] failed to run for ")?;
        let (comm, pid) = task.rsplit_once('[')?;
        Some((comm, pid, waited.strip_suffix('s')?))
    };
    match task() {
        Some((comm, pid, seconds)) => {
            format!(
                "task {} (PID {}) was runnable for {} s and got no CPU",
                Escaped(comm),
                Escaped(pid),
                Escaped(seconds)
            )
        }
        None => "a task that could run did not for too long".into(),
    }
}

/// Of libbpf's warnings about a load that failed, what says most: what this
/// kernel lacks, else what the verifier refuses, else the first one.
pub fn load_failure(warnings: &[String]) -> Option<String> {
    let lines = || warnings.iter().flat_map(|w| w.lines()).map(str::trim);
    let lacks = lines().find_map(|line| {
        if let Some((_, what)) = line.split_once("failed to resolve CO-RE relocation ") {
            // "<byte_off> [36] struct task_struct.on_cpu (0:7 @ offset 52)"
            let what = what.split_once("] ").map_or(what, |(_, name)| name);
            let what = what.split(" (").next().unwrap_or(what);
            return Some(format!("this kernel has no {what}"));
        }
        let (_, what) = line.split_once("extern (")?;
        let name = what.split('\'').nth(1)?;
        if line.contains("not found in kernel") {
            return Some(format!("this kernel has no {name}"));
        }
        // Seen where the kernel's build left out the last step on its BTF.
        line.contains("incompatible with").then(|| {
            format!("this kernel describes {name} wrongly in its BTF: boot another build of it")
        })
    });
    lacks.or_else(|| {
        // The verifier's last word stands before its line of figures.
        let log: Vec<&str> = lines()
            .skip_while(|line| !line.contains("BEGIN PROG LOAD LOG"))
            .skip(1)
            .take_while(|line| !line.contains("END PROG LOAD LOG"))
            .filter(|line| !line.starts_with("processed ") && !line.is_empty())
            .collect();
        let first = || lines().find_map(|line| line.strip_prefix("libbpf: "));
        match log.last() {
            Some(line) => Some(format!("the verifier says: {line}")),
            None => first().map(|line| format!("libbpf says: {line}")),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::tests::{assert_harmless, HOSTILE};

    fn info(kind: u64, reason: &str, message: &str) -> ExitInfo {
        ExitInfo {
            kind,
            reason: reason.into(),
            message: message.into(),
            ..Default::default()
        }
    }

    #[test]
    fn users_and_sysrq_end_it_without_failure() {
        let signal = ExitInfo {
            signalled: true,
            ..info(kind::UNREG, "unregistered from user space", "")
        };
        assert_eq!(signal.ending(), Ending::Asked("ended by a signal".into()));
        let sysrq = info(kind::SYSRQ, "disabled by sysrq-S", "");
        assert_eq!(sysrq.ending(), Ending::Asked("ended by sysrq-S".into()));
        let unregistered = info(kind::UNREG, "unregistered from user space", "");
        assert_eq!(
            unregistered.ending(),
            Ending::Asked("ended from user space".into())
        );
    }

    #[test]
    fn errors_and_the_watchdog_are_failures_with_the_kernels_words() {
        for (kind, word) in [
            (kind::ERROR, "error"),
            (1025, "error"),
            (kind::ERROR_STALL, "watchdog"),
        ] {
            // A signal that comes at the same time does not hide an error.
            let failed = ExitInfo {
                signalled: true,
                ..info(kind, "runnable task stall", "x[12] failed to run for 10s")
            };
            match failed.ending() {
                Ending::Failed(line) => {
                    assert!(line.contains(word) && line.contains("x[12]"), "{line}");
                    assert!(!line.contains('\n'));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_stall_names_the_task_and_its_wait() {
        for (comm, message) in [
            ("x", "x[12] failed to run for 10.240s"),
            // Names are anybody's choice.
            (
                "a[3] failed to run for 1s",
                "a[3] failed to run for 1s[12] failed to run for 10.240s",
            ),
        ] {
            let stalled = info(kind::ERROR_STALL, "runnable task stall", message).ending();
            let words = format!("task {comm} (PID 12) was runnable for 10.240 s and got no CPU");
            assert!(
                matches!(&stalled, Ending::Failed(line) if line.contains(&words) && line.contains("report it")),
                "{stalled:?}"
            );
        }
        // With --partial others may have had the CPUs.
        let beside = ExitInfo {
            partial: true,
            ..info(
                kind::ERROR_STALL,
                "runnable task stall",
                "x[12] failed to run for 30s",
            )
        };
        assert!(
            matches!(beside.ending(), Ending::Failed(line) if line.contains("give it others") && !line.contains("fault of"))
        );
        // The watchdog itself came too late.
        let late = info(
            kind::ERROR_STALL,
            "runnable task stall",
            "watchdog failed to check in for 20.0s",
        );
        assert!(matches!(late.ending(), Ending::Failed(line) if line.contains("check in")));
    }

    #[test]
    fn words_of_the_kernel_are_shown_harmless() {
        let message = format!("{HOSTILE}[12] failed to run for 10.240s");
        for kind in [kind::ERROR, kind::ERROR_STALL, kind::UNREG_BPF] {
            match info(kind, HOSTILE, &message).ending() {
                Ending::Failed(line) => assert_harmless(&line),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn hotplug_restarts_and_other_ends_by_the_kernel_fail() {
        let hotplug = info(
            kind::UNREG_KERN,
            "unregistered from the main kernel",
            "cpu 2 going offline",
        );
        assert!(matches!(hotplug.ending(), Ending::Failed(_)));
        let hotplug = ExitInfo {
            restart: true,
            ..hotplug
        };
        assert!(matches!(hotplug.ending(), Ending::Restart(line) if line.contains("cpu 2")));
        assert!(matches!(
            info(kind::UNREG_BPF, "", "").ending(),
            Ending::Failed(_)
        ));
    }

    #[test]
    fn a_missing_field_or_function_is_named() {
        let field = "libbpf: prog 'x': -- BEGIN PROG LOAD LOG --\n0: R1=ctx() R10=fp0\n; f\n\
            failed to resolve CO-RE relocation <byte_off> [36] struct task_struct.on_rq (0:7 @ offset 52)\n\
            processed 2 insns\n-- END PROG LOAD LOG --\n";
        assert_eq!(
            load_failure(&[field.into()]).unwrap(),
            "this kernel has no struct task_struct.on_rq"
        );
        let kfunc = "libbpf: extern (func ksym) 'scx_bpf_now': not found in kernel or module BTFs";
        assert_eq!(
            load_failure(&["x".into(), kfunc.into()]).unwrap(),
            "this kernel has no scx_bpf_now"
        );
    }

    #[test]
    fn a_function_that_the_kernel_describes_wrongly_is_named() {
        let wrong = "libbpf: extern (func ksym) 'scx_bpf_kick_cpu': func_proto [677] incompatible with vmlinux [48700]";
        let why = load_failure(&[wrong.into()]).unwrap();
        assert!(
            why.starts_with("this kernel describes scx_bpf_kick_cpu wrongly"),
            "{why}"
        );
    }

    #[test]
    fn else_the_verifiers_last_word() {
        let log = "libbpf: prog 'x': BPF program load failed: -EACCES\n\
            libbpf: prog 'x': -- BEGIN PROG LOAD LOG --\n1: (79) r1 = *(u64 *)(r2 +0)\n\
            R2 invalid mem access 'scalar'\nprocessed 9 insns (limit 1000000)\n-- END PROG LOAD LOG --\n";
        assert_eq!(
            load_failure(&[log.into()]).unwrap(),
            "the verifier says: R2 invalid mem access 'scalar'"
        );
        let other = [
            "libbpf: failed to parse target BTF: -2\n".into(),
            "libbpf: more\n".into(),
        ];
        assert_eq!(
            load_failure(&other).unwrap(),
            "libbpf says: failed to parse target BTF: -2"
        );
        assert_eq!(load_failure(&[]), None);
    }
}
