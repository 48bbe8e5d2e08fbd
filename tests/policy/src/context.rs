// SPDX-License-Identifier: GPL-2.0-only
//! policy/context.h: patterns, and the word that says what is in force.

use crate::{config, policy, sys};
use proptest::prelude::*;

const PATTERN: usize = sys::FL_GLOB as usize;
const TEXT: usize = sys::FL_GLOB_TEXT as usize;

/// What bpf/policy says of texts that fit into its arrays.
fn fits(pattern: &str, text: &str, stop: u8) -> bool {
    let (mut p, mut t) = ([0u8; PATTERN], [0u8; TEXT]);
    p[..pattern.len()].copy_from_slice(pattern.as_bytes());
    t[..text.len()].copy_from_slice(text.as_bytes());
    // SAFETY: made of integers.
    let mut glob: sys::glob = unsafe { std::mem::zeroed() };
    policy!(glob_fits(&mut glob, p.as_ptr(), t.as_ptr(), stop))
}

fn name(pattern: &str, text: &str) -> bool {
    fits(pattern, text, 0)
}

fn path(pattern: &str, text: &str) -> bool {
    fits(pattern, text, b'/')
}

/// The same by its definition: every way to share the text among the stars.
fn fits_slowly(pattern: &[u8], text: &[u8], stop: u8) -> bool {
    match pattern.split_first() {
        None => text.first().is_none_or(|c| *c == stop),
        Some((b'*', rest)) => {
            let most = text.iter().take_while(|c| **c != stop).count();
            (0..=most).any(|n| fits_slowly(rest, &text[n..], stop))
        }
        Some((want, rest)) => text.split_first().is_some_and(|(c, text)| {
            (want == c || (*want == b'?' && *c != stop)) && fits_slowly(rest, text, stop)
        }),
    }
}

#[test]
fn names_fit_as_a_whole() {
    for pattern in [
        "java", "j*", "*a", "j?va", "*", "j*a*", "*av*", "????", "java*",
    ] {
        assert!(name(pattern, "java"), "{pattern}");
    }
    for pattern in [
        "", "jav", "javaa", "?java", "j?a", "*j", "b*", "java?", "JAVA",
    ] {
        assert!(!name(pattern, "java"), "{pattern}");
    }
    // Of names a slash is nothing special, and what shells know else is literal.
    assert!(name("kworker*", "kworker/0:1"));
    assert!(name("[", "["));
    assert!(!name("[a]", "a"));
}

#[test]
fn paths_fit_with_all_below() {
    for pattern in [
        "",
        "/a",
        "/a/b.slice",
        "/a/b.slice/c",
        "/*/b*",
        "/a/?.slice",
        "/*/*/*",
    ] {
        assert!(path(pattern, "/a/b.slice/c"), "{pattern}");
    }
    for pattern in [
        "/b",
        "/a/b",
        "/a*c",
        "/a/b.slice/c/d",
        "/*c",
        "/a?b.slice",
        "/*/*/*/*",
    ] {
        assert!(!path(pattern, "/a/b.slice/c"), "{pattern}");
    }
    assert!(path("", "") && !path("/*", ""), "the root is in no folder");
}

#[test]
fn the_longest_have_an_end() {
    let long = "a".repeat(TEXT - 1);
    assert!(name(&"*".repeat(PATTERN - 1), &long));
    // It may take more steps than there are: then nothing fits, in bounded time.
    name(&("*a".repeat(PATTERN / 2 - 1) + "b"), &long);
}

#[test]
fn the_version_says_where_what_is_stands() {
    for bank in [0, 1] {
        for nr in 0..=sys::FL_MAX_CONTEXTS {
            let version = 77 << sys::FL_VERSION_CHANGES | nr << sys::FL_VERSION_NR | bank;
            assert_eq!(policy!(version_bank(version)), bank);
            assert_eq!(policy!(version_nr(version)), nr);
            assert_eq!(
                policy!(policy_at(version, nr)),
                bank * sys::FL_MAX_POLICIES / 2 + nr
            );
            assert!(policy!(policy_at(version, nr)) < sys::FL_MAX_POLICIES);
            assert_eq!(
                policy!(rule_at(version, nr)),
                bank * sys::FL_MAX_CONTEXTS + nr
            );
        }
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn patterns_fit_what_their_definition_says(
        pattern in "[ab/*?]{0,10}",
        text in "[ab/]{0,15}",
        stop in prop_oneof![Just(0u8), Just(b'/')],
    ) {
        prop_assert_eq!(
            fits(&pattern, &text, stop),
            fits_slowly(pattern.as_bytes(), text.as_bytes(), stop)
        );
    }

    #[test]
    fn weights_stay_within_their_limits(
        weight in 1..100_000u64,
        a in 1..100_000u64,
        b in 1..100_000u64,
    ) {
        let (min, max) = (a.min(b), a.max(b));
        prop_assert_eq!(policy!(weight_within(weight, min, max)), weight.clamp(min, max));
        // A contradiction: the upper one counts.
        prop_assert!(policy!(weight_within(weight, max, min)) <= min);
    }

    #[test]
    fn the_level_of_a_weight_gives_no_more_and_hardly_less(weight in 3..88761u64) {
        let level = policy!(level_of_weight(weight));
        prop_assert!(policy!(weight_of_level(level)) <= weight);
        prop_assert!(policy!(weight_of_level(level + 1)) > weight);
    }
}

#[test]
fn levels_and_their_weights_agree() {
    for level in 1..=sys::LEVEL_NICE_BEST {
        let weight = policy!(weight_of_level(level));
        assert_eq!(policy!(level_of_weight(weight)), level);
    }
}
