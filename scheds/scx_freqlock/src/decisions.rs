// SPDX-License-Identifier: GPL-2.0-only
//! What `record` has of our own scheduler, beside what the kernel's tracepoints report:
//! bpf/decisions.bpf.c watches functions of the scheduler's programs, and is loaded once for each of
//! these that has some.

use crate::libbpf_log::VerifierOpts;
use crate::variables::Variables;
use anyhow::{Context, Result};
use freqlock::trace::format::DecidesBy;
use freqlock::trace::Kind;
use libbpf_rs::btf::types::Struct;
use libbpf_rs::btf::{Btf, BtfType, TypeId};
use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions, ProgramInfo};
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::{HasSize, MapCore, MapFlags, OpenObject, Program, ProgramType};
use std::collections::BTreeSet;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

#[allow(clippy::all, clippy::unwrap_used)]
#[allow(clippy::undocumented_unsafe_blocks)]
mod skel {
    //! The skeleton of bpf/decisions.bpf.c.
    include!(concat!(env!("OUT_DIR"), "/decisions_skel.rs"));
}

/// A program that each of our schedulers has.
const SIGN: &str = "freqlock_tick";

/// A program of the scheduler in charge, and its functions.
struct Watched {
    id: u32,
    functions: BTreeSet<String>,
}

/// Our scheduler.
pub struct Ours {
    programs: Vec<Watched>,
    variables: Variables,
}

/// What all objects of a recording have alike.
pub struct Shared<'a> {
    /// A set of kinds.
    pub wanted: u64,
    /// The buffers' map.
    pub events: BorrowedFd<'a>,
    /// The cursors' one.
    pub cursors: BorrowedFd<'a>,
    /// What is printed of the verifier.
    pub verifier: VerifierOpts,
}

/// Programs that write down what the scheduler decides, until this is dropped.
pub struct Watching<'a>(Vec<skel::DecisionsSkel<'a>>);

fn programs() -> impl Iterator<Item = ProgramInfo> {
    ProgInfoIter::with_query_opts(
        ProgInfoQueryOptions::default()
            .include_func_info(true)
            .include_map_ids(true),
    )
}

fn open(
    object: &mut MaybeUninit<OpenObject>,
    verifier: VerifierOpts,
) -> Result<skel::OpenDecisionsSkel<'_>> {
    skel::DecisionsSkelBuilder::default()
        .open_opts(verifier.open_opts(None), object)
        .context("cannot open the BPF object of the scheduler's decisions")
}

/// The kind that a program here writes: its name is record_KIND, or record_KIND__WHERE.
fn kind_of(program: &str) -> Option<Kind> {
    let name = program.strip_prefix("record_")?;
    let name = name.split("__").next()?.replace('_', "-");
    Kind::ours().find(|kind| kind.name() == name)
}

impl Ours {
    /// The scheduler in charge, if it is of our own build: what it has in memory is read.
    pub fn find() -> Result<Option<Self>> {
        let is_sign = |info: &ProgramInfo| info.ty == ProgramType::StructOps && info.name == SIGN;
        // While it is reloaded there are two.
        let Some(sign) = programs().filter(is_sign).max_by_key(|info| info.id) else {
            return Ok(None);
        };
        let btf = Btf::from_prog_id(sign.id).context("cannot read the scheduler's types")?;
        let mut object = MaybeUninit::uninit();
        let open = open(&mut object, VerifierOpts::default())?;
        let known = open.maps.rodata_data.as_deref();
        let known = known.context("the BPF object of decisions has no .rodata")?;
        let size = |name: &str| btf.type_by_name::<Struct>(name).map(|of| of.size() as u32);
        let theirs = ["task_ctx", "placement", "cpu_ctx", "rent"].map(size);
        let ours = [
            known.task_ctx_size,
            known.placement_size,
            known.cpu_ctx_size,
            known.rent_size,
        ];
        if theirs != ours.map(Some) {
            return Ok(None);
        }
        let name = |id: u32| {
            let of: Option<BtfType> = btf.type_by_id(TypeId::from(id));
            Some(of?.name()?.to_string_lossy().into_owned())
        };
        let watched = |info: ProgramInfo| Watched {
            id: info.id,
            functions: (info.func_info.iter())
                .filter_map(|of| name(of.type_id))
                .collect(),
        };
        let all = programs().filter(|info| info.btf_id == sign.btf_id);
        Ok(Some(Self {
            programs: all.map(watched).collect(),
            variables: Variables::of(&sign, &btf)?,
        }))
    }

    /// What decisions are made by beside what is recorded of each.
    pub fn decides_by(&self) -> Result<DecidesBy> {
        self.variables.decides_by()
    }

    /// How many objects it takes at most.
    pub fn objects(&self) -> Vec<MaybeUninit<OpenObject>> {
        self.programs
            .iter()
            .map(|_| MaybeUninit::uninit())
            .collect()
    }

    /// Loads what writes the wanted kinds; it is not attached yet.
    pub fn watch<'a>(
        &self,
        shared: &Shared,
        objects: &'a mut [MaybeUninit<OpenObject>],
    ) -> Result<Watching<'a>> {
        let mut all = Vec::new();
        for (watched, object) in self.programs.iter().zip(objects) {
            all.extend(watched.watch(shared, &self.variables, object)?);
        }
        Ok(Watching(all))
    }
}

impl Watched {
    fn watch<'a>(
        &self,
        shared: &Shared,
        variables: &Variables,
        object: &'a mut MaybeUninit<OpenObject>,
    ) -> Result<Option<skel::DecisionsSkel<'a>>> {
        // It may have ended meanwhile.
        let Ok(target) = Program::fd_from_id(self.id) else {
            return Ok(None);
        };
        let mut open = open(object, shared.verifier)?;
        let mut is_any = false;
        for mut program in open.open_object_mut().progs_mut() {
            let section = program.section().to_string_lossy().into_owned();
            let function = section.rsplit('/').next().unwrap_or_default();
            let kind = kind_of(&program.name().to_string_lossy());
            let is_wanted = kind.is_some_and(|kind| shared.wanted & kind.bit() != 0)
                && self.functions.contains(function);
            program.set_autoload(is_wanted);
            if is_wanted {
                is_any = true;
                program.set_attach_target(target.as_raw_fd(), Some(function.into()))?;
            }
        }
        if !is_any {
            return Ok(None);
        }
        let rodata = open.maps.rodata_data.as_deref_mut();
        let rodata = rodata.context("the BPF object of decisions has no .rodata")?;
        rodata.wanted = shared.wanted;
        rodata.at_cpu_ctxs = variables.offset("cpu_ctxs")?;
        rodata.at_cpu_topo = variables.offset("cpu_topo")?;
        rodata.at_rents = variables.offset("rents")?;
        rodata.at_test_speed = variables.offset("test_speed")?;
        rodata.at_warm_share = variables.offset("warm_share")?;
        let bss = variables.bss().as_raw_fd();
        open.maps.variables.set_inner_map_fd(variables.bss())?;
        open.maps.events.reuse_fd(shared.events)?;
        open.maps.data_cursors.reuse_fd(shared.cursors)?;
        // Of headers of the scheduler's.
        open.maps.task_ctxs.set_autocreate(false)?;
        open.maps.cpu_orders.set_autocreate(false)?;
        let skel = open
            .load()
            .context("cannot load what records the scheduler's decisions")?;
        let to = &skel.maps.variables;
        to.update(&0u32.to_ne_bytes(), &bss.to_ne_bytes(), MapFlags::ANY)
            .context("cannot pass on the scheduler's variables")?;
        Ok(Some(skel))
    }
}

impl Watching<'_> {
    /// Ids of its programs.
    pub fn ids(&self) -> Vec<u32> {
        let fds = self.0.iter().flat_map(|skel| skel.object().progs());
        fds.filter_map(|prog| Program::id_from_fd(prog.as_fd()).ok())
            .collect()
    }

    /// From now on they write.
    pub fn attach(&mut self) -> Result<()> {
        let cannot = "cannot attach what records the scheduler's decisions";
        (self.0.iter_mut()).try_for_each(|skel| skel.attach().context(cannot))
    }

    /// Nothing is written any more, but what has begun.
    pub fn stop(&mut self) {
        for skel in &mut self.0 {
            skel.links = skel::DecisionsLinks::default();
        }
    }

    /// Events of CPUs that came later.
    pub fn lost_elsewhere(&self) -> u64 {
        let bss = self
            .0
            .iter()
            .filter_map(|skel| skel.maps.bss_data.as_deref());
        bss.map(|bss| bss.lost_elsewhere).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn each_kind_of_ours_has_a_program_that_writes_it() {
        assert_eq!(kind_of("record_lock_wait"), Some(Kind::LockWait));
        assert_eq!(kind_of("record_place__big"), Some(Kind::Place));
        assert_eq!(kind_of("record_switch"), None);
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let source = std::fs::read_to_string(root.join("bpf/decisions.bpf.c")).unwrap();
        let programs = source.split("int record_").skip(1);
        let names = programs.filter_map(|text| Some(format!("record_{}", text.split_once('(')?.0)));
        let written: BTreeSet<_> = names.map(|name| kind_of(&name).unwrap().name()).collect();
        // What `weigh` begins goes on with these.
        let all = Kind::ours().filter(|kind| *kind != Kind::WeighRest);
        let all: BTreeSet<_> = all.map(Kind::name).collect();
        assert_eq!(written, all);
    }
}
