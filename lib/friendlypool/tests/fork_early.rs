// SPDX-License-Identifier: MIT
//! A fork while a pool's workers begin. Alone in its program, as in fork.rs.
#![allow(clippy::unwrap_used)]

mod child;

use child::in_child;
use friendlypool::Pool;

#[test]
fn a_child_has_a_pool_of_its_own_however_early_it_was_made() {
    for round in 0..300 {
        // In a process that has had no pool, whose workers have all before them.
        let is_well = in_child(60, || {
            let _pool = Pool::new().unwrap();
            in_child(20, || Pool::new().unwrap().install(|| 7) == 7)
        });
        assert!(is_well, "round {round}");
    }
}
