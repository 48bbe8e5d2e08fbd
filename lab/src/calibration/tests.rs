// SPDX-License-Identifier: GPL-2.0-only
//! What is fitted to made-up measurements whose parameters are known.

use super::fit::Fit;
use super::measured::Measured;
use super::{described, value};
use crate::sim::description::Description;

const OTHERWISE: &str = include_str!("../../../machine/turbo-laptop-8.toml");

/// A CPU of 3000 instructions a microsecond with points at 40, 60, 80 and 100% of them, that
/// takes 10 ms to get fast, and stays so for 2 ms and falls for 20.
fn printed() -> String {
    let mut out =
        String::from("about hypervisor no\ncpu 0 0 0 0\ncpu 1 1 0 0\nstep 4 4\nchunk 15000\n");
    let point = |wanted: f64| {
        [1.0, 0.8, 0.6, 0.4]
            .into_iter()
            .find(|p| *p <= wanted + 1e-9)
    };
    let ns = |wanted: f64| (20_000.0 / point(wanted).unwrap_or(0.4)) as u64;
    for _ in 0..3 {
        out += "ramp";
        let mut at = 0;
        while at < 40_000_000 {
            let chunk = ns((0.4 + 0.6 * at as f64 / 10e6).min(1.0));
            out += &format!(" 2:{chunk}");
            at += 2 * chunk;
        }
        out += "\n";
    }
    let mut idle = 100_000.0;
    for _ in 0..40 {
        let fallen = ((idle - 2e6) / 20e6_f64).clamp(0.0, 1.0);
        out += &format!("decay {idle} {}\n", ns(1.0 - 0.6 * fallen));
        idle *= 1.258;
    }
    out += "turbo 1 20000\nturbo 2 25000\n";
    // 40 passes at half speed, of 12288 instructions each.
    out += "move llc 12288 40:8192 1000:4096\n";
    out + "absent core no two\nabsent far all\nwake 5000\nsyscall 100\nswitch 1500\n"
}

fn near(value: f64, expected: f64, within: f64) {
    assert!(
        (value - expected).abs() <= within,
        "{value}, expected {expected}"
    );
}

#[test]
fn the_parameters_come_back() {
    let measured = Measured::parse(&printed()).unwrap();
    let fit = Fit::new(&measured);
    near(fit.mips, 3000.0, 1.0);
    assert_eq!(fit.points.as_ref().unwrap().len(), 4);
    let governor = fit.governor.clone().unwrap().unwrap();
    near(governor.ramp_ms, 10.0, 0.3);
    near(governor.hold_ms, 2.0, 0.5);
    // Many fit alike, with four points and idle times a quarter apart.
    near(governor.decay_ms, 20.0, 4.0);
    assert_eq!(fit.turbo, Ok(vec![1.0, 0.8]));
    let cold = fit.moves[1].1.clone().unwrap();
    near(cold.cost_us, 40.0 * 4.096, 1.0);
    near(cold.speed, 0.5, 0.001);
    // And so does the description that they make.
    let otherwise = Description::parse("turbo-laptop-8", OTHERWISE).unwrap();
    let text = described::text(&fit, &measured, &otherwise);
    let machine = Description::parse("calibrated", &text).unwrap();
    assert_eq!(
        (machine.cpus(), machine.mips, machine.turbo.len()),
        (2, 3000, 2),
        "{text}"
    );
    near(
        f64::from(machine.migration.llc.insns),
        40.0 * 12288.0,
        5000.0,
    );
    let of_fit = value::of_fit(&fit, &measured);
    for of in value::of_description(&machine) {
        let same = of_fit
            .iter()
            .find(|v| (v.thing, &v.of) == (of.thing, &of.of))
            .unwrap();
        if let (Ok(a), Ok(b)) = (&of.value, &same.value) {
            near(*a, *b, b.abs() * 0.01 + 0.01);
        }
    }
}

#[test]
fn what_cannot_be_measured_is_said_and_not_invented() {
    let vm = printed().replace("hypervisor no", "hypervisor yes");
    let measured = Measured::parse(&vm).unwrap();
    let fit = Fit::new(&measured);
    assert!(fit
        .governor
        .as_ref()
        .unwrap_err()
        .starts_with("a virtual machine"));
    let otherwise = Description::parse("turbo-laptop-8", OTHERWISE).unwrap();
    let text = described::text(&fit, &measured, &otherwise);
    let machine = Description::parse("calibrated", &text).unwrap();
    assert_eq!(machine.governor, otherwise.governor);
    assert!(text.contains("# governor: not measured, as turbo-laptop-8 has it: a virtual machine"));
    let listed = value::list(&value::of_fit(&fit, &measured));
    for thing in ["floor", "ramp", "hold", "decay", "turbo", "migration llc"] {
        let line = listed.lines().find(|line| line.starts_with(thing)).unwrap();
        assert!(line.contains("not measured: a virtual machine"), "{line}");
    }
}

#[test]
fn a_machine_of_one_speed_is_fixed() {
    let mut text = String::from("about hypervisor no\ncpu 0 0 0 0\nstep 4 4\nchunk 15000\n");
    text += "ramp 2000:20000\ndecay 100000 20010\ndecay 800000000 20000\n";
    text += "absent turbo there is one core\nabsent core no\nabsent llc no\nabsent far no\n";
    text += "wake 5000\nsyscall 100\nswitch 1500\n";
    let measured = Measured::parse(&text).unwrap();
    let fit = Fit::new(&measured);
    assert_eq!(fit.governor, Ok(None));
    let otherwise = Description::parse("turbo-laptop-8", OTHERWISE).unwrap();
    let machine = described::text(&fit, &measured, &otherwise);
    let machine = Description::parse("calibrated", &machine).unwrap();
    assert_eq!((machine.cpus(), machine.clusters[0].opps.len()), (1, 1));
}

#[test]
fn what_is_no_measurement_is_refused() {
    for (from, to, says) in [
        (
            "turbo 1 20000",
            "turbo 1 fast",
            "is not of bench/calibrate: \"turbo 1 fast\"",
        ),
        ("switch 1500\n", "", "there is no line switch"),
        ("chunk 15000", "hello", "line 5 is not of bench/calibrate"),
    ] {
        let error = Measured::parse(&printed().replace(from, to)).unwrap_err();
        assert!(error.contains(says), "{error}");
    }
}
