// SPDX-License-Identifier: GPL-2.0-only
//! QEMU: the command line of a machine, and one run of it from start to end.
//! However a run ends, nothing of it is left behind.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use nix::unistd::Pid;

use super::description::Description;
use super::guest::{self, Report};
use super::{arch, cpufreq};
use crate::process::{Ended, Event, Process};
use freqlock::lab_args::Arch;

/// How often it is looked whether QEMU does anything at all.
const LOOK: Duration = Duration::from_secs(2);

/// QEMU that has wanted no processor in this many looks waits for something that
/// will not come: as long as the guest has anything to do, now or at some time to
/// come, emulating it takes the processor. Looks, not time: while this program is
/// stopped, as by Ctrl-Z, so is QEMU.
const STALL_LOOKS: u32 = 10;

/// From asking QEMU to end until it is killed; it has a record to write.
const END: Duration = Duration::from_secs(10);

/// What QEMU needs beside the guest's memory: translated code, at most, and itself.
pub const OVERHEAD_MB: u64 = 600;

/// A guest has to unpack its image into memory, beside the image itself, and
/// then have some left to work with.
const GUEST_ROOM_MB: u64 = 192;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the guest needs {wanted} MB of memory, and this host has {available} MB to spare: take --memory-mb or another host")]
    HostMemory { wanted: u64, available: u64 },
    #[error("{given} MB of memory are too few for an image of {image} MB: take --memory-mb {least} or more")]
    GuestMemory { given: u64, image: u64, least: u64 },
    #[error("{machine} has caches or cores of different sizes, which QEMU cannot show to a guest")]
    Topology { machine: String },
    #[error("cannot start QEMU ({})", program.display())]
    Start {
        program: PathBuf,
        source: std::io::Error,
    },
    #[error("QEMU ended before the command did ({reason}){console}")]
    Died { reason: String, console: String },
    #[error("the guest's kernel gave up: {line}{console}")]
    Panic { line: String, console: String },
    #[error("the guest gave up: {}", .0.reason)]
    Guest(Box<guest::Failed>),
    #[error("the command did not end within {} s of the host's time: machine killed{console}", .after.as_secs())]
    Timeout { after: Duration, console: String },
    #[error("the guest hangs: QEMU has done nothing for {} s, so nothing will happen in it any more: machine killed{console}", LOOK.as_secs() * u64::from(STALL_LOOKS))]
    Stalled { console: String },
    #[error("interrupted")]
    Interrupted,
    #[error("cannot wait for QEMU")]
    Wait(#[source] std::io::Error),
}

/// What a machine is started with.
#[derive(Clone, Debug)]
pub struct Setup<'a> {
    pub machine: &'a Description,
    pub arch: Arch,
    /// Beside those that every guest's kernel has.
    pub kernel_args: &'a str,
    pub memory_mb: u64,
    pub seed: u32,
    /// What the guest's cpufreq governor is to be, where it has one.
    pub governor: &'a str,
    pub program: &'a Path,
    pub plugin: &'a Path,
    pub kernel: &'a Path,
    /// The folder of this run's files; those of [`Files`] are in it.
    pub dir: &'a Path,
    pub timeout: Duration,
}

/// The files of a run, in a folder of its own.
#[derive(Clone, Debug)]
pub struct Files {
    pub image: PathBuf,
    pub flat: PathBuf,
    pub record: PathBuf,
    pub console: PathBuf,
    pub report: PathBuf,
    /// For arm64: the device tree, and the cpufreq driver's registers.
    pub tree: PathBuf,
    pub registers: PathBuf,
}

impl Files {
    pub fn of(dir: &Path) -> Self {
        Self {
            image: dir.join("image.cpio"),
            flat: dir.join("machine.conf"),
            record: dir.join("record.jsonl"),
            console: dir.join("console.log"),
            report: dir.join("report"),
            tree: dir.join("devicetree.dtb"),
            registers: dir.join("cpufreq.bin"),
        }
    }
}

/// Whether there is memory enough, on both sides.
pub fn check_memory(memory_mb: u64, image_bytes: u64, available_mb: u64) -> Result<(), Error> {
    let image = image_bytes.div_ceil(1 << 20);
    let least = 2 * image + GUEST_ROOM_MB;
    if memory_mb < least {
        return Err(Error::GuestMemory {
            given: memory_mb,
            image,
            least,
        });
    }
    let wanted = memory_mb + OVERHEAD_MB;
    if wanted > available_mb {
        return Err(Error::HostMemory {
            wanted,
            available: available_mb,
        });
    }
    Ok(())
}

/// Memory of this host that can still be used; without a word on it, no limit is
/// known.
pub fn available_mb() -> u64 {
    available_in(&std::fs::read_to_string("/proc/meminfo").unwrap_or_default())
}

/// `MemAvailable` of /proc/meminfo.
fn available_in(meminfo: &str) -> u64 {
    meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))
        .and_then(|rest| {
            rest.trim()
                .trim_end_matches("kB")
                .trim()
                .parse::<u64>()
                .ok()
        })
        .map_or(u64::MAX, |kb| kb / 1024)
}

/// An x86-64 guest sees one socket for each last-level cache; an arm64 one has it
/// from its device tree.
fn topology(machine: &Description, arch: Arch) -> Result<String, Error> {
    if arch == Arch::Arm64 {
        return Ok(machine.cpus().to_string());
    }
    let first = machine.clusters.first();
    let shape = first.map(|cluster| (cluster.cpus_per_llc, cluster.threads_per_core));
    match shape {
        Some((per_llc, threads))
            if machine
                .clusters
                .iter()
                .all(|c| (c.cpus_per_llc, c.threads_per_core) == (per_llc, threads)) =>
        {
            let cpus = machine.cpus();
            Ok(format!(
                "{cpus},sockets={},cores={},threads={threads}",
                cpus / per_llc,
                per_llc / threads
            ))
        }
        _ => Err(Error::Topology {
            machine: machine.name.clone(),
        }),
    }
}

/// Everything by which one run could differ from the next is set here: seed,
/// clock, addresses; and nothing is left to QEMU's defaults or configuration.
pub fn arguments(setup: &Setup) -> Result<Vec<OsString>, Error> {
    let files = Files::of(setup.dir);
    let with = |before: &str, path: &Path, after: &str| {
        let mut all = OsString::from(before);
        all.push(path);
        all.push(after);
        all
    };
    let mut plugin = with("", setup.plugin, ",config=");
    plugin.push(&files.flat);
    plugin.push(",record=");
    plugin.push(&files.record);
    let mut arguments: Vec<OsString> = Vec::new();
    for fixed in arch::board(setup.arch).iter().chain(&[
        "-nodefaults",
        "-no-user-config",
        "-display",
        "none",
        "-no-reboot",
        "-accel",
        "tcg,thread=single,tb-size=512",
        "-icount",
        "shift=0,sleep=off",
        "-rtc",
        "base=2025-01-01T00:00:00,clock=vm",
    ]) {
        arguments.push(fixed.into());
    }
    for (option, value) in [
        ("-smp", topology(setup.machine, setup.arch)?.into()),
        ("-m", format!("{}M", setup.memory_mb).into()),
        ("-seed", setup.seed.to_string().into()),
        ("-plugin", plugin),
        ("-serial", with("file:", &files.console, "")),
        ("-serial", with("file:", &files.report, "")),
        ("-kernel", setup.kernel.into()),
        ("-initrd", files.image.into()),
        (
            "-append",
            arch::kernel_arguments(setup.arch, setup.governor, setup.kernel_args).into(),
        ),
    ] {
        arguments.push(option.into());
        arguments.push(value);
    }
    if setup.arch == Arch::Arm64 {
        let address = cpufreq::address(setup.machine, setup.memory_mb);
        let registers = format!(",addr={address:#x},force-raw=on");
        arguments.extend([
            "-dtb".into(),
            files.tree.clone().into(),
            "-device".into(),
            with("loader,file=", &files.registers, &registers),
        ]);
    }
    Ok(arguments)
}

/// Boots the machine and waits for its end. `events` also brings Ctrl-C.
pub fn run(
    setup: &Setup,
    sender: &Sender<Event>,
    events: &Receiver<Event>,
) -> Result<Report, Error> {
    let files = Files::of(setup.dir);
    let mut command = Command::new(setup.program);
    command.args(arguments(setup)?);
    let process = Process::start(&mut command, sender).map_err(|source| Error::Start {
        program: setup.program.into(),
        source,
    })?;
    let ending = watch(&process, setup.timeout, events);
    let console = || last_lines(&fs::read(&files.console).unwrap_or_default());
    match ending {
        Ending::ByItself => {}
        Ending::Timeout => {
            end(process, events);
            return Err(Error::Timeout {
                after: setup.timeout,
                console: console(),
            });
        }
        Ending::Stalled => {
            end(process, events);
            return Err(Error::Stalled { console: console() });
        }
        Ending::Interrupted => {
            end(process, events);
            return Err(Error::Interrupted);
        }
    }
    let ended = process.finish().map_err(Error::Wait)?;
    let report = fs::read(&files.report).unwrap_or_default();
    match guest::parse(&report) {
        Ok(report) if ended.status.success() => Ok(report),
        Ok(_) => Err(died(&ended, String::new())),
        Err(guest::Error::Failed(failed)) => Err(Error::Guest(failed)),
        Err(guest::Error::Incomplete) => {
            match panic_line(&fs::read(&files.console).unwrap_or_default()) {
                Some(line) => Err(Error::Panic {
                    line,
                    console: console(),
                }),
                None => Err(died(&ended, console())),
            }
        }
    }
}

fn died(ended: &Ended, console: String) -> Error {
    Error::Died {
        reason: ended.reason(),
        console,
    }
}

enum Ending {
    ByItself,
    Timeout,
    Stalled,
    Interrupted,
}

fn watch(process: &Process, timeout: Duration, events: &Receiver<Event>) -> Ending {
    let begin = Instant::now();
    let mut progress = Progress::default();
    loop {
        let left = timeout.saturating_sub(begin.elapsed());
        match events.recv_timeout(LOOK.min(left)) {
            Ok(Event::Exited(pid)) if pid == process.pid() => return Ending::ByItself,
            Ok(Event::Exited(_)) => {}
            Ok(Event::Interrupted) | Err(RecvTimeoutError::Disconnected) => {
                return Ending::Interrupted
            }
            Err(RecvTimeoutError::Timeout) => {
                if progress.stalled(wanted_ns(process.pid())) {
                    return Ending::Stalled;
                }
            }
        }
        if begin.elapsed() >= timeout {
            return Ending::Timeout;
        }
    }
}

/// Whether QEMU does anything.
#[derive(Default)]
struct Progress {
    idle_looks: u32,
    wanted_ns: u64,
}

impl Progress {
    /// Less than this in a time of [`LOOK`] is what QEMU's main thread takes when
    /// there is nothing to do.
    const IDLE_NS: u64 = 40_000_000;

    fn stalled(&mut self, wanted_ns: Option<u64>) -> bool {
        // Without a figure QEMU has just ended, which is reported.
        let Some(wanted_ns) = wanted_ns else {
            return false;
        };
        if wanted_ns > self.wanted_ns + Self::IDLE_NS {
            self.idle_looks = 0;
        } else {
            self.idle_looks += 1;
        }
        self.wanted_ns = wanted_ns;
        self.idle_looks >= STALL_LOOKS
    }
}

/// How long a process's threads have run, or could have run while others had the
/// processors, ns.
fn wanted_ns(pid: Pid) -> Option<u64> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let wanted = threads.flatten().filter_map(|thread| {
        let stat = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        run_and_wait_ns(&stat)
    });
    wanted.reduce(u64::saturating_add)
}

/// The first two figures of a line of /proc/PID/schedstat.
fn run_and_wait_ns(stat: &str) -> Option<u64> {
    let mut fields = stat.split_whitespace().map(str::parse::<u64>);
    let (run, wait) = (fields.next()?.ok()?, fields.next()?.ok()?);
    run.checked_add(wait)
}

/// Asks QEMU to end, so that the plugin can write its record, and then makes it.
fn end(process: Process, events: &Receiver<Event>) {
    process.terminate();
    let deadline = Instant::now() + END;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match events.recv_timeout(left) {
            Ok(Event::Exited(pid)) if pid == process.pid() => break,
            Ok(_) => {}
            Err(mpsc::RecvTimeoutError::Timeout | mpsc::RecvTimeoutError::Disconnected) => break,
        }
    }
    // Dropped here, and with it killed if it is still there.
}

/// What a kernel says when it panics, without the time before it.
fn panic_line(console: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(console);
    let line = text.lines().find(|line| line.contains("Kernel panic"))?;
    let said = line.find("Kernel panic").map_or(line, |at| &line[at..]);
    Some(said.trim_end().into())
}

/// The end of what the kernel printed, for an error's text.
fn last_lines(console: &[u8]) -> String {
    const LINES: usize = 12;
    let text = String::from_utf8_lossy(console);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty())
        .collect();
    if lines.is_empty() {
        return "; it printed nothing on its console".into();
    }
    let last = &lines[lines.len().saturating_sub(LINES)..];
    format!("; its console's last lines:\n  {}", last.join("\n  "))
}

#[cfg(test)]
mod tests {
    use super::super::description::tests::small;
    use super::*;

    fn setup<'a>(machine: &'a Description, dir: &'a Path, program: &'a Path) -> Setup<'a> {
        Setup {
            machine,
            arch: Arch::X86_64,
            kernel_args: "",
            memory_mb: 512,
            seed: 7,
            governor: "schedutil",
            program,
            plugin: Path::new("/p.so"),
            kernel: Path::new("/vmlinuz"),
            dir,
            timeout: Duration::from_secs(2),
        }
    }

    #[test]
    fn the_command_line_leaves_nothing_to_chance() {
        let machine = small();
        let line = arguments(&setup(&machine, Path::new("/run"), Path::new("qemu"))).unwrap();
        let line: Vec<_> = line.iter().map(|word| word.to_string_lossy()).collect();
        let line = line.join(" ");
        for part in [
            "-accel tcg,thread=single,tb-size=512 -icount shift=0,sleep=off",
            "-seed 7",
            "clock=vm",
            "-smp 4,sockets=2,cores=2,threads=1",
            "-plugin /p.so,config=/run/machine.conf,record=/run/record.jsonl",
            "nokaslr norandmaps tsc=reliable",
            "-no-user-config",
        ] {
            assert!(line.contains(part), "{part}: {line}");
        }
    }

    #[test]
    fn caches_of_different_sizes_are_refused() {
        let mut machine = small();
        machine.clusters.push(machine.clusters[0].clone());
        machine.clusters[1].cpus_per_llc = 4;
        let shown = topology(&machine, Arch::X86_64);
        assert!(matches!(shown, Err(Error::Topology { .. })));
        assert_eq!(topology(&machine, Arch::Arm64).unwrap(), "8");
    }

    #[test]
    fn an_arm64_guest_has_a_device_tree_and_registers() {
        let machine = small();
        let mut setup = setup(&machine, Path::new("/run"), Path::new("qemu"));
        setup.arch = Arch::Arm64;
        let line = arguments(&setup).unwrap();
        let line: Vec<_> = line.iter().map(|word| word.to_string_lossy()).collect();
        let line = line.join(" ");
        for part in [
            "-smp 4 ",
            "cpufreq.default_governor=schedutil",
            "-dtb /run/devicetree.dtb",
            "-device loader,file=/run/cpufreq.bin,addr=0x5fffc000,force-raw=on",
        ] {
            assert!(line.contains(part), "{part}: {line}");
        }
    }

    #[test]
    fn too_little_memory_is_refused_on_either_side() {
        check_memory(512, 60 << 20, 4096).unwrap();
        let error = check_memory(256, 60 << 20, 4096).unwrap_err().to_string();
        assert!(error.contains("--memory-mb 312"), "{error}");
        let error = check_memory(4096, 60 << 20, 4096).unwrap_err().to_string();
        assert!(error.contains("this host has 4096 MB"), "{error}");
        assert_eq!(
            available_in("MemFree: 1 kB\nMemAvailable:  2048000 kB\n"),
            2000
        );
        assert_eq!(available_in(""), u64::MAX);
    }

    #[test]
    fn what_threads_ran_and_waited_counts() {
        assert_eq!(run_and_wait_ns("300 45 7\n"), Some(345));
        assert_eq!(run_and_wait_ns("300"), None);
        let pid = Pid::this();
        let before = wanted_ns(pid).unwrap();
        let begin = Instant::now();
        while wanted_ns(pid).unwrap() < before + 20_000_000 {
            assert!(begin.elapsed() < Duration::from_secs(60));
        }
        assert_eq!(wanted_ns(Pid::from_raw(-1)), None);
    }

    #[test]
    fn a_stall_is_many_looks_without_work() {
        let mut progress = Progress::default();
        let ms = |ms: u64| Some(ms * 1_000_000);
        assert!(!progress.stalled(ms(1000)));
        for look in 1..STALL_LOOKS {
            assert!(!progress.stalled(ms(1000 + u64::from(look) * 30)));
        }
        assert!(!progress.stalled(ms(2000)), "it works again");
        assert!(!progress.stalled(None), "it has just ended");
        for look in 1..STALL_LOOKS {
            assert!(!progress.stalled(ms(2000)), "{look} looks");
        }
        assert!(progress.stalled(ms(2000)));
    }

    #[test]
    fn the_end_of_a_console_is_shown() {
        assert!(last_lines(b"\r\n").contains("nothing"));
        let text: String = (0..50).map(|i| format!("line {i}\r\n\n")).collect();
        let last = last_lines(text.as_bytes());
        assert!(last.ends_with("  line 48\n  line 49"), "{last}");
        assert_eq!(last.lines().count(), 13);
    }

    /// Programs that stand in for QEMU.
    fn run_program(script: &str) -> Result<Report, Error> {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("qemu");
        let report = dir.path().join("report");
        fs::write(
            &program,
            format!("#!/bin/sh\nreport={}\n{script}\n", report.display()),
        )
        .unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let (sender, events) = mpsc::channel();
        run(&setup(&small(), dir.path(), &program), &sender, &events)
    }

    #[test]
    fn a_whole_report_is_a_result() {
        let report = run_program(
            r"printf 'loaded disabled - 0\nstatus 7\nstdout 2\nstderr 0\n\nhiend\n' >$report",
        )
        .unwrap();
        assert_eq!((report.status, report.stdout.as_slice()), (7, &b"hi"[..]));
    }

    #[test]
    fn every_other_end_is_an_error_of_its_own() {
        let message = |script| run_program(script).unwrap_err().to_string();
        let died = message("echo internals differ >&2; exit 2");
        assert!(died.contains("exit status 2: internals differ"), "{died}");
        assert!(message("sleep 60").contains("within 2 s"));
        let panic = message(
            r"printf '[ 1.5] Kernel panic - not syncing: x\r\ntrace\n' >${report%report}console.log",
        );
        assert!(
            panic.starts_with("the guest's kernel gave up: Kernel panic - not syncing: x;"),
            "{panic}"
        );
        assert!(panic.ends_with("  trace"), "{panic}");
        let gave_up =
            message(r"printf 'failed no such thing\nstdout 0\nstderr 0\n\nend\n' >$report");
        assert_eq!(gave_up, "the guest gave up: no such thing");
        let missing = Path::new("/nowhere/qemu");
        let (sender, events) = mpsc::channel();
        let machine = small();
        let error = run(&setup(&machine, Path::new("/"), missing), &sender, &events).unwrap_err();
        assert!(error.to_string().contains("/nowhere/qemu"), "{error}");
    }
}
