// SPDX-License-Identifier: GPL-2.0-only
//! `scx_freqlock top`: CPUs, tasks, locks, inversions and statistics of the running
//! scheduler, again and again. What is on the screen and what keys do is decided in
//! `screen`; here it meets the terminal, and where there is none, plain text.

mod screen;

use crate::interval;
use crate::look::Look;
use crate::number::whole;
use crate::output;
use crate::telemetry::{By, Filter};
use anyhow::{Context, Result};
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::crossterm::execute;
use screen::{Page, Screen, View};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

/// Watch CPUs, tasks, locks and inversions, again and again
///
/// Figures are of the last interval; those of locks first since the scheduler started.
/// The key / takes a filter: a number is a PID, what begins with a slash a cgroup, all else
/// a part of a name. Arrows scroll, sideways too.
///
/// Where standard output is no terminal, plain text is printed once an interval.
#[derive(Debug, clap::Args)]
pub struct TopArgs {
    /// Seconds between two looks
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = parse_interval)]
    pub interval: Duration,

    /// End after this many looks
    #[arg(short = 'n', long, value_name = "N", value_parser = whole(1..=u64::MAX))]
    pub iterations: Option<u64>,

    /// What to show, or to show first
    #[arg(long, value_enum, default_value_t = View::Tasks)]
    pub view: View,

    /// What makes a line of tasks
    #[arg(long, value_enum, default_value_t = By::Task)]
    pub by: By,

    /// Whose tasks and locks.
    #[command(flatten)]
    pub filter: Filter,
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    interval::parse(text, 0.1..=3600.0)
}

/// Watches until it is asked to end, or until the scheduler has ended.
pub fn run(args: &TopArgs) -> Result<()> {
    let locks = args.view == View::Locks;
    let screen = Screen::new(args.view, args.by, args.filter.clone(), Look::take(locks)?);
    if std::io::stdout().is_terminal() {
        let mut terminal = ratatui::try_init().context("cannot use the terminal")?;
        // Keys do not come as signals then, but somebody may end it from elsewhere.
        ctrlc::set_handler(|| {
            // Held to the end, so that nothing is drawn any more.
            let mut out = std::io::stdout().lock();
            drop(execute!(out, Show));
            ratatui::restore();
            std::process::exit(0);
        })
        .context("cannot handle signals")?;
        let ended = watch(args, screen, &mut terminal);
        ratatui::restore();
        return ended;
    }
    plain(args, screen)
}

fn watch(
    args: &TopArgs,
    mut screen: Screen,
    terminal: &mut ratatui::DefaultTerminal,
) -> Result<()> {
    let (mut interval, mut looks) = (args.interval, 0);
    let mut next = Instant::now() + interval;
    loop {
        terminal
            .draw(|frame| screen.draw(frame))
            .context("cannot write to the terminal")?;
        let left = next.saturating_duration_since(Instant::now());
        if event::poll(left).context("cannot read keys")? {
            match event::read().context("cannot read keys")? {
                Event::Key(key) if key.kind != KeyEventKind::Release => {
                    match screen.key(key, interval) {
                        Page::End => return Ok(()),
                        Page::Again(wanted) => interval = wanted,
                        Page::Look => screen.take(Look::take(screen.wants_locks())?),
                    }
                }
                _ => {}
            }
            continue;
        }
        next = Instant::now() + interval;
        if !screen.is_paused() {
            screen.take(Look::take(screen.wants_locks())?);
        }
        looks += 1;
        if args.iterations.is_some_and(|most| looks >= most) {
            return Ok(());
        }
    }
}

fn plain(args: &TopArgs, mut screen: Screen) -> Result<()> {
    let mut looks = 0;
    while args.iterations.is_none_or(|most| looks < most) {
        std::thread::sleep(args.interval);
        screen.take(Look::take(screen.wants_locks())?);
        output::print(screen.text())?;
        looks += 1;
    }
    Ok(())
}
