// SPDX-License-Identifier: GPL-2.0-only
//! Results that are kept, merged and refused, and what all of them say.

use std::fs;
use std::path::{Path, PathBuf};

use super::campaign_file::{Campaign, Machine, Why, Workload};
use super::rows::{Place, Standing, Table};
use super::store::{Bed, Error, Folder, Store};
use super::{csv, markdown, sortable_page};
use crate::compare::plan::Plan;
use crate::compare::results::Record;
use crate::compare::runs::Run;
use crate::compare::tests::{plan, record, run};
use crate::recorded::Inputs;
use freqlock::estimate::Verdict;

fn inputs(kernel: &str) -> Inputs {
    [("kernel".to_string(), kernel.to_string())].into()
}

/// Six rounds of forkwait, without warm-up.
fn six() -> Plan {
    let mut plan = plan(&["eevdf", "auto"]);
    plan.warmup = 0;
    plan
}

struct Here {
    dir: tempfile::TempDir,
    plan: Plan,
    inputs: Inputs,
}

impl Here {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            plan: six(),
            inputs: inputs("7.2"),
        }
    }

    fn bed(&self) -> Bed<'_> {
        Bed {
            label: "laptop",
            inputs: &self.inputs,
            plan: &self.plan,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn open(&self, name: &str) -> Store {
        Store::open(&self.path(name)).unwrap()
    }

    fn keep(&self, store: &Store, run: &Run) {
        let bed = self.bed();
        store.keep(&bed, &bed.keep(run, 1.0)).unwrap();
    }

    fn times(&self, folder: &Folder) -> Vec<(String, f64)> {
        let bed = self.bed();
        let results = bed
            .places()
            .filter_map(|place| folder.result(&bed, place).unwrap());
        let time = |run: &Run| run.metric("time").unwrap().value;
        results
            .map(|kept| (kept.run.scheduler.clone(), time(&kept.run)))
            .collect()
    }
}

fn times(of: &[(&str, f64)]) -> Vec<(String, f64)> {
    of.iter()
        .map(|(name, time)| (name.to_string(), *time))
        .collect()
}

#[test]
fn a_run_is_there_once_and_what_is_not_whole_is_not() {
    let here = Here::new();
    let store = here.open("results");
    here.keep(&store, &run("forkwait", "auto", 0, Some(5.0)));
    here.keep(&store, &run("forkwait", "eevdf", 3, Some(7.0)));
    here.keep(&store, &run("forkwait", "auto", 0, Some(6.0)));
    drop(store);
    // Killed while it wrote.
    let left = here.path("results/unfinished/result.json");
    fs::write(&left, "{\"format\":1,").unwrap();
    let store = here.open("results");
    assert!(!left.exists());
    assert_eq!(
        here.times(&store.folder),
        times(&[("auto", 6.0), ("eevdf", 7.0)])
    );
    assert!(here.path("results/laptop/forkwait/auto/1.json").is_file());
}

#[test]
fn one_process_writes_at_a_time() {
    let here = Here::new();
    let _store = here.open("results");
    let again = Store::open(&here.path("results")).map(drop);
    assert!(matches!(again, Err(Error::InUse(_))));
}

#[test]
fn a_result_that_cannot_be_written_is_not_there() {
    let here = Here::new();
    let store = here.open("results");
    // In the way of the folder, as a full disk is.
    fs::write(here.path("results/laptop"), "").unwrap();
    let bed = here.bed();
    let kept = bed.keep(&run("forkwait", "auto", 0, Some(5.0)), 1.0);
    let error = store.keep(&bed, &kept).unwrap_err().to_string();
    assert!(
        error.starts_with("cannot write ") && error.ends_with("auto/1.json"),
        "{error}"
    );
    fs::remove_file(here.path("results/laptop")).unwrap();
    assert_eq!(here.times(&store.folder), []);
    store.keep(&bed, &kept).unwrap();
    assert_eq!(here.times(&store.folder), times(&[("auto", 5.0)]));
}

#[test]
fn results_of_another_version_are_refused_in_a_line() {
    let mut here = Here::new();
    let store = here.open("results");
    here.keep(&store, &run("forkwait", "auto", 0, Some(5.0)));
    let path = here.path("results/laptop/forkwait/auto/1.json");
    let text = fs::read_to_string(&path).unwrap();
    let refused = |here: &Here| -> String {
        let bed = here.bed();
        let mut all = bed
            .places()
            .filter_map(|place| store.folder.result(&bed, place).err());
        let error = all.next().expect("it is refused").to_string();
        assert!(
            !error.contains('\n') && error.contains("auto/1.json"),
            "{error}"
        );
        error
    };
    here.inputs = inputs("7.3");
    let said = refused(&here);
    assert!(said.contains("of another version") && said.contains("kernel 7.3, recorded with 7.2"));
    here.inputs = inputs("7.2");
    here.plan.workloads[0].parameters = vec!["FORKWAIT_SECONDS=1".into()];
    let said = refused(&here);
    assert!(
        said.contains("FORKWAIT_SECONDS=1, recorded with no parameters"),
        "{said}"
    );
    here.plan.workloads[0].parameters.clear();
    for (from, to, says) in [
        ("\"format\":1", "\"format\":2", "format 2, here 1"),
        ("\"round\":0", "\"round\":1", "it is of another run"),
        ("\"laptop\"", "\"desktop\"", "it is of another run"),
        ("\"format\":1,", "", "no result of a campaign"),
        ("}", "", "no result of a campaign"),
    ] {
        fs::write(&path, text.replace(from, to)).unwrap();
        let said = refused(&here);
        assert!(said.contains(says), "{said}");
    }
}

#[test]
fn folders_of_several_hosts_merge() {
    let here = Here::new();
    let other = here.open("other");
    here.keep(&other, &run("forkwait", "auto", 0, Some(5.0)));
    here.keep(&other, &run("forkwait", "eevdf", 0, Some(7.0)));
    let store = here.open("results");
    here.keep(&store, &run("forkwait", "auto", 0, Some(5.0)));
    here.keep(&store, &run("forkwait", "auto", 1, None));
    let take = |exact| store.take(&here.bed(), &Folder(here.path("other")), exact);
    assert_eq!(take(true).unwrap(), 1);
    assert_eq!(take(true).unwrap(), 0, "all of it is there");
    let bed = here.bed();
    let there = bed
        .places()
        .filter_map(|place| store.folder.result(&bed, place).unwrap());
    assert_eq!(there.count(), 3);
    here.keep(&other, &run("forkwait", "auto", 0, Some(5.5)));
    let error = take(true).unwrap_err().to_string();
    assert!(error.contains("two results of one exact run"), "{error}");
    assert_eq!(
        take(false).unwrap(),
        0,
        "what is here stays where runs vary"
    );
    assert_eq!(
        store
            .take(&bed, &Folder(Path::new("/none").into()), true)
            .unwrap(),
        0
    );
}

fn campaign(reasons: Vec<Why>) -> Campaign {
    Campaign {
        schedulers: vec!["eevdf".into(), "auto".into()],
        baseline: "eevdf".into(),
        seeds: 10,
        machines: vec![Machine {
            name: "m0".into(),
            label: None,
            cpus: None,
            migration_cost: false,
            arch: None,
            kernel: None,
            kit: None,
        }],
        workloads: vec![Workload {
            name: "forkwait".into(),
            label: None,
            parameters: Vec::new(),
            metrics: vec!["time".into()],
            machines: Vec::new(),
        }],
        reasons,
    }
}

/// A machine on which each scheduler has these times, by seed.
fn place(label: &str, times: &[(&str, Vec<f64>)]) -> Place {
    let names: Vec<&str> = times.iter().map(|(name, _)| *name).collect();
    let rounds = |(name, times): &(&str, Vec<f64>)| -> Vec<Run> {
        let all = (1..).zip(times);
        all.map(|(round, time)| run("forkwait", name, round, Some(*time)))
            .collect()
    };
    let record: Record = record(&names, times.iter().flat_map(rounds).collect());
    Place {
        label: label.into(),
        left_out: vec!["scx_lavd is left out: it is not installed".into()],
        ours: vec!["auto".into()],
        record,
    }
}

/// Where auto takes these shares of EEVDF's time.
fn shares(label: &str, shares: &[f64]) -> Place {
    let times = shares.iter().map(|share| share * 100.0).collect();
    place(
        label,
        &[("eevdf", vec![100.0; shares.len()]), ("auto", times)],
    )
}

/// One that is worse by 2% in each of so many seeds, and nineteen where nothing differs.
fn one_of_twenty(seeds: usize) -> Table {
    let mut places = vec![shares("m0", &vec![1.02; seeds])];
    let mixed: Vec<f64> = (0..seeds)
        .map(|i| if i % 2 == 0 { 0.9 } else { 1.1 })
        .collect();
    places.extend((1..20).map(|nr| shares(&format!("m{nr}"), &mixed)));
    Table::new(&campaign(Vec::new()), places)
}

#[test]
fn what_one_of_many_comparisons_says_by_chance_is_no_verdict() {
    let few = one_of_twenty(6);
    let line = few
        .lines
        .iter()
        .find(|line| line.machine == "m0" && line.ours)
        .unwrap();
    assert_eq!(line.row.verdict, Some(Verdict::Loss), "by itself");
    assert_eq!(
        line.corrected,
        Some(Verdict::Level),
        "one in twenty is expected"
    );
    assert!(
        (line.q.unwrap() - 20.0 * 2.0 / 64.0).abs() < 1e-9,
        "{:?}",
        line.q
    );
    assert!(few.with(Verdict::Loss).is_empty());
    let many = one_of_twenty(10);
    let losses = many.with(Verdict::Loss);
    assert_eq!((losses.len(), losses[0].machine.as_str()), (1, "m0"));
    let worse = Table::new(&campaign(Vec::new()), vec![shares("m0", &[1.02; 5])]);
    assert_eq!(worse.standings()[0].1.unknown, 1);
    let better = Table::new(&campaign(Vec::new()), vec![shares("m0", &[0.9; 5])]);
    assert_eq!(
        (
            better.standings()[0].1.level,
            better.standings()[0].1.unknown
        ),
        (0, 1)
    );
    assert_eq!(
        worse.lines[1].corrected,
        Some(Verdict::Unknown),
        "too few seeds"
    );
    assert_eq!(worse.lines[1].q, None);
}

#[test]
fn a_scheduler_stands_by_its_rows() {
    let best = |label: &str, auto: f64, floor: f64| {
        let of = |time: f64| vec![time; 10];
        place(
            label,
            &[("eevdf", of(100.0)), ("auto", of(auto)), ("off", of(floor))],
        )
    };
    let table = Table::new(
        &campaign(vec![Why {
            workload: "forkwait".into(),
            machine: Some("m2".into()),
            metric: None,
            scheduler: None,
            reason: "it is slow | there".into(),
        }]),
        vec![
            best("m0", 90.0, 95.0),
            best("m1", 90.0, 80.0),
            best("m2", 106.0, 110.0),
        ],
    );
    let standing = Standing {
        rows: 3,
        level: 1,
        far: 1,
        unknown: 0,
    };
    assert_eq!(table.standings(), [("auto".to_string(), standing)]);
    let behind: Vec<_> = table
        .behind()
        .iter()
        .map(|line| line.machine.clone())
        .collect();
    assert_eq!(behind, ["m1", "m2"], "by most first");

    let text = markdown::text(&table);
    let at = |words: &str| {
        text.find(words)
            .unwrap_or_else(|| panic!("{words}\n{text}"))
    };
    assert!(at("## Losses to eevdf") < at("## Wins over eevdf"));
    at("best or level with the best on 1 of 3 rows, and more than 5% behind eevdf on 1.");
    at("1.060 | 1.060 .. 1.060");
    at("it is slow \\| there");
    at("did not load, because scx_lavd is left out");
    assert!(csv::text(&table).lines().any(|line| {
        line.starts_with("m2,forkwait,time,ms,lower,auto,10,106,")
            && line.ends_with(concat!(",", env!("CARGO_PKG_VERSION")))
    }));
}

#[test]
fn the_page_has_all_of_it_and_no_markup_of_others() {
    let mut bad = shares("m0", &[1.02; 10]);
    bad.record.runs[3].outcome = crate::compare::runs::Outcome::Failed("<b>{script}".into());
    let table = Table::new(&campaign(Vec::new()), vec![bad]);
    assert!(table.failed());
    let page = sortable_page::text(&table).unwrap();
    assert!(page.contains("&lt;b&gt;{script}") && !page.contains("<b>{script}"));
    for words in [
        "<svg",
        "forkwait time",
        "class=loss",
        "addEventListener",
        "Benjamini",
    ] {
        assert!(page.contains(words), "{words}");
    }
    assert_eq!(page.matches("</script>").count(), 1);
}
