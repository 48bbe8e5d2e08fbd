// SPDX-License-Identifier: GPL-2.0-only
//! Tokens in a pipe: bytes that clients read and write back.
//!
//! A pipe does not say who read a byte. What is known is how many tokens were put in
//! (`issued`) and how many are in it; the rest is outstanding.

use anyhow::{Context, Result};
use rustix::fs::OFlags;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// The byte that GNU make writes, too.
const TOKEN: u8 = b'+';

/// The most that a pipe of Linux takes without anybody who reads, and more than CPUs have use for.
pub const MOST: usize = 4096;

/// The server's side of the pipe.
#[derive(Debug)]
pub struct Pool {
    /// A description of its own, so that its not blocking does not concern clients.
    pipe: File,
    /// Device and inode.
    id: (u64, u64),
    issued: usize,
}

impl Pool {
    /// Of the pipe or fifo at `path`, which may be one of /proc/self/fd. Nothing is in it.
    pub fn open(path: &Path) -> Result<Self> {
        let open = || {
            let pipe = File::options()
                .read(true)
                .write(true)
                .custom_flags(OFlags::NONBLOCK.bits() as i32)
                .open(path)?;
            let meta = pipe.metadata()?;
            std::io::Result::Ok((pipe, (meta.dev(), meta.ino())))
        };
        let (pipe, id) = open().with_context(|| format!("cannot open {}", path.display()))?;
        Ok(Self {
            pipe,
            id,
            issued: 0,
        })
    }

    /// The pipe, to wait for tokens.
    pub fn pipe(&self) -> &File {
        &self.pipe
    }

    /// Device and inode of the pipe.
    pub fn id(&self) -> (u64, u64) {
        self.id
    }

    /// Tokens that nobody has taken.
    pub fn available(&self) -> usize {
        rustix::io::ioctl_fionread(&self.pipe).map_or(0, |bytes| bytes as usize)
    }

    /// Tokens that clients have, or lost.
    pub fn outstanding(&self) -> usize {
        self.issued.saturating_sub(self.available())
    }

    /// This many of the outstanding tokens are lost.
    pub fn write_off(&mut self, lost: usize) {
        self.issued = self.issued.saturating_sub(lost);
    }

    /// Makes it `tokens`, as far as clients do not have more; true once it is that.
    pub fn settle(&mut self, tokens: usize) -> Result<bool> {
        let tokens = tokens.min(MOST);
        // Somebody wrote more than he had read.
        let surplus = self.available().saturating_sub(self.issued);
        self.take(surplus)?;
        if tokens > self.issued {
            let more = vec![TOKEN; tokens - self.issued];
            self.issued += self.pipe.write(&more).context("cannot add tokens")?;
        } else {
            self.issued -= self.take(self.issued - tokens)?;
        }
        Ok(self.issued == tokens)
    }

    /// Takes at most `most` tokens out; how many it got.
    fn take(&mut self, most: usize) -> Result<usize> {
        if most == 0 {
            return Ok(0);
        }
        match self.pipe.read(&mut vec![0; most]) {
            Ok(got) => Ok(got),
            Err(none) if none.kind() == ErrorKind::WouldBlock => Ok(0),
            Err(why) => Err(why).context("cannot take tokens back"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::fd::AsRawFd;

    fn pool() -> (Pool, std::io::PipeReader, std::io::PipeWriter) {
        let (read, write) = std::io::pipe().unwrap();
        let path = format!("/proc/self/fd/{}", read.as_raw_fd());
        (Pool::open(Path::new(&path)).unwrap(), read, write)
    }

    fn acquire(read: &mut std::io::PipeReader, count: usize) {
        read.read_exact(&mut vec![0; count]).unwrap();
    }

    #[test]
    fn a_debt_is_paid_by_what_comes_back() {
        let (mut pool, mut read, mut write) = pool();
        assert!(pool.settle(4).unwrap());
        acquire(&mut read, 3);
        assert!(!pool.settle(1).unwrap());
        assert_eq!((pool.available(), pool.outstanding()), (0, 3));
        write.write_all(b"++").unwrap();
        assert!(pool.settle(1).unwrap());
        write.write_all(b"+").unwrap();
        assert!(pool.settle(1).unwrap());
        assert_eq!((pool.available(), pool.outstanding()), (1, 0));
    }

    #[test]
    fn tokens_that_nobody_took_are_taken_out() {
        let (mut pool, mut read, mut write) = pool();
        pool.settle(2).unwrap();
        write.write_all(b"+++++").unwrap();
        pool.settle(2).unwrap();
        assert_eq!(pool.available(), 2);
        acquire(&mut read, 1);
        // The one that is out cannot be told from a third one in here until it comes back.
        write.write_all(b"+").unwrap();
        pool.settle(2).unwrap();
        assert_eq!((pool.available(), pool.outstanding()), (2, 0));
    }

    #[test]
    fn what_is_lost_is_put_in_again() {
        let (mut pool, mut read, _write) = pool();
        pool.settle(3).unwrap();
        acquire(&mut read, 2);
        pool.write_off(2);
        pool.settle(3).unwrap();
        assert_eq!((pool.available(), pool.outstanding()), (3, 0));
    }

    proptest! {
        #[test]
        fn never_more_than_asked_for_and_all_in_the_end(
            steps in prop::collection::vec((0usize..9, 0usize..9, 0usize..9), 1..40),
        ) {
            let (mut pool, mut read, mut write) = pool();
            let (mut held, mut most) = (0, 0);
            for (tokens, wants, returns) in steps {
                pool.settle(tokens).unwrap();
                // What was out when the number fell stays out.
                most = tokens.max(held);
                prop_assert!(pool.available() + held <= most);
                let takes = wants.min(pool.available());
                acquire(&mut read, takes);
                held += takes;
                let returns = returns.min(held);
                write.write_all(&vec![TOKEN; returns]).unwrap();
                held -= returns;
            }
            write.write_all(&vec![TOKEN; held]).unwrap();
            prop_assert!(pool.settle(5).unwrap());
            prop_assert_eq!(pool.available(), 5);
            prop_assert!(most <= 9);
        }
    }
}
