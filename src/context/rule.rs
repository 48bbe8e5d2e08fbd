// SPDX-License-Identifier: GPL-2.0-only
//! Which tasks a context is for: what `match` may say, checked so far that the BPF
//! side can compare it.

use crate::foreign::Escaped;
use crate::intf;
use nix::unistd::User;
use std::fmt;

/// Bytes of a task's name, which the kernel cuts there.
const NAME_MAX: usize = intf::fl_consts_FL_COMM as usize - 1;
const PATTERN_MAX: usize = intf::fl_consts_FL_GLOB as usize - 1;

/// All of what is given must be so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// A pattern for the task's name.
    pub command: Option<String>,
    /// A pattern for the path of its cgroup or of one above; the root is empty.
    pub cgroup: Option<String>,
    /// The task's real user, with the name that the file gave.
    pub user: Option<(u32, String)>,
}

impl Rule {
    /// Asks for a task's name; errors for patterns that no name fits.
    pub fn set_command(&mut self, pattern: &str) -> Result<(), String> {
        if pattern.is_empty() {
            return Err("no task has an empty name".into());
        }
        let fixed = pattern.bytes().filter(|b| *b != b'*').count();
        if fixed > NAME_MAX {
            return Err(format!(
                "names of tasks have {NAME_MAX} bytes at most, and this pattern fits longer ones \
                 only: end it with a star after {} bytes",
                NAME_MAX - 1
            ));
        }
        check_text(pattern)?;
        self.command = Some(pattern.into());
        Ok(())
    }

    /// Asks for a cgroup, or anything below it.
    pub fn set_cgroup(&mut self, pattern: &str) -> Result<(), String> {
        if !pattern.starts_with('/') || pattern.starts_with("/sys/fs/cgroup") {
            return Err(
                "a cgroup is a path from the root of their hierarchy, as /proc/PID/cgroup has it: \
                 \"/system.slice/cron.service\" for example"
                    .into(),
            );
        }
        let pattern = pattern.trim_end_matches('/');
        if pattern.contains("//") {
            return Err("no cgroup has an empty name".into());
        }
        check_text(pattern)?;
        self.cgroup = Some(pattern.into());
        Ok(())
    }

    /// Asks for a user by name.
    pub fn set_user(&mut self, name: &str) -> Result<(), String> {
        match User::from_name(name) {
            Ok(Some(user)) => self.user = Some((user.uid.as_raw(), name.into())),
            Ok(None) => return Err(format!("there is no user `{name}` here")),
            Err(why) => return Err(format!("cannot look up the user `{name}`: {why}")),
        }
        Ok(())
    }

    /// Asks for a user by number, whether there is one here or not.
    pub fn set_uid(&mut self, uid: u32) {
        self.user = Some((uid, uid.to_string()));
    }

    /// Whether it asks for nothing, and so takes every task.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// True if, as far as can be seen, every task that fits the other fits this one.
    pub fn covers(&self, other: &Self) -> bool {
        let command = match self.command.as_deref() {
            None => true,
            Some(pattern) if pattern.bytes().all(|b| b == b'*') => true,
            pattern => pattern == other.command.as_deref(),
        };
        let cgroup = match self.cgroup.as_deref() {
            None | Some("") => true,
            pattern => pattern == other.cgroup.as_deref(),
        };
        let uid = |rule: &Self| rule.user.as_ref().map(|(uid, _)| *uid);
        command && cgroup && (uid(self).is_none() || uid(self) == uid(other))
    }

    /// As the BPF side compares it.
    pub fn encode(&self) -> intf::fl_rule {
        let mut rule = intf::fl_rule {
            asks: 0,
            uid: 0,
            glob: [intf::fl_glob {
                pattern: [0; PATTERN_MAX + 1],
            }; intf::fl_asks_FL_NR_GLOBS as usize],
        };
        for (what, pattern) in [
            (intf::fl_asks_FL_ASKS_COMMAND, &self.command),
            (intf::fl_asks_FL_ASKS_CGROUP, &self.cgroup),
        ] {
            let Some(pattern) = pattern else { continue };
            rule.asks |= 1 << what;
            rule.glob[what as usize].pattern[..pattern.len()].copy_from_slice(pattern.as_bytes());
        }
        if let Some((uid, _)) = &self.user {
            rule.asks |= 1 << intf::fl_asks_FL_ASKS_USER;
            rule.uid = *uid;
        }
        rule
    }

    /// What it asks for, each with what is asked for: `("command", "java")`.
    pub fn asks(&self) -> impl Iterator<Item = (&'static str, Escaped<'_>)> {
        let cgroup = self.cgroup.as_deref();
        let cgroup = cgroup.map(|path| if path.is_empty() { "/" } else { path });
        let user = self.user.as_ref().map(|(_, name)| name.as_str());
        [
            ("command", self.command.as_deref()),
            ("cgroup", cgroup),
            ("user", user),
        ]
        .into_iter()
        .filter_map(|(what, wanted)| Some((what, Escaped(wanted?))))
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        for (i, (what, wanted)) in self.asks().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{what} {wanted}")?;
        }
        Ok(())
    }
}

fn check_text(pattern: &str) -> Result<(), String> {
    if pattern.len() > PATTERN_MAX {
        return Err(format!(
            "a pattern has {PATTERN_MAX} bytes at most, and this one {}",
            pattern.len()
        ));
    }
    if pattern.contains('\0') {
        return Err("no name has a byte of 0 in it".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(command: &str, cgroup: &str, user: &str) -> Rule {
        let mut rule = Rule::default();
        if !command.is_empty() {
            rule.set_command(command).unwrap();
        }
        if !cgroup.is_empty() {
            rule.set_cgroup(cgroup).unwrap();
        }
        if !user.is_empty() {
            rule.set_user(user).unwrap();
        }
        rule
    }

    #[test]
    fn what_no_task_can_be_is_refused() {
        let mut rule = Rule::default();
        for (pattern, why) in [
            ("", "empty name"),
            ("sixteen_is_long_", "15 bytes"),
            ("a\0", "byte of 0"),
            (&"*".repeat(256), "255 bytes"),
        ] {
            let message = rule.set_command(pattern).unwrap_err();
            assert!(message.contains(why), "{pattern}: {message}");
        }
        for (pattern, why) in [
            ("", "/proc/PID/cgroup"),
            ("db.slice", "/proc/PID/cgroup"),
            ("/sys/fs/cgroup/db.slice", "/proc/PID/cgroup"),
            ("/a//b", "empty name"),
            (&format!("/{}", "x".repeat(256)), "255 bytes"),
        ] {
            let message = rule.set_cgroup(pattern).unwrap_err();
            assert!(message.contains(why), "{pattern}: {message}");
        }
        let message = rule.set_user("nobody-of-that-name").unwrap_err();
        assert!(message.contains("nobody-of-that-name"), "{message}");
        assert!(rule.is_empty(), "what was refused is not kept");
    }

    #[test]
    fn the_bpf_side_gets_what_is_asked_for() {
        let encoded = rule("sixteen_is_lon*", "/db.slice/", "root").encode();
        assert_eq!(encoded.asks, 7);
        assert_eq!(&encoded.glob[0].pattern[..16], b"sixteen_is_lon*\0");
        assert_eq!(&encoded.glob[1].pattern[..10], b"/db.slice\0");
        assert_eq!(encoded.uid, 0);
        assert_eq!(rule("", "/", "").encode().glob[1].pattern[0], 0);
    }

    #[test]
    fn a_rule_covers_what_asks_for_more() {
        for (wide, narrow) in [("a*", "a*"), ("*", "a"), ("**", "*")] {
            assert!(rule(wide, "", "").covers(&rule(narrow, "/x", "root")));
        }
        assert!(rule("", "/", "").covers(&rule("a", "", "")));
        assert!(rule("", "", "root").covers(&rule("", "", "root")));
        assert!(
            !rule("a*", "", "").covers(&rule("ab", "", "")),
            "not looked into"
        );
        assert!(!rule("*", "/x", "").covers(&rule("a", "", "")));
        assert!(!rule("", "", "root").covers(&rule("a", "", "")));
    }
}
