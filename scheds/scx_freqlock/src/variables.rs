// SPDX-License-Identifier: GPL-2.0-only
//! The global variables of the scheduler in charge, which are its maps `.bss` and `.data`.

use anyhow::{Context, Result};
use freqlock::intf;
use freqlock::trace::format::{DecidesBy, Place};
use freqlock::trace::replay;
use libbpf_rs::btf::types::DataSec;
use libbpf_rs::btf::{Btf, BtfType};
use libbpf_rs::query::ProgramInfo;
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd};

const CPUS: usize = intf::fl_consts_FL_MAX_CPUS as usize;

/// Variables without a value at the start, and with one.
pub struct Variables {
    bss: Section,
    data: Section,
}

struct Section {
    map: MapHandle,
    /// By name.
    offsets: HashMap<String, usize>,
}

/// What a section holds now.
struct Values<'a> {
    section: &'a Section,
    bytes: Vec<u8>,
}

impl Section {
    fn of(name: &str, program: &ProgramInfo, btf: &Btf) -> Result<Self> {
        let variables: DataSec = (btf.type_by_name(name))
            .with_context(|| format!("the scheduler's types have no {name}"))?;
        let offsets = variables.iter().filter_map(|variable| {
            let of: BtfType = btf.type_by_id(variable.ty)?;
            let name = of.name()?.to_string_lossy().into_owned();
            Some((name, variable.offset as usize))
        });
        let map = (program.map_ids.iter())
            .filter_map(|id| MapHandle::from_map_id(*id).ok())
            .find(|map| map.name().to_string_lossy().ends_with(name))
            .with_context(|| format!("the scheduler has no map {name}"))?;
        Ok(Self {
            map,
            offsets: offsets.collect(),
        })
    }

    fn offset(&self, name: &str) -> Result<usize> {
        let offset = self.offsets.get(name).copied();
        offset.with_context(|| format!("the scheduler has no variable `{name}`"))
    }

    fn values(&self) -> Result<Values<'_>> {
        let bytes = self.map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY)?;
        Ok(Values {
            section: self,
            bytes: bytes.context("the map is empty")?,
        })
    }
}

impl Values<'_> {
    /// The bytes from byte `at` of a variable on.
    fn at<const N: usize>(&self, name: &str, at: usize) -> Result<[u8; N]> {
        let from = self.section.offset(name)? + at;
        let bytes = self.bytes.get(from..from + N);
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        bytes.with_context(|| format!("the scheduler's variable `{name}` is shorter"))
    }

    /// Element `i` of an array of words, or of structs of these.
    fn word(&self, name: &str, i: usize) -> Result<u32> {
        Ok(u32::from_ne_bytes(self.at(name, i * size_of::<u32>())?))
    }
}

impl Variables {
    /// Those of the program, which has these types.
    pub fn of(program: &ProgramInfo, btf: &Btf) -> Result<Self> {
        Ok(Self {
            bss: Section::of(".bss", program, btf)?,
            data: Section::of(".data", program, btf)?,
        })
    }

    /// The map `.bss`.
    pub fn bss(&self) -> BorrowedFd<'_> {
        self.bss.map.as_fd()
    }

    /// Where one begins there.
    pub fn offset(&self, name: &str) -> Result<u32> {
        Ok(u32::try_from(self.bss.offset(name)?)?)
    }

    /// What decisions are made by, as it is now.
    pub fn decides_by(&self) -> Result<DecidesBy> {
        let cannot = "cannot read the scheduler's variables";
        let bss = self.bss.values().context(cannot)?;
        let data = self.data.values().context(cannot)?;
        let mut turbo = (0..CPUS).map(|i| bss.word("turbo", i));
        let mut turbo = turbo.by_ref().collect::<Result<Vec<u32>>>()?;
        // The last stands for more.
        while turbo.len() > 1 && turbo[turbo.len() - 2..][0] == turbo[turbo.len() - 1] {
            turbo.pop();
        }
        let mut places = Vec::new();
        for cpu in 0..CPUS {
            let words = size_of::<intf::cpu_topo>() / size_of::<u32>();
            let word = |at: usize| bss.word("cpu_topo", cpu * words + at / size_of::<u32>());
            places.push(Place {
                core: word(std::mem::offset_of!(intf::cpu_topo, core))?,
                llc: word(std::mem::offset_of!(intf::cpu_topo, llc))?,
                node: word(std::mem::offset_of!(intf::cpu_topo, node))?,
                capacity: word(std::mem::offset_of!(intf::cpu_topo, capacity))?,
                sibling: u16::try_from(word(std::mem::offset_of!(intf::cpu_topo, sibling))?).ok(),
            });
        }
        // CPUs that are not there have no capacity.
        while places.last().is_some_and(|place| place.capacity == 0) {
            places.pop();
        }
        let knobs = replay::knobs().enumerate().map(|(i, knob)| {
            let value = bss.at("tunables", i * size_of::<u64>())?;
            Ok((knob.name.to_string(), u64::from_ne_bytes(value)))
        });
        Ok(DecidesBy {
            knobs: knobs.collect::<Result<_>>()?,
            source: data.word("freq_source", 0)?,
            smt: bss.at("smt_present", 0)? != [0u8],
            turbo,
            places,
        })
    }
}
