// SPDX-License-Identifier: GPL-2.0-only
//! Policies by users in the running scheduler: programs on the functions of
//! bpf/hooks_default.bpf.c. Such a function is there once for each program that calls it, so a
//! policy's object is loaded once for each of these; its variables are the same in all of them.

use crate::libbpf_log;
use anyhow::{ensure, Context, Result};
use freqlock::context::InForce;
use freqlock::intf;
use freqlock::user_policy::{self as policy, hook_of, Error, Hook, Wanted};
use libbpf_rs::btf::{Btf, BtfType, TypeId};
use libbpf_rs::libbpf_sys::{BPF_CALL, BPF_JMP, BPF_PSEUDO_CALL};
use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions, ProgramInfo};
use libbpf_rs::{Link, MapCore, Object, ObjectBuilder, OpenObject, Program, ProgramType};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// The map of freqlock_policy.bpf.h.
const CALLS: &str = ".bss.policy";

/// What is needed to load a policy, again too where the scheduler is loaded again.
#[derive(Clone)]
pub struct Source {
    pub(super) name: String,
    pub(super) context: Option<String>,
    object: Vec<u8>,
}

/// A policy that is asked.
pub struct Active {
    pub(super) source: Source,
    pub(super) hooks: Vec<Hook>,
    pub(super) programs: usize,
    pub(super) swap_us: u64,
    /// Gone first: then nothing runs what the objects have.
    pub(super) links: Vec<Link>,
    pub(super) _objects: Vec<Object>,
}

/// Those of the scheduler that runs.
#[derive(Default)]
pub struct UserPolicies(pub(super) Vec<Active>);

/// Verified, and not asked yet.
pub struct Verified {
    pub(super) hooks: Vec<Hook>,
    pub(super) objects: Vec<Object>,
}

/// A program of the scheduler's that asks policies.
pub struct Target {
    id: u32,
    asks: Vec<Hook>,
}

impl Source {
    pub fn read(wanted: &Wanted) -> Result<Self> {
        policy::check_name(&wanted.name)?;
        let cannot = || format!("cannot read {}", wanted.object.display());
        let file = File::open(&wanted.object).with_context(cannot)?;
        let mut object = Vec::new();
        file.take(policy::MAX_BYTES + 1)
            .read_to_end(&mut object)
            .with_context(cannot)?;
        ensure!(
            object.len() as u64 <= policy::MAX_BYTES,
            "an object of a policy has at most {} bytes",
            policy::MAX_BYTES
        );
        Ok(Self {
            name: wanted.name.clone(),
            context: wanted.context.clone(),
            object,
        })
    }

    fn open(&self) -> Result<OpenObject> {
        let open = ObjectBuilder::default()
            .name(&self.name)
            .and_then(|builder| builder.open_memory(&self.object));
        open.with_context(|| format!("{} is no BPF object", self.name))
    }

    /// What its functions decide.
    pub fn hooks(&self) -> Result<Vec<Hook>> {
        let open = self.open()?;
        let hooks: Result<Vec<Hook>, Error> = open
            .progs()
            .map(|program| hook_of(&program.section().to_string_lossy()))
            .collect();
        let hooks = hooks?;
        ensure!(!hooks.is_empty(), Error::Empty);
        Ok(hooks)
    }

    /// About whom it is asked, `enum fl_hook_whose`.
    pub fn whose(&self, contexts: &InForce) -> Result<u32, Error> {
        let Some(name) = &self.context else {
            return Ok(intf::fl_hook_whose_FL_HOOK_ALL);
        };
        let number = contexts.number_of(name);
        let number = number.ok_or_else(|| Error::NoContext(name.clone()))?;
        Ok(intf::fl_hook_whose_FL_HOOK_CONTEXT + number)
    }

    /// Has the kernel verify it for each program that would ask it.
    pub fn verify(
        &self,
        hooks: &[Hook],
        targets: &[Target],
        calls: BorrowedFd,
    ) -> Result<Verified> {
        let mut objects: Vec<Object> = Vec::new();
        for target in targets {
            if !target.asks.iter().any(|hook| hooks.contains(hook)) {
                continue;
            }
            let object = self.verify_for(target, calls, objects.first())?;
            objects.push(object);
        }
        let hooks = hooks.to_vec();
        Ok(Verified { hooks, objects })
    }

    fn verify_for(
        &self,
        target: &Target,
        calls: BorrowedFd,
        first: Option<&Object>,
    ) -> Result<Object> {
        let fd = Program::fd_from_id(target.id).context("the scheduler's program is gone")?;
        let mut open = self.open()?;
        for mut program in open.progs_mut() {
            let hook = hook_of(&program.section().to_string_lossy())?;
            let is_asked = target.asks.contains(&hook);
            program.set_autoload(is_asked);
            if is_asked {
                program.set_attach_target(fd.as_raw_fd(), Some(hook.target()))?;
            }
        }
        for mut map in open.maps_mut() {
            let name = map.name().to_owned();
            if name == CALLS {
                map.reuse_fd(calls)?;
            } else if let Some(same) = first.and_then(|of| of.maps().find(|m| m.name() == name)) {
                map.reuse_fd(same.as_fd())?;
            }
        }
        libbpf_log::forget();
        let object = open.load().map_err(|error| {
            let printed = libbpf_log::printed();
            let why = policy::refusal(&printed).or_else(libbpf_log::failure);
            anyhow::anyhow!(why.unwrap_or_else(|| format!("it does not load: {error}")))
        })?;
        for program in object.progs() {
            let name = program.name().to_string_lossy();
            let calls = |insn: &libbpf_rs::libbpf_sys::bpf_insn| {
                u32::from(insn.code) == BPF_JMP | BPF_CALL
                    && u32::from(insn.src_reg()) != BPF_PSEUDO_CALL
            };
            ensure!(
                !program.insns().iter().any(calls),
                Error::Calls(name.into())
            );
        }
        Ok(object)
    }
}

impl Verified {
    /// From now on it is called.
    pub fn attach(&self) -> Result<Vec<Link>> {
        let programs = self.objects.iter().flat_map(Object::progs_mut);
        let loaded = programs.filter(|program| program.autoload());
        let links: libbpf_rs::Result<Vec<Link>> = loaded.map(|program| program.attach()).collect();
        links.context("the kernel does not attach it")
    }
}

/// The scheduler's programs that ask policies: its own operations, and what is attached where locks
/// are waited for.
pub fn targets(sign: u32) -> Result<Vec<Target>> {
    let programs = || {
        ProgInfoIter::with_query_opts(ProgInfoQueryOptions::default().include_func_info(true))
            .filter(|info| [ProgramType::StructOps, ProgramType::Tracing].contains(&info.ty))
    };
    let ours = programs().find(|info| info.id == sign);
    let ours = ours.ok_or(Error::NoCapability)?;
    let btf = Btf::from_prog_id(sign).context("cannot read the scheduler's types")?;
    let name = |id: u32| {
        let of: Option<BtfType> = btf.type_by_id(TypeId::from(id));
        Some(of?.name()?.to_string_lossy().into_owned())
    };
    let target = |info: ProgramInfo| {
        let functions = info.func_info.iter().filter_map(|of| name(of.type_id));
        let functions: Vec<String> = functions.collect();
        let may_ask = |hook: &Hook| info.ty == ProgramType::StructOps || hook.is_traced();
        let asks = |hook: &Hook| may_ask(hook) && functions.contains(&hook.target());
        Target {
            id: info.id,
            asks: Hook::all().iter().copied().filter(asks).collect(),
        }
    };
    let all = programs().filter(|info| info.btf_id == ours.btf_id);
    Ok(all.map(target).collect())
}
