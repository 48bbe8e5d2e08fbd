// SPDX-License-Identifier: MIT
//! How long CPUs were busy, by /proc/stat, and how long this process ran.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// The kernel's clock tick as /proc shows it: 100 a second on all that Linux runs on.
const TICK: Duration = Duration::from_millis(10);
/// Lines of CPUs are the first of the file; those of interrupts, which are long, come later.
const BYTES_PER_CPU: usize = 192;

/// Reads it again and again.
#[derive(Debug)]
pub(crate) struct Stat {
    file: File,
    buffer: Vec<u8>,
}

impl Stat {
    pub(crate) fn open() -> Option<Self> {
        let file = File::open("/proc/stat").ok()?;
        let possible = std::fs::read_to_string("/sys/devices/system/cpu/possible").ok()?;
        let last: usize = possible.trim().rsplit(['-', ',']).next()?.parse().ok()?;
        let buffer = vec![0; BYTES_PER_CPU * (last + 2)];
        Some(Self { file, buffer })
    }

    /// How long these CPUs were busy since the boot, the time that a hypervisor took included.
    pub(crate) fn busy(&mut self, cpus: &[usize]) -> Option<Duration> {
        let length = self.file.read_at(&mut self.buffer, 0).ok()?;
        let text = String::from_utf8_lossy(&self.buffer[..length]);
        Some(busy(&text, cpus))
    }
}

/// What the lines "cpuN user nice system idle iowait irq softirq steal" say, as proc(5) has it.
fn busy(stat: &str, cpus: &[usize]) -> Duration {
    const IDLE: usize = 3;
    const IOWAIT: usize = 4;
    const STEAL: usize = 7;
    let ticks: u64 = stat
        .lines()
        .filter_map(|line| {
            let (cpu, times) = line.strip_prefix("cpu")?.split_once(' ')?;
            let _ = cpus.binary_search(&cpu.parse().ok()?).ok()?;
            let times = times.split_ascii_whitespace().enumerate();
            let busy =
                times.filter(|(field, _)| *field <= STEAL && ![IDLE, IOWAIT].contains(field));
            busy.map(|(_, ticks)| ticks.parse::<u64>().ok())
                .sum::<Option<u64>>()
        })
        .sum();
    TICK * u32::try_from(ticks).unwrap_or(u32::MAX)
}

/// CPU time of the calling process, all its threads, without its children.
pub(crate) fn own_time() -> Duration {
    let mut ts = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: ts is ours; the clock is always there.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut ts) };
    Duration::new(ts.tv_sec as u64, ts.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  99 9 9 9 9 9 9 9 0 0\n\
        cpu0 10 1 2 1000 500 3 4 5 6 7\n\
        cpu1 100 0 0 0 0 0 0 0 0 0\n\
        cpu10 7 0 0 9 9 0 0 0 0 0\n\
        intr 1 2 3\n";

    #[test]
    fn busy_is_all_but_idle_and_of_these_cpus() {
        let ticks = |cpus: &[usize]| busy(STAT, cpus).as_millis() / TICK.as_millis();
        assert_eq!(ticks(&[0]), 25);
        assert_eq!(ticks(&[0, 1]), 125);
        assert_eq!(ticks(&[1, 10]), 107);
        assert_eq!(ticks(&[2]), 0);
    }

    #[test]
    fn nonsense_is_nothing() {
        for text in [
            "",
            "cpu0",
            "cpu0 ",
            "cpu0 x 1",
            "cpu 1 2 3",
            "cpux 1",
            "\0\0",
        ] {
            assert_eq!(busy(text, &[0]), Duration::ZERO, "{text:?}");
        }
    }

    #[test]
    fn this_machine_was_busy_and_this_process_ran() {
        let cpus = crate::allowed::affine_cpus();
        assert!(Stat::open().unwrap().busy(&cpus).unwrap() > Duration::ZERO);
        assert!(own_time() > Duration::ZERO);
    }
}
