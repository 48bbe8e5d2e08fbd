// SPDX-License-Identifier: GPL-2.0-only
//! Where the machines are, and what scripts/machine has prepared for them.

use std::path::{Path, PathBuf};

use super::error::Error;
use freqlock::lab_args::Arch;

/// Where scripts/machine leaves what it has prepared.
pub fn default_kit(machines: &Path, arch: Arch) -> PathBuf {
    machines
        .with_file_name("target")
        .join("machine")
        .join(arch.name())
        .join("kit.toml")
}

/// The folder with the machines' descriptions.
pub fn machines_dir(wanted: Option<&Path>) -> Result<PathBuf, Error> {
    if let Some(dir) = wanted {
        return Ok(dir.into());
    }
    // Not there only without /proc; then only the current folder is looked at.
    let program = std::env::current_exe().unwrap_or_default();
    let here = std::env::current_dir().unwrap_or_default();
    std::iter::once(here.as_path())
        .chain(program.ancestors().skip(1))
        .map(|dir| dir.join("machine"))
        .find(|dir| dir.join("guest/init").is_file())
        .ok_or_else(|| {
            Error::Usage(
                "no folder machine/ here or above the program: name it with --machines".into(),
            )
        })
}

/// The same with another kernel than the usual one.
pub fn prepared_kit(machines: &Path, arch: Arch, kernel: Option<&str>) -> PathBuf {
    let usual = default_kit(machines, arch);
    match kernel {
        Some(kernel) => usual.with_file_name(format!("kit-{kernel}.toml")),
        None => usual,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kit_lies_in_target_beside_the_machines() {
        assert_eq!(
            default_kit(Path::new("/project/machine"), Arch::X86_64),
            Path::new("/project/target/machine/x86_64/kit.toml")
        );
        let of = |kernel| prepared_kit(Path::new("/project/machine"), Arch::X86_64, kernel);
        assert_eq!(
            of(Some("newest")),
            Path::new("/project/target/machine/x86_64/kit-newest.toml")
        );
        assert_eq!(
            of(None),
            default_kit(Path::new("/project/machine"), Arch::X86_64)
        );
    }
}
