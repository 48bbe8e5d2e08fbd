// SPDX-License-Identifier: GPL-2.0-only
//! `scx_freqlock policy`: compiles policies by users, and has the running scheduler take them.

use anyhow::{bail, ensure, Context, Result};
use freqlock::control::{ask, unexpected, Answer, Request, SOCKET};
use freqlock::output::{self, Format};
use freqlock::user_policy::{check_name, name_of, Error, Loaded, Wanted, HEADER, HEADER_NAME};
use std::env;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command};

/// Load, list and unload policies of your own, written in C
///
/// A policy is C that decides some of what the scheduler decides: which lock's holder is boosted
/// or preempted, who spins, where a task goes. freqlock_policy.bpf.h describes it; the guide
/// has examples. The kernel verifies it before anything changes. Only root may do this.
#[derive(Debug, clap::Subcommand)]
pub enum PolicyArgs {
    /// Load a policy, or another one in its stead
    ///
    /// A policy of the same name is replaced, its variables too.
    Load(LoadArgs),
    /// Have a policy compiled and verified, without loading it
    Check(LoadArgs),
    /// Print the policies that are loaded, and what they take
    List(Format),
    /// Take a policy out
    Unload(UnloadArgs),
    /// Print the header that policies are compiled with
    Header,
}

#[derive(Debug, clap::Args)]
pub struct LoadArgs {
    /// C, which clang compiles, or a BPF object, which ends in .o
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// What the file is to take NAME for, as the compiler's -D has it; may be given again
    #[arg(short = 'D', long, value_name = "NAME=VALUE")]
    define: Vec<String>,

    /// It is asked about the tasks of this context only, by its name in the file of contexts
    #[arg(long, value_name = "NAME")]
    context: Option<String>,

    /// What it is called; else as its file
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    #[command(flatten)]
    format: Format,
}

#[derive(Debug, clap::Args)]
pub struct UnloadArgs {
    /// As `policy list` has it
    #[arg(value_name = "NAME")]
    name: String,

    #[command(flatten)]
    format: Format,
}

pub fn run(args: &PolicyArgs) -> Result<()> {
    match args {
        PolicyArgs::Load(args) => load(args, false),
        PolicyArgs::Check(args) => load(args, true),
        PolicyArgs::List(format) => print(format, &Request::Policies),
        PolicyArgs::Unload(args) => print(&args.format, &Request::UnloadPolicy(args.name.clone())),
        PolicyArgs::Header => Ok(output::pass_on(HEADER.as_bytes())?),
    }
}

fn print(format: &Format, request: &Request) -> Result<()> {
    let policies = match ask(request)? {
        Answer::Policies(policies) => policies,
        other => unexpected(other)?,
    };
    output::show(format.json, &policies, |policies| {
        policies
            .iter()
            .map(|policy: &Loaded| format!("{policy}\n"))
            .collect()
    })
}

fn load(args: &LoadArgs, check: bool) -> Result<()> {
    let name = args
        .name
        .as_deref()
        .or_else(|| name_of(&args.file))
        .ok_or(Error::Name)?;
    check_name(name)?;
    // What is wrong with the file is said without a scheduler, too.
    let scratch = tempfile::tempdir().context("cannot make a folder to compile in")?;
    let object = if args.file.extension().is_some_and(|end| end == "o") {
        ensure!(
            args.define.is_empty(),
            "{} is compiled already: --define is for C",
            args.file.display()
        );
        args.file.clone()
    } else {
        compile(&args.file, &args.define, scratch.path())?
    };
    let folder = Folder::make()?;
    let object = folder.copy(&object)?;
    let wanted = Wanted {
        name: name.into(),
        object,
        context: args.context.clone(),
        check,
    };
    print(&args.format, &Request::LoadPolicy(wanted))
}

/// A folder beside the control socket, where only root can write, for as long as this lives.
struct Folder(PathBuf);

impl Folder {
    fn make() -> Result<Self> {
        let beside = Path::new(SOCKET).parent().unwrap_or(Path::new("/"));
        let folder = beside.join(format!("policy.{}", process::id()));
        // What it asks for below says so more clearly where no scheduler runs.
        ask(&Request::Policies)?;
        let made = DirBuilder::new().mode(0o700).create(&folder);
        made.with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(Self(folder))
    }

    /// The agent may not see where it is.
    fn copy(&self, file: &Path) -> Result<PathBuf> {
        let object = self.0.join("policy.o");
        fs::copy(file, &object).with_context(|| format!("cannot read {}", file.display()))?;
        Ok(object)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // It goes with the rest of /run at the latest.
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Compiles `file`, with `defines`, in `folder`, and returns where the object is.
fn compile(file: &Path, defines: &[String], folder: &Path) -> Result<PathBuf> {
    let object = folder.join("policy.o");
    fs::write(folder.join(HEADER_NAME), HEADER).context("cannot write the header")?;
    // What the file says is told apart from what cannot be read.
    fs::metadata(file).with_context(|| format!("cannot read {}", file.display()))?;
    let compiler = compiler()?;
    let status = Command::new(&compiler)
        .args(["-g", "-O2", "-Wall", "-target", "bpf", "-mcpu=v3"])
        .arg("-I")
        .arg(folder)
        .args(defines.iter().map(|define| format!("-D{define}")))
        .args(["-x", "c", "-c"])
        .arg(file)
        .arg("-o")
        .arg(&object)
        .status()
        .with_context(|| format!("cannot run {}", compiler.display()))?;
    // The compiler has said why, with lines.
    ensure!(status.success(), "{} is not compiled", file.display());
    Ok(object)
}

/// What BPF_CLANG names, or else the newest clang on PATH.
fn compiler() -> Result<PathBuf> {
    if let Some(named) = env::var_os("BPF_CLANG") {
        return Ok(named.into());
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let names = (17..=24).rev().map(|version| format!("clang-{version}"));
    let names: Vec<String> = ["clang".into()].into_iter().chain(names).collect();
    for name in &names {
        let found = env::split_paths(&path)
            .map(|dir| dir.join(name))
            .find(|at| at.is_file());
        if let Some(found) = found {
            return Ok(found);
        }
    }
    bail!("there is no clang, which compiles policies: install it, or give an object made with it")
}
