// SPDX-License-Identifier: GPL-2.0-only
//! The knobs of bpf/knobs.h: the table, `Tunables`, which holds a value for
//! each, and the command line's flags for them.

use crate::intf;
use crate::mode::Mode;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use std::fmt;

/// One line of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Knob {
    /// As contexts and `set` have it.
    pub name: &'static str,
    /// The name as a flag of the command line, without the dashes.
    pub flag: &'static str,
    /// us, ms, ns, a range of shares or what is counted.
    pub unit: &'static str,
    /// At start.
    pub default: u64,
    /// The least value.
    pub min: u64,
    /// The greatest value.
    pub max: u64,
    /// Whether it may change while the scheduler runs.
    pub live: bool,
    /// Whether it may have another value for the tasks of a context.
    pub task: bool,
    /// A sentence for help and manual.
    pub meaning: &'static str,
}

/// A name that a knob had until this version, in which it works still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retired {
    /// The name that it had.
    pub old: &'static str,
    /// The same as a flag of the command line, without the dashes.
    pub old_flag: &'static str,
    /// The name of one of [`KNOBS`].
    pub new: &'static str,
}

impl Retired {
    /// If this is the retired name of a knob.
    pub fn find(name: &str) -> Option<&'static Self> {
        RETIRED.iter().find(|retired| retired.old == name)
    }
}

/// The warning for a use of the name.
impl fmt::Display for Retired {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Self { old, new, .. } = self;
        write!(
            f,
            "knob `{old}` is now `{new}`; the next version drops `{old}`"
        )
    }
}

/// The name that a knob has now.
pub fn current(name: &str) -> &str {
    Retired::find(name).map_or(name, |retired| retired.new)
}

/// Of their flags in the help.
pub const HEADING: &str = "Knobs";

include!(concat!(env!("OUT_DIR"), "/knobs.rs"));

impl Knob {
    /// Whether it is on or off.
    pub fn is_switch(&self) -> bool {
        (self.min, self.max) == (0, 1)
    }

    /// The knob of this name, which may be a retired one.
    pub fn find(name: &str) -> Option<&'static Self> {
        let name = current(name);
        KNOBS.iter().find(|knob| knob.name == name)
    }

    /// The value, or what is wrong with it.
    pub fn parse(&self, text: &str) -> Result<u64, String> {
        let range = self.min..=self.max;
        // As files of contexts have it.
        let text = match text {
            "true" if self.is_switch() => "1",
            "false" if self.is_switch() => "0",
            text => text,
        };
        text.parse()
            .ok()
            .filter(|value| range.contains(value))
            .ok_or_else(|| format!("not a whole number in {range:?} ({})", self.unit))
    }
}

impl Tunables {
    /// Every knob at its default.
    pub fn new(mode: Mode) -> Self {
        Self {
            mode: mode as u64,
            ..DEFAULTS
        }
    }

    /// The value of the knob of this name.
    pub fn knob(mut self, name: &str) -> Option<u64> {
        self.knob_mut(name).map(|value| *value)
    }
}

/// The values of the knobs given on the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnobArgs {
    values: Vec<(&'static str, u64)>,
    /// Names that were used and are retired.
    retired: Vec<&'static Retired>,
}

impl KnobArgs {
    /// True if this knob was given.
    pub fn has(&self, name: &str) -> bool {
        self.values.iter().any(|(given, _)| *given == name)
    }

    /// The retired names that were used, for a warning each.
    pub fn retired(&self) -> &[&'static Retired] {
        &self.retired
    }

    /// Stores what was given over the defaults.
    pub fn apply(&self, tunables: &mut Tunables) {
        for (name, value) in &self.values {
            if let Some(field) = tunables.knob_mut(name) {
                *field = *value;
            }
        }
    }
}

impl Args for KnobArgs {
    fn augment_args(cmd: Command) -> Command {
        let flag = |name, flag, knob: &'static Knob| {
            Arg::new(name)
                .num_args(usize::from(!knob.is_switch())..=1)
                .default_missing_value("1")
                .long(flag)
                .value_name(knob.unit)
                .help_heading(HEADING)
                .allow_negative_numbers(true)
                .value_parser(|text: &str| knob.parse(text))
        };
        let cmd = KNOBS.iter().fold(cmd, |cmd, knob| {
            cmd.arg(flag(knob.name, knob.flag, knob).help(format!(
                "{} [{}..{}; default: {}]",
                knob.meaning, knob.min, knob.max, knob.default
            )))
        });
        RETIRED.iter().fold(cmd, |cmd, retired| {
            let Some(knob) = Knob::find(retired.new) else {
                return cmd;
            };
            let arg = flag(retired.old, retired.old_flag, knob);
            cmd.arg(arg.hide(true).conflicts_with(knob.name))
        })
    }

    fn augment_args_for_update(cmd: Command) -> Command {
        Self::augment_args(cmd)
    }
}

impl FromArgMatches for KnobArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut args = Self::default();
        args.update_from_arg_matches(matches)?;
        Ok(args)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        let given = |name| {
            let given = matches.value_source(name) == Some(ValueSource::CommandLine);
            matches.get_one::<u64>(name).filter(|_| given).copied()
        };
        for knob in KNOBS {
            self.values.extend(given(knob.name).map(|v| (knob.name, v)));
        }
        for retired in RETIRED {
            if let Some(value) = given(retired.old) {
                self.values.push((retired.new, value));
                self.retired.push(retired);
            }
        }
        Ok(())
    }
}

const _: () = assert!(
    std::mem::size_of::<Tunables>()
        == std::mem::size_of::<intf::tunables>() + std::mem::size_of::<intf::fl_policy>(),
    "Tunables is struct tunables and struct fl_policy"
);

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<KnobArgs, String> {
        let cmd = KnobArgs::augment_args(Command::new("test").no_binary_name(true));
        let matches = cmd.try_get_matches_from(args).map_err(|e| e.to_string())?;
        KnobArgs::from_arg_matches(&matches).map_err(|e| e.to_string())
    }

    #[test]
    fn without_flags_every_knob_has_its_default() {
        let mut tunables = Tunables::new(Mode::Nest);
        parse(&[]).unwrap().apply(&mut tunables);
        assert_eq!(tunables.mode, intf::fl_mode_FL_MODE_nest as u64);
        for knob in KNOBS {
            assert_eq!(
                tunables.knob_mut(knob.name),
                Some(&mut knob.default.clone())
            );
        }
    }

    #[test]
    fn a_flag_sets_its_knob_alone() {
        for knob in KNOBS {
            let args = parse(&[&format!("--{}", knob.flag), &knob.max.to_string()]).unwrap();
            assert!(args.has(knob.name));
            let mut expected = Tunables::new(Mode::Auto);
            *expected.knob_mut(knob.name).unwrap() = knob.max;
            let mut tunables = Tunables::new(Mode::Auto);
            args.apply(&mut tunables);
            assert_eq!(tunables, expected);
        }
    }

    #[test]
    fn a_switch_alone_is_on_and_takes_no_other_flag_for_its_value() {
        for no in ["0", "false"] {
            let args = parse(&["--adapt", "--slice-us=2000", "--locks", no]).unwrap();
            let mut tunables = Tunables::new(Mode::Auto);
            args.apply(&mut tunables);
            let got = (tunables.adapt, tunables.slice_us, tunables.locks);
            assert_eq!(got, (1, 2000, 0));
        }
        parse(&["--slice-us"]).unwrap_err();
        parse(&["--slice-us=true"]).unwrap_err();
    }

    #[test]
    fn values_out_of_range_are_refused_with_the_range() {
        for knob in KNOBS {
            let flag = format!("--{}", knob.flag);
            let range = format!("{}..={}", knob.min, knob.max);
            for bad in [&(knob.max + 1).to_string(), "-1", "4ms", "1.5", "", "1e3"] {
                let message = parse(&[&flag, bad]).unwrap_err();
                assert!(
                    message.contains(&flag) && message.contains(&range),
                    "{message}"
                );
            }
            if knob.min > 0 {
                parse(&[&flag, &(knob.min - 1).to_string()]).unwrap_err();
            }
        }
    }

    #[test]
    fn a_retired_flag_sets_its_knob_with_a_warning_and_is_hidden() {
        let mut cmd = KnobArgs::augment_args(Command::new("test"));
        let help = cmd.render_long_help().to_string();
        for retired in RETIRED {
            let (old, knob) = (retired.old_flag, Knob::find(retired.old).unwrap());
            assert_eq!(knob.name, retired.new);
            let args = parse(&[&format!("--{old}"), &knob.max.to_string()]).unwrap();
            let mut tunables = Tunables::new(Mode::Auto);
            args.apply(&mut tunables);
            assert_eq!(tunables.knob(retired.new), Some(knob.max));
            assert!(args.has(retired.new));
            assert_eq!(args.retired(), [retired]);
            let warning = retired.to_string();
            assert!(warning.contains(retired.new), "{warning}");
            assert!(!help.contains(&format!("--{old} ")), "{old}: {help}");
            let both = [format!("--{old}=1"), format!("--{}=1", knob.flag)];
            parse(&both.each_ref().map(String::as_str)).unwrap_err();
            parse(&[&format!("--{old}={}", knob.max + 1)]).unwrap_err();
        }
        assert_eq!(
            parse(&["--slice-us=2000"]).unwrap().retired(),
            [] as [&Retired; 0]
        );
    }

    #[test]
    fn a_misspelt_flag_is_answered_with_the_nearest() {
        let message = parse(&["--slice-u", "1000"]).unwrap_err();
        assert!(message.contains("--slice-us"), "{message}");
    }
}
