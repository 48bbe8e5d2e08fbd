// SPDX-License-Identifier: GPL-2.0-only
//! Sets of CPUs.

use crate::intf;
use nix::sched::{sched_getaffinity, CpuSet};
use nix::unistd::Pid;
use std::fmt;

/// CPUs that a set has room for.
pub const MOST: usize = intf::fl_consts_FL_MAX_CPUS as usize;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mask([u64; MOST / 64]);

impl Mask {
    /// Which of this many CPUs a process, or this one if it is 0, may run on now; what its
    /// cpuset leaves out and CPUs that are offline are not among them. None if it is gone.
    pub fn of_process(pid: u32, cpus: usize) -> Option<Self> {
        let set = sched_getaffinity(Pid::from_raw(pid as i32)).ok()?;
        let cpus = 0..cpus.min(CpuSet::count());
        Some(cpus.filter(|cpu| set.is_set(*cpu) == Ok(true)).collect())
    }

    /// The least number that is greater than all of them.
    pub fn end(&self) -> usize {
        let last = self.0.iter().rposition(|word| *word != 0);
        last.map_or(0, |i| 64 * (i + 1) - self.0[i].leading_zeros() as usize)
    }

    pub fn has(&self, cpu: usize) -> bool {
        (self.0.get(cpu / 64)).is_some_and(|word| word & (1 << (cpu % 64)) != 0)
    }

    pub fn len(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub fn and(mut self, other: &Self) -> Self {
        for (mine, others) in self.0.iter_mut().zip(other.0) {
            *mine &= others;
        }
        self
    }

    pub fn or(mut self, other: &Self) -> Self {
        for (mine, others) in self.0.iter_mut().zip(other.0) {
            *mine |= others;
        }
        self
    }

    pub fn is_within(&self, other: &Self) -> bool {
        self.and(other) == *self
    }
}

impl FromIterator<usize> for Mask {
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> Self {
        let mut mask = Self::default();
        for cpu in cpus.into_iter().filter(|cpu| *cpu < MOST) {
            mask.0[cpu / 64] |= 1 << (cpu % 64);
        }
        mask
    }
}

/// As the kernel writes them, 0-3,8.
impl fmt::Display for Mask {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (mut cpu, mut comma) = (0, "");
        while cpu < MOST {
            let end = (cpu..MOST).find(|c| !self.has(*c)).unwrap_or(MOST);
            match end - cpu {
                0 => {}
                1 => write!(f, "{comma}{cpu}")?,
                _ => write!(f, "{comma}{cpu}-{}", end - 1)?,
            }
            if end > cpu {
                comma = ",";
            }
            cpu = end + 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_written_as_ranges() {
        let text = |cpus: &[usize]| cpus.iter().copied().collect::<Mask>().to_string();
        assert_eq!(text(&[0, 1, 2, 3, 8]), "0-3,8");
        assert_eq!(text(&[5, 64, 63, 1023]), "5,63-64,1023");
        assert_eq!(text(&[]), "");
        assert_eq!(text(&[1024]), "", "there are no such CPUs");
    }

    #[test]
    fn sets_are_compared_and_cut() {
        let (all, some): (Mask, Mask) = ((0..100).collect(), (90..110).collect());
        assert_eq!(all.and(&some).to_string(), "90-99");
        assert_eq!(all.or(&some).to_string(), "0-109");
        assert_eq!(all.len(), 100);
        assert_eq!(
            (all.end(), some.end(), Mask::default().end()),
            (100, 110, 0)
        );
        assert!(all.and(&some).is_within(&some) && !some.is_within(&all));
        assert!(some.has(90) && !some.has(89) && !some.has(5000));
    }

    #[test]
    fn this_process_may_run_somewhere() {
        assert!(Mask::of_process(0, MOST).unwrap().len() > 0);
        assert_eq!(Mask::of_process(0, 0), Some(Mask::default()));
        assert_eq!(Mask::of_process(i32::MAX as u32, MOST), None);
    }
}
