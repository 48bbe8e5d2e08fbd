// SPDX-License-Identifier: GPL-2.0-only
//! What is run, under which schedulers and in which order: decided before
//! anything starts, so that every wrong name is answered at once.

use std::collections::HashSet;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::schedulers::{
    self, make_unique, pinned_to_few_and_many, scheduler, split_specs, Bound, Programs, Scheduler,
    KERNEL,
};
use freqlock::lab_args::CompareArgs;
use freqlock::spelling::{did_you_mean, nearest};

/// A workload with a file of this name in its folder, which says why, runs only
/// when it is named.
const ONLY_WHEN_NAMED: &str = "only-when-named";

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Scheduler(#[from] schedulers::Error),
    #[error("no bench folder in {}: name it with --bench-dir", .0.iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>().join(", "))]
    NoBenchDir(Vec<PathBuf>),
    #[error("cannot read the bench folder {dir}: {reason}")]
    BenchDir { dir: String, reason: String },
    #[error("no workload in {0}: it holds no folder with an executable `run`")]
    NoWorkloads(String),
    #[error("each workload in {dir} runs only when it is named: --workloads {}", .known.join(","))]
    OnlyWhenNamed { dir: String, known: Vec<String> },
    #[error("unknown workload {name}{}: there are {}", did_you_mean(.nearest), .known.join(", "))]
    UnknownWorkload {
        name: String,
        nearest: Option<String>,
        known: Vec<String>,
    },
    #[error("no scheduler is left to run: {0}")]
    NothingLeft(String),
    #[error("the baseline {name} is not among the schedulers: {}", .known.join(", "))]
    Baseline { name: String, known: Vec<String> },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    pub name: String,
    pub run: PathBuf,
    /// The variables that set it up otherwise than usual.
    pub parameters: Vec<String>,
}

impl Workload {
    /// Its folder's name in the bench folder; a campaign may call it otherwise.
    pub fn folder(&self) -> &str {
        let folder = self.run.parent().and_then(Path::file_name);
        folder.and_then(|name| name.to_str()).unwrap_or(&self.name)
    }
}

/// A run of a plan: its round, its workload, and its scheduler among those that run.
pub type Place = (u32, usize, usize);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub workloads: Vec<Workload>,
    /// As they were named.
    pub schedulers: Vec<Scheduler>,
    /// What is run for the best of them, beside those that are named.
    pub pinned: Vec<Scheduler>,
    /// Which of the schedulers the others are compared with.
    pub baseline: usize,
    pub warmup: u32,
    pub runs: u32,
    /// No round is begun that would end later than this after the start.
    pub budget: Option<Duration>,
    /// Runs that are not to be made, for their results are there.
    pub made: HashSet<Place>,
}

#[derive(Debug)]
pub struct Resolved {
    pub plan: Plan,
    /// A line for each scheduler that is not installed.
    pub left_out: Vec<String>,
}

/// Where things are looked for.
#[derive(Debug)]
pub struct Places {
    /// The program that loads our own schedulers.
    pub ours: PathBuf,
    /// Folders of programs.
    pub path: Vec<PathBuf>,
    /// Candidates for the bench folder.
    pub bench: Vec<PathBuf>,
}

impl Places {
    pub fn of_this_process() -> Self {
        // Not there only without /proc; then the names on PATH and here have to do.
        let this = std::env::current_exe().unwrap_or_default();
        let mut path: Vec<_> = std::env::var_os("PATH")
            .map(|path| std::env::split_paths(&path).collect())
            .unwrap_or_default();
        // Where `cargo install` puts the peers; root's PATH often leaves it out.
        path.extend(std::env::home_dir().map(|home| home.join(".cargo/bin")));
        let bench = std::iter::once(PathBuf::from("bench"))
            .chain(this.ancestors().skip(1).map(|dir| dir.join("bench")))
            .collect();
        Self {
            ours: scheduler_program(&this),
            path,
            bench,
        }
    }

    fn program(&self, name: &str) -> Option<PathBuf> {
        self.path
            .iter()
            .map(|dir| dir.join(name))
            .find(|file| is_executable(file))
    }
}

/// Beside this program, or where packages put it, for which this one is in libexec; else
/// the one on PATH.
fn scheduler_program(this: &Path) -> PathBuf {
    const NAME: &str = "scx_freqlock";
    ["", "../../bin"]
        .iter()
        .filter_map(|dir| Some(this.parent()?.join(dir).join(NAME)))
        .find(|file| is_executable(file))
        .unwrap_or_else(|| NAME.into())
}

fn is_executable(file: &Path) -> bool {
    file.metadata()
        .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

impl Plan {
    pub fn resolve(args: &CompareArgs, places: &Places) -> Result<Resolved, Error> {
        let find = |name: &str| places.program(name);
        let programs = Programs {
            ours: &places.ours,
            find: &find,
            simulated: None,
        };
        Self::resolve_with(args, &places.bench, &programs)
    }

    /// The same where programs are found in another way.
    pub fn resolve_with(
        args: &CompareArgs,
        bench: &[PathBuf],
        programs: &Programs,
    ) -> Result<Resolved, Error> {
        let dir = match &args.bench_dir {
            Some(dir) => dir.clone(),
            None => default_bench_dir(bench)?,
        };
        let workloads = choose_workloads(&args.workloads, find_workloads(&dir)?, &dir)?;
        let mut schedulers = Vec::new();
        let mut left_out = Vec::new();
        for spec in args.schedulers.iter().flat_map(|list| split_specs(list)) {
            match scheduler(&spec, programs)? {
                Some(scheduler) => schedulers.push(scheduler),
                None => left_out.push(missing(&spec, programs.simulated.is_some())),
            }
        }
        if schedulers.is_empty() {
            let reason = match left_out.join("; ") {
                none if none.is_empty() => "--schedulers names none".into(),
                some => some,
            };
            return Err(Error::NothingLeft(reason));
        }
        make_unique(&mut schedulers);
        let baseline = baseline(args.baseline.as_deref(), &schedulers)?;
        let pinned = beside(&schedulers, programs.simulated);
        Ok(Resolved {
            plan: Self {
                workloads,
                schedulers,
                pinned,
                baseline,
                warmup: args.warmup,
                runs: args.runs,
                budget: args.budget(),
                made: HashSet::new(),
            },
            left_out,
        })
    }

    pub fn loads_schedulers(&self) -> bool {
        self.schedulers
            .iter()
            .any(|scheduler| scheduler.loader.is_some())
    }

    pub fn rounds(&self) -> u32 {
        self.warmup + self.runs
    }

    pub fn total_runs(&self) -> u64 {
        let all = u64::from(self.rounds()) * (self.workloads.len() * self.to_run().len()) as u64;
        all - self.made.len() as u64
    }

    /// What nothing is expected to be better than; one that is pinned to CPUs that a user
    /// names is only compared.
    pub fn bounds(&self) -> impl Iterator<Item = &Scheduler> {
        let is_bound = |bound| matches!(bound, Some(Bound::Limit | Bound::BestOfPinned));
        let all = self.schedulers.iter();
        all.filter(move |scheduler| is_bound(scheduler.bound))
    }

    /// What makes runs of its own.
    pub fn to_run(&self) -> Vec<&Scheduler> {
        let named = self.schedulers.iter();
        named
            .filter(|scheduler| scheduler.bound != Some(Bound::BestOfPinned))
            .chain(&self.pinned)
            .collect()
    }
}

/// The order of `n` schedulers in a round. It rotates, so that each of them is
/// first equally often, and after a whole turn it goes backwards, so that each
/// follows each other one equally often.
pub fn order(n: usize, round: u32) -> Vec<usize> {
    let round = round as usize;
    let mut order: Vec<_> = (0..n).map(|i| (i + round) % n).collect();
    if (round / n) % 2 == 1 {
        order.reverse();
    }
    order
}

fn default_bench_dir(candidates: &[PathBuf]) -> Result<PathBuf, Error> {
    candidates
        .iter()
        .find(|dir| dir.join("lib.sh").is_file())
        .cloned()
        .ok_or_else(|| Error::NoBenchDir(candidates.to_vec()))
}

fn find_workloads(dir: &Path) -> Result<Vec<Workload>, Error> {
    let unreadable = |error: std::io::Error| Error::BenchDir {
        dir: dir.display().to_string(),
        reason: error.to_string(),
    };
    // Workloads are started in a folder of their own choice.
    let dir = dir.canonicalize().map_err(unreadable)?;
    let mut found = Vec::new();
    for entry in dir.read_dir().map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let run = entry.path().join("run");
        if is_executable(&run) {
            let name = entry.file_name().to_string_lossy().into_owned();
            found.push(Workload {
                parameters: parameters(&name, std::env::vars()),
                name,
                run,
            });
        }
    }
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// What sets a workload's parameters begins with its name, as FORKWAIT_SECONDS.
fn parameters(workload: &str, vars: impl Iterator<Item = (String, String)>) -> Vec<String> {
    let prefix = workload.to_uppercase() + "_";
    let mut found: Vec<String> = vars
        .filter(|(name, _)| name.starts_with(&prefix))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    found.sort();
    found
}

fn choose_workloads(
    wanted: &[String],
    found: Vec<Workload>,
    dir: &Path,
) -> Result<Vec<Workload>, Error> {
    if found.is_empty() {
        return Err(Error::NoWorkloads(dir.display().to_string()));
    }
    if wanted.is_empty() {
        let (named, usual): (Vec<_>, Vec<_>) = found
            .into_iter()
            .partition(|workload| workload.run.with_file_name(ONLY_WHEN_NAMED).exists());
        if usual.is_empty() {
            return Err(Error::OnlyWhenNamed {
                dir: dir.display().to_string(),
                known: named.into_iter().map(|workload| workload.name).collect(),
            });
        }
        return Ok(usual);
    }
    let mut chosen: Vec<Workload> = Vec::new();
    for name in wanted {
        let Some(workload) = found.iter().find(|workload| workload.name == *name) else {
            let known: Vec<_> = found.iter().map(|workload| workload.name.clone()).collect();
            return Err(Error::UnknownWorkload {
                name: name.clone(),
                nearest: nearest(name, known.iter().map(String::as_str)),
                known,
            });
        };
        if !chosen.contains(workload) {
            chosen.push(workload.clone());
        }
    }
    Ok(chosen)
}

/// What has to run for the best of the pinned ones, if that is named, and is not itself.
pub fn beside(named: &[Scheduler], cpus: Option<u32>) -> Vec<Scheduler> {
    let is_named = |bound| named.iter().any(|scheduler| scheduler.bound == Some(bound));
    let mut pinned = cpus.map_or_else(Vec::new, pinned_to_few_and_many);
    pinned.retain(|scheduler| {
        is_named(Bound::BestOfPinned) && !scheduler.bound.is_some_and(is_named)
    });
    pinned
}

fn baseline(wanted: Option<&str>, schedulers: &[Scheduler]) -> Result<usize, Error> {
    let position = |name: &str| schedulers.iter().position(|other| other.label == name);
    match wanted {
        None => Ok(position(KERNEL).unwrap_or(0)),
        Some(name) => position(name).ok_or_else(|| Error::Baseline {
            name: name.into(),
            known: schedulers.iter().map(|other| other.label.clone()).collect(),
        }),
    }
}

/// Why a scheduler that others have is left out.
fn missing(spec: &str, simulated: bool) -> String {
    let name = spec.split(':').next().unwrap_or(spec);
    if simulated {
        format!("{name} is left out: it is not in the image (scripts/rivals says why, or installs it for scripts/machine prepare)")
    } else {
        format!("{name} is left out: it is neither on PATH nor in ~/.cargo/bin (cargo install --locked {name})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::fs;

    fn executable(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    struct Here {
        dir: tempfile::TempDir,
        places: Places,
    }

    fn here() -> Here {
        let dir = tempfile::tempdir().unwrap();
        executable(&dir.path().join("bin/scx_bpfland"));
        executable(&dir.path().join("bench/forkwait/run"));
        executable(&dir.path().join("bench/kbuild/run"));
        fs::create_dir(dir.path().join("bench/nothing")).unwrap();
        fs::write(dir.path().join("bench/lib.sh"), "").unwrap();
        let places = Places {
            ours: "/opt/scx_freqlock".into(),
            path: vec![dir.path().join("bin")],
            bench: vec![dir.path().join("elsewhere"), dir.path().join("bench")],
        };
        Here { dir, places }
    }

    fn resolve(line: &[&str]) -> Result<Resolved, Error> {
        resolve_in(&here(), line)
    }

    fn resolve_in(here: &Here, line: &[&str]) -> Result<Resolved, Error> {
        Plan::resolve(&super::super::tests::args(line), &here.places)
    }

    fn labels(plan: &Plan) -> Vec<&str> {
        plan.schedulers
            .iter()
            .map(|other| other.label.as_str())
            .collect()
    }

    #[test]
    fn all_workloads_are_taken_unless_some_are_named() {
        let names = |line: &[&str]| -> Vec<_> {
            let workloads = resolve(line).unwrap().plan.workloads;
            workloads
                .into_iter()
                .map(|workload| workload.name)
                .collect()
        };
        assert_eq!(names(&[]), ["forkwait", "kbuild"]);
        assert_eq!(names(&["--workloads=kbuild"]), ["kbuild"]);
        assert_eq!(
            names(&["--workloads=kbuild,forkwait,kbuild"]),
            ["kbuild", "forkwait"]
        );
    }

    #[test]
    fn a_workload_may_run_only_when_named() {
        let here = here();
        let mark = |name: &str| {
            let folder = here.dir.path().join("bench").join(name);
            fs::write(folder.join(ONLY_WHEN_NAMED), "It takes an hour.").unwrap();
        };
        let names = |line: &[&str]| -> Result<Vec<_>, String> {
            let resolved = resolve_in(&here, line).map_err(|error| error.to_string())?;
            let workloads = resolved.plan.workloads.into_iter();
            Ok(workloads.map(|workload| workload.name).collect())
        };
        mark("kbuild");
        assert_eq!(names(&[]).unwrap(), ["forkwait"]);
        assert_eq!(names(&["--workloads=kbuild"]).unwrap(), ["kbuild"]);
        mark("forkwait");
        let error = names(&[]).unwrap_err();
        assert!(
            error.ends_with("named: --workloads forkwait,kbuild"),
            "{error}"
        );
    }

    #[test]
    fn wrong_names_are_answered_with_the_nearest() {
        let workload = resolve(&["--workloads=forkwiat"]).unwrap_err().to_string();
        assert_eq!(
            workload,
            "unknown workload forkwiat (did you mean forkwait?): there are forkwait, kbuild"
        );
        let message = |spec: &str| resolve(&["--schedulers", spec]).unwrap_err().to_string();
        assert!(message("fork-locl").contains("did you mean fork-local?"));
        assert!(message("scx_lavdd").contains("did you mean scx_lavd?"));
        assert!(message("eevfd").contains("did you mean eevdf?"));
        let strange = message("completely-different");
        assert!(!strange.contains("did you mean"), "{strange}");
        assert!(
            strange.contains("there are eevdf, off, fork-local"),
            "{strange}"
        );
    }

    #[test]
    fn schedulers_become_programs_with_arguments() {
        let here = here();
        let plan = resolve_in(
            &here,
            &[
                "--schedulers",
                "eevdf,off:--slice-us=2000 '--cpus=1,2',scx_bpfland:-v",
            ],
        )
        .unwrap()
        .plan;
        assert_eq!(
            labels(&plan),
            [
                "eevdf",
                "off:--slice-us=2000 '--cpus=1,2'",
                "scx_bpfland:-v"
            ]
        );
        assert_eq!(plan.schedulers[0].loader, None);
        let ours = plan.schedulers[1].loader.as_ref().unwrap();
        assert_eq!(ours.program, Path::new("/opt/scx_freqlock"));
        assert_eq!(
            ours.arguments,
            ["--mode=off", "--slice-us=2000", "--cpus=1,2"]
        );
        assert_eq!(ours.ops, "freqlock");
        let peer = plan.schedulers[2].loader.as_ref().unwrap();
        assert_eq!(peer.program, here.dir.path().join("bin/scx_bpfland"));
        assert_eq!(peer.arguments, ["-v"]);
        assert_eq!(peer.ops, "bpfland");
    }

    #[test]
    fn wrong_arguments_are_refused() {
        let message = |spec: &str| resolve(&["--schedulers", spec]).unwrap_err().to_string();
        assert!(message("eevdf:--fast").starts_with("eevdf is the kernel's own"));
        assert!(message("off:'--slice-us")
            .starts_with("cannot take the arguments of off:'--slice-us apart"));
    }

    #[test]
    fn what_is_not_installed_is_left_out_with_a_line() {
        let resolved = resolve(&["--schedulers=eevdf,scx_lavd:--performance,scx_bpfland"]).unwrap();
        assert_eq!(labels(&resolved.plan), ["eevdf", "scx_bpfland"]);
        assert_eq!(resolved.left_out.len(), 1);
        assert!(resolved.left_out[0].starts_with("scx_lavd is left out"));
        assert!(resolved.left_out[0].ends_with("(cargo install --locked scx_lavd)"));

        let none = resolve(&["--schedulers=scx_lavd"]).unwrap_err().to_string();
        assert!(
            none.starts_with("no scheduler is left to run: scx_lavd is left out"),
            "{none}"
        );
        let empty = resolve(&["--schedulers=,"]).unwrap_err();
        assert_eq!(empty, Error::NothingLeft("--schedulers names none".into()));
    }

    #[test]
    fn baseline_is_eevdf_or_the_first_or_the_one_named() {
        let baseline = |line: &[&str]| resolve(line).map(|resolved| resolved.plan.baseline);
        assert_eq!(baseline(&["--schedulers=off,eevdf"]), Ok(1));
        assert_eq!(baseline(&["--schedulers=off,auto"]), Ok(0));
        assert_eq!(
            baseline(&["--schedulers=off,auto", "--baseline=auto"]),
            Ok(1)
        );
        let missing = baseline(&["--schedulers=off,auto", "--baseline=eevdf"]).unwrap_err();
        assert_eq!(
            missing.to_string(),
            "the baseline eevdf is not among the schedulers: off, auto"
        );
    }

    #[test]
    fn the_same_scheduler_twice_has_two_names() {
        let plan = resolve(&["--schedulers=off,off,eevdf,off"]).unwrap().plan;
        assert_eq!(labels(&plan), ["off", "off#2", "eevdf", "off#3"]);
    }

    #[test]
    fn unreadable_and_empty_bench_folders() {
        let message = |dir: &str| resolve(&["--bench-dir", dir]).unwrap_err().to_string();
        assert_eq!(
            message("/nowhere/bench"),
            "cannot read the bench folder /nowhere/bench: No such file or directory (os error 2)"
        );
        let empty = tempfile::tempdir().unwrap();
        assert!(message(&empty.path().to_string_lossy()).starts_with("no workload in "));

        let mut here = here();
        here.places.bench.truncate(1);
        let nowhere = resolve_in(&here, &[]).unwrap_err().to_string();
        assert!(
            nowhere.ends_with("elsewhere: name it with --bench-dir"),
            "{nowhere}"
        );
    }

    #[test]
    fn parameters_are_those_of_the_workload() {
        let vars = [
            ("KBUILD_JOBS", "4"),
            ("HOME", "/x"),
            ("FORKWAIT_STEPS", "5"),
            ("FORKWAIT_CHAINS", "2"),
        ]
        .map(|(name, value)| (name.to_string(), value.to_string()));
        assert_eq!(
            parameters("forkwait", vars.into_iter()),
            ["FORKWAIT_CHAINS=2", "FORKWAIT_STEPS=5"]
        );
    }

    #[test]
    fn rounds_rotate_so_that_order_favours_nobody() {
        assert_eq!(order(3, 0), [0, 1, 2]);
        assert_eq!(order(3, 1), [1, 2, 0]);
        assert_eq!(order(1, 7), [0]);
        for n in 1..6 {
            let mut first = HashMap::new();
            let mut follows = HashMap::new();
            for round in 0..2 * n as u32 {
                let order = order(n, round);
                let mut all = order.clone();
                all.sort_unstable();
                assert_eq!(all, (0..n).collect::<Vec<_>>());
                *first.entry(order[0]).or_insert(0) += 1;
                for (i, a) in order.iter().enumerate() {
                    for b in &order[i + 1..] {
                        *follows.entry((*a, *b)).or_insert(0) += 1;
                    }
                }
            }
            assert_eq!(first.len(), n);
            assert!(first.values().all(|count| *count == 2), "{first:?}");
            assert_eq!(follows.len(), n * (n - 1));
            assert!(follows.values().all(|count| *count == n), "{follows:?}");
        }
    }
}
