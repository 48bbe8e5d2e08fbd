// SPDX-License-Identifier: GPL-2.0-only
//! Keeps as many tokens in the pipe as there are CPUs to count on.

use crate::clients::{Clients, Missing};
use crate::forwarding::{self, Signals};
use crate::messages::say;
use crate::place::Place;
use crate::pool::Pool;
use anyhow::Result;
use freqlock_cpus::{Counter, PageError, Processes};
use nix::errno::Errno;
use nix::poll::{poll, PollFd, PollFlags, PollTimeout};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

/// The first look without the page says nothing of neighbours, so the second comes soon.
const SOON: Duration = Duration::from_millis(50);
/// A look takes a part of the time that is at most one in so many.
const LOOK_PART: u32 = 100;

/// What the command line says of how many jobs there are.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Jobs for each CPU to count on.
    pub overcommit: f64,
    /// The most jobs, whatever there is.
    pub most: usize,
    /// How often it looks.
    pub period: Duration,
    /// Says how many jobs there are when that changes.
    pub verbose: bool,
}

/// A pool and all that decides how many tokens it has.
pub struct Server {
    pool: Pool,
    place: Option<Place>,
    /// True if clients come from anywhere, each with a job that has no token.
    is_public: bool,
    policy: Policy,
    counter: Counter,
    missing: Missing,
    has_looked: bool,
    jobs: usize,
    has_said: bool,
}

impl Server {
    /// For the pool at `place`, if it is a fifo; with the page of CPUs at `page`.
    pub fn new(
        pool: Pool,
        place: Option<Place>,
        is_public: bool,
        page: &Path,
        policy: Policy,
    ) -> Self {
        Self {
            pool,
            place,
            is_public,
            policy,
            counter: Counter::new(page),
            missing: Missing::default(),
            has_looked: false,
            jobs: 0,
            has_said: false,
        }
    }

    /// Serves until the child ends, or without one until a signal comes; the status to end with.
    pub fn serve(&mut self, signals: &Signals, mut child: Option<Child>) -> Result<u8> {
        loop {
            let next = Instant::now();
            let (tokens, wait) = self.look();
            let next = next + wait;
            loop {
                let is_settled = self.pool.settle(tokens)?;
                let left = next.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                // Tokens that are to go are taken as they come back.
                let mut fds = vec![PollFd::new(signals.fd().as_fd(), PollFlags::POLLIN)];
                if !is_settled {
                    fds.push(PollFd::new(self.pool.pipe().as_fd(), PollFlags::POLLIN));
                }
                // Rounded up: no polling without waiting.
                let left = PollTimeout::try_from(left + Duration::from_millis(1))
                    .unwrap_or(PollTimeout::MAX);
                match poll(&mut fds, left) {
                    Ok(_) | Err(Errno::EINTR) => {}
                    Err(why) => return Err(why.into()),
                }
                let end = signals.pass_on(child.as_ref());
                match &mut child {
                    Some(child) => {
                        if let Some(status) = child.try_wait()? {
                            return Ok(forwarding::status(status));
                        }
                    }
                    None if end.is_some() => return Ok(0),
                    None => {}
                }
            }
        }
    }

    /// Looks at the machine: how many tokens there are to be, and when to look again.
    fn look(&mut self) -> (usize, Duration) {
        let began = Instant::now();
        if let Some(what) = self.place.as_mut().and_then(Place::keep) {
            say(&what);
        }
        let processes = Processes::look();
        let counted = self.counter.count(&processes);
        let is_blind = !self.has_looked && counted.without_page.is_some();
        let source = match &counted.without_page {
            None => "the page",
            Some(_) => "/proc",
        };
        match counted.without_page {
            None => self.has_said = false,
            Some(PageError::Missing) => {}
            Some(why) if !self.has_said => {
                self.has_said = true;
                say(&format!("{why}: counting by /proc"));
            }
            Some(_) => {}
        }
        let jobs = (counted.cpus * self.policy.overcommit).round() as usize;
        let jobs = if is_blind {
            1
        } else {
            jobs.clamp(1, self.policy.most)
        };
        let implicit = self.find_clients(&processes);
        if self.policy.verbose && jobs != self.jobs {
            say(&format!("jobs: {jobs}, by {source}"));
        }
        self.jobs = jobs;
        let took = began.elapsed();
        self.has_looked = true;
        let wait = if is_blind { SOON } else { self.policy.period };
        (jobs.saturating_sub(implicit), wait.max(took * LOOK_PART))
    }

    /// Writes off lost tokens; how many jobs need no token.
    fn find_clients(&mut self, processes: &Processes) -> usize {
        let outstanding = self.pool.outstanding();
        if outstanding == 0 && !self.is_public {
            return 1;
        }
        let clients = Clients::look(self.pool.id(), processes);
        let now = Instant::now();
        let lost = self.missing.lost(now, outstanding, clients.tokens);
        if lost > 0 {
            self.pool.write_off(lost);
            say(&format!(
                "{lost} tokens were lost with clients that ended, and are put in again"
            ));
        }
        match self.is_public {
            true => clients.uppermost.max(1),
            false => 1,
        }
    }
}
