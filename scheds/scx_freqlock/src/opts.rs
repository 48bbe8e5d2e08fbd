// SPDX-License-Identifier: GPL-2.0-only
//! The command line.

use crate::cost_command::CostOpts;
use crate::libbpf_log::VerifierOpts;
use crate::observe_command::ObserveOpts;
use crate::policy_command::PolicyArgs;
use crate::record_command::RecordOpts;
use crate::run_command::RunCommandOpts;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use freqlock::adapt::DEFAULT_MODES;
use freqlock::commands::analyze::AnalyzeArgs;
use freqlock::commands::context_table::ContextsArgs;
use freqlock::commands::cpus_table::CpusArgs;
use freqlock::commands::export::ExportArgs;
use freqlock::commands::live_knobs::{AdaptArgs, ExplainArgs, GetArgs, SetArgs};
use freqlock::commands::lock_table::LocksArgs;
use freqlock::commands::task_table::ReportArgs;
use freqlock::commands::top::TopArgs;
use freqlock::commands::trace_page::ViewArgs;
use freqlock::control;
use freqlock::freq::Source;
use freqlock::http::Address;
use freqlock::interval;
use freqlock::intf;
use freqlock::knobs::{self, KnobArgs, Tunables};
use freqlock::lab_args::{CompareArgs, MachineArgs, PromisesArgs};
use freqlock::mode::Mode;
use freqlock::number::whole;
use freqlock::output::{self, Format};
use scx_utils::build_id;
use scx_utils::libbpf_clap_opts::LibbpfOpts;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

/// Version of the scheduler and of its build, as other scx schedulers say it.
pub static VERSION: LazyLock<String> =
    LazyLock::new(|| build_id::full_version(env!("CARGO_PKG_VERSION")));

const EXIT_STATUS: &str = "\
Exit status:
  0  ended by a signal, by sysrq-S, or from user space
  1  could not be loaded
  2  wrong usage
  3  ran, and was ended by the kernel: by its watchdog, or after an error

CPUs may come and go meanwhile. When its process is gone, however it ended, the
kernel is back on its own scheduler.";

const MORE: &str = "\
`scx_freqlock --help` has all flags, those of knobs too; `scx_freqlock help
COMMAND` describes a command, `scx_freqlock knobs` lists what can be changed.";

/// Of the flags below these headings the short help has the usual ones alone.
const SELDOM: [&str; 2] = [knobs::HEADING, LIBBPF];
const USUAL: [&str; 2] = ["adapt", "slice_us"];
const LIBBPF: &str = "Libbpf options";

/// A sched_ext scheduler that places tasks on CPUs that are fast now.
#[derive(Debug, Parser)]
#[command(version = VERSION.as_str(), after_help = MORE, after_long_help = EXIT_STATUS)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub struct Opts {
    #[command(subcommand)]
    pub command: Option<Command>,

    #[command(flatten)]
    pub run: RunOpts,
}

/// Without a command, the scheduler runs until it is told to end.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Print which scheduler is in charge, and how ours runs
    ///
    /// For root it adds the mode of the running scx_freqlock, since when it runs,
    /// its sources of speed, the hooks that are active or missing, its contexts and
    /// the knobs that were changed. The exit status is 0 if it runs, else 1.
    Status(Format),
    Top(TopArgs),
    Report(ReportArgs),
    Locks(LocksArgs),
    Cpus(CpusArgs),
    /// Print what the running scheduler counted since it started
    Counters(Format),
    /// Print how good the predictions of the running scheduler are
    Predictions(Format),
    /// Print the memory that the scheduler takes, or would take
    Memory(MemoryOpts),
    /// Print all knobs: unit, range, default and meaning
    ///
    /// Those that are live can be changed while the scheduler runs, some of them by context.
    Knobs(Format),
    Get(GetArgs),
    Set(SetArgs),
    /// Undo the last change of knobs
    Undo(Format),
    /// Print the changes of knobs, with who made them and when
    ///
    /// These are the ones that can be undone.
    Changes(Format),
    Adapt(AdaptArgs),
    Explain(ExplainArgs),
    /// Check a file of contexts and print what it says
    ///
    /// It needs no scheduler.
    Contexts(ContextsArgs),
    /// Have the running scheduler read its contexts again
    ///
    /// As SIGHUP does. A file with an error changes nothing.
    Reload(Format),
    #[command(subcommand)]
    Policy(PolicyArgs),
    /// Run a command: where its tasks ran, how long they waited
    ///
    /// This works under any scheduler.
    Observe(ObserveOpts),
    /// Record what the scheduler does, event by event
    ///
    /// This works under any scheduler. What is recorded goes to a file, for `analyze`: forks,
    /// wake-ups, switches, migrations, idle states and frequencies, 24 bytes each. Events that
    /// find no room are counted, and the file says how many.
    Record(RecordOpts),
    Analyze(AnalyzeArgs),
    Export(ExportArgs),
    View(ViewArgs),
    /// Run a command: what the scheduler took meanwhile
    ///
    /// That is the time of the BPF programs of the sched_ext scheduler in charge, ours or
    /// another one.
    Cost(CostOpts),
    Run(RunCommandOpts),
    Compare(CompareArgs),
    #[command(subcommand)]
    Machine(MachineArgs),
    #[command(hide = true)]
    Promises(PromisesArgs),
    /// Make what meson install puts beside the program
    #[command(hide = true)]
    Generate(GenerateOpts),
    /// Print the version
    Version(Format),
    /// Print the help of a command, or this one
    Help(HelpOpts),
}

#[derive(Debug, Args)]
pub struct HelpOpts {
    /// The command, with its own command if it has some
    #[arg(value_name = "COMMAND")]
    words: Vec<String>,
}

impl HelpOpts {
    pub fn words(&self) -> String {
        self.words.join(" ")
    }
}

/// Write manual pages, or print completions
#[derive(Debug, Args)]
pub struct GenerateOpts {
    #[command(subcommand)]
    pub what: Generated,
}

#[derive(Debug, Subcommand)]
pub enum Generated {
    /// Write a manual page for each command, and of files, in man1 and man5 below a folder
    Man {
        /// A folder, which is made if it is not there
        dir: PathBuf,
    },
    /// Print the completions of a shell
    Completions { shell: Shell },
}

#[derive(Debug, Args)]
pub struct MemoryOpts {
    /// Compute it for that many CPUs
    #[arg(long, default_value_t = 512, value_name = "CPUS", value_parser = whole(1..=u64::from(intf::fl_consts_FL_MAX_CPUS)))]
    pub cpus: u64,

    /// Compute it for that many tasks
    #[arg(long, default_value_t = 10_000, value_name = "TASKS", value_parser = whole(1..=4_194_304u64))]
    pub tasks: u64,

    #[command(flatten)]
    pub format: Format,
}

#[derive(Debug, Args)]
pub struct RunOpts {
    /// Where forked and woken tasks go
    #[arg(long, value_enum, default_value_t = Mode::Auto)]
    pub mode: Mode,

    /// Where the present speed of each CPU comes from
    #[arg(long, value_name = "SOURCE", default_value = AUTO, value_parser = sources())]
    freq_source: Wanted,

    /// Speeds of CPUs in 1..1024 for --freq-source=test; those not named have 1024
    #[arg(long, hide_short_help = true, value_name = "CPU=SPEED[,..]", value_delimiter = ',', value_parser = parse_speed)]
    pub test_speed: Vec<(usize, u32)>,

    /// Use these capacities of CPUs, in 1..1024 of the largest, instead of the
    /// kernel's; those not named have 1024
    #[arg(long, hide_short_help = true, value_name = "CPU=CAPACITY[,..]", value_delimiter = ',', value_parser = parse_speed)]
    pub test_capacity: Vec<(usize, u32)>,

    #[command(flatten)]
    pub verifier: VerifierOpts,

    /// Never run tasks of this name, so that the kernel's watchdog ends the scheduler
    #[arg(long, value_name = "COMM", hide = true, value_parser = parse_comm)]
    pub test_drop: Option<String>,

    /// Measure nothing at start
    ///
    /// Without the flag it measures what active cores lose to each other (0.3 s),
    /// the migration cost (0.2 s) and, for the recency model, the speed of CPUs
    /// that were idle (0.3 s). With it, --speed-floor and the migration costs are
    /// used as they are.
    #[arg(long)]
    pub no_calibrate: bool,

    /// Print statistics at this interval, in seconds
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = parse_interval)]
    pub stats: Option<Duration>,

    /// Print the statistics of the running scheduler, and load none
    ///
    /// Fails where scx_freqlock is not running, or when it has ended.
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = parse_interval)]
    pub monitor: Option<Duration>,

    /// Offer figures as OpenMetrics, for Prometheus
    ///
    /// At a port of this machine, or at HOST:PORT, to anybody who can connect.
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<Address>,

    /// Describe the statistics
    #[arg(long, hide_short_help = true)]
    pub help_stats: bool,

    /// Print more, and what libbpf prints
    #[arg(short, long)]
    pub verbose: bool,

    /// Length of the kernel's dump, which is printed if the kernel ends the
    /// scheduler after an error (0: 32 KiB, or 2 KiB a CPU if that is more)
    #[arg(long, hide_short_help = true, default_value_t = 0, value_name = "BYTES", value_parser = whole(0..=16_777_216u32))]
    pub exit_dump_len: u32,

    /// The file of contexts: other knobs for some tasks
    ///
    /// They are values of knobs for the tasks of some commands, cgroups and users
    /// [default: /etc/scx_freqlock/contexts.toml, if it is there].
    #[arg(long, value_name = "FILE")]
    pub contexts: Option<PathBuf>,

    /// The modes that --adapt tries, beside the one given by --mode
    #[arg(long, hide_short_help = true, value_enum, requires = "adapt", default_values_t = DEFAULT_MODES, value_name = "MODE[,..]", value_delimiter = ',')]
    pub adapt_modes: Vec<Mode>,

    #[command(flatten)]
    pub knobs: KnobArgs,

    #[command(flatten, next_help_heading = LIBBPF)]
    pub libbpf: LibbpfOpts,
}

/// What is parsed, and what help, manual pages and completions are made of.
pub fn command() -> clap::Command {
    Opts::command().mut_args(|arg| {
        let seldom = (arg.get_help_heading()).is_some_and(|heading| SELDOM.contains(&heading));
        let hidden = seldom && !USUAL.contains(&arg.get_id().as_str());
        match hidden {
            true => arg.hide_short_help(true),
            false => arg,
        }
    })
}

/// Prints the help that is asked for; false if there is no such command.
pub fn help(opts: &HelpOpts) -> Result<bool, output::Error> {
    let mut all = command();
    all.build();
    let text = match &opts.words[..] {
        [] => all.render_help(),
        words => {
            let mut found = Some(&mut all);
            for word in words {
                found = found.and_then(|cmd| cmd.find_subcommand_mut(word));
            }
            match found {
                Some(cmd) => cmd.render_long_help(),
                None => return Ok(false),
            }
        }
    };
    output::print(text.to_string())?;
    Ok(true)
}

impl Opts {
    /// Parses the command line; ends the process where that has no meaning, and where it
    /// asks for nothing but help.
    pub fn from_command_line() -> Self {
        let parsed = command()
            .try_get_matches()
            .and_then(|matches| Self::from_arg_matches(&matches));
        let opts = parsed.unwrap_or_else(|error| output::end_by(&error));
        if !opts.run.test_speed.is_empty() && opts.run.freq_source() != Some(Source::Test) {
            let what = "--test-speed has a meaning with --freq-source=test only";
            command().error(ErrorKind::ArgumentConflict, what).exit();
        }
        let knobs = opts.run.tunables();
        if knobs.adapt != 0 && knobs.telemetry == 0 {
            let what = "--adapt requires --telemetry";
            command().error(ErrorKind::ArgumentConflict, what).exit();
        }
        if knobs.pi_ipc != 0 && knobs.locks == 0 {
            let what = "--pi-ipc requires --locks";
            command().error(ErrorKind::ArgumentConflict, what).exit();
        }
        if let Some(what) = control::Error::of(&knobs) {
            command().error(ErrorKind::ArgumentConflict, what).exit();
        }
        opts
    }
}

impl RunOpts {
    /// The source asked for; none to take the best that is there.
    pub fn freq_source(&self) -> Option<Source> {
        self.freq_source.0
    }

    pub fn tunables(&self) -> Tunables {
        let mut tunables = Tunables::new(self.mode);
        self.knobs.apply(&mut tunables);
        tunables
    }
}

/// The source asked for, none for the best that is there.
#[derive(Clone, Copy, Debug)]
struct Wanted(Option<Source>);

const AUTO: &str = "auto";

fn sources() -> impl TypedValueParser<Value = Wanted> {
    let auto = PossibleValue::new(AUTO).help("The best that is there");
    let others = Source::value_variants()
        .iter()
        .filter_map(Source::to_possible_value);
    PossibleValuesParser::new(std::iter::once(auto).chain(others))
        .map(|name| Wanted(Source::from_str(&name, false).ok()))
}

fn parse_speed(text: &str) -> Result<(usize, u32), String> {
    const FULL: u32 = intf::fl_consts_FL_FULL_SPEED;
    let (cpu, speed) = text
        .split_once('=')
        .ok_or("expected CPU=SPEED, for example 3=512")?;
    let cpu = cpu
        .parse()
        .ok()
        .filter(|cpu| *cpu < intf::fl_consts_FL_MAX_CPUS as usize)
        .ok_or_else(|| format!("`{cpu}` is not the number of a CPU"))?;
    let speed = speed
        .parse()
        .ok()
        .filter(|speed| (1..=FULL).contains(speed))
        .ok_or_else(|| format!("`{speed}` is not in 1..={FULL}"))?;
    Ok((cpu, speed))
}

fn parse_comm(text: &str) -> Result<String, String> {
    const MOST: usize = intf::fl_consts_FL_COMM as usize - 1;
    match text.len() {
        1..=MOST => Ok(text.into()),
        _ => Err(format!("the name of a task has 1 to {MOST} bytes")),
    }
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    interval::parse(text, 0.01..=86_400.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Opts, String> {
        let args = std::iter::once("scx_freqlock").chain(args.iter().copied());
        let matches = command().try_get_matches_from(args);
        (matches.and_then(|matches| Opts::from_arg_matches(&matches))).map_err(|e| {
            assert_eq!(e.exit_code(), 2, "{e}");
            e.to_string()
        })
    }

    #[test]
    fn the_command_line_is_consistent() {
        command().debug_assert();
    }

    #[test]
    fn the_short_help_is_short() {
        let help = command().term_width(80).render_help().to_string();
        let lines = help.lines().count();
        assert!(lines <= 64, "{lines} lines: {help}");
        for part in [
            "status",
            "--mode",
            "--adapt",
            "--help",
            "COMMAND` describes",
        ] {
            assert!(help.contains(part), "{part}: {help}");
        }
        let all = command().render_long_help().to_string();
        for part in ["--spin", "--btf-custom-path", "Exit status:"] {
            assert!(!help.contains(part) && all.contains(part), "{part}");
        }
    }

    #[test]
    fn without_arguments_the_scheduler_runs_in_mode_auto() {
        let opts = parse(&[]).unwrap();
        assert!(opts.command.is_none());
        assert_eq!(opts.run.tunables(), Tunables::new(Mode::Auto));
        assert_eq!(opts.run.freq_source(), None);
    }

    #[test]
    fn modes_sources_and_knobs_are_taken_by_name() {
        let opts = parse(&[
            "--mode=fork-local",
            "--freq-source",
            "aperf",
            "--slice-us",
            "2000",
        ])
        .unwrap();
        let mut expected = Tunables::new(Mode::ForkLocal);
        expected.slice_us = 2000;
        assert_eq!(opts.run.tunables(), expected);
        assert_eq!(opts.run.freq_source(), Some(Source::Aperf));
    }

    #[test]
    fn speeds_for_tests_are_checked() {
        let opts = parse(&["--freq-source=test", "--test-speed=0=1024,3=1"]).unwrap();
        assert_eq!(opts.run.test_speed, [(0, 1024), (3, 1)]);
        for bad in ["3", "x=1", "3=0", "3=1025", "1024=5", "-1=5", "=", "3=1,,"] {
            let message =
                parse(&["--freq-source=test", &format!("--test-speed={bad}")]).unwrap_err();
            assert!(message.contains("--test-speed"), "{message}");
        }
    }

    #[test]
    fn absurd_values_are_refused_with_what_would_do() {
        for (args, hint) in [
            (["--mode", "fork-locl"], "fork-local"),
            (["--mode", ""], "possible values"),
            (["--freq-source", "aperff"], "aperf"),
            (["--slice-us", "0"], "100..=100000"),
            (["--slice-us", "99999999999999999999"], "--slice-us"),
            (["--stats", "0"], "0.01..=86400"),
            (["--stats", "-1"], "0.01..=86400"),
            (["--monitor", "NaN"], "0.01..=86400"),
            (["--monitor", "inf"], "0.01..=86400"),
            (["--exit-dump-len", "99999999999"], "--exit-dump-len"),
            (["--speed-flor", "5"], "--speed-floor"),
            (["predictons", "--json"], "predictions"),
            (["memory", "--cpus=0"], "1..=1024"),
        ] {
            let message = parse(&args).unwrap_err();
            assert!(message.contains(hint), "{args:?}: {message}");
        }
    }

    /// The table in scx_loader's form.
    const LOADER: &str = include_str!("../../../services/scx_loader.toml");

    #[test]
    fn every_mode_of_scx_loader_has_flags_that_are_taken() {
        let config: toml::Table = LOADER.parse().unwrap();
        let scheds = config["scheds"].as_table().unwrap();
        assert_eq!(scheds.len(), 1);
        let modes = scheds[env!("CARGO_PKG_NAME")].as_table().unwrap();
        let names: Vec<_> = modes.keys().map(String::as_str).collect();
        assert_eq!(
            names,
            [
                "auto_mode",
                "gaming_mode",
                "lowlatency_mode",
                "powersave_mode",
                "server_mode"
            ]
        );
        for (name, flags) in modes {
            let flags: Vec<_> = flags
                .as_array()
                .unwrap()
                .iter()
                .map(|f| f.as_str().unwrap())
                .collect();
            let opts = parse(&flags).unwrap();
            assert!(opts.command.is_none());
            let changes = opts.run.tunables() != Tunables::new(Mode::Auto);
            assert_eq!(changes, name != "auto_mode", "{name}");
        }
    }

    #[test]
    fn modes_are_tried_only_if_that_is_asked_for() {
        assert_eq!(parse(&[]).unwrap().run.tunables().adapt, 0);
        let opts = parse(&["--adapt", "--mode=off"]).unwrap().run;
        assert_eq!((opts.tunables().adapt, opts.mode), (1, Mode::Off));
        assert_eq!(opts.adapt_modes, DEFAULT_MODES);
        let opts = parse(&["--adapt", "--adapt-modes=smove,nest"]).unwrap().run;
        assert_eq!(opts.adapt_modes, [Mode::Smove, Mode::Nest]);
        let message = parse(&["--adapt-modes=nest"]).unwrap_err();
        assert!(message.contains("--adapt"), "{message}");
    }

    #[test]
    fn a_command_to_run_keeps_its_own_flags() {
        let opts = parse(&["run", "--", "make", "--partial", "-j4"]).unwrap();
        assert!(matches!(opts.command, Some(Command::Run(_))));
        for bad in [&["run"][..], &["run", "--"], &["run", "make"]] {
            let message = parse(bad).unwrap_err();
            assert!(message.contains("COMMAND"), "{bad:?}: {message}");
        }
        assert_eq!(parse(&["--partial"]).unwrap().run.tunables().partial, 1);
    }

    #[test]
    fn commands_have_no_flags_of_the_scheduler() {
        let opts = parse(&["memory", "--cpus=64", "--json"]).unwrap();
        assert!(matches!(opts.command, Some(Command::Memory(m)) if m.cpus == 64 && m.format.json));
        parse(&["--mode=off", "memory"]).unwrap_err();
    }
}
