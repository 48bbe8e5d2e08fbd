// SPDX-License-Identifier: GPL-2.0-only
//! scx_freqlock: the scheduler's command.

mod bpf_skel;
mod child;
mod observe;
use clap::Parser;

#[derive(clap::Parser)]
enum Cli {
    Observe(observe::ObserveArgs),
}

fn main() -> anyhow::Result<()> {
    let Cli::Observe(args) = Cli::parse();
    let _ = bpf_skel::BpfSkelBuilder::default();
    std::process::exit(observe::run(&args)?)
}
