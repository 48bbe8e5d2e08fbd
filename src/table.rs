// SPDX-License-Identifier: GPL-2.0-only
//! The tables bpf/knobs.h, bpf/stats.h and bpf/taskstats.h as data, and the Rust
//! made of them.
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
mod tests {
    use super::*;

    const KNOB: &str =
        r#"KNOB(slice_us, "us", 4000, 100, 100000, live, "Time slice: how long, at most")"#;

    #[test]
    fn a_knob_line_gives_its_seven_fields() {
        let text = format!("/* a\n * comment */\n#ifndef KNOB\n#endif\n\n{KNOB}\n");
        let (knobs, retired) = parse_knobs("k.h", &text).unwrap();
        assert_eq!(retired, []);
        assert_eq!(
            knobs,
            [KnobLine {
                name: "slice_us".into(),
                unit: "us".into(),
                default: 4000,
                min: 100,
                max: 100000,
                live: true,
                task: false,
                meaning: "Time slice: how long, at most".into(),
            }]
        );
        let source = knobs_source(&knobs, &retired);
        assert!(source.contains(
            "pub mode: u64,\n    /// Time slice: how long, at most (us)\n    pub slice_us: u64,"
        ));
        assert!(source.contains("$to.slice_us = $from.slice_us;"));
    }

    #[test]
    fn a_malformed_line_is_named_by_file_and_line() {
        for (bad, why) in [
            (
                "KNOB(a, \"us\", 1, 0, 2)",
                "k.h:2: expected 7 arguments, found 5",
            ),
            (
                "KNOB(A, \"us\", 1, 0, 2, live, \"m\")",
                "k.h:2: `A` is not a name in lower case",
            ),
            (
                "KNOB(a, us, 1, 0, 2, live, \"m\")",
                "k.h:2: `us` is not a string literal with text",
            ),
            (
                "KNOB(a, \"us\", 0x1, 0, 2, live, \"m\")",
                "k.h:2: `0x1` is not a plain decimal number",
            ),
            (
                "KNOB(a, \"us\", 3, 0, 2, live, \"m\")",
                "k.h:2: default 3 is outside 0..2",
            ),
            (
                "KNOB(a, \"us\", 1, 0, 2, \"m",
                "k.h:2: expected KNOB(...) on one line",
            ),
            (
                "KNOB(a, \"us\", 1, 0, 2, \"m)",
                "k.h:2: string literal without end",
            ),
            (
                "KNOB(a, \"us\", 1, 0, 2, always, \"m\")",
                "k.h:2: `always` is neither start, live nor task",
            ),
            ("int x;", "k.h:2: expected KNOB(...) on one line"),
        ] {
            assert_eq!(parse_knobs("k.h", &format!("\n{bad}\n")).unwrap_err(), why);
        }
        let twice = format!("{KNOB}\n{KNOB}\n");
        assert_eq!(
            parse_knobs("k.h", &twice).unwrap_err(),
            "k.h:2: `slice_us` is defined twice"
        );
        assert_eq!(
            parse_stats("s.h", "").unwrap_err(),
            "s.h: no STAT(...) line found"
        );
    }

    #[test]
    fn a_retired_name_stands_for_a_knob_that_there_is() {
        let parse = |was: &str| parse_knobs("k.h", &format!("{KNOB}\n{was}\n"));
        let (knobs, retired) = parse("KNOB_WAS(turn_us, slice_us)").unwrap();
        let source = knobs_source(&knobs, &retired);
        assert!(source
            .contains("Retired { old: \"turn_us\", old_flag: \"turn-us\", new: \"slice_us\" }"));
        for (bad, why) in [
            ("KNOB_WAS(a, b)", "there is no knob `b`"),
            (
                "KNOB_WAS(slice_us, slice_us)",
                "`slice_us` is defined twice",
            ),
            ("KNOB_WAS(a)", "expected 2 arguments, found 1"),
        ] {
            assert_eq!(parse(bad).unwrap_err(), format!("k.h:2: {why}"));
        }
    }

    #[test]
    fn a_statistic_of_tasks_says_its_unit() {
        let text = "TASK_STAT(run, ns, \"On a CPU\")\nTASK_STAT(moved, count, \"Moves\")";
        let stats = parse_task_stats("t.h", text).unwrap();
        let source = task_stats_source(&stats);
        assert!(source.contains("#[stat(desc = \"On a CPU\")]\n    pub run_ns: u64,"));
        assert!(source.contains("moved: values[1],"));
        let error = parse_task_stats("t.h", "TASK_STAT(run, us, \"m\")").unwrap_err();
        assert_eq!(error, "t.h:1: `us` is neither ns nor count");
    }

    #[test]
    fn a_stat_line_becomes_a_documented_field() {
        let stats = parse_stats("s.h", "STAT(fork, event, \"Forked tasks\")").unwrap();
        assert_eq!(stats[0].group, "event");
        let source = metrics_source(&stats);
        assert!(source.contains("#[stat(desc = \"Forked tasks\")]\n    pub fork: u64,"));
        assert!(source.contains("fork: counts[0],"));
    }
}
