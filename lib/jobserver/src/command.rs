// SPDX-License-Identifier: GPL-2.0-only
//! The command's own option for jobs: make and ninja that are given one leave a job server.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// How many jobs a command asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Jobs {
    /// Nothing is said, or `-j` without a number.
    Any,
    /// At most so many.
    Most(usize),
}

/// Programs of which the option is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tool {
    /// GNU make.
    Make,
    /// Ninja.
    Ninja,
    /// Anything else.
    Other,
}

impl Tool {
    /// By the name of the program.
    pub fn of(program: &OsStr) -> Self {
        match Path::new(program).file_name().map(OsStr::as_bytes) {
            Some(b"make" | b"gmake") => Self::Make,
            Some(b"ninja" | b"ninja-build") => Self::Ninja,
            _ => Self::Other,
        }
    }

    /// Short options with an argument, which is the rest of the word or the next one.
    fn with_argument(self) -> &'static [u8] {
        match self {
            Self::Make => b"CEfIoW",
            Self::Ninja => b"Cfkldtw",
            Self::Other => b"",
        }
    }
}

/// Takes the options for jobs out of `arguments`, and says what the last one was.
pub fn take_jobs(tool: Tool, arguments: &[OsString]) -> (Jobs, Vec<OsString>) {
    if tool == Tool::Other {
        return (Jobs::Any, arguments.to_vec());
    }
    let (mut jobs, mut kept) = (Jobs::Any, Vec::new());
    let mut words = arguments.iter().peekable();
    while let Some(word) = words.next() {
        let bytes = word.as_bytes();
        // What of the word is before the option, and the number that follows it there.
        let found = match (bytes, bytes.strip_prefix(b"--jobs")) {
            (b"--", _) => {
                kept.push(word.clone());
                break;
            }
            (_, Some(b"")) => Some((&b"-"[..], &b""[..])),
            (_, Some([b'=', number @ ..])) => Some((&b"-"[..], number)),
            ([b'-', letters @ ..], _) if !letters.starts_with(b"-") => match short(tool, letters) {
                Short::Jobs(at) => {
                    Some(bytes.split_at(at + 1)).map(|(before, j)| (before, &j[1..]))
                }
                Short::Argument => {
                    kept.push(word.clone());
                    kept.extend(words.next().cloned());
                    continue;
                }
                Short::Neither => None,
            },
            _ => None,
        };
        let asked = found.and_then(|(before, number)| {
            if !number.is_empty() {
                return Some((before, Jobs::Most(count(number)?)));
            }
            let next = words.next_if(|next| count(next.as_bytes()).is_some());
            let most = next.and_then(|next| count(next.as_bytes()));
            Some((before, most.map_or(Jobs::Any, Jobs::Most)))
        });
        match asked {
            Some((before, asked)) => {
                jobs = asked;
                if before.len() > 1 {
                    kept.push(OsStr::from_bytes(before).to_os_string());
                }
            }
            // No such option, or one that the tool itself complains about.
            None => kept.push(word.clone()),
        }
    }
    kept.extend(words.cloned());
    (jobs, kept)
}

enum Short {
    /// The option for jobs is at this place.
    Jobs(usize),
    /// The last letter has its argument in the next word.
    Argument,
    Neither,
}

fn short(tool: Tool, letters: &[u8]) -> Short {
    for (at, letter) in letters.iter().enumerate() {
        if *letter == b'j' {
            return Short::Jobs(at);
        }
        if tool.with_argument().contains(letter) {
            return match letters.len() - at {
                1 => Short::Argument,
                _ => Short::Neither,
            };
        }
        // These may have one, which is the rest.
        if tool == Tool::Make && matches!(letter, b'l' | b'O') {
            return Short::Neither;
        }
    }
    Short::Neither
}

fn count(number: &[u8]) -> Option<usize> {
    std::str::from_utf8(number)
        .ok()?
        .parse()
        .ok()
        .filter(|&count| count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(tool: Tool, line: &str) -> (Jobs, String) {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let (jobs, kept) = take_jobs(tool, &words);
        let kept: Vec<_> = kept.iter().map(|word| word.to_str().unwrap()).collect();
        (jobs, kept.join(" "))
    }

    #[test]
    fn all_ways_to_ask_for_jobs_are_taken_out() {
        for (line, jobs, kept) in [
            ("-j all", Jobs::Any, "all"),
            ("-j8 all", Jobs::Most(8), "all"),
            ("-j 8 all", Jobs::Most(8), "all"),
            ("--jobs", Jobs::Any, ""),
            ("--jobs=3 -k", Jobs::Most(3), "-k"),
            ("--jobs 3 -k", Jobs::Most(3), "-k"),
            ("-kj4 x", Jobs::Most(4), "-k x"),
            ("-skj x", Jobs::Any, "-sk x"),
            ("-j2 -j5", Jobs::Most(5), ""),
            ("-j2 -j", Jobs::Any, ""),
            ("all", Jobs::Any, "all"),
        ] {
            assert_eq!(take(Tool::Make, line), (jobs, kept.into()), "{line}");
        }
        assert_eq!(
            take(Tool::Ninja, "-C out -j 6 all"),
            (Jobs::Most(6), "-C out all".into())
        );
    }

    #[test]
    fn what_only_looks_alike_stays() {
        for line in [
            "-C -j4 all",
            "-fj3",
            "-f -j3",
            "-lj",
            "-- -j4",
            "--jobserver-style=pipe",
            "-jx",
            "-j0",
            "--just-print",
            "V=-j4 -",
        ] {
            assert_eq!(take(Tool::Make, line), (Jobs::Any, line.into()), "{line}");
        }
        assert_eq!(
            take(Tool::Other, "-j4 -- x"),
            (Jobs::Any, "-j4 -- x".into())
        );
    }

    #[test]
    fn tools_are_known_by_their_names() {
        assert_eq!(Tool::of(OsStr::new("/usr/bin/make")), Tool::Make);
        assert_eq!(Tool::of(OsStr::new("ninja")), Tool::Ninja);
        assert_eq!(Tool::of(OsStr::new("remake")), Tool::Other);
    }
}
