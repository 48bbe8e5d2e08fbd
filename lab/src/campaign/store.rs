// SPDX-License-Identifier: GPL-2.0-only
//! The folder of a campaign's results: a file for each run that was made, which has the run's
//! place as its name, MACHINE/WORKLOAD/SCHEDULER/SEED.json. A file gets that name when all of
//! it is on the disk, so a run is there once or not at all, whenever its process was killed.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::compare::plan::{Place, Plan};
use crate::compare::runs::Run;
use crate::compare::simulated::folder_name;
use crate::recorded::{differences, Inputs};

/// Changes when a reader would have to change.
const FORMAT: u32 = 1;

/// Held by the process that writes.
const LOCK: &str = "lock";

/// What is not whole yet.
const UNFINISHED: &str = "unfinished";

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("another campaign writes to {} now", .0.display())]
    InUse(PathBuf),
    #[error("{} is no result of a campaign ({reason}): remove it, and its run is made again", path.display())]
    Malformed { path: PathBuf, reason: String },
    #[error("{} is of another version, and does not mix with what runs here ({what}): use a new folder", path.display())]
    Version { path: PathBuf, what: String },
    #[error("{} and {} are two results of one exact run: one of them is wrong", .0.display(), .1.display())]
    Twice(PathBuf, PathBuf),
}

/// A run that was made.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Kept {
    format: u32,
    machine: String,
    parameters: Vec<String>,
    /// All that its figures depend on beside the run itself.
    inputs: Inputs,
    /// Seconds by the host's clock, the boot with it.
    pub host_s: f64,
    pub run: Run,
}

/// What all runs on a machine have in common.
pub struct Bed<'a> {
    pub label: &'a str,
    pub inputs: &'a Inputs,
    pub plan: &'a Plan,
}

impl Bed<'_> {
    /// The file of a run, below the folder.
    fn file(&self, (round, workload, scheduler): Place) -> PathBuf {
        let scheduler = &self.plan.to_run()[scheduler].label;
        [
            self.label,
            &self.plan.workloads[workload].name,
            &folder_name(scheduler),
            &format!("{}.json", round + 1),
        ]
        .iter()
        .collect()
    }

    /// The place of a run by its names.
    pub fn place(&self, run: &Run) -> Option<Place> {
        let workloads = &self.plan.workloads;
        let workload = workloads.iter().position(|w| w.name == run.workload)?;
        let all = self.plan.to_run();
        let scheduler = all.iter().position(|s| s.label == run.scheduler)?;
        Some((run.round, workload, scheduler))
    }

    /// All runs, round by round.
    pub fn places(&self) -> impl Iterator<Item = Place> {
        let (workloads, schedulers) = (self.plan.workloads.len(), self.plan.to_run().len());
        (0..self.plan.rounds()).flat_map(move |round| {
            let all = (0..workloads).flat_map(move |w| (0..schedulers).map(move |s| (w, s)));
            all.map(move |(workload, scheduler)| (round, workload, scheduler))
        })
    }

    pub fn keep(&self, run: &Run, host_s: f64) -> Kept {
        let workload = self.plan.workloads.iter().find(|w| w.name == run.workload);
        Kept {
            format: FORMAT,
            machine: self.label.into(),
            parameters: workload.map_or_else(Vec::new, |w| w.parameters.clone()),
            inputs: self.inputs.clone(),
            host_s,
            run: run.clone(),
        }
    }

    /// Whether that is the run of a place, made with what is here.
    fn check(&self, path: &Path, kept: &Kept, place: Place) -> Result<(), Error> {
        let expected = self.keep(&kept.run, kept.host_s);
        let mut other = differences(&kept.inputs, self.inputs);
        if kept.parameters != expected.parameters {
            let parameters = |all: &[String]| match all {
                [] => "no parameters".into(),
                all => all.join(" "),
            };
            let (here, there) = (&expected.parameters, &kept.parameters);
            other.push(format!(
                "{}, recorded with {}",
                parameters(here),
                parameters(there)
            ));
        }
        if !other.is_empty() {
            return Err(Error::Version {
                path: path.into(),
                what: other.join("; "),
            });
        }
        if *kept != expected || self.place(&kept.run) != Some(place) {
            return Err(Error::Malformed {
                path: path.into(),
                reason: "it is of another run".into(),
            });
        }
        Ok(())
    }
}

/// A folder that is read.
pub struct Folder(pub PathBuf);

impl Folder {
    /// The result of a run, if it is there. Errors if it is not of this version.
    pub fn result(&self, bed: &Bed, place: Place) -> Result<Option<Kept>, Error> {
        let path = self.0.join(bed.file(place));
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(|source| Error::Read {
                path: path.clone(),
                source,
            })?,
        };
        let malformed = |reason: String| Error::Malformed {
            path: path.clone(),
            reason,
        };
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let Format { format } =
            serde_json::from_str(&text).map_err(|error| malformed(error.to_string()))?;
        if format != FORMAT {
            return Err(Error::Version {
                path,
                what: format!("format {format}, here {FORMAT}"),
            });
        }
        let kept: Kept =
            serde_json::from_str(&text).map_err(|error| malformed(error.to_string()))?;
        bed.check(&path, &kept, place)?;
        Ok(Some(kept))
    }
}

/// A folder that this process alone writes to.
pub struct Store {
    pub folder: Folder,
    _lock: File,
}

impl Store {
    pub fn open(dir: &Path) -> Result<Self, Error> {
        let unfinished = dir.join(UNFINISHED);
        let failed = |path: &Path| {
            let path = path.to_path_buf();
            move |source| Error::Write { path, source }
        };
        fs::create_dir_all(dir).map_err(failed(dir))?;
        let lock = dir.join(LOCK);
        let file = File::create(&lock).map_err(failed(&lock))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Err(Error::InUse(dir.into())),
            Err(fs::TryLockError::Error(error)) => return Err(failed(&lock)(error)),
        }
        // Of a process that was killed.
        match fs::remove_dir_all(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed(&unfinished)(error))
            }
            _ => {}
        }
        fs::create_dir(&unfinished).map_err(failed(&unfinished))?;
        Ok(Self {
            folder: Folder(dir.into()),
            _lock: file,
        })
    }

    /// Keeps a run; whatever is returned, it is there as a whole or not at all.
    pub fn keep(&self, bed: &Bed, kept: &Kept) -> Result<(), Error> {
        let dir = &self.folder.0;
        let Some(place) = bed.place(&kept.run) else {
            // No plan has made it.
            return Ok(());
        };
        let path = dir.join(bed.file(place));
        let new = dir.join(UNFINISHED).join("result.json");
        let written = || -> io::Result<()> {
            let mut file = File::create(&new)?;
            file.write_all(&serde_json::to_vec(kept)?)?;
            file.write_all(b"\n")?;
            file.sync_all()?;
            let folder = path.parent().unwrap_or(dir);
            fs::create_dir_all(folder)?;
            fs::rename(&new, &path)?;
            File::open(folder)?.sync_all()
        };
        written().map_err(|source| {
            fs::remove_file(&new).ok();
            Error::Write { path, source }
        })
    }

    /// Takes the runs of another folder that are not in this one, and says how many these were.
    /// `exact`: two results of one run are the same.
    pub fn take(&self, bed: &Bed, from: &Folder, exact: bool) -> Result<usize, Error> {
        let mut taken = 0;
        for place in bed.places() {
            let Some(theirs) = from.result(bed, place)? else {
                continue;
            };
            match self.folder.result(bed, place)? {
                None => {
                    self.keep(bed, &theirs)?;
                    taken += 1;
                }
                Some(ours) if exact && ours.run.outcome != theirs.run.outcome => {
                    let file = bed.file(place);
                    return Err(Error::Twice(self.folder.0.join(&file), from.0.join(&file)));
                }
                Some(_) => {}
            }
        }
        Ok(taken)
    }
}
