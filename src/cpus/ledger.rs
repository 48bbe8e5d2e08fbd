// SPDX-License-Identifier: GPL-2.0-only
//! What the BPF side entered for a period (bpf/neighbours.bpf.c), read from its memory.

use crate::intf;
use crate::raw::read;
use anyhow::{Context, Result};
use libbpf_rs::MapCore;
use memmap2::{MmapOptions, MmapRaw};
use std::os::fd::AsRawFd;

type Entry = intf::fl_ledger_entry;
type Bank = intf::fl_ledger_bank;

/// Of what found no room for its process.
pub const REST: u32 = u32::MAX;

/// What a process did on one CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entered {
    pub cpu: usize,
    /// 0 for the threads of the kernel, [`REST`] for several that were not counted separately.
    pub pid: u32,
    /// When it was born, ns since boot.
    pub start: u64,
    /// The id of its cgroup in version 2.
    pub cgroup: u64,
    /// ns; claim is all three, times the weight, 1 being that of nice 0.
    pub ran: u64,
    pub waited: u64,
    pub throttled: u64,
    pub claim: u64,
}

/// The ledgers of all CPUs, mapped.
pub struct Ledgers {
    map: MmapRaw,
    cpus: usize,
}

impl Ledgers {
    pub fn new(map: &impl MapCore) -> Result<Self> {
        let cpus = map.max_entries() as usize;
        let map = MmapOptions::new()
            .len(cpus * size_of::<intf::fl_ledger>())
            .map_raw_read_only(map.as_fd().as_raw_fd())
            .context("cannot map the ledgers")?;
        Ok(Self { map, cpus })
    }

    /// Passes on all that was entered for the period of this word.
    pub fn read(&self, word: u64, mut to: impl FnMut(Entered)) {
        let first = self.map.as_ptr().cast::<intf::fl_ledger>();
        for cpu in 0..self.cpus {
            // SAFETY: as many ledgers are mapped, for as long as `self` lives; nothing but
            // addresses is taken here.
            let (bank, look) = unsafe {
                let ledger = first.add(cpu);
                let bank = if word & 1 == 1 {
                    &raw const (*ledger).odd
                } else {
                    &raw const (*ledger).even
                };
                (bank, &raw const (*ledger).look)
            };
            read_bank(bank, word, cpu, &mut to);
            read_bank(look, word, cpu, &mut to);
        }
    }
}

const ENTRIES: usize = size_of::<Bank>() / size_of::<Entry>();

fn read_bank(bank: *const Bank, word: u64, cpu: usize, to: &mut impl FnMut(Entered)) {
    for i in 0..ENTRIES {
        // SAFETY: a bank is so many entries and nothing else, of integers alone. The BPF
        // side may still write to one, so it is read as such: a figure of it is then old.
        let entry = unsafe {
            let entry = bank.cast::<Entry>().add(i);
            if (&raw const (*entry).period).read_volatile() != word {
                continue;
            }
            entry.read_volatile()
        };
        to(Entered {
            cpu,
            pid: if i + 1 == ENTRIES { REST } else { entry.tgid },
            start: entry.start,
            cgroup: entry.cgroup,
            ran: entry.ran,
            waited: entry.waited,
            throttled: entry.throttled,
            claim: entry.claim,
        });
    }
}

/// A process that lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Living {
    /// The id of the process, not of a thread.
    pub pid: u32,
    /// When it was born, ns since boot.
    pub start: u64,
    /// The id of its cgroup in version 2.
    pub cgroup: u64,
    /// Of its first thread; 1024 is that of nice 0.
    pub weight: u64,
}

impl Living {
    /// All in a stream of `struct fl_process_record`.
    pub fn from_records(bytes: &[u8]) -> Vec<Self> {
        let records = bytes.chunks_exact(size_of::<intf::fl_process_record>());
        let records = records.filter_map(read::<intf::fl_process_record>);
        records
            .map(|record| Self {
                pid: record.pid,
                start: record.start,
                cgroup: record.cgroup,
                weight: record.weight,
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_the_period_alone_are_taken() {
        // SAFETY: made of integers alone.
        let mut bank: Box<Bank> = Box::new(unsafe { std::mem::zeroed() });
        (bank.entry[3].period, bank.entry[3].tgid, bank.entry[3].ran) = (8, 5, 11);
        (bank.entry[4].period, bank.entry[4].tgid) = (6, 7);
        (bank.rest.period, bank.rest.waited, bank.rest.throttled) = (8, 13, 4);
        let mut got = Vec::new();
        read_bank(&raw const *bank, 8, 2, &mut |entered| got.push(entered));
        assert_eq!(got.len(), 2);
        assert_eq!((got[0].cpu, got[0].pid, got[0].ran), (2, 5, 11));
        assert_eq!((got[1].pid, got[1].waited), (REST, 13));
        assert_eq!(got[1].throttled, 4);
    }

    #[test]
    fn the_living_are_read_one_after_the_other() {
        let record = |pid| intf::fl_process_record {
            start: 1,
            cgroup: 2,
            weight: 3,
            pid,
            unused: 0,
        };
        let bytes: Vec<u8> = [5u32, 6]
            .into_iter()
            .flat_map(|pid| {
                // SAFETY: the struct has no padding, so that every byte of it is written.
                let bytes: [u8; 32] = unsafe { std::mem::transmute(record(pid)) };
                bytes
            })
            .collect();
        let living = Living::from_records(&bytes);
        assert_eq!((living[0].pid, living[1].pid), (5, 6));
        assert_eq!(
            (living[1].start, living[1].cgroup, living[1].weight),
            (1, 2, 3)
        );
    }
}
