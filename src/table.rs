// SPDX-License-Identifier: GPL-2.0-only
//! The tables bpf/knobs.h, bpf/stats.h, bpf/taskstats.h, bpf/modes.h, bpf/sources.h and
//! bpf/events.h as data, and the Rust made of them.
//!
//! A strict parser on purpose: a line that it does not understand ends the
//! build, naming file and line, rather than leave out a knob or a statistic.
//! Used by build.rs, and by the library's tests of it.

#[derive(Debug, PartialEq, Eq)]
pub struct KnobLine {
    pub name: String,
    pub unit: String,
    pub default: u64,
    pub min: u64,
    pub max: u64,
    pub live: bool,
    /// Whether it may differ from context to context.
    pub task: bool,
    pub meaning: String,
}

#[derive(Debug, PartialEq, Eq)]
pub struct StatLine {
    pub name: String,
    pub group: String,
    pub desc: String,
}

/// A retired name of a knob.
#[derive(Debug, PartialEq, Eq)]
pub struct KnobWas {
    pub old: String,
    pub new: String,
}

/// Parses `KNOB(name, "unit", default, min, max, start, live or task, "meaning")` lines,
/// and `KNOB_WAS(old, new)` lines after them.
pub fn parse_knobs(file: &str, text: &str) -> Result<(Vec<KnobLine>, Vec<KnobWas>), String> {
    let mut knobs = Vec::<KnobLine>::new();
    let mut retired = Vec::<KnobWas>::new();
    for (line, name, args) in entries(file, text, &["KNOB", "KNOB_WAS"])? {
        let at = |what: String| format!("{file}:{line}: {what}");
        if name == "KNOB_WAS" {
            let [old, new] = fixed(args).map_err(at)?;
            let was = KnobWas {
                old: ident(old).map_err(at)?,
                new: ident(new).map_err(at)?,
            };
            let taken = knobs.iter().any(|k| k.name == was.old);
            if taken || retired.iter().any(|r| r.old == was.old) {
                return Err(at(format!("`{}` is defined twice", was.old)));
            }
            if !knobs.iter().any(|k| k.name == was.new) {
                return Err(at(format!("there is no knob `{}`", was.new)));
            }
            retired.push(was);
            continue;
        }
        let [name, unit, default, min, max, when, meaning] = fixed(args).map_err(at)?;
        let knob = KnobLine {
            name: ident(name).map_err(at)?,
            unit: string(unit).map_err(at)?,
            default: number(default).map_err(at)?,
            min: number(min).map_err(at)?,
            max: number(max).map_err(at)?,
            live: match when {
                "live" | "task" => true,
                "start" => false,
                _ => return Err(at(format!("`{when}` is neither start, live nor task"))),
            },
            task: when == "task",
            meaning: string(meaning).map_err(at)?,
        };
        if !(knob.min..=knob.max).contains(&knob.default) {
            return Err(at(format!(
                "default {} is outside {}..{}",
                knob.default, knob.min, knob.max
            )));
        }
        if knobs.iter().any(|k| k.name == knob.name) {
            return Err(at(format!("`{}` is defined twice", knob.name)));
        }
        knobs.push(knob);
    }
    Ok((knobs, retired))
}

/// Parses `STAT(name, group, "description")` lines.
pub fn parse_stats(file: &str, text: &str) -> Result<Vec<StatLine>, String> {
    let mut stats = Vec::<StatLine>::new();
    for (line, _, args) in entries(file, text, &["STAT"])? {
        let at = |what: String| format!("{file}:{line}: {what}");
        let [name, group, desc] = fixed(args).map_err(at)?;
        let stat = StatLine {
            name: ident(name).map_err(at)?,
            group: ident(group).map_err(at)?,
            desc: string(desc).map_err(at)?,
        };
        if stats.iter().any(|s| s.name == stat.name) {
            return Err(at(format!("`{}` is defined twice", stat.name)));
        }
        stats.push(stat);
    }
    Ok(stats)
}

#[derive(Debug, PartialEq, Eq)]
pub struct TaskStatLine {
    pub name: String,
    /// A time in ns; else a number of times.
    pub is_time: bool,
    pub desc: String,
}

impl TaskStatLine {
    /// The agent's name for it, with the unit.
    fn field(&self) -> String {
        format!("{}{}", self.name, if self.is_time { "_ns" } else { "" })
    }
}

/// Parses `TASK_STAT(name, ns or count, "description")` lines.
pub fn parse_task_stats(file: &str, text: &str) -> Result<Vec<TaskStatLine>, String> {
    let mut stats = Vec::<TaskStatLine>::new();
    for (line, _, args) in entries(file, text, &["TASK_STAT"])? {
        let at = |what: String| format!("{file}:{line}: {what}");
        let [name, unit, desc] = fixed(args).map_err(at)?;
        let stat = TaskStatLine {
            name: ident(name).map_err(at)?,
            is_time: match unit {
                "ns" => true,
                "count" => false,
                _ => return Err(at(format!("`{unit}` is neither ns nor count"))),
            },
            desc: string(desc).map_err(at)?,
        };
        if stats.iter().any(|s| s.name == stat.name) {
            return Err(at(format!("`{}` is defined twice", stat.name)));
        }
        stats.push(stat);
    }
    Ok(stats)
}

/// A table of which each line is one value of a C enum, and may be named on the command line.
pub struct Kind {
    /// What its lines are called.
    entry: &'static str,
    /// The Rust enum, and a line about it.
    rust: &'static str,
    about: &'static str,
    /// The C enum, what its members begin with, and the enum of flags.
    c: &'static str,
    member: &'static str,
    flags: &'static str,
}

pub const MODES: Kind = Kind {
    entry: "MODE",
    rust: "Mode",
    about: "A rule of placement",
    c: "fl_mode",
    member: "FL_MODE_",
    flags: "fl_mode_flags",
};

pub const SOURCES: Kind = Kind {
    entry: "SOURCE",
    rust: "Source",
    about: "A source of CPU speed",
    c: "fl_freq_source",
    member: "FL_FREQ_",
    flags: "fl_source_flags",
};

pub const EVENTS: Kind = Kind {
    entry: "EVENT",
    rust: "Kind",
    about: "An event of a trace",
    c: "fl_trace",
    member: "FL_TRACE_",
    flags: "fl_trace_flags",
};

pub const HOOKS: Kind = Kind {
    entry: "HOOK",
    rust: "Hook",
    about: "A decision that a user's policy may make",
    c: "fl_hook_name",
    member: "FL_HOOK_",
    flags: "fl_hook_flags",
};

#[derive(Debug, PartialEq, Eq)]
pub struct ChoiceLine {
    pub name: String,
    /// On the command line.
    pub cli: String,
    pub flags: Vec<String>,
    pub help: String,
}

impl ChoiceLine {
    /// The variant of the Rust enum: `ForkLocal` of `fork_local`.
    fn variant(&self) -> String {
        let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
        self.name.split('_').map(capital).collect()
    }
}

/// Parses `ENTRY(name, "cli-name", FLAG | FLAG or 0, "help")` lines.
pub fn parse_choices(kind: &Kind, file: &str, text: &str) -> Result<Vec<ChoiceLine>, String> {
    let mut choices = Vec::<ChoiceLine>::new();
    for (line, _, args) in entries(file, text, &[kind.entry])? {
        let at = |what: String| format!("{file}:{line}: {what}");
        let [name, cli, flags, help] = fixed(args).map_err(at)?;
        let flags = flags.split('|').map(str::trim).filter(|flag| *flag != "0");
        let choice = ChoiceLine {
            name: ident(name).map_err(at)?,
            cli: string(cli).map_err(at)?,
            flags: flags.map(str::to_string).collect(),
            help: string(help).map_err(at)?,
        };
        if choices
            .iter()
            .any(|c| c.name == choice.name || c.cli == choice.cli)
        {
            return Err(at(format!("`{name}` or {cli} is defined twice")));
        }
        choices.push(choice);
    }
    Ok(choices)
}

/// One `MACRO(...)` line: its number, its macro and its arguments.
type Entry<'a> = (usize, &'a str, Vec<&'a str>);

/// Every line that calls one of these macros, of which the first has to be there. Only
/// comments, preprocessor lines and empty lines may stand between them.
fn entries<'a>(file: &str, text: &'a str, names: &[&'a str]) -> Result<Vec<Entry<'a>>, String> {
    let first = names.first().copied().unwrap_or_default();
    let mut found = Vec::new();
    let mut in_comment = false;
    for (index, raw) in text.lines().enumerate() {
        let line = raw.trim();
        let number = index + 1;
        if in_comment || line.starts_with("/*") {
            in_comment = !line.ends_with("*/");
        } else if !line.is_empty() && !line.starts_with('#') {
            let (name, inside) = (names.iter())
                .find_map(|name| {
                    let inside = line.strip_prefix(name)?.strip_prefix('(')?;
                    Some((*name, inside.strip_suffix(')')?))
                })
                .ok_or_else(|| format!("{file}:{number}: expected {first}(...) on one line"))?;
            let args = split(inside).map_err(|what| format!("{file}:{number}: {what}"))?;
            found.push((number, name, args));
        }
    }
    if found.is_empty() {
        return Err(format!("{file}: no {first}(...) line found"));
    }
    Ok(found)
}

/// Splits at commas outside of string literals, which have no escapes.
fn split(inside: &str) -> Result<Vec<&str>, String> {
    let mut args = Vec::new();
    let (mut start, mut quoted) = (0, false);
    for (pos, c) in inside.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '\\' => return Err("escapes are not supported".into()),
            ',' if !quoted => {
                args.push(inside[start..pos].trim());
                start = pos + 1;
            }
            _ => {}
        }
    }
    if quoted {
        return Err("string literal without end".into());
    }
    args.push(inside[start..].trim());
    Ok(args)
}

fn fixed<const N: usize>(args: Vec<&str>) -> Result<[&str; N], String> {
    let found = args.len();
    args.try_into()
        .map_err(|_| format!("expected {N} arguments, found {found}"))
}

fn ident(arg: &str) -> Result<String, String> {
    let mut chars = arg.chars();
    let first = chars.next().is_some_and(|c| c.is_ascii_lowercase());
    if first && chars.all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_') {
        Ok(arg.into())
    } else {
        Err(format!("`{arg}` is not a name in lower case"))
    }
}

fn string(arg: &str) -> Result<String, String> {
    arg.strip_prefix('"')
        .and_then(|a| a.strip_suffix('"'))
        .filter(|a| !a.is_empty() && !a.contains('"'))
        .map(str::to_string)
        .ok_or_else(|| format!("`{arg}` is not a string literal with text"))
}

fn number(arg: &str) -> Result<u64, String> {
    arg.parse()
        .map_err(|_| format!("`{arg}` is not a plain decimal number"))
}

/// `KNOBS`, `RETIRED`, `Tunables` in the order of the table, and how to store them into
/// the skeleton's own structs.
pub fn knobs_source(knobs: &[KnobLine], retired: &[KnobWas]) -> String {
    let of_each =
        |line: &dyn Fn(&KnobLine) -> String| -> String { knobs.iter().map(line).collect() };
    let table = of_each(&|k| {
        format!(
            "    Knob {{ name: {:?}, flag: {:?}, unit: {:?}, default: {}, min: {}, max: {}, \
             live: {}, task: {}, meaning: {:?} }},\n",
            k.name,
            k.name.replace('_', "-"),
            k.unit,
            k.default,
            k.min,
            k.max,
            k.live,
            k.task,
            k.meaning
        )
    });
    let fields = of_each(&|k| {
        format!(
            "    /// {} ({})\n    pub {}: u64,\n",
            k.meaning, k.unit, k.name
        )
    });
    let defaults = of_each(&|k| format!("    {}: {},\n", k.name, k.default));
    let matches = of_each(&|k| format!("            \"{0}\" => Some(&mut self.{0}),\n", k.name));
    let store = |k: &KnobLine| format!("        $to.{0} = $from.{0};\n", k.name);
    let stores = of_each(&|k| if k.task { String::new() } else { store(k) });
    let policy = of_each(&|k| if k.task { store(k) } else { String::new() });
    let retired: String = (retired.iter())
        .map(|r| {
            let flag = r.old.replace('_', "-");
            format!(
                "    Retired {{ old: {:?}, old_flag: {flag:?}, new: {:?} }},\n",
                r.old, r.new
            )
        })
        .collect();
    format!(
        "\
/// Every knob, in the order of the table.
pub const KNOBS: &[Knob] = &[
{table}];

/// Every retired name.
pub const RETIRED: &[Retired] = &[
{retired}];

/// `struct tunables` and `struct fl_policy` of intf.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunables {{
    /// One of `enum fl_mode`.
    pub mode: u64,
{fields}}}

const DEFAULTS: Tunables = Tunables {{
    mode: 0,
{defaults}}};

impl Tunables {{
    /// The field of the knob called `name`.
    pub fn knob_mut(&mut self, name: &str) -> Option<&mut u64> {{
        match name {{
{matches}            _ => None,
        }}
    }}
}}

/// Stores what holds for all into the skeleton's `struct tunables`.
#[macro_export]
macro_rules! store_tunables {{
    ($from:expr, $to:expr) => {{{{
{stores}    }}}};
}}

/// Stores what may differ from context to context into the skeleton's `struct fl_policy`.
#[macro_export]
macro_rules! store_policy {{
    ($from:expr, $to:expr) => {{{{
        $to.mode = $from.mode;
{policy}    }}}};
}}
"
    )
}

/// The enum of a table, with the names and flags of its members.
pub fn choices_source(kind: &Kind, choices: &[ChoiceLine]) -> String {
    let Kind {
        rust,
        about,
        c,
        member,
        ..
    } = kind;
    let of_each =
        |line: &dyn Fn(&ChoiceLine) -> String| -> String { choices.iter().map(line).collect() };
    let variants = of_each(&|choice| {
        format!(
            "    /// {}\n    #[value(name = {:?})]\n    {} = crate::intf::{c}_{member}{},\n",
            choice.help,
            choice.cli,
            choice.variant(),
            choice.name
        )
    });
    let names = of_each(&|choice| {
        let variant = choice.variant();
        format!("            Self::{variant} => {:?},\n", choice.cli)
    });
    let flags = of_each(&|choice| {
        let flag = |flag: &String| format!("crate::intf::{}_{flag}", kind.flags);
        let flags: Vec<String> = choice.flags.iter().map(flag).collect();
        let flags = match flags.is_empty() {
            true => "0".into(),
            false => flags.join(" | "),
        };
        format!("            Self::{} => {flags},\n", choice.variant())
    });
    format!(
        "\
/// {about}: `enum {c}`, and what its members are called on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
#[repr(u32)]
pub enum {rust} {{
{variants}}}

impl {rust} {{
    /// As the command line has it.
    pub fn name(self) -> &'static str {{
        match self {{
{names}        }}
    }}

    /// Its bits of `enum {}`.
    pub fn flags(self) -> u32 {{
        match self {{
{flags}        }}
    }}
}}
",
        kind.flags
    )
}

/// `STATS`, the names and groups that they are printed with, and `Metrics` for
/// scx_stats.
pub fn metrics_source(stats: &[StatLine]) -> String {
    let of_each = |line: &dyn Fn(usize, &StatLine) -> String| -> String {
        stats.iter().enumerate().map(|(i, s)| line(i, s)).collect()
    };
    let table = of_each(&|_, s| {
        format!(
            "    Stat {{ name: {:?}, group: {:?}, desc: {:?} }},\n",
            s.name, s.group, s.desc
        )
    });
    let fields = of_each(&|_, s| {
        format!(
            "    #[stat(desc = {:?})]\n    pub {}: u64,\n",
            s.desc, s.name
        )
    });
    let from = of_each(&|i, s| format!("            {}: counts[{i}],\n", s.name));
    let to = of_each(&|_, s| format!("            self.{},\n", s.name));
    format!(
        "\
/// The statistics, in the order of `enum fl_stat`.
pub const STATS: &[Stat] = &[
{table}];

/// The statistics, added up over all CPUs.
#[stat_doc]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Stats)]
#[stat(top)]
pub struct Metrics {{
{fields}}}

impl Metrics {{
    /// From one value for each of `STATS`.
    pub fn from_counts(counts: &[u64; STATS.len()]) -> Self {{
        Self {{
{from}        }}
    }}

    /// One value for each of `STATS`.
    pub fn counts(&self) -> [u64; STATS.len()] {{
        [
{to}        ]
    }}
}}
"
    )
}

/// `TASK_STATS` and `TaskStats`, in the order of `struct fl_task_stats`.
pub fn task_stats_source(stats: &[TaskStatLine]) -> String {
    let of_each = |line: &dyn Fn(usize, &TaskStatLine) -> String| -> String {
        stats.iter().enumerate().map(|(i, s)| line(i, s)).collect()
    };
    let table = of_each(&|_, s| {
        format!(
            "    TaskStat {{ name: {:?}, is_time: {}, desc: {:?} }},\n",
            s.field(),
            s.is_time,
            s.desc
        )
    });
    let fields = of_each(&|_, s| {
        format!(
            "    #[stat(desc = {:?})]\n    pub {}: u64,\n",
            s.desc,
            s.field()
        )
    });
    let from = of_each(&|i, s| format!("            {}: values[{i}],\n", s.field()));
    let to = of_each(&|_, s| format!("            self.{},\n", s.field()));
    format!(
        "\
/// What is counted of each task, in the order of `struct fl_task_stats`.
pub const TASK_STATS: &[TaskStat] = &[
{table}];

/// What was counted of a task, or of several.
#[stat_doc]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, Stats)]
pub struct TaskStats {{
{fields}}}

impl TaskStats {{
    /// From one value for each of `TASK_STATS`.
    pub fn from_values(values: &[u64; TASK_STATS.len()]) -> Self {{
        Self {{
{from}        }}
    }}

    /// One value for each of `TASK_STATS`.
    pub fn values(&self) -> [u64; TASK_STATS.len()] {{
        [
{to}        ]
    }}
}}
"
    )
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
