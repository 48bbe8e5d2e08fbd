// SPDX-License-Identifier: MIT
//! Buckets, percentiles, and what is shared.

use super::*;
use proptest::prelude::*;

fn file() -> (tempfile::NamedTempFile, Latencies) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let latencies = Latencies::new(file.path()).unwrap();
    (file, latencies)
}

proptest! {
    #[test]
    fn buckets_are_in_order_and_a_32nd_wide(ns in 0..LONGEST) {
        let at = bucket(ns);
        let most = most_in(at);
        prop_assert!(at < BUCKETS && most >= ns && most - ns <= ns / 32, "{ns}: {at}, {most}");
        prop_assert_eq!(bucket(most), at);
        prop_assert_eq!(bucket(most + 1), at + 1);
    }
}

#[test]
fn the_percentile_is_that_of_99_in_100() {
    let (_file, latencies) = file();
    assert_eq!(latencies.figures(Kind::Epoch).p99(Cpus::All), None);
    for n in 1..=1000 {
        latencies.area().count(Kind::Epoch, n, 10_000 + n);
    }
    let figures = latencies.figures(Kind::Epoch);
    assert_eq!(figures.count(Cpus::All), 1000);
    // 990, and what else is in its bucket.
    assert_eq!(figures.p99(Cpus::All), Some(991));
    assert_eq!(
        figures.p99(Cpus::Big).max(figures.p99(Cpus::Little)),
        Some(991)
    );
    assert_eq!(latencies.figures(Kind::Wait).count(Cpus::All), 0);
}

#[test]
fn a_rate_is_from_the_first_start_to_the_last_end() {
    let (_file, latencies) = file();
    assert_eq!(latencies.figures(Kind::Wait).per_second(), 0.0);
    let second = os::NS_PER_SEC;
    latencies.area().count(Kind::Wait, second, 7 * second);
    latencies.area().count(Kind::Wait, second / 2, 8 * second);
    latencies
        .area()
        .count(Kind::Wait, u64::MAX / 4, u64::MAX / 4 + 6 * second);
    let figures = latencies.figures(Kind::Wait);
    assert_eq!(figures.p99(Cpus::All), Some(LONGEST));
    assert_eq!(
        (figures.first, figures.last),
        (6 * second, u64::MAX / 4 + 6 * second)
    );
}

#[test]
fn only_files_made_for_it_are_counted_in() {
    let (file, latencies) = file();
    let name = |path: &Path| CString::new(path.as_os_str().as_bytes()).unwrap();
    let other = tempfile::NamedTempFile::new().unwrap();
    assert!(!count_in(c"/nonexistent") && !count_in(&name(other.path())));
    other.as_file().set_len(size_of::<Area>() as u64).unwrap();
    assert!(!count_in(&name(other.path())) && !are_counted());
    assert_eq!(timed(|| -> Option<u8> { panic!("not tried") }, || 7), 7);

    assert!(count_in(&name(file.path())) && are_counted());
    assert_eq!(latencies.processes(), 1);
    let waited = || std::thread::sleep(std::time::Duration::from_millis(2));
    timed(|| Some(()), waited);
    timed(|| None, waited);
    // Other tests wait for locks meanwhile.
    let figures = latencies.figures(Kind::Wait);
    assert!(
        figures
            .buckets(Cpus::All)
            .skip(bucket(2_000_000))
            .sum::<u64>()
            >= 1
    );
    assert!(figures.p99(Cpus::All) >= Some(2_000_000));
}
