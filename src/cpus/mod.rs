// SPDX-License-Identifier: GPL-2.0-only
//! How many CPUs each process and cgroup can count on now: by affinity, by quota, and by
//! what its neighbours want. Published for programs in a page of memory
//! (lib/cpus_page.h), and for people by `scx_freqlock cpus`.
//!
//! `ledger` reads what the BPF side entered for a period, `keeper` knows the processes,
//! `quota` what cgroups allow, `count` makes CPUs of that, `share` being the
//! arithmetic, `page` is what others see. [`ignored`] is what cgroups ask of the scheduler in
//! vain.

pub(crate) mod count;
mod ignored;
mod keeper;
mod layout;
mod ledger;
pub(crate) mod mask;
pub(crate) mod page;
pub(crate) mod quota;
mod share;

pub use ignored::ignored;
pub use ledger::Living;

use crate::page_file::monotonic;
use anyhow::Result;
use keeper::{Keeper, Running};
use ledger::Ledgers;
use libbpf_rs::MapCore;
use page::{Contents, Writer};
use std::path::Path;
use std::time::{Duration, Instant};

/// Where the page is, `FL_CPUS_PATH`.
pub const PATH: &str = "/run/scx_freqlock/cpus";

/// How often all but what ran is looked up.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Writes the page, for as long as it lives.
pub struct Publisher {
    writer: Writer,
    ledgers: Ledgers,
    keeper: Keeper<Running>,
    looked: Option<Instant>,
    entered: Vec<ledger::Entered>,
}

impl Publisher {
    /// Makes a page for the CPUs that there are, from the map of ledgers.
    pub fn new(ledgers: &impl MapCore, present: impl Iterator<Item = usize>) -> Result<Self> {
        Ok(Self {
            ledgers: Ledgers::new(ledgers)?,
            keeper: Keeper::new(Running::default(), present.collect()),
            looked: None,
            entered: Vec::new(),
            writer: Writer::create(Path::new(PATH))?,
        })
    }

    /// Writes what there is to say of the period that ended: its word and its length, ns;
    /// 0 if there was none. The next ends in a `period`. `living` finds the living processes.
    pub fn publish(
        &mut self,
        (word, length): (u64, u64),
        period: Duration,
        living: impl FnOnce() -> Result<Vec<Living>>,
    ) -> Result<()> {
        if self.looked.is_none_or(|then| then.elapsed() >= LOOK_EVERY) {
            self.looked = Some(Instant::now());
            self.keeper.kernel.look();
            self.keeper.take_in(&living()?);
        }
        self.entered.clear();
        if length > 0 {
            let entered = &mut self.entered;
            self.ledgers.read(word, |did| entered.push(did));
        }
        let page = Contents {
            updated: monotonic(),
            period,
            agent: std::process::id(),
            ..self.keeper.page(&self.entered, length)
        };
        self.writer.write(&page);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_is_where_the_header_says() {
        let path = std::ffi::CStr::from_bytes_with_nul(super::layout::FL_CPUS_PATH).unwrap();
        assert_eq!(path.to_str().unwrap(), super::PATH);
    }
}
