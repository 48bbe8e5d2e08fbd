// SPDX-License-Identifier: GPL-2.0-only
//! What the scheduler reports over its scx_stats socket, and its clients.

use crate::foreign::Foreign;
use crate::locks::{LockProfile, LockProfiles};
use crate::memory::{MapUse, Memory};
use crate::metrics::Metrics;
use crate::output;
use crate::predictions::Predictions;
use crate::preflight;
use crate::telemetry::{Cpu, Cpus, Exited, Inversion, Task, TaskStats, Telemetry};
use scx_stats::prelude::*;
use serde::de::DeserializeOwned;
use std::io::{self, ErrorKind, Write};
use std::time::{Duration, Instant};

/// What a connection may want to know of the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Counters of events.
    Metrics,
    /// Predicted against real times.
    Predictions,
    /// Room of the BPF maps.
    Memory,
    /// Profiles of locks.
    Locks,
    /// Tasks, those that exited, and inversions.
    Tasks,
    /// CPUs as they are now.
    Cpus,
}

/// The scheduler's answer, one for each request.
#[derive(Clone, Debug)]
pub enum Response {
    /// Since the scheduler started.
    Metrics(Box<Metrics>),
    /// Since the scheduler started.
    Predictions(Predictions),
    /// At this moment.
    Memory(Memory),
    /// Since the scheduler started.
    Locks(LockProfiles),
    /// At this moment, with what exited before.
    Tasks(Box<Telemetry>),
    /// At this moment.
    Cpus(Cpus),
    /// Why it could not be found out, in words.
    Failed(String),
}

/// Names of the targets of the socket.
pub mod target {
    /// What happened since the last request of a connection.
    pub const TOP: &str = "top";
    /// What happened since the scheduler started.
    pub const TOTAL: &str = "total";
    /// Predicted against real times.
    pub const PREDICTIONS: &str = "predictions";
    /// Room of the BPF maps.
    pub const MEMORY: &str = "memory";
    /// Profiles of locks.
    pub const LOCKS: &str = "locks";
    /// Tasks, those that exited, and inversions.
    pub const TASKS: &str = "tasks";
    /// CPUs as they are now.
    pub const CPUS: &str = "cpus";
}

/// Why the running scheduler did not answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No sched_ext scheduler is loaded.
    #[error("scx_freqlock is not running: start it, then ask again")]
    NotRunning,
    /// With that one's name.
    #[error("the scheduler that is running is {0}, not scx_freqlock")]
    Other(String),
    /// The socket may not be opened.
    #[error("only root may ask the running scx_freqlock: run this as root, with sudo for example")]
    NotAllowed,
    /// What went wrong on the socket.
    #[error("the running scx_freqlock does not answer: {0}")]
    NoAnswer(String),
}

impl Error {
    /// Why a running scheduler could not be asked.
    pub(crate) fn of(error: &anyhow::Error) -> Self {
        match error.downcast_ref::<io::Error>().map(io::Error::kind) {
            Some(ErrorKind::PermissionDenied) => Self::NotAllowed,
            _ => Self::NoAnswer(format!("{error:#}")),
        }
    }
}

type Data = StatsServerData<Request, Response>;

/// The report of a target: the scheduler's answer to a request, of the same name.
macro_rules! answer {
    ($name:ident) => {
        Box::new(|_, channels| match ask(channels, Request::$name)? {
            Response::$name(answer) => answer.to_json(),
            other => unexpected(other),
        })
    };
}

/// The targets and their descriptions.
pub fn server_data() -> Data {
    let open: Box<dyn StatsOpener<Request, Response>> = Box::new(|channels| {
        let mut before = metrics(channels)?;
        Ok(Box::new(move |_args, channels| {
            let now = metrics(channels)?;
            let since = now.since(&before);
            before = now;
            since.to_json()
        }))
    });
    Data::new()
        .add_meta(Foreign::meta())
        .add_meta(Metrics::meta())
        .add_meta(Predictions::meta())
        .add_meta(Memory::meta())
        .add_meta(MapUse::meta())
        .add_meta(LockProfiles::meta())
        .add_meta(LockProfile::meta())
        .add_meta(Telemetry::meta())
        .add_meta(Task::meta())
        .add_meta(Exited::meta())
        .add_meta(TaskStats::meta())
        .add_meta(Inversion::meta())
        .add_meta(Cpus::meta())
        .add_meta(Cpu::meta())
        .add_ops(target::TOP, StatsOps { open, close: None })
        .add_stats(target::TOTAL, answer!(Metrics))
        .add_stats(target::PREDICTIONS, answer!(Predictions))
        .add_stats(target::MEMORY, answer!(Memory))
        .add_stats(target::LOCKS, answer!(Locks))
        .add_stats(target::TASKS, answer!(Tasks))
        .add_stats(target::CPUS, answer!(Cpus))
}

type Channels<'a> = (
    &'a crossbeam::channel::Sender<Request>,
    &'a crossbeam::channel::Receiver<Response>,
);

fn ask((to, from): Channels, request: Request) -> anyhow::Result<Response> {
    to.send(request)?;
    Ok(from.recv()?)
}

fn metrics(channels: Channels) -> anyhow::Result<Box<Metrics>> {
    match ask(channels, Request::Metrics)? {
        Response::Metrics(metrics) => Ok(metrics),
        other => unexpected(other),
    }
}

fn unexpected<T>(response: Response) -> anyhow::Result<T> {
    match response {
        Response::Failed(why) => Err(anyhow::anyhow!(why)),
        other => Err(anyhow::anyhow!(
            "the scheduler answered something else: {other:?}"
        )),
    }
}

/// Writes the description of every statistic.
pub fn describe(to: &mut impl Write) -> anyhow::Result<()> {
    server_data().describe_meta(
        to,
        Some(&[
            "Metrics",
            "Predictions",
            "Memory",
            "LockProfiles",
            "Telemetry",
            "Cpus",
        ]),
    )
}

/// Whether the kernel schedules with it; anybody may ask.
pub fn running() -> Result<(), Error> {
    match preflight::loaded() {
        None => Err(Error::NotRunning),
        Some(name) if !name.starts_with("freqlock") => Err(Error::Other(name)),
        Some(_) => Ok(()),
    }
}

/// Asks the running scheduler.
pub fn fetch<T: DeserializeOwned>(target: &str) -> Result<T, Error> {
    running()?;
    let answer = StatsClient::new()
        .connect(Some(ANSWER_WITHIN_MS))
        .and_then(|mut client| client.request("stats", vec![("target".into(), target.into())]));
    answer.map_err(|error| Error::of(&error))
}

const ANSWER_WITHIN_MS: u64 = 5000;

/// Prints what happens in the scheduler of this process, again and again, until that fails.
pub fn print(interval: Duration) -> anyhow::Result<()> {
    print_until(interval, || false)
}

/// The same of the running one, until it has ended: an error that says so. One that loads
/// itself again is waited for.
pub fn monitor(interval: Duration) -> anyhow::Result<()> {
    running()?;
    let mut seen = Instant::now();
    print_until(interval, || {
        if running().is_ok() {
            seen = Instant::now();
        }
        seen.elapsed() > GONE
    })
    .map_err(|error| match error.downcast::<output::Error>() {
        Ok(error) => anyhow::Error::new(error),
        Err(error) => Error::of(&error).into(),
    })?;
    Ok(running()?)
}

/// A scheduler that does not come back within this time has ended.
const GONE: Duration = Duration::from_secs(5);

fn print_until(interval: Duration, is_over: impl FnMut() -> bool) -> anyhow::Result<()> {
    scx_utils::monitor_stats::<Metrics>(&[], interval, is_over, |metrics| {
        Ok(output::print(metrics.table() + "\n")?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_answers_in_its_own_form() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("stats");
        let server = StatsServer::new(server_data())
            .set_path(&path)
            .launch()
            .unwrap();
        let (to, from) = server.channels();
        let scheduler = std::thread::spawn(move || {
            let mut wakes = 0;
            for request in from.iter() {
                wakes += 10;
                let response = match request {
                    Request::Metrics => Response::Metrics(Box::new(Metrics {
                        wake: wakes,
                        ..Default::default()
                    })),
                    Request::Predictions => Response::Predictions(Predictions {
                        slots: 24,
                        ..Default::default()
                    }),
                    Request::Memory => Response::Failed("no memory known".into()),
                    Request::Locks => Response::Locks(LockProfiles {
                        locks: vec![LockProfile::default()],
                        ..Default::default()
                    }),
                    Request::Cpus => Response::Cpus(Cpus {
                        cpus: vec![Cpu::default()],
                    }),
                    Request::Tasks => Response::Tasks(Box::new(Telemetry {
                        inversions: 5,
                        ..Default::default()
                    })),
                };
                to.send(response).unwrap();
            }
        });

        let mut client = StatsClient::new()
            .set_path(&path)
            .connect(Some(5000))
            .unwrap();
        let mut get = |target: &str| {
            client.request::<serde_json::Value>("stats", vec![("target".into(), target.into())])
        };
        assert_eq!(get(target::TOP).unwrap()["wake"], 10);
        assert_eq!(get(target::TOP).unwrap()["wake"], 10);
        assert_eq!(get(target::TOTAL).unwrap()["wake"], 40);
        assert_eq!(get(target::PREDICTIONS).unwrap()["slots"], 24);
        assert_eq!(get(target::LOCKS).unwrap()["locks"][0]["waits"], 0);
        assert_eq!(get(target::TASKS).unwrap()["inversions"], 5);
        assert_eq!(get(target::CPUS).unwrap()["cpus"][0]["running"], 0);
        let failed = get(target::MEMORY).unwrap_err();
        assert!(
            format!("{failed:#}").contains("no memory known"),
            "{failed:#}"
        );
        drop(client);
        drop(server);
        scheduler.join().unwrap();
    }

    #[test]
    fn every_statistic_is_described() {
        let mut text = Vec::new();
        describe(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        for stat in crate::metrics::STATS {
            assert!(text.contains(stat.name), "{}", stat.name);
        }
        assert!(
            text.contains("[Predictions]") && text.contains("[MapUse]"),
            "{text}"
        );
    }
}
