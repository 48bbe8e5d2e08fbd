// SPDX-License-Identifier: GPL-2.0-only
//! The traces that commands read, and the files that they make of them.

use crate::foreign;
use crate::trace::reader::Trace;
use crate::trace::Failed;
use anyhow::{ensure, Context, Result};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, IsTerminal, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// A trace whose head has been read.
pub type Read = Trace<BufReader<File>>;

/// What is said of a file that cannot be read.
pub fn cannot_read(path: &Path) -> String {
    format!("cannot read {}", foreign::path(path))
}

/// What is said of one that cannot be written.
pub fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", foreign::path(path))
}

/// What is said of a trace of which nothing was made for `to`.
pub fn explain(failed: Failed, trace: &Path, to: &str) -> anyhow::Error {
    match failed {
        Failed::Write(why) => anyhow::Error::new(why).context(format!("cannot write {to}")),
        failed => anyhow::Error::new(failed).context(cannot_read(trace)),
    }
}

/// Opens a trace.
pub fn open(path: &Path) -> Result<Read> {
    let cannot = || cannot_read(path);
    let file = File::open(path).with_context(cannot)?;
    Trace::open(BufReader::new(file)).with_context(cannot)
}

/// Writes what `fill` writes to a file for its owner alone, since it has what the trace
/// has. A trace is never written over, and what could not be written to its end is removed.
pub fn write(
    trace: &Path,
    to: &Path,
    fill: impl FnOnce(&mut BufWriter<File>) -> Result<()>,
) -> Result<()> {
    let cannot = || cannot_write(to);
    if let (Ok(one), Ok(other)) = (trace.metadata(), to.metadata()) {
        let is_same = (one.dev(), one.ino()) == (other.dev(), other.ino());
        ensure!(!is_same, "{}: it is the trace itself", cannot());
    }
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(to)
        .with_context(cannot)?;
    let mut file = BufWriter::new(file);
    let done = fill(&mut file).and_then(|()| file.flush().with_context(cannot));
    if done.is_err() && to.symlink_metadata().is_ok_and(|data| data.is_file()) {
        // Half of it would look like all of it. That it stays is no more than that.
        drop(fs::remove_file(to));
    }
    done
}

/// The same to standard output, for what is no text.
pub fn write_out(fill: impl FnOnce(&mut BufWriter<io::StdoutLock>) -> Result<()>) -> Result<()> {
    let out = io::stdout();
    ensure!(
        !out.is_terminal(),
        "it is not for a terminal: name a file with --output"
    );
    let mut out = BufWriter::new(out.lock());
    fill(&mut out)?;
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_file_is_its_owners_and_never_the_trace_itself() {
        let dir = tempfile::tempdir().unwrap();
        let (trace, to) = (dir.path().join("trace"), dir.path().join("to"));
        fs::write(&trace, "kept").unwrap();
        write(&trace, &to, |out| Ok(out.write_all(b"made")?)).unwrap();
        assert_eq!(fs::read(&to).unwrap(), b"made");
        assert_eq!(to.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        fs::hard_link(&trace, dir.path().join("same")).unwrap();
        for name in ["trace", "same"] {
            let refused = write(&trace, &dir.path().join(name), |_| Ok(())).unwrap_err();
            assert!(
                refused.to_string().contains("the trace itself"),
                "{refused}"
            );
        }
        assert_eq!(fs::read(&trace).unwrap(), b"kept");
    }

    #[test]
    fn half_a_file_is_none_but_what_is_no_file_stays() {
        let dir = tempfile::tempdir().unwrap();
        let to = dir.path().join("to");
        fs::write(&to, "before").unwrap();
        let half = |to: &Path| {
            write("/dev/null".as_ref(), to, |out| {
                out.write_all(b"half")?;
                anyhow::bail!("the trace is damaged")
            })
        };
        let failed = half(&to).unwrap_err();
        assert_eq!(failed.to_string(), "the trace is damaged");
        assert!(!to.exists());
        std::os::unix::fs::symlink("/dev/null", &to).unwrap();
        half(&to).unwrap_err();
        assert!(to.is_symlink());
    }

    #[test]
    fn what_is_no_trace_is_refused_with_its_name() {
        let refused = open("/dev/null".as_ref()).err().unwrap();
        assert_eq!(
            format!("{refused:#}"),
            "cannot read /dev/null: it is no trace of scx_freqlock record"
        );
    }
}
