// SPDX-License-Identifier: GPL-2.0-only
//! What is measured of the machine at start, because nothing reports it: how slow
//! a CPU is after it has been idle and for how long (`floor`), how it gets slow (`cool`), what active cores lose to
//! each other (`turbo`), and what a migration costs a task (`migration`). All time equal chunks of
//! work (`chunks`).

mod chunks;
mod cool;
mod floor;
mod migration;
mod turbo;

pub use chunks::stay_on;
pub use cool::Cooling;
pub use floor::Ramp;
pub use migration::{MigrationCosts, COLD_KNOBS};

use crate::topology::Layout;
use nix::sched::sched_getaffinity;
use nix::unistd::Pid;

/// What was found out; none where it was not asked for or could not be measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Measured {
    /// How slow a CPU is after it idled, and how long it takes to get fast.
    pub ramp: Option<Ramp>,
    /// How it gets slow as it idles.
    pub cooling: Option<Cooling>,
    /// Speed of a core, 1..=1024 of its speed when alone, by the number of active
    /// cores less one; it stays as it is beyond the last.
    pub turbo: Option<Vec<u32>>,
    /// What a migration costs; each distance is none where it could not be measured.
    pub migration: MigrationCosts,
}

/// Measures on CPUs that this process may use, in threads of its own. Nothing
/// else should be going on: what interrupts an idle CPU keeps it warm.
pub fn measure(layout: &Layout, with_ramp: bool) -> Measured {
    let allowed = sched_getaffinity(Pid::from_raw(0)).ok();
    let may = |cpu: usize| allowed.is_none_or(|set| set.is_set(cpu).unwrap_or(false));
    std::thread::scope(|scope| {
        let measuring = scope.spawn(|| {
            let ramp = with_ramp.then(|| floor::measure(layout, may)).flatten();
            Measured {
                ramp,
                cooling: ramp.and_then(|ramp| cool::measure(layout, may, ramp.floor)),
                turbo: turbo::measure(layout, may),
                migration: migration::measure(layout, may),
            }
        });
        measuring.join().unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use super::chunks::FULL;
    use super::*;
    use crate::topology::Cpu;
    use nix::sched::CpuSet;

    #[test]
    fn measures_this_machine_in_time() {
        let allowed = sched_getaffinity(Pid::from_raw(0)).unwrap();
        let id = (0..CpuSet::count())
            .find(|&c| allowed.is_set(c).unwrap())
            .unwrap();
        let cpu = Cpu {
            id,
            core: 0,
            llc: 0,
            node: 0,
            capacity: 1,
        };
        let layout = Layout::new(id + 1, &[cpu]).unwrap();
        let measured = measure(&layout, true);
        assert!(
            (1..=FULL).contains(&measured.ramp.unwrap().floor),
            "{measured:?}"
        );
        assert_eq!(measured.turbo, Some(vec![1024]), "one core, always alone");
        assert_eq!(
            measured.migration,
            MigrationCosts::default(),
            "nowhere to go"
        );
        assert_eq!(measure(&layout, false).ramp, None);
    }
}
