// SPDX-License-Identifier: MIT
//! Pools of other libraries get the size that is due.
#![allow(clippy::unwrap_used)]

use friendlypool::adapters::openmp;
use std::process::Command;

#[test]
fn a_command_gets_its_number_of_threads() {
    let mut command = Command::new("sh");
    command.args(["-c", "echo $OMP_NUM_THREADS"]);
    let said = openmp::size_command(&mut command).output().unwrap().stdout;
    let threads: usize = String::from_utf8(said).unwrap().trim().parse().unwrap();
    assert!((1..=freqlock_cpus::affinity()).contains(&threads));
    assert_eq!(openmp::size_process(), None, "no OpenMP is here");
}

#[cfg(feature = "rayon")]
#[test]
fn a_rayon_pool_stays_while_its_size_does() {
    let sized = friendlypool::adapters::rayon::SizedPool::default();
    for _ in 0..20 {
        let pool = sized.current().unwrap();
        let threads = pool.install(rayon::current_num_threads);
        assert!((1..=freqlock_cpus::affinity()).contains(&threads));
        let again = sized.current().unwrap();
        assert_eq!(
            std::sync::Arc::ptr_eq(&pool, &again),
            again.current_num_threads() == threads
        );
    }
}

#[cfg(feature = "tokio")]
#[test]
fn a_tokio_runtime_has_its_workers() {
    let runtime = friendlypool::adapters::tokio::runtime_builder()
        .build()
        .unwrap();
    let workers = runtime.metrics().num_workers();
    assert!((1..=freqlock_cpus::affinity()).contains(&workers));
    assert_eq!(runtime.block_on(async { 1 + 1 }), 2);
}
