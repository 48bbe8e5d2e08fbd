// SPDX-License-Identifier: GPL-2.0-only
//! One run of one command on one machine: what is needed, how it is started, and
//! what is kept of it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use serde::Serialize;

use super::description::Description;
use super::error::Error;
use super::flat::{self, Variant};
use super::guest::{self, Scheduler};
use super::kit::Kit;
use super::qemu::{self, Files, Setup};
use super::record::{Cpu, Record, Totals};
use super::{cpufreq, devicetree, image, timeline};
use crate::process::Event;
use crate::schedulers::{self, Programs};
use freqlock::lab_args::Arch;

/// Our scheduler's program, in the guest.
pub const AGENT: &str = "scx_freqlock";

/// One run of one command on one machine.
#[derive(Clone, Debug)]
pub struct Job {
    pub machine: Description,
    pub variant: Variant,
    /// Beside what every guest's kernel is told.
    pub kernel_args: String,
    pub seed: u32,
    pub shift_us: u64,
    /// Of the machine's own time.
    pub limit_s: u64,
    pub memory_mb: u64,
    pub timeout: Duration,
    pub scheduler: Option<Scheduler>,
    pub command: Vec<String>,
}

/// What every run on a kit has in common: the image, without its script.
#[derive(Debug)]
pub struct Base {
    pub kit: Kit,
    pub tree: image::Tree,
    pub image: PathBuf,
    pub bytes: u64,
    pub digest: String,
}

impl Base {
    pub fn load(kit: &Path, arch: Arch) -> Result<Self, Error> {
        let kit = Kit::load(kit, arch)?;
        let tree = kit.tree()?;
        let archive = tree.archive().map_err(|source| Error::Write {
            path: kit.images(),
            source,
        })?;
        let digest = image::digest(&archive);
        Ok(Self {
            image: image::keep(&kit.images(), &archive, &digest)?,
            bytes: archive.len() as u64,
            digest,
            tree,
            kit,
        })
    }

    pub fn has(&self, command: &str) -> bool {
        self.tree.has_command(command, guest::FOLDER, &guest::PATH)
    }

    /// A scheduler as `compare` names them; none for the kernel's own.
    pub fn scheduler(&self, spec: &str) -> Result<Option<Scheduler>, Error> {
        let find = |name: &str| self.has(name).then(|| PathBuf::from(name));
        let programs = Programs {
            ours: Path::new(AGENT),
            find: &find,
            simulated: None,
        };
        let Some(found) = schedulers::scheduler(spec, &programs)? else {
            return Err(Error::NoCommand {
                command: spec.split(':').next().unwrap_or(spec).into(),
            });
        };
        Ok(in_guest(&found))
    }
}

/// What the guest runs to load a scheduler.
pub fn in_guest(scheduler: &schedulers::Scheduler) -> Option<Scheduler> {
    let loader = scheduler.loader.as_ref()?;
    Some(Scheduler {
        label: scheduler.label.clone(),
        command: std::iter::once(loader.program.as_os_str())
            .chain(loader.arguments.iter().map(|word| word.as_os_str()))
            .map(|word| word.to_string_lossy().into_owned())
            .collect(),
        ops: loader.ops.clone(),
    })
}

/// What a run leaves, as it is written to run.json.
#[derive(Debug, Serialize)]
struct Summary {
    /// Changes when a reader would have to change.
    format: u32,
    machine: String,
    cpus: u32,
    arch: Arch,
    qemu: String,
    kernel: String,
    /// Digest of the image.
    image: String,
    seed: u32,
    shift_us: u64,
    always_top: bool,
    migration_cost: bool,
    kernel_args: String,
    scheduler: String,
    /// State, name and count of sched_ext, the same before and after.
    loaded: String,
    command: Vec<String>,
    status: u8,
    /// The guest's time that the command took.
    command_ns: u64,
    begin_ns: u64,
    /// From power on to power off, as what follows.
    totals: Totals,
    per_cpu: Vec<Cpu>,
}

pub struct Outcome {
    pub report: guest::Report,
    pub record: Record,
    /// With the files of the run in it.
    pub dir: tempfile::TempDir,
}

pub fn simulate(
    base: &Base,
    job: &Job,
    sender: &Sender<Event>,
    events: &Receiver<Event>,
) -> Result<Outcome, Error> {
    let program = job.command.first().map_or("", String::as_str);
    if !base.has(program) {
        return Err(Error::NoCommand {
            command: program.into(),
        });
    }
    qemu::check_memory(job.memory_mb, base.bytes, qemu::available_mb())?;
    let dir = tempfile::Builder::new()
        .prefix("freqlock-machine.")
        .tempdir()
        .map_err(|source| Error::Write {
            path: std::env::temp_dir(),
            source,
        })?;
    let files = Files::of(dir.path());
    let script = guest::script(
        &job.command,
        job.scheduler.as_ref(),
        job.shift_us,
        job.limit_s,
    );
    let guest_page = match base.kit.arch {
        Arch::X86_64 => None,
        Arch::Arm64 => describe(job, &files)?,
    };
    write(
        &files.flat,
        flat::flat(&job.machine, job.variant, guest_page).as_bytes(),
    )?;
    append_script(&base.image, &files.image, &script).map_err(|source| Error::Write {
        path: files.image.clone(),
        source,
    })?;
    let setup = Setup {
        machine: &job.machine,
        arch: base.kit.arch,
        kernel_args: &job.kernel_args,
        memory_mb: job.memory_mb,
        seed: job.seed,
        governor: if job.variant.always_top {
            "performance"
        } else {
            "schedutil"
        },
        program: &base.kit.qemu,
        plugin: &base.kit.plugin,
        kernel: &base.kit.kernel,
        dir: dir.path(),
        timeout: job.timeout,
    };
    let report = qemu::run(&setup, sender, events)?;
    // It may be hundreds of megabytes.
    std::fs::remove_file(&files.image).ok();
    let record = Record::load(&files.record)?;
    Ok(Outcome {
        report,
        record,
        dir,
    })
}

/// Writes what an arm64 guest learns of its machine, and says where it chooses
/// frequencies.
fn describe(job: &Job, files: &Files) -> Result<Option<u64>, Error> {
    let registers = cpufreq::registers(&job.machine).map_err(|reason| Error::NoArm64 {
        machine: job.machine.name.clone(),
        reason,
    })?;
    write(&files.registers, &registers)?;
    let tree = devicetree::blob(&job.machine, job.memory_mb, job.seed)?;
    write(&files.tree, &tree)?;
    Ok(cpufreq::governing(&job.machine, job.memory_mb))
}

/// The kernel unpacks one archive after the other.
fn append_script(image: &Path, to: &Path, script: &str) -> std::io::Result<()> {
    std::fs::copy(image, to)?;
    let mut file = std::fs::OpenOptions::new().append(true).open(to)?;
    file.write_all(&image::script_archive(guest::SCRIPT, script)?)
}

pub fn make_folder(path: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(path).map_err(|source| Error::Write {
        path: path.into(),
        source,
    })
}

pub fn write(path: &Path, data: &[u8]) -> Result<(), Error> {
    std::fs::write(path, data).map_err(|source| Error::Write {
        path: path.into(),
        source,
    })
}

/// Writes all that is known of a run into a folder.
pub fn keep(to: &Path, base: &Base, job: &Job, outcome: &Outcome) -> Result<(), Error> {
    let record = &outcome.record;
    let scheduler = job.scheduler.as_ref().map_or("eevdf", |s| s.label.as_str());
    let summary = Summary {
        format: 1,
        machine: job.machine.name.clone(),
        cpus: job.machine.cpus(),
        arch: base.kit.arch,
        qemu: base.kit.qemu_version.clone(),
        kernel: base.kit.kernel_version.clone(),
        image: base.digest.clone(),
        seed: job.seed,
        shift_us: job.shift_us,
        always_top: job.variant.always_top,
        migration_cost: job.variant.migration_cost,
        kernel_args: job.kernel_args.clone(),
        scheduler: scheduler.into(),
        loaded: outcome.report.loaded.clone(),
        command: job.command.clone(),
        status: outcome.report.status,
        command_ns: record.command_ns(),
        begin_ns: record.begin_ns,
        totals: record.totals,
        per_cpu: record.cpus.clone(),
    };
    let json = serde_json::to_vec_pretty(&summary).map_err(|error| Error::Write {
        path: to.join("run.json"),
        source: error.into(),
    })?;
    write(&to.join("run.json"), &[&json[..], b"\n"].concat())?;
    let title = format!(
        "{}, {scheduler}, seed {}: {}",
        job.machine.name,
        job.seed,
        job.command.join(" ")
    );
    let picture = timeline::svg(&job.machine, record, &title)?;
    write(&to.join("timeline.svg"), picture.as_bytes())?;
    let (from, there) = (Files::of(outcome.dir.path()), Files::of(to));
    for (from, to) in [
        (from.flat, there.flat),
        (from.record, there.record),
        (from.console, there.console),
    ] {
        std::fs::copy(&from, &to).map_err(|source| Error::Write { path: to, source })?;
    }
    Ok(())
}
