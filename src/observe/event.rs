// SPDX-License-Identifier: GPL-2.0-only
//! The events of bpf/observe.h, decoded.

use super::abi;

/// Words of a mask, 64 CPUs each.
pub const MASK_WORDS: usize = abi::obs_consts_OBS_MASK_WORDS as usize;

/// Which CPUs a task may run on.
pub type Mask = [u64; MASK_WORDS];

/// What happened; pid 0 is the idle task of any CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A CPU goes from one task to the next.
    Switch {
        /// CLOCK_MONOTONIC, ns, as all times here.
        time: u64,
        /// On which CPU.
        cpu: u16,
        /// The pid that leaves.
        prev: u32,
        /// The pid that comes.
        next: u32,
        /// The previous task did not want to leave.
        prev_runnable: bool,
        /// The previous task will never run again.
        prev_dead: bool,
    },
    /// A task was born.
    Fork {
        /// When, ns.
        time: u64,
        /// Where the parent runs.
        cpu: u16,
        /// The pid of the new task.
        child: u32,
        /// Nothing but the parent was runnable on its CPU.
        parent_alone: bool,
        /// Forked by the observer, not by a task of the tree.
        root: bool,
    },
    /// A task became runnable, for the first time too.
    Wake {
        /// When, ns.
        time: u64,
        /// The task.
        pid: u32,
    },
    /// A task went to another CPU; where a wake-up moves it, this comes first.
    Migrate {
        /// When, ns.
        time: u64,
        /// The task.
        pid: u32,
    },
    /// A word of the mask of CPUs that a task may run on.
    Affinity {
        /// The task.
        pid: u32,
        /// Which word: its bits are the CPUs from 64 times this on.
        word: usize,
        /// The lowest bit is the lowest CPU.
        bits: u64,
    },
    /// The name of a task that exits.
    Comm {
        /// The task.
        pid: u32,
        /// As the kernel has it.
        name: String16,
    },
}

/// The kernel's name of a task: at most 15 bytes and a NUL.
pub type String16 = [u8; 16];

/// The bytes are no event of this version.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("an event of the observer cannot be read ({0}): build the agent and bpf/ from one tree")]
pub struct BadEvent(&'static str);

impl Event {
    /// Reads one `struct obs_event`.
    pub fn decode(bytes: &[u8]) -> Result<Self, BadEvent> {
        let bytes: &[u8; size_of::<abi::obs_event>()] =
            bytes.try_into().map_err(|_| BadEvent("wrong size"))?;
        let word = |at: usize| {
            let mut eight = [0; 8];
            eight.copy_from_slice(&bytes[at..at + 8]);
            u64::from_ne_bytes(eight)
        };
        let (a, b) = (word(0), word(8));
        let pid = u32::from_ne_bytes([bytes[16], bytes[17], bytes[18], bytes[19]]);
        let cpu = u16::from_ne_bytes([bytes[20], bytes[21]]);
        let flag = |bit: u32| u32::from(bytes[23]) & bit != 0;
        Ok(match u32::from(bytes[22]) {
            abi::obs_kind_OBS_SWITCH => Self::Switch {
                time: a,
                cpu,
                prev: b as u32,
                next: pid,
                prev_runnable: flag(abi::obs_flag_OBS_PREV_RUNNABLE),
                prev_dead: flag(abi::obs_flag_OBS_PREV_DEAD),
            },
            abi::obs_kind_OBS_FORK => Self::Fork {
                time: a,
                cpu,
                child: pid,
                parent_alone: flag(abi::obs_flag_OBS_PARENT_ALONE),
                root: flag(abi::obs_flag_OBS_ROOT),
            },
            abi::obs_kind_OBS_WAKE => Self::Wake { time: a, pid },
            abi::obs_kind_OBS_MIGRATE => Self::Migrate { time: a, pid },
            abi::obs_kind_OBS_AFFINITY if (b as usize) < MASK_WORDS => Self::Affinity {
                pid,
                word: b as usize,
                bits: a,
            },
            abi::obs_kind_OBS_COMM => {
                let mut name = [0; 16];
                name.copy_from_slice(&bytes[..16]);
                Self::Comm { pid, name }
            }
            _ => return Err(BadEvent("unknown kind")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(a: u64, b: u64, pid: u32, cpu: u16, kind: u32, flags: u32) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend(a.to_ne_bytes());
        out.extend(b.to_ne_bytes());
        out.extend(pid.to_ne_bytes());
        out.extend(cpu.to_ne_bytes());
        out.extend([kind as u8, flags as u8]);
        out
    }

    #[test]
    fn a_switch_carries_both_tasks_and_why_the_first_left() {
        let bytes = raw(
            7,
            11,
            12,
            3,
            abi::obs_kind_OBS_SWITCH,
            abi::obs_flag_OBS_PREV_RUNNABLE,
        );
        assert_eq!(
            Event::decode(&bytes),
            Ok(Event::Switch {
                time: 7,
                cpu: 3,
                prev: 11,
                next: 12,
                prev_runnable: true,
                prev_dead: false,
            })
        );
    }

    #[test]
    fn a_fork_says_whether_the_parent_was_alone_and_ours() {
        let flags = abi::obs_flag_OBS_PARENT_ALONE | abi::obs_flag_OBS_ROOT;
        assert_eq!(
            Event::decode(&raw(7, 1, 2, 3, abi::obs_kind_OBS_FORK, flags)),
            Ok(Event::Fork {
                time: 7,
                cpu: 3,
                child: 2,
                parent_alone: true,
                root: true
            })
        );
    }

    #[test]
    fn what_is_no_event_is_refused() {
        assert!(Event::decode(&[0; 23]).is_err());
        assert!(Event::decode(&raw(0, 0, 0, 0, abi::obs_kind_OBS_NR_KINDS, 0)).is_err());
        let outside = raw(0, MASK_WORDS as u64, 1, 0, abi::obs_kind_OBS_AFFINITY, 0);
        assert!(Event::decode(&outside).is_err());
    }
}
