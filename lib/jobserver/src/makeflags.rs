// SPDX-License-Identifier: GPL-2.0-only
//! Where MAKEFLAGS says that a job server is: "Sharing Job Slots with GNU make" of its manual.

use rustix::fs::{fstat, FileType};
use std::fmt;
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

/// The two forms that there are on Linux.
#[derive(Clone, Debug, PartialEq)]
pub enum Auth {
    /// GNU make since 4.4, ninja since 1.13, GCC since 13, cargo.
    Fifo(PathBuf),
    /// Descriptors to read from and to write to: all versions of GNU make, and cargo.
    Pipe(RawFd, RawFd),
}

impl Auth {
    /// What MAKEFLAGS says last; none if it names no job server, or one that is switched off.
    pub fn parse(makeflags: &str) -> Option<Self> {
        let (options, _) = split(makeflags);
        let auth = options
            .split_ascii_whitespace()
            .filter_map(|word| {
                word.strip_prefix("--jobserver-auth=")
                    .or_else(|| word.strip_prefix("--jobserver-fds="))
            })
            .next_back()?;
        if let Some(path) = auth.strip_prefix("fifo:") {
            return Some(Self::Fifo(path.into()));
        }
        let (read, write) = auth.split_once(',')?;
        let (read, write): (RawFd, RawFd) = (read.parse().ok()?, write.parse().ok()?);
        (read >= 0 && write >= 0).then_some(Self::Pipe(read, write))
    }

    /// True if it is still there for this process.
    pub fn works(&self) -> bool {
        match self {
            Self::Fifo(path) => is_fifo(path),
            Self::Pipe(read, write) => [read, write].into_iter().all(|&fd| {
                // SAFETY: fstat alone uses it, which may fail for one that is not open.
                let fd = unsafe { BorrowedFd::borrow_raw(fd) };
                fstat(fd).is_ok_and(|st| FileType::from_raw_mode(st.st_mode) == FileType::Fifo)
            }),
        }
    }

    /// MAKEFLAGS with this job server, in which there are at most `jobs`.
    pub fn put_into(&self, makeflags: &str, jobs: usize) -> String {
        let (options, rest) = split(makeflags);
        let kept: Vec<&str> = options
            .split_ascii_whitespace()
            .filter(|word| !word.starts_with("--jobserver-") && !is_jobs(word))
            .collect();
        // A first word without a dash is letters of options; without any there is a space.
        format!("{} -j{jobs} --jobserver-auth={self}{rest}", kept.join(" "))
    }
}

impl fmt::Display for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fifo(path) => write!(f, "fifo:{}", path.display()),
            Self::Pipe(read, write) => write!(f, "{read},{write}"),
        }
    }
}

/// True if there is a fifo that this process may use.
fn is_fifo(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.file_type().is_fifo())
        && rustix::fs::access(
            path,
            rustix::fs::Access::READ_OK | rustix::fs::Access::WRITE_OK,
        )
        .is_ok()
}

/// Options, and variables from " -- " on.
fn split(makeflags: &str) -> (&str, &str) {
    match makeflags.find(" -- ") {
        Some(at) => makeflags.split_at(at),
        None => (makeflags, ""),
    }
}

fn is_jobs(word: &str) -> bool {
    word.strip_prefix("-j")
        .is_some_and(|count| count.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_are_known_and_the_last_one_counts() {
        let of = Auth::parse;
        assert_eq!(
            of("kw -j4 --jobserver-auth=fifo:/tmp/GMfifo1 -- A=b"),
            Some(Auth::Fifo("/tmp/GMfifo1".into()))
        );
        assert_eq!(of(" --jobserver-fds=3,4 -j"), Some(Auth::Pipe(3, 4)));
        assert_eq!(
            of("--jobserver-auth=5,6 --jobserver-auth=7,8"),
            Some(Auth::Pipe(7, 8))
        );
        for none in [
            "",
            "k",
            "--jobserver-auth=-2,-2",
            "--jobserver-auth=x",
            "k -- X=--jobserver-auth=3,4",
        ] {
            assert_eq!(of(none), None, "{none}");
        }
    }

    #[test]
    fn other_flags_and_variables_stay() {
        let auth = Auth::Pipe(3, 4);
        assert_eq!(auth.put_into("", 2), " -j2 --jobserver-auth=3,4");
        assert_eq!(
            auth.put_into(
                "kw -j8 --jobserver-auth=fifo:/gone --no-print-directory -- A=b\\ c",
                2
            ),
            "kw --no-print-directory -j2 --jobserver-auth=3,4 -- A=b\\ c"
        );
    }

    #[test]
    fn what_is_gone_does_not_work() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(!Auth::Fifo(file).works());
        assert!(!Auth::Fifo(folder.path().join("none")).works());
        assert!(!Auth::Pipe(1000, 1001).works());
        let (read, write) = std::io::pipe().unwrap();
        use std::os::fd::AsRawFd;
        assert!(Auth::Pipe(read.as_raw_fd(), write.as_raw_fd()).works());
    }
}
