// SPDX-License-Identifier: MIT
//! One run of the program that is profiled.

use crate::kind;
use crate::range::time;
use crate::setup;
use anyhow::{anyhow, Context};
use libfreqlock::latencies::{Figures, Kind, Latencies};
use regex::Regex;
use std::ffi::OsString;
use std::fmt;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

/// Of what a program printed that failed, the last so many bytes are shown.
const SHOWN: usize = 2000;

/// An error, and the exit status that it ends with.
#[derive(Debug)]
pub struct Failure {
    pub error: anyhow::Error,
    pub status: u8,
}

impl Failure {
    pub fn usage(error: impl fmt::Display) -> Failure {
        Failure {
            // With its causes.
            error: anyhow!("{error:#}"),
            status: 2,
        }
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Failure {
        Failure { error, status: 1 }
    }
}

/// Which locks, and which bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// libc's own, by the same way: the control.
    Pthread,
    /// In ns.
    Slo(u64),
    NoBound,
}

impl Setting {
    pub fn lock(self) -> &'static str {
        match self {
            Setting::Pthread => kind::KINDS[kind::LIBCS].0,
            Setting::Slo(_) | Setting::NoBound => kind::KINDS[0].0,
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::Pthread => f.write_str(self.lock()),
            Setting::Slo(ns) => write!(f, "{} {}", self.lock(), time(*ns)),
            Setting::NoBound => write!(f, "{} without a bound", self.lock()),
        }
    }
}

pub struct Program {
    pub command: Vec<OsString>,
    /// What LD_PRELOAD is to be.
    pub preload: OsString,
    pub epoch: Option<u32>,
    pub throughput: Option<Regex>,
}

/// What was measured.
#[derive(Debug)]
pub struct Sample {
    pub setting: Setting,
    pub run: u32,
    pub seconds: f64,
    /// What the program printed.
    pub printed: Option<f64>,
    pub epochs: Figures,
    pub waits: Figures,
}

impl Program {
    pub fn name(&self) -> String {
        self.command[0].to_string_lossy().into_owned()
    }

    pub fn run(&self, setting: Setting, run: u32) -> Result<Sample, Failure> {
        let file = shared_file().context("cannot make a file for latencies")?;
        let latencies = Latencies::new(file.path())
            .with_context(|| format!("cannot use {}", file.path().display()))?;
        let mut printed = tempfile::tempfile().context("no file for what the program prints")?;
        let began = Instant::now();
        let status = self.execute(setting, file.path(), &printed)?;
        let seconds = began.elapsed().as_secs_f64();
        let text = read_again(&mut printed).context("cannot read what the program printed")?;
        if !status.success() {
            Err(self.failed(setting, status, &text))?;
        }
        if latencies.processes() == 0 {
            Err(anyhow!(
                "{}: libfreqlock_preload.so was not loaded. Is it linked statically, or set-user-ID?",
                self.name()
            ))?;
        }
        Ok(Sample {
            setting,
            run,
            seconds,
            printed: self.throughput_in(&text)?,
            epochs: latencies.figures(Kind::Epoch),
            waits: latencies.figures(Kind::Wait),
        })
    }

    fn execute(
        &self,
        setting: Setting,
        latencies: &Path,
        printed: &std::fs::File,
    ) -> Result<ExitStatus, Failure> {
        let output = || printed.try_clone().context("cannot share a file");
        let mut command = Command::new(&self.command[0]);
        command
            .args(&self.command[1..])
            .stdin(Stdio::null())
            .stdout(output()?)
            .stderr(output()?)
            .env(setup::PRELOAD, &self.preload)
            .env(kind::LOCK, setting.lock())
            .env(kind::LATENCIES, latencies)
            .env_remove(kind::SLO_NS)
            .env_remove(kind::EPOCH_SLO_NS)
            .env_remove(kind::EPOCH);
        match setting {
            Setting::Pthread => &mut command,
            Setting::Slo(ns) => command
                .env(kind::SLO_NS, ns.to_string())
                .env(kind::EPOCH_SLO_NS, ns.to_string()),
            Setting::NoBound => command.env(kind::EPOCH_SLO_NS, u64::MAX.to_string()),
        };
        if let Some(id) = self.epoch {
            command.env(kind::EPOCH, id.to_string());
        }
        command.status().map_err(|error| Failure {
            status: setup::status(&error),
            error: anyhow!("{}: {error}", self.name()),
        })
    }

    fn failed(&self, setting: Setting, status: ExitStatus, text: &str) -> anyhow::Error {
        let mut from = text.len().saturating_sub(SHOWN);
        while !text.is_char_boundary(from) {
            from += 1;
        }
        let said = match text[from..].trim_end() {
            "" => "it printed nothing".to_owned(),
            said => format!("it printed:\n{said}"),
        };
        anyhow!("{} failed with {setting}: {status}; {said}", self.name())
    }

    fn throughput_in(&self, text: &str) -> anyhow::Result<Option<f64>> {
        let Some(pattern) = &self.throughput else {
            return Ok(None);
        };
        let found = pattern
            .captures_iter(text)
            .last()
            .ok_or_else(|| anyhow!("{} printed nothing that is like '{pattern}'", self.name()))?;
        let number = found.get(1).map_or("", |number| number.as_str());
        match number.parse::<f64>() {
            Ok(number) if number.is_finite() && number > 0.0 => Ok(Some(number)),
            _ => Err(anyhow!(
                "--throughput: '{number}', which {} printed, is no number above 0",
                self.name()
            )),
        }
    }
}

/// In memory where the system has a folder for that.
fn shared_file() -> std::io::Result<tempfile::NamedTempFile> {
    let builder = || {
        let mut builder = tempfile::Builder::new();
        builder.prefix("freqlock-profile.");
        builder
    };
    builder()
        .tempfile_in("/dev/shm")
        .or_else(|_| builder().tempfile())
}

fn read_again(file: &mut std::fs::File) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
