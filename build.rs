// SPDX-License-Identifier: GPL-2.0-only
//! Makes Rust of what bpf/ defines: the bindings of intf.h, and the tables of knobs, of
//! statistics, of the scheduler and of tasks, of modes, of sources of speed and of events. And
//! compiles for the host what replays decisions.

#[path = "src/table.rs"]
mod table;

use std::error::Error;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    let knobs = std::fs::read_to_string("bpf/knobs.h")?;
    let (knobs, retired) = table::parse_knobs("bpf/knobs.h", &knobs)?;
    let stats = table::parse_stats("bpf/stats.h", &std::fs::read_to_string("bpf/stats.h")?)?;
    let tasks = std::fs::read_to_string("bpf/taskstats.h")?;
    let tasks = table::parse_task_stats("bpf/taskstats.h", &tasks)?;
    write(&out, "task_stats.rs", &table::task_stats_source(&tasks))?;
    for (header, file, kind) in [
        ("bpf/modes.h", "modes.rs", &table::MODES),
        ("bpf/sources.h", "sources.rs", &table::SOURCES),
        ("bpf/events.h", "events.rs", &table::EVENTS),
        ("bpf/hook_names.h", "hooks.rs", &table::HOOKS),
    ] {
        let choices = table::parse_choices(kind, header, &std::fs::read_to_string(header)?)?;
        write(&out, file, &table::choices_source(kind, &choices))?;
        println!("cargo:rerun-if-changed={header}");
    }
    write(&out, "knobs.rs", &table::knobs_source(&knobs, &retired))?;
    write(&out, "replayed_knobs.rs", &replayed_knobs(&knobs)?)?;
    write(&out, "metrics.rs", &table::metrics_source(&stats))?;
    scx_cargo::BpfBuilder::new()?
        .enable_intf("bpf/intf.h", "intf.rs")
        .build()?;
    scx_cargo::BpfBuilder::new()?
        .enable_intf("bpf/observe.h", "observe.rs")
        .build()?;
    scx_cargo::BpfBuilder::new()?
        .enable_intf("bpf/record.h", "record.rs")
        .build()?;
    scx_cargo::BpfBuilder::new()?
        .enable_intf("bpf/host/replay.h", "replay.rs")
        .build()?;
    compile_replay()?;
    scx_cargo::BpfBuilder::new()?
        .enable_intf("lib/cpus_page.h", "cpus_page.rs")
        .build()?;
    scx_cargo::BpfBuilder::new()?
        .enable_intf("lib/speeds_page.h", "speeds_page.rs")
        .build()?;
    println!("cargo:rerun-if-changed=bpf/knobs.h");
    println!("cargo:rerun-if-changed=bpf/stats.h");
    println!("cargo:rerun-if-changed=bpf/taskstats.h");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/table.rs");
    Ok(())
}

/// The knobs that decide in what `compile_replay()` compiles; `cpuperf` asks for speeds, after that.
fn replayed_knobs(knobs: &[table::KnobLine]) -> std::io::Result<String> {
    let mut code = String::new();
    for file in ["bpf/choose.bpf.c", "bpf/freq.bpf.c", "bpf/learn.bpf.h"] {
        code += &std::fs::read_to_string(file)?;
    }
    let read = |name: &str| {
        code.match_indices(&format!("tunables.{name}"))
            .any(|(at, found)| {
                !code[at + found.len()..].starts_with(|c: char| c == '_' || c.is_alphanumeric())
            })
    };
    let names: Vec<&str> = knobs
        .iter()
        .map(|knob| knob.name.as_str())
        .filter(|name| *name != "cpuperf" && read(name))
        .collect();
    Ok(format!("const PART: &[&str] = &{names:?};\n"))
}

/// The part of the scheduler that decides, for the host.
fn compile_replay() -> Result<(), cc::Error> {
    println!("cargo:rerun-if-changed=bpf");
    cc::Build::new()
        .file("bpf/host/replay.c")
        .include("bpf/host")
        .include("bpf")
        .flag("-fvisibility=hidden")
        // As the kernel compiles it, which wraps around.
        .flag("-fwrapv")
        .warnings(false)
        .try_compile("replay")
}

fn write(out: &Path, name: &str, source: &str) -> std::io::Result<()> {
    std::fs::write(out.join(name), source)
}
