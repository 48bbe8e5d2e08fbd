// SPDX-License-Identifier: GPL-2.0-only
//! `scx_freqlock record`: writes down what the scheduler in charge does, ours or any
//! other, with the tracing programs of bpf/record.bpf.c, and what ours
//! decides, with those of bpf/decisions.bpf.c. The file is freqlock::trace's.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Read};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure, Context, Result};
use crossbeam::channel::{bounded, never, select, tick, Receiver, Sender};
use freqlock::control::dump_socket;
use freqlock::trace::format::{Cpu, End, Event, Head, MAX_CPUS};
use freqlock::trace::ring::{self, Full, Mapped, Present, Rings, Without};
use freqlock::trace::trigger::{Trigger, Triggers};
use freqlock::trace::writer::Writer;
use freqlock::trace::Kind;
use freqlock::{foreign, output, preflight, units};
use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions};
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};
use libbpf_rs::Iter;
use nix::time::{clock_gettime, ClockId};

use crate::child;
use crate::decisions::{Ours, Shared, Watching};
use crate::flight_recorder::FlightRecorder;
use crate::libbpf_log::{self, VerifierOpts};

#[allow(clippy::all, clippy::unwrap_used)]
#[allow(clippy::undocumented_unsafe_blocks)]
mod skel {
    //! The skeleton of bpf/record.bpf.c.
    include!(concat!(env!("OUT_DIR"), "/record_skel.rs"));
}

/// How often it is looked whether there is much to take out.
const LOOK: Duration = Duration::from_millis(50);

#[derive(Debug, clap::Args)]
pub struct RecordOpts {
    /// The file to write, for its owner alone
    #[arg(short, long, value_name = "FILE", default_value = "scx_freqlock.trace")]
    output: PathBuf,

    /// Memory for each CPU's events, 64K to 1G; rounded down to a power of two of events
    #[arg(long, value_name = "SIZE", default_value = "4M", value_parser = parse_size)]
    buffer: u64,

    /// Record these CPUs, for example 0-3,8 [default: all that are online]
    #[arg(long, value_name = "LIST", value_parser = parse_cpus)]
    cpus: Option<Cpus>,

    /// Record these events; from `tick` on they are of scx_freqlock alone [default: all that the
    /// scheduler in charge has]
    #[arg(long, value_name = "EVENT[,..]", value_delimiter = ',', value_parser = parse_event)]
    events: Vec<Kind>,

    /// Record as well what mode auto goes by in each decision, which `analyze --what-if` needs:
    /// scx_freqlock alone has that, and it is some 30 events a decision
    #[arg(long)]
    what_if: bool,

    /// Keep the newest events where a buffer is full, and write when it ends, or is told to
    #[arg(long)]
    overwrite: bool,

    /// Have the one that runs with --overwrite write what it has now: to its FILE.1, then FILE.2
    #[arg(long, exclusive = true)]
    dump: bool,

    /// Write what there is by itself as well, once in 10 s and 100 times at most: after a priority
    /// inversion (`inversion`), or after a wait for a CPU (`wait=10ms`)
    #[arg(long, value_name = "REASON[,..]", value_delimiter = ',', requires = "overwrite", value_parser = Trigger::parse)]
    dump_on: Vec<Trigger>,

    #[command(flatten)]
    verifier: VerifierOpts,

    /// The command to record, with its arguments; without one, until Ctrl-C
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

#[derive(Clone, Debug)]
struct Cpus(Arc<Vec<usize>>);

fn parse_cpus(text: &str) -> Result<Cpus, String> {
    let list = scx_utils::read_cpulist(text).ok();
    let list = list.filter(|list| !list.is_empty() && list.iter().all(|cpu| *cpu < MAX_CPUS));
    list.map(|list| Cpus(Arc::new(list)))
        .ok_or_else(|| format!("not a list of CPUs below {MAX_CPUS}, for example 0-3,8"))
}

fn parse_event(text: &str) -> Result<Kind, String> {
    let found = all_kinds().find(|kind| kind.name() == text);
    found.ok_or_else(|| {
        let names: Vec<_> = all_kinds().map(Kind::name).collect();
        format!("not one of {}", names.join(", "))
    })
}

fn all_kinds() -> impl Iterator<Item = Kind> {
    Kind::traced().chain(Kind::ours())
}

fn parse_size(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 20),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let bytes = digits
        .parse::<u64>()
        .ok()
        .and_then(|n| n.checked_mul(1 << shift));
    bytes
        .filter(|bytes| (64 << 10..=1 << 30).contains(bytes))
        .ok_or_else(|| "not a size in 64K..=1G, for example 4M".into())
}

/// Records, and returns the exit status of the command.
pub fn run(opts: &RecordOpts) -> Result<u8> {
    if opts.dump {
        output::say(dump_socket::dump(dump_socket::SOCKET.as_ref())?);
        return Ok(0);
    }
    preflight::bpf()?;
    let online = child::online_cpus()?;
    let cpus: Vec<usize> = match &opts.cpus {
        None => online,
        Some(Cpus(wanted)) => {
            if let Some(cpu) = wanted.iter().find(|cpu| !online.contains(cpu)) {
                bail!(
                    "CPU {cpu} is not online: /sys/devices/system/cpu/online lists those that are"
                );
            }
            online
                .into_iter()
                .filter(|cpu| wanted.contains(cpu))
                .collect()
        }
    };
    let places = 1 << (opts.buffer / Event::BYTES as u64).ilog2();
    ensure!(places >= ring::FEWEST, "the buffer is too small");

    libbpf_log::install(false, opts.verifier);
    let ours = Ours::find()?;
    let mut wanted: Vec<Kind> = match &opts.events[..] {
        [] if ours.is_none() => Kind::traced().collect(),
        [] => all_kinds().filter(|kind| !kind.is_asked_for()).collect(),
        some => some.to_vec(),
    };
    if opts.what_if {
        wanted.retain(|kind| !kind.is_asked_for());
        wanted.extend(all_kinds().filter(|kind| kind.is_asked_for()));
    }
    if let (None, Some(kind)) = (&ours, Kind::ours().find(|kind| wanted.contains(kind))) {
        bail!(
            "only scx_freqlock of this version has `{}`: start it first, or leave that out of --events",
            kind.name()
        );
    }
    let needs = opts.dump_on.iter().flat_map(|trigger| trigger.needs());
    if let Some(kind) = needs.into_iter().find(|kind| !wanted.contains(kind)) {
        bail!(
            "--dump-on needs `{}`, which is not recorded: add that to --events, or start scx_freqlock first",
            kind.name()
        );
    }
    let mut object = MaybeUninit::uninit();
    let mut open = skel::RecordSkelBuilder::default()
        .open_opts(opts.verifier.open_opts(None), &mut object)
        .context("cannot open the recorder's BPF object")?;
    let rodata = open.maps.rodata_data.as_deref_mut();
    let rodata = rodata.context("the recorder has no .rodata")?;
    rodata.wanted = set_of(&wanted);
    let buffers = u32::try_from(cpus.len())?;
    let all = places.checked_mul(buffers);
    let all = all.context("the buffers of all CPUs are too large: make --buffer smaller")?;
    open.maps.events.set_max_entries(all)?;
    choose_programs(&mut open.progs, set_of(&wanted));

    let mut skel = open
        .load()
        .context("cannot load the recorder: is there memory for its buffers? See --buffer")?;
    let bytes = |map: u64, size: usize| usize::try_from(map).map(|map| map * size);
    let events = Mapped::new(&skel.maps.events.as_fd(), bytes(all.into(), Event::BYTES)?);
    let cursors = Mapped::new(&skel.maps.data_cursors.as_fd(), ring::CURSORS_BYTES);
    let (events, cursors) = (
        events.context("cannot map the recorder's buffers")?,
        cursors.context("cannot map the recorder's cursors")?,
    );
    let others = match opts.cpus {
        None => Without::Absent,
        Some(_) => Without::Unwanted,
    };
    let full = match opts.overwrite {
        true => Full::BeginsAnew,
        false => Full::Loses,
    };
    let mut rings = Rings::new(events, cursors, &cpus, others, places, full);

    let decides_by = (ours.as_ref())
        .filter(|_| wanted.iter().any(|kind| kind.is_asked_for()))
        .map(Ours::decides_by)
        .transpose()?;
    let mut objects = ours.as_ref().map(Ours::objects).unwrap_or_default();
    let shared = Shared {
        wanted: set_of(&wanted),
        events: skel.maps.events.as_fd(),
        cursors: skel.maps.data_cursors.as_fd(),
        verifier: opts.verifier,
    };
    let watching = ours.map(|ours| ours.watch(&shared, &mut objects));
    let mut watching = watching.transpose()?;

    // For its owner alone: it has the names of everybody's tasks.
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&opts.output)
        .with_context(|| format!("cannot write {}", foreign::path(&opts.output)))?;

    let begin = Instant::now();
    let begin_ns = now()?;
    skel.attach()
        .context("cannot attach the recorder to the scheduler's tracepoints")?;
    if let Some(watching) = &mut watching {
        watching.attach()?;
    }
    let tasks = present(&skel)?;
    let head = Head {
        decides_by,
        ..describe(opts, &cpus, &wanted, &tasks, begin_ns)
    };
    let cannot = || format!("cannot write {}", foreign::path(&opts.output));
    let counted = |end_ns, watching: Option<&Watching>| {
        let bss = skel.maps.bss_data.as_deref();
        let bss = bss.context("the recorder has no .bss")?;
        Ok::<_, anyhow::Error>(End {
            end_ns,
            elsewhere: bss.lost_elsewhere + watching.map_or(0, Watching::lost_elsewhere),
            recursion: recursion(&skel, watching),
            ..End::default()
        })
    };
    let mut to = match opts.overwrite {
        false => {
            let writer = Writer::new(BufWriter::new(file), &head).with_context(cannot)?;
            To::File(Recording {
                writer,
                cpus: &cpus,
                lost: vec![0; cpus.len()],
                end: End::default(),
                events: 0,
            })
        }
        true => {
            let triggers = Triggers::new(opts.dump_on.clone(), &tasks);
            let recorder = FlightRecorder::start(&opts.output, &cpus, head, triggers)?;
            To::Buffers(Box::new(recorder), file)
        }
    };
    let asked = to.asked();
    // A flight recorder that waits for nothing but a request sleeps until then.
    let look = match &to {
        To::Buffers(recorder, _) if !recorder.watches() => never(),
        _ => tick(LOOK),
    };
    let ended = start(opts)?;
    let status = loop {
        let mut request = None;
        select! {
            recv(ended) -> status => break status.context("nothing ends the recording")??,
            recv(asked) -> from => request = from.ok(),
            recv(look) -> _ => {}
        }
        match &mut to {
            To::File(recording) if rings.is_half_full() => {
                if let Err(why) = recording.take(&mut rings, false) {
                    if let Some(watching) = &mut watching {
                        watching.stop();
                    }
                    skel.links = skel::RecordLinks::default();
                    if !opts.command.is_empty() {
                        output::say(format_args!(
                            "{}: the command goes on, unrecorded",
                            cannot()
                        ));
                        ended.recv().context("nothing ends the command")??;
                    }
                    return Err(why).with_context(cannot);
                }
            }
            To::File(_) => {}
            To::Buffers(recorder, _) => {
                let reason = recorder.look(&mut rings);
                if request.is_some() || reason.is_some() {
                    let end = counted(now()?, watching.as_ref())?;
                    recorder.dump(&rings, present(&skel)?, end, request, reason);
                }
            }
        }
    };
    let end = counted(0, watching.as_ref())?;
    if let Some(watching) = &mut watching {
        watching.stop();
    }
    skel.links = skel::RecordLinks::default();
    // What comes after is packed, not recorded: it is no time in which CPUs were idle.
    let end = End {
        end_ns: now()?,
        ..end
    };
    // Programs that had begun come to their end: none takes a millisecond.
    std::thread::sleep(LOOK);
    let missed = end.elsewhere + end.recursion;
    let (events, lost, written) = match to {
        To::File(mut recording) => {
            recording.take(&mut rings, true).with_context(cannot)?;
            let (events, lost) = (recording.events, recording.lost.iter().sum::<u64>());
            (events, lost + missed, recording.end(end))
        }
        To::Buffers(recorder, file) => {
            let flight = recorder.flight(&rings, present(&skel)?);
            let written = flight.write(BufWriter::new(file), end);
            recorder.say_how_often();
            (flight.events(), missed, written)
        }
    };
    finish(written.with_context(cannot)?).with_context(cannot)?;
    let elapsed = units::time(u64::try_from(begin.elapsed().as_nanos())?);
    output::say(format_args!(
        "{events} events of {buffers} CPUs in {elapsed} are in {}, {lost} were lost",
        foreign::path(&opts.output)
    ));
    Ok(status)
}

/// Where events go.
enum To<'a> {
    /// As they come.
    File(Recording<'a>),
    /// They stay where they are until the end, when they go to the file.
    Buffers(Box<FlightRecorder<'a>>, File),
}

impl To<'_> {
    /// Those who want what there is.
    fn asked(&self) -> Receiver<Sender<dump_socket::Answer>> {
        match self {
            Self::File(_) => never(),
            Self::Buffers(recorder, _) => recorder.asked(),
        }
    }
}

/// Sees to it that all of it is on the disk.
fn finish(to: BufWriter<File>) -> std::io::Result<()> {
    let file = to.into_inner().map_err(|error| error.into_error())?;
    file.sync_all().or_else(|error| match error.kind() {
        // Of what cannot be synchronised, as a pipe.
        std::io::ErrorKind::InvalidInput => Ok(()),
        _ => Err(error),
    })
}

/// What goes to the file.
struct Recording<'a> {
    writer: Writer<BufWriter<File>>,
    cpus: &'a [usize],
    /// By buffer: how many lost events the file knows of.
    lost: Vec<u64>,
    end: End,
    events: u64,
}

impl Recording<'_> {
    /// Writes what the buffers have, `all` of it at the end.
    fn take(&mut self, rings: &mut Rings<Mapped>, all: bool) -> std::io::Result<()> {
        for (buffer, cpu) in self.cpus.iter().enumerate() {
            let cpu = *cpu as u16;
            let taken = rings.take(buffer, all);
            self.events += taken.events.len() as u64;
            // Lost ones may lie on both sides of these events: only that is certain.
            let lost = taken.lost - self.lost[buffer];
            if lost > 0 {
                self.writer.gap(cpu, lost)?;
            }
            self.writer.events(cpu, &taken.events)?;
            if lost > 0 {
                self.writer.gap(cpu, 0)?;
            }
            self.lost[buffer] = taken.lost;
            if all && taken.lost > 0 {
                self.end.lost.push((cpu, taken.lost));
            }
        }
        Ok(())
    }

    /// `end`: but for what is counted by CPU.
    fn end(self, end: End) -> std::io::Result<BufWriter<File>> {
        let lost = self.end.lost;
        self.writer.end(&End { lost, ..end })
    }
}

/// A set of kinds.
fn set_of(kinds: &[Kind]) -> u64 {
    kinds.iter().fold(0, |set, kind| set | kind.bit())
}

/// Programs whose events nobody wants are not loaded.
fn choose_programs(progs: &mut skel::OpenRecordProgs, wanted: u64) {
    let has = |kinds: &[Kind]| wanted & set_of(kinds) != 0;
    let name = [Kind::Name, Kind::NameRest];
    progs.record_fork.set_autoload(has(&[Kind::Fork]));
    progs
        .record_exec
        .set_autoload(has(&[Kind::Exec, name[0], name[1]]));
    progs.record_rename.set_autoload(has(&name));
    progs.record_exit.set_autoload(has(&[Kind::Exit]));
    progs.record_wakeup.set_autoload(has(&[Kind::Wakeup]));
    progs
        .record_wakeup_new
        .set_autoload(has(&[Kind::WakeupNew]));
    progs.record_switch.set_autoload(has(&[Kind::Switch]));
    progs.record_migrate.set_autoload(has(&[Kind::Migrate]));
    progs
        .record_idle
        .set_autoload(has(&[Kind::Idle, Kind::IdleEnd]));
    progs.record_frequency.set_autoload(has(&[Kind::Frequency]));
}

/// What ends the recording sends the exit status: the command's end, or a signal.
fn start(opts: &RecordOpts) -> Result<Receiver<Result<u8>>> {
    let (send, ended) = bounded(1);
    if opts.command.is_empty() {
        ctrlc::set_handler(move || drop(send.try_send(Ok(0)))).context("cannot handle signals")?;
        return Ok(ended);
    }
    let mut child = child::spawn(&opts.command)?;
    std::thread::spawn(move || {
        let status = child.wait().context("cannot wait for the command");
        drop(send.try_send(status.map(child::exit_code)));
    });
    Ok(ended)
}

/// CLOCK_MONOTONIC, ns.
fn now() -> Result<u64> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).context("cannot read the clock")?;
    Ok(u64::try_from(Duration::from(now).as_nanos())?)
}

fn present(skel: &skel::RecordSkel) -> Result<Vec<Present>> {
    let cannot = "cannot list the tasks that there are";
    let link = skel.progs.record_tasks.attach().context(cannot)?;
    let mut bytes = Vec::new();
    let mut tasks = Iter::new(&link).context(cannot)?;
    tasks.read_to_end(&mut bytes).context(cannot)?;
    Ok(ring::present(&bytes))
}

/// Events that the kernel left out, since a program would have interrupted itself.
fn recursion(skel: &skel::RecordSkel, watching: Option<&Watching>) -> u64 {
    let mut ids: Vec<u32> = [
        &skel.progs.record_fork,
        &skel.progs.record_exec,
        &skel.progs.record_rename,
        &skel.progs.record_exit,
        &skel.progs.record_wakeup,
        &skel.progs.record_wakeup_new,
        &skel.progs.record_switch,
        &skel.progs.record_migrate,
        &skel.progs.record_idle,
        &skel.progs.record_frequency,
    ]
    .iter()
    .filter_map(|prog| libbpf_rs::Program::id_from_fd(prog.as_fd()).ok())
    .collect();
    ids.extend(watching.map(Watching::ids).unwrap_or_default());
    ProgInfoIter::with_query_opts(ProgInfoQueryOptions::default())
        .filter(|info| ids.contains(&info.id))
        .map(|info| info.recursion_misses)
        .sum()
}

fn describe(
    opts: &RecordOpts,
    cpus: &[usize],
    wanted: &[Kind],
    tasks: &[Present],
    begin_ns: u64,
) -> Head {
    let number = |cpu: usize, file: &str| {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/{file}");
        std::fs::read_to_string(path).ok()?.trim().parse().ok()
    };
    let runs_on = |cpu: usize| {
        let on = |task: &&Present| task.running_on.map(usize::from) == Some(cpu);
        tasks.iter().find(on).map_or(0, |task| task.pid)
    };
    let cpu = |id: usize| Cpu {
        id: id as u16,
        capacity: number(id, "cpu_capacity"),
        max_khz: number(id, "cpufreq/cpuinfo_max_freq"),
        khz: number(id, "cpufreq/scaling_cur_freq"),
        running: Some(runs_on(id)),
    };
    let names = |kinds: &mut dyn Iterator<Item = Kind>| kinds.map(|k| k.name().into()).collect();
    Head {
        clock: "CLOCK_MONOTONIC".into(),
        begin_ns,
        begin_utc_s: units::now(),
        release: preflight::release(),
        scheduler: preflight::loaded().map(Into::into),
        overwrite: opts.overwrite,
        events: names(&mut <Kind as clap::ValueEnum>::value_variants().iter().copied()),
        wanted: names(&mut wanted.iter().copied()),
        cpus: cpus.iter().map(|id| cpu(*id)).collect(),
        tasks: tasks.iter().map(Present::task).collect(),
        decides_by: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_events_and_cpus_are_taken_within_bounds() {
        assert_eq!(parse_size("64K"), Ok(65_536));
        assert_eq!(parse_size("1g"), Ok(1 << 30));
        for bad in [
            "",
            "K",
            "63K",
            "2G",
            "-1M",
            "4T",
            "99999999999999999999G",
            "ä",
        ] {
            assert!(parse_size(bad).unwrap_err().contains("64K..=1G"), "{bad}");
        }
        assert_eq!(parse_event("wakeup-new"), Ok(Kind::WakeupNew));
        assert_eq!(parse_event("lock-left"), Ok(Kind::LockLeft));
        let refused = parse_event("lock").unwrap_err();
        assert!(refused.contains("switch") && refused.contains("inversion"));
        assert_eq!(*parse_cpus("0-2,5").unwrap().0, [0, 1, 2, 5]);
        for bad in ["", "x", "3-1", "1024", "0-99999"] {
            assert!(parse_cpus(bad).is_err(), "{bad}");
        }
    }
}
