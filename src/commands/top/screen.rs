// SPDX-License-Identifier: GPL-2.0-only
//! What `top` shows, as text and drawn, and what its keys change.

use crate::cgroups::Cgroups;
use crate::commands::lock_table::{self, Choice, Sort};
use crate::foreign::{Escaped, Foreign};
use crate::locks::Names;
use crate::look::Look;
use crate::telemetry::{By, Cpu, Filter, Order, Report};
use clap::ValueEnum;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Paragraph};
use ratatui::Frame;
use std::collections::HashMap;
use std::time::Duration;

const KEYS: &str = "q end  TAB view  b by  s sort  / filter  p pause  +- interval  arrows scroll";
/// Columns that one key scrolls over.
const SIDEWAYS: u16 = 10;
/// Columns of a CPU.
const CPU_WIDTH: usize = 26;
/// Inversion events that are shown.
const EVENTS: usize = 200;
/// Locks that are shown: each needs its name looked up.
const LOCKS: usize = 100;
/// Intervals that + and - choose from, ms.
const INTERVALS: [u64; 7] = [100, 250, 500, 1000, 2000, 5000, 10_000];

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub enum Page {
    End,
    /// The same, with this interval.
    Again(Duration),
    /// The same after another look, for something that was not looked at before.
    Look,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum View {
    /// CPUs, and what tasks ran, waited and held
    Tasks,
    /// CPUs, and the locks that tasks waited for
    Locks,
    /// CPUs, and the latest priority inversions
    Inversions,
    /// CPUs, and all that the scheduler counts
    Statistics,
}

pub struct Screen {
    view: View,
    by: By,
    order: Order,
    lock_order: Sort,
    filter: Filter,
    /// What is being typed.
    typed: Option<String>,
    paused: bool,
    /// Rows and columns that are scrolled over.
    scroll: (u16, u16),
    now: Look,
    before: Look,
    cgroups: Cgroups,
    names: Names,
}

impl Screen {
    pub fn new(view: View, by: By, filter: Filter, first: Look) -> Self {
        Self {
            view,
            by,
            order: Order::default(),
            lock_order: Sort::default(),
            filter,
            typed: None,
            paused: false,
            scroll: (0, 0),
            before: first.clone(),
            now: first,
            cgroups: Cgroups::default(),
            names: Names::default(),
        }
    }

    pub fn take(&mut self, look: Look) {
        self.before = std::mem::replace(&mut self.now, look);
        self.names.forget_processes();
    }

    /// Whether the next look is to have them.
    pub fn wants_locks(&self) -> bool {
        self.view == View::Locks
    }

    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// Does what a key stands for.
    pub fn key(&mut self, key: KeyEvent, interval: Duration) -> Page {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Page::End;
        }
        if let Some(typed) = &mut self.typed {
            match key.code {
                KeyCode::Char(c) => typed.push(c),
                KeyCode::Backspace => drop(typed.pop()),
                KeyCode::Esc => self.typed = None,
                KeyCode::Enter => {
                    self.filter = Filter::parse(&self.typed.take().unwrap_or_default());
                }
                _ => {}
            }
            return Page::Again(interval);
        }
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Page::End,
            KeyCode::Tab => {
                self.scroll = (0, 0);
                self.view = neighbour(View::value_variants(), self.view, true);
                if self.wants_locks() {
                    return Page::Look;
                }
            }
            KeyCode::Char('b') => self.by = neighbour(By::value_variants(), self.by, true),
            KeyCode::Char('s') => self.sort(true),
            KeyCode::Char('S') => self.sort(false),
            KeyCode::Char('/') => self.typed = Some(String::new()),
            KeyCode::Char('p') => self.paused = !self.paused,
            KeyCode::Char('+') => return Page::Again(other(interval, true)),
            KeyCode::Char('-') => return Page::Again(other(interval, false)),
            KeyCode::Down => self.scroll.0 = self.scroll.0.saturating_add(1),
            KeyCode::Up => self.scroll.0 = self.scroll.0.saturating_sub(1),
            KeyCode::PageDown => self.scroll.0 = self.scroll.0.saturating_add(20),
            KeyCode::PageUp => self.scroll.0 = self.scroll.0.saturating_sub(20),
            KeyCode::Right => self.scroll.1 = self.scroll.1.saturating_add(SIDEWAYS),
            KeyCode::Left => self.scroll.1 = self.scroll.1.saturating_sub(SIDEWAYS),
            KeyCode::Home => self.scroll = (0, 0),
            _ => {}
        }
        Page::Again(interval)
    }

    /// By the next column of the view, or by the one before.
    fn sort(&mut self, next: bool) {
        match self.view {
            View::Tasks => {
                let orders: Vec<Order> = Order::all().collect();
                self.order = neighbour(&orders, self.order, next);
            }
            View::Locks => {
                self.lock_order = neighbour(Sort::value_variants(), self.lock_order, next);
            }
            View::Inversions | View::Statistics => {}
        }
    }

    fn report(&mut self, lines: usize) -> Report<'_> {
        let cgroups = &mut self.cgroups;
        Report::new(
            (self.by, self.order),
            (lines, EVENTS),
            &self.filter,
            &self.now.telemetry,
            Some(&self.before.telemetry),
            |inode| cgroups.path(inode),
        )
    }

    /// The present view, without the CPUs.
    fn body(&mut self, lines: usize) -> String {
        let (by, view) = (self.by, self.view);
        match view {
            View::Tasks => self.report(lines).table(by),
            View::Locks => self.locks(lines),
            View::Inversions => self.report(0).inversions_text(),
            View::Statistics => self.now.metrics.since(&self.before.metrics).table(),
        }
    }

    fn locks(&mut self, lines: usize) -> String {
        let now = match &self.now.locks {
            Some(Ok(now)) => now,
            Some(Err(why)) => return why.clone(),
            None => return String::new(),
        };
        let choice = Choice {
            filter: self.filter.clone(),
            sort: self.lock_order,
            top: lines.min(LOCKS),
            ..Choice::default()
        };
        let since = match &self.before.locks {
            Some(Ok(before)) => now.since(before),
            _ => now.clone(),
        };
        lock_table::table(&since, &choice, &mut self.names)
    }

    /// Names of the tasks that run, by PID.
    fn names(&self) -> HashMap<u32, &Foreign> {
        let tasks = self.now.telemetry.tasks.iter();
        tasks.map(|t| (t.pid, &t.comm)).collect()
    }

    /// All of it for a file or a pipe.
    pub fn text(&mut self) -> String {
        let names = self.names();
        let cpus: Vec<String> = (self.now.cpus.cpus.iter())
            .map(|cpu| cpu_text(cpu, &names))
            .collect();
        let rows: Vec<String> = cpus.chunks(4).map(|row| row.concat()).collect();
        let table = self.body(40);
        format!("{}\n{table}\n", rows.join("\n"))
    }

    pub fn draw(&mut self, frame: &mut Frame) {
        let area = frame.area();
        let in_row = (usize::from(area.width) / CPU_WIDTH).max(1);
        let rows = self.now.cpus.cpus.len().div_ceil(in_row);
        // A third of the screen at most.
        let shown = rows.min(usize::from(area.height) / 3).max(1);
        let [head, cpus, body, keys] = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(shown as u16),
            Constraint::Min(1),
            Constraint::Length(1),
        ])
        .areas(area);
        frame.render_widget(Paragraph::new(self.head(rows - shown.min(rows))), head);
        frame.render_widget(Paragraph::new(self.cpu_lines(in_row)), cpus);
        let lines = usize::from(area.height) + usize::from(self.scroll.0);
        let text = self.body(lines);
        let block = Block::bordered().title(self.title());
        // No further than to the end of the longest line.
        let longest = text
            .lines()
            .map(|line| line.trim_end().chars().count())
            .max();
        let room = usize::from(block.inner(body).width);
        let beyond = longest.unwrap_or(0).saturating_sub(room);
        self.scroll.1 = self.scroll.1.min(u16::try_from(beyond).unwrap_or(u16::MAX));
        let body_text = Paragraph::new(text).block(block).scroll(self.scroll);
        frame.render_widget(body_text, body);
        let bottom = match &self.typed {
            Some(typed) => format!("filter by name, PID or /cgroup: {}_", Escaped(typed)),
            None => KEYS.into(),
        };
        frame.render_widget(Paragraph::new(bottom), keys);
    }

    fn head(&self, hidden: usize) -> Line<'static> {
        let mut head = format!("scx_freqlock: {} CPUs", self.now.cpus.cpus.len());
        if hidden > 0 {
            head += &format!(", {hidden} rows of them do not fit");
        }
        if !self.filter.is_empty() {
            head += &format!("; only {}", self.filter);
        }
        if self.paused {
            head += "; paused";
        }
        Line::styled(head, Style::new().add_modifier(Modifier::BOLD))
    }

    fn title(&self) -> String {
        match self.view {
            View::Tasks => format!(
                "by {}, sorted by {}: {}",
                format!("{:?}", self.by).to_lowercase(),
                self.order.name(),
                self.order.desc()
            ),
            View::Locks => {
                let since = match self.before.locks {
                    Some(_) => "in the last interval",
                    None => "since the scheduler started",
                };
                let sort = self.lock_order.name();
                format!("locks, sorted by {sort}, waited for {since}")
            }
            View::Inversions => "priority inversions".into(),
            View::Statistics => "statistics".into(),
        }
    }

    fn cpu_lines(&self, in_row: usize) -> Vec<Line<'static>> {
        let names = self.names();
        let span = |cpu: &Cpu| {
            let color = match (cpu.running, cpu.warm) {
                (0, 0) => Color::Blue,
                (0, _) => Color::Yellow,
                _ => Color::Green,
            };
            Span::styled(cpu_text(cpu, &names), Style::new().fg(color))
        };
        let rows = self.now.cpus.cpus.chunks(in_row);
        rows.map(|row| Line::from_iter(row.iter().map(span)))
            .collect()
    }
}

/// Number, speed, whether it is warm, and what runs there.
fn cpu_text(cpu: &Cpu, names: &HashMap<u32, &Foreign>) -> String {
    let what = match (cpu.running, cpu.warm) {
        (0, 0) => "idle".into(),
        (0, _) => "idle, warm".into(),
        (pid, _) => match names.get(&pid) {
            Some(name) => name.to_string(),
            None => pid.to_string(),
        },
    };
    let percent = 100 * cpu.speed / 1024;
    let text = format!("{:>4} {percent:>3}% {what}", cpu.id);
    format!("{text:<width$.width$}", width = CPU_WIDTH)
}

/// The one after `now`, or the one before, as they go round.
fn neighbour<T: Copy + PartialEq>(all: &[T], now: T, next: bool) -> T {
    let at = all.iter().position(|one| *one == now).unwrap_or(0);
    all[(at + if next { 1 } else { all.len() - 1 }) % all.len()]
}

/// The next longer or shorter interval.
fn other(interval: Duration, longer: bool) -> Duration {
    let ms = interval.as_millis() as u64;
    let found = if longer {
        INTERVALS.into_iter().find(|i| *i > ms)
    } else {
        INTERVALS.into_iter().rev().find(|i| *i < ms)
    };
    found.map_or(interval, Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::tests::{assert_harmless, HOSTILE};
    use crate::locks::{LockProfile, LockProfiles};
    use crate::telemetry::{Cpus, Inversion, Task, TaskStats, Telemetry};
    use ratatui::backend::TestBackend;
    use ratatui::Terminal;

    const SECOND: Duration = Duration::from_secs(1);

    fn task(pid: u32, comm: &str, run_ns: u64, wait_ns: u64) -> Task {
        Task {
            pid,
            tgid: pid,
            comm: comm.into(),
            process: comm.into(),
            stats: TaskStats {
                run_ns,
                wait_ns,
                ..Default::default()
            },
            ..Default::default()
        }
    }

    fn look(ms: u64) -> Look {
        let cpu = |id, running, warm| Cpu {
            id,
            running,
            warm,
            speed: 512,
            ..Default::default()
        };
        Look {
            telemetry: Telemetry {
                tasks: vec![
                    task(7, "maker", ms * 900_000, 0),
                    task(8, "waiter", ms * 100_000, ms * 700_000),
                ],
                inversion_events: vec![Inversion {
                    at_ns: ms,
                    waiter_comm: "urgent".into(),
                    ..Default::default()
                }],
                ..Default::default()
            },
            cpus: Cpus {
                cpus: vec![cpu(0, 7, 1), cpu(1, 0, 1), cpu(2, 0, 0)],
            },
            metrics: crate::metrics::Metrics {
                wake: ms,
                ..Default::default()
            },
            locks: Some(Ok(LockProfiles {
                locks: vec![lock(1, ms, 50), lock(2, 1, 90)],
                ..Default::default()
            })),
        }
    }

    fn lock(addr: u64, waits: u64, longest: u64) -> LockProfile {
        LockProfile {
            addr,
            comm: format!("user{addr}").into(),
            waits,
            wait_ns: waits,
            wait_longest_ns: longest,
            ..Default::default()
        }
    }

    fn screen() -> Screen {
        let mut screen = Screen::new(View::Tasks, By::Task, Filter::default(), look(1000));
        screen.take(look(2000));
        screen
    }

    fn press(screen: &mut Screen, keys: &str) -> Page {
        let mut page = Page::Again(SECOND);
        for c in keys.chars() {
            let code = match c {
                '\t' => KeyCode::Tab,
                '\n' => KeyCode::Enter,
                c => KeyCode::Char(c),
            };
            page = screen.key(KeyEvent::from(code), SECOND);
        }
        page
    }

    /// The rows of a small terminal.
    fn drawn(screen: &mut Screen) -> Vec<String> {
        drawn_on(screen, 160, 20)
    }

    fn drawn_on(screen: &mut Screen, width: u16, height: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| screen.draw(frame)).unwrap();
        let buffer = terminal.backend().buffer();
        let cells: Vec<&str> = buffer.content().iter().map(|cell| cell.symbol()).collect();
        cells.chunks(width.into()).map(|row| row.concat()).collect()
    }

    #[test]
    fn on_80_columns_there_is_what_no_other_top_has_and_the_rest_beside_it() {
        let mut screen = screen();
        let has = |rows: &[String], text: &str| rows.iter().any(|row| row.contains(text));
        let rows = drawn_on(&mut screen, 80, 24);
        for column in ["run", "speed", "inverted", "lock wait", "held", "spin"] {
            assert!(has(&rows, column), "no {column}: {rows:#?}");
        }
        assert!(!has(&rows, "preempted"), "{rows:#?}");
        for _ in 0..20 {
            screen.key(KeyEvent::from(KeyCode::Right), SECOND);
        }
        let rows = drawn_on(&mut screen, 80, 24);
        assert!(has(&rows, "preempted"), "{rows:#?}");
        assert!(screen.scroll.1 < 100, "no further than to its end");
        screen.key(KeyEvent::from(KeyCode::Home), SECOND);
        assert!(has(&drawn_on(&mut screen, 80, 24), "maker"));
    }

    #[test]
    fn cpus_and_tasks_of_the_last_interval_are_drawn() {
        let rows = drawn(&mut screen());
        assert!(rows[0].starts_with("scx_freqlock: 3 CPUs"), "{rows:?}");
        assert!(rows[1].contains("0  50% maker"), "{rows:?}");
        assert!(rows[1].contains("1  50% idle, warm"), "{rows:?}");
        assert!(rows[1].contains("2  50% idle "), "{rows:?}");
        let line = rows
            .iter()
            .position(|r| r.contains("maker") && r.contains("900 ms"));
        let other = rows.iter().position(|r| r.contains("waiter"));
        assert!(
            line.unwrap() < other.unwrap(),
            "the one that ran most is first"
        );
        assert!(rows[19].starts_with("q end"), "{rows:?}");
    }

    #[test]
    fn keys_change_what_is_shown() {
        let mut screen = screen();
        press(&mut screen, "sss");
        assert!(
            screen.title().contains("sorted by wait_ns"),
            "{}",
            screen.title()
        );
        let text = screen.text();
        assert!(text.find("waiter").unwrap() < text.rfind("maker").unwrap());
        press(&mut screen, "S");
        assert!(screen.title().contains("sorted by work_ns"));
        press(&mut screen, "SSS");
        assert!(
            screen.title().contains("sorted by speed"),
            "beyond the figures"
        );
        press(&mut screen, "b");
        assert!(screen.title().starts_with("by process"));
        assert_eq!(press(&mut screen, "\t"), Page::Look);
        assert_eq!(press(&mut screen, "\t"), Page::Again(SECOND));
        assert!(screen.text().contains("urgent"), "{}", screen.text());
        press(&mut screen, "\t");
        assert!(screen.text().contains("wake=1000"), "{}", screen.text());
        press(&mut screen, "p");
        assert!(screen.is_paused());
        assert_eq!(press(&mut screen, "+"), Page::Again(2 * SECOND));
        assert_eq!(press(&mut screen, "-"), Page::Again(SECOND / 2));
        assert_eq!(press(&mut screen, "q"), Page::End);
    }

    #[test]
    fn locks_are_sorted_and_chosen_and_of_the_last_interval() {
        let mut screen = screen();
        assert!(!screen.wants_locks());
        press(&mut screen, "\t");
        assert!(screen.wants_locks());
        let text = screen.text();
        assert!(text.contains("0  50% maker"), "the CPUs: {text}");
        assert!(
            text.contains("1 of 1 locks") && text.contains("user1"),
            "{text}"
        );
        assert!(text.contains(" 1000 "), "waits of the interval: {text}");
        // Not looked at before: since the start.
        screen.before.locks = None;
        let first =
            |screen: &mut Screen| screen.body(40).find("user1") < screen.body(40).find("user2");
        assert!(
            first(&mut screen),
            "the one waited for most: {}",
            screen.text()
        );
        assert!(screen.title().contains("since the scheduler started"));
        press(&mut screen, "ssss");
        assert!(screen.title().starts_with("locks, sorted by longest"));
        assert!(
            !first(&mut screen),
            "the one with the longest wait: {}",
            screen.text()
        );
        press(&mut screen, "/user2\n");
        assert!(!screen.body(40).contains("user1"));
        screen.now.locks = Some(Err("started with --locks 0".into()));
        assert!(screen.text().contains("--locks 0"));
    }

    #[test]
    fn a_filter_is_typed_and_can_be_given_up() {
        let mut screen = screen();
        press(&mut screen, "/wai");
        assert!(
            drawn(&mut screen)[19].ends_with("wai_".to_string().as_str())
                || drawn(&mut screen)[19].contains("wai_")
        );
        press(&mut screen, "\n");
        let table = screen.body(40);
        assert!(
            table.contains("waiter") && !table.contains("maker"),
            "{table}"
        );
        press(&mut screen, "/7\n");
        assert!(screen.body(40).contains("maker"), "a PID");
        press(&mut screen, "/q");
        screen.key(KeyEvent::from(KeyCode::Esc), SECOND);
        assert_eq!(screen.filter.to_string(), "7");
    }

    #[test]
    fn names_of_others_are_shown_harmless() {
        let mut look = look(2000);
        look.telemetry.tasks[0].comm = HOSTILE.into();
        look.telemetry.inversion_events[0].waiter_comm = HOSTILE.into();
        let mut screen = Screen::new(View::Tasks, By::Task, Filter::default(), Look::default());
        screen.take(look);
        assert_harmless(&screen.text());
        press(&mut screen, "\t\t");
        assert_harmless(&screen.text());
    }

    #[test]
    fn a_terminal_of_any_size_is_drawn_on() {
        for (width, height) in [(1, 1), (3, 2), (300, 5), (20, 200)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            let mut screen = screen();
            terminal.draw(|frame| screen.draw(frame)).unwrap();
        }
    }
}
