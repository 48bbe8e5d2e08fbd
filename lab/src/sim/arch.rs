// SPDX-License-Identifier: GPL-2.0-only
//! What differs by architecture when QEMU is started.

use freqlock::lab_args::Arch;

/// Board and processor. Clocks that the plugin does not drive are off; so is
/// MWAIT, which QEMU makes a busy wait of, and what makes the kernel move
/// memory byte by byte, which QEMU does slowly. Nor does x86's processor say that it is a virtual one:
/// Linux's spinlocks would not be fair then (arch/x86/include/asm/qspinlock.h, virt_spin_lock()), and
/// a CPU that takes another's run queue lock all the time keeps that one out for milliseconds.
pub fn board(arch: Arch) -> &'static [&'static str] {
    match arch {
        Arch::X86_64 => &[
            "-machine",
            "pc,hpet=off,usb=off,vmport=off",
            "-cpu",
            "max,monitor=off,hypervisor=off,erms=off,fsrm=off",
        ],
        Arch::Arm64 => &["-machine", "virt,gic-version=3", "-cpu", "cortex-a76"],
    }
}

/// The kernel's, by which one boot is like the other; and quick, without
/// the calibrations and self-tests that say nothing on a simulated machine, nor the
/// random numbers of a clock's jitter (jent_mod_init), which it has none of.
/// In a parallel start the CPUs would spin until it is their turn; and the
/// weaknesses of arm64's processor are not those of the simulated one.
/// `governor` is for guests that have cpufreq; `more` comes last, so that it counts.
pub fn kernel_arguments(arch: Arch, governor: &str, more: &str) -> String {
    let mut arguments = match arch {
        Arch::X86_64 => "console=ttyS0 loglevel=4 panic=-1 oops=panic nokaslr norandmaps tsc=reliable random.trust_cpu=on lpj=4000000 cpuhp.parallel=0 lsm=capability cryptomgr.notests initcall_blacklist=jent_mod_init rdinit=/init".into(),
        Arch::Arm64 => format!("console=ttyAMA0 loglevel=4 panic=-1 oops=panic nokaslr norandmaps mitigations=off random.trust_bootloader=on lpj=4000000 8250.nr_uarts=0 cpufreq.default_governor={governor} lsm=capability cryptomgr.notests initcall_blacklist=jent_mod_init rdinit=/init"),
    };
    if !more.is_empty() {
        arguments.push(' ');
        arguments.push_str(more);
    }
    arguments
}
