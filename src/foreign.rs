// SPDX-License-Identifier: GPL-2.0-only
//! Text that others choose: names of tasks, cgroups, modules and contexts, words of the
//! kernel. Any user can put control characters and escape sequences there, line ends,
//! marks that turn the direction of writing, or what has no width, and so rewrite what
//! root's terminal shows. [`Foreign`] holds such text as it is, and shows it harmless;
//! [`lines`] is the same for all that leaves the program, for what was forgotten.

use scx_stats::{Meta, StatsMeta, StatsStructAttrs};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::path::Path;

/// Text of others. Scripts get it as it is, by JSON, people by `Display`.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Foreign(String);

impl Foreign {
    /// As it is: to compare it, or for a format that has escapes of its own.
    pub fn raw(&self) -> &str {
        &self.0
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<T: Into<String>> From<T> for Foreign {
    fn from(text: T) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        Escaped(&self.0).fmt(f)
    }
}

impl fmt::Debug for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// For scx_stats, which knows its own types and structs only.
impl Meta for Foreign {
    fn meta() -> StatsMeta {
        StatsMeta {
            name: "Foreign".into(),
            attrs: StatsStructAttrs {
                desc: Some("A string that others chose: anything may be in it".into()),
                ..Default::default()
            },
            fields: Default::default(),
        }
    }
}

/// The same for text that is somebody else's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Escaped<'a>(pub &'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(&escape(self.0, |_| false, |c| c.escape_debug().to_string()))
    }
}

/// A path, for people.
pub fn path(path: &Path) -> String {
    Escaped(&path.to_string_lossy()).to_string()
}

/// Text of several lines, with nothing in it but these that acts on a terminal.
pub fn lines(text: &str) -> Cow<'_, str> {
    let keep = |c| matches!(c, '\n' | '\t');
    escape(text, keep, |c| c.escape_debug().to_string())
}

/// JSON with the same meaning, in which that is escaped which JSON would let through.
pub(crate) fn json(text: &str) -> Cow<'_, str> {
    let unit = |unit: &mut u16| format!("\\u{unit:04x}");
    let units = |c: char| c.encode_utf16(&mut [0; 2]).iter_mut().map(unit).collect();
    // Line ends are outside of strings.
    escape(text, |c| c == '\n', units)
}

fn escape(text: &str, keep: fn(char) -> bool, escaped: impl Fn(char) -> String) -> Cow<'_, str> {
    let is_harmless = |c: char| keep(c) || has_a_cell(c);
    if text.chars().all(is_harmless) {
        return text.into();
    }
    let mut out = String::new();
    for c in text.chars() {
        match is_harmless(c) {
            true => out.push(c),
            false => out += &escaped(c),
        }
    }
    out.into()
}

/// Whether it is drawn, in a place of its own: no control, no mark of direction, nothing
/// without a width, nothing that is put over its neighbour.
fn has_a_cell(c: char) -> bool {
    // These are escaped in literals of Rust for being quotes.
    matches!(c, ' '..='~') || c.escape_debug().len() == 1
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What a terminal would obey: colours, a title, another direction of writing, C1's
    /// own escape, a line of its own, a name that hides behind it.
    pub(crate) const HOSTILE: &str =
        "a\x1b[31m\x1b]0;x\x07\u{202e}\u{9b}2J\nend\r\u{200b}\x7f\u{2028}";

    /// Fails if anything in it but line ends would act on a terminal.
    #[track_caller]
    pub(crate) fn assert_harmless(text: &str) {
        assert_eq!(lines(text), text);
        assert!(!text.contains("\nend"), "a line is forged: {text}");
        assert!(text.contains("\\u{1b}[31m"), "nothing hostile in {text}");
    }

    #[test]
    fn text_of_others_is_shown_harmless_and_kept_as_it_is() {
        let hostile = Foreign::from(HOSTILE);
        assert_eq!(
            hostile.to_string(),
            r"a\u{1b}[31m\u{1b}]0;x\u{7}\u{202e}\u{9b}2J\nend\r\u{200b}\u{7f}\u{2028}"
        );
        assert_eq!(hostile.raw(), HOSTILE);
        assert_eq!(
            format!("{:6}|{:.2}", Foreign::from("a\t"), Foreign::from("abc")),
            r"a\t   |ab"
        );
        assert_eq!(path("/a\nb".as_ref()), r"/a\nb");
        for plain in [
            "cc1plus",
            "kworker/0:1-\"x\"",
            r"/dev-sda\x2d1.swap",
            "größe 大",
        ] {
            assert_eq!(Foreign::from(plain).to_string(), plain);
        }
    }

    #[test]
    fn json_means_the_same_and_lines_stay_lines() {
        let text =
            serde_json::to_string_pretty(&[Foreign::from(HOSTILE), Foreign::from("\u{e0001}")])
                .unwrap();
        let escaped = json(&text);
        assert_eq!(lines(&escaped), escaped);
        let back: [Foreign; 2] = serde_json::from_str(&escaped).unwrap();
        assert_eq!((back[0].raw(), back[1].raw()), (HOSTILE, "\u{e0001}"));
        assert_eq!(lines("a\n\tb\n"), "a\n\tb\n");
        assert_eq!(lines("\x1b[1m\n"), "\\u{1b}[1m\n");
    }

    proptest! {
        #[test]
        fn whatever_it_is_no_control_is_left(text in any::<String>()) {
            let shown = Foreign::from(text.as_str()).to_string();
            prop_assert!(!shown.chars().any(char::is_control), "{shown:?}");
            let json = serde_json::to_string(&text).unwrap();
            let back: String = serde_json::from_str(&super::json(&json)).unwrap();
            prop_assert_eq!(back, text);
        }
    }
}
