// SPDX-License-Identifier: GPL-2.0-only
//! `scx_freqlock machine`: runs commands on a simulated machine, a real kernel
//! in QEMU whose CPUs have the speeds of a model (machine/README.md).
//!
//! [`description`] reads machine/*.toml, [`flat`] writes it for the plugin,
//! [`devicetree`] and [`cpufreq`] for an arm64 guest,
//! [`kit`] and [`image`] make what is booted, [`qemu`] runs it with [`guest`] on
//! the other side, [`record`] and [`timeline`] are what it leaves. [`compare`]
//! makes the runs of `scx_freqlock compare --machine`, and [`check`] those whose
//! times are recorded, side by side as [`batch`] does.

mod args;
mod batch;
mod check;
pub mod compare;
mod cpufreq;
mod description;
mod devicetree;
mod flat;
mod guest;
mod image;
mod kit;
mod qemu;
mod record;
mod timeline;

pub use args::{Args, RunArgs};
pub use batch::Interrupt;
pub use kit::Arch;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use serde::Serialize;

use crate::compare::plan::{self, Programs};
use crate::compare::process::Event;
use crate::output::{self, Format};
use description::Description;
use flat::Variant;
use guest::Scheduler;
use kit::Kit;
use qemu::{Files, Setup};
use record::{Cpu, Record, Totals};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Description(#[from] description::Error),
    #[error("{0}")]
    Usage(String),
    #[error(transparent)]
    Scheduler(#[from] plan::Error),
    #[error(transparent)]
    Kit(#[from] kit::Error),
    #[error(transparent)]
    Image(#[from] image::Error),
    #[error("{command} is not in the machine's image: scripts/machine prepare --package NAME adds a package of Debian to it")]
    NoCommand { command: String },
    #[error("{machine} cannot have arm64 guests: {reason}")]
    NoArm64 { machine: String, reason: String },
    #[error("cannot describe the machine to its guest")]
    DeviceTree(#[from] vm_fdt::Error),
    #[error(transparent)]
    Qemu(#[from] qemu::Error),
    #[error(transparent)]
    Record(#[from] record::Error),
    #[error(transparent)]
    Timeline(#[from] timeline::Error),
    #[error("cannot write {}", path.display())]
    Write {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error(transparent)]
    Check(#[from] check::Wrong),
    #[error(transparent)]
    Output(#[from] output::Error),
    #[error("cannot catch Ctrl-C")]
    Signal(#[from] ctrlc::Error),
}

impl Error {
    /// Is it the command line that is to be changed?
    pub fn is_usage(&self) -> bool {
        self.status() == 2
    }

    /// The exit status; those of a shell and of `timeout`, where they fit.
    pub fn status(&self) -> u8 {
        match self {
            Self::Description(_) | Self::Usage(_) | Self::Scheduler(_) | Self::NoArm64 { .. } => 2,
            Self::NoCommand { .. } => 127,
            Self::Qemu(qemu::Error::Timeout { .. } | qemu::Error::Stalled { .. }) => 124,
            Self::Qemu(qemu::Error::Interrupted) => 130,
            _ => 125,
        }
    }
}

/// Our scheduler's program, in the guest.
const AGENT: &str = "scx_freqlock";

/// One run of one command on one machine.
#[derive(Clone, Debug)]
struct Job {
    machine: Description,
    variant: Variant,
    seed: u32,
    shift_us: u64,
    /// Of the machine's own time.
    limit_s: u64,
    memory_mb: u64,
    timeout: Duration,
    scheduler: Option<Scheduler>,
    command: Vec<String>,
}

/// What every run on a kit has in common: the image, without its script.
#[derive(Debug)]
struct Base {
    kit: Kit,
    tree: image::Tree,
    image: PathBuf,
    bytes: u64,
    digest: String,
}

impl Base {
    fn new(kit: Kit) -> Result<Self, Error> {
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

    fn has(&self, command: &str) -> bool {
        self.tree.has_command(command, guest::FOLDER, &guest::PATH)
    }

    /// A scheduler as `compare` names them; none for the kernel's own.
    fn scheduler(&self, spec: &str) -> Result<Option<Scheduler>, Error> {
        let find = |name: &str| self.has(name).then(|| PathBuf::from(name));
        let programs = Programs {
            ours: Path::new(AGENT),
            find: &find,
            others: &[],
        };
        let Some(found) = plan::scheduler(spec, &programs)? else {
            return Err(Error::NoCommand {
                command: spec.split(':').next().unwrap_or(spec).into(),
            });
        };
        Ok(in_guest(&found))
    }
}

/// What the guest runs to load a scheduler.
fn in_guest(scheduler: &plan::Scheduler) -> Option<Scheduler> {
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

struct Outcome {
    report: guest::Report,
    record: Record,
    /// With the files of the run in it.
    dir: tempfile::TempDir,
}

fn simulate(
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

fn make_folder(path: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(path).map_err(|source| Error::Write {
        path: path.into(),
        source,
    })
}

fn write(path: &Path, data: &[u8]) -> Result<(), Error> {
    std::fs::write(path, data).map_err(|source| Error::Write {
        path: path.into(),
        source,
    })
}

/// Does what the command line says. The status is the command's own.
pub fn run(args: &Args) -> Result<ExitCode, Error> {
    match args {
        Args::List { machines, format } => {
            list(&args::machines_dir(machines.as_deref())?, *format)?;
            Ok(ExitCode::SUCCESS)
        }
        Args::Run(args) => run_one(args),
        Args::Check(args) => check::run(args),
    }
}

/// A machine as it is listed.
#[derive(Debug, Serialize)]
struct Listed {
    name: String,
    cpus: u32,
    description: String,
}

fn list(dir: &Path, format: Format) -> Result<(), Error> {
    let mut machines = Vec::new();
    for name in description::names(dir)? {
        let machine = Description::load(&name, dir)?;
        machines.push(Listed {
            cpus: machine.cpus(),
            description: machine.description,
            name,
        });
    }
    let text = match format.json {
        true => output::json(&machines, true).map_err(output::Error::Json)?,
        false => (machines.iter())
            .map(|machine| format!("{:<18} {}\n", machine.name, machine.description))
            .collect(),
    };
    Ok(output::print(text)?)
}

fn run_one(args: &RunArgs) -> Result<ExitCode, Error> {
    let dir = args::machines_dir(args.machines.as_deref())?;
    let mut machine = Description::load(&args.machine, &dir)?;
    if let Some(cpus) = args.cpus {
        machine = machine.cut(cpus).map_err(Error::Usage)?;
    }
    // Before the run, that it is not lost because of a misspelt folder.
    if let Some(to) = &args.record {
        make_folder(to)?;
    }
    let base = Base::new(Kit::load(&args.kit_path(&dir), args.arch)?)?;
    let job = Job {
        memory_mb: args.memory_mb.unwrap_or(machine.memory_mb).into(),
        machine,
        variant: Variant {
            always_top: args.always_top,
            migration_cost: args.migration_cost,
        },
        seed: args.seed,
        shift_us: args.shift_us,
        limit_s: args.limit_s,
        timeout: Duration::from_secs(args.timeout_s),
        scheduler: base.scheduler(&args.scheduler)?,
        command: args.command.clone(),
    };
    let (sender, events) = mpsc::channel();
    let interrupt = sender.clone();
    ctrlc::set_handler(move || {
        // Nobody listens any more once the run is over.
        interrupt.send(Event::Interrupted).ok();
    })?;
    let outcome = simulate(&base, &job, &sender, &events).inspect_err(|error| {
        // Why it failed is said after that, and is what counts.
        if let Error::Qemu(qemu::Error::Guest(failed)) = error {
            pass_on(&failed.stdout, &failed.stderr).ok();
        }
    })?;
    pass_on(&outcome.report.stdout, &outcome.report.stderr)?;
    if let Some(to) = &args.record {
        keep(to, &base, &job, &outcome)?;
    }
    let record = &outcome.record;
    output::say(format_args!(
        "machine: {} ({} CPUs), seed {}: {:.3} ms of its time, {:.1} s of the host's after {:.1} s to boot",
        job.machine.name,
        job.machine.cpus(),
        job.seed,
        record.command_ns() as f64 / 1e6,
        record.command_host_ns() as f64 / 1e9,
        record.begin_host_ns as f64 / 1e9,
    ));
    Ok(ExitCode::from(outcome.report.status))
}

/// What the command said.
fn pass_on(stdout: &[u8], stderr: &[u8]) -> Result<(), Error> {
    to_stdout(stdout)?;
    // Standard error may be closed; there is nowhere left to say so.
    std::io::stderr().write_all(stderr).ok();
    Ok(())
}

fn to_stdout(data: impl AsRef<[u8]>) -> Result<(), Error> {
    match output::pass_on(data.as_ref()) {
        // As `machine run … | head` does, whose exit status is the command's all the same.
        Err(output::Error::Closed) => Ok(()),
        result => Ok(result?),
    }
}

/// Writes all that is known of a run into a folder.
fn keep(to: &Path, base: &Base, job: &Job, outcome: &Outcome) -> Result<(), Error> {
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
