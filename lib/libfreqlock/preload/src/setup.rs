// SPDX-License-Identifier: MIT
//! What a program is run with on libfreqlock's locks: what the programs here share.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

const LIBRARY: &str = "libfreqlock_preload.so";
/// The variable with the libraries that are loaded before a program's own.
pub const PRELOAD: &str = "LD_PRELOAD";

/// What is started, and with which library.
#[derive(clap::Args)]
pub struct Started {
    /// The library to load. Default: libfreqlock_preload.so beside this program or in ../lib/freqlock
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
    /// Prints the manual page
    #[arg(long, hide = true, exclusive = true)]
    pub manual: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "PROGRAM")]
    pub command: Vec<OsString>,
}

impl Started {
    /// LD_PRELOAD for it.
    pub fn preload(&self) -> Result<OsString, String> {
        preload(&find_library(self.library.as_deref())?)
    }
}

/// In ns.
pub fn duration(text: &str) -> Result<u64, String> {
    let units = [
        ("ns", 1),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
    ];
    let (number, factor) = units
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)))
        .ok_or("a time is a number with ns, us, ms or s, as in 500us")?;
    number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(factor))
        .filter(|&ns| ns > 0)
        .ok_or_else(|| "a time is a whole number, more than 0, with its unit".to_owned())
}

/// Where the library is: in the place named, beside the program, or where meson installs it.
fn find_library(named: Option<&Path>) -> Result<PathBuf, String> {
    if let Some(named) = named {
        return named
            .canonicalize()
            .map_err(|error| format!("{}: {error}", named.display()));
    }
    let me = std::env::current_exe().map_err(|error| error.to_string())?;
    let folder = me.parent().unwrap_or(Path::new("/"));
    let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
    let lib = folder.join("../lib");
    let places = [
        folder.to_owned(),
        lib.join("freqlock"),
        lib.join(triplet).join("freqlock"),
        folder.join("../lib64/freqlock"),
    ];
    places
        .iter()
        .find_map(|place| place.join(LIBRARY).canonicalize().ok())
        .ok_or_else(|| {
            format!(
                "{LIBRARY} is neither beside {} nor in ../lib/freqlock; name it with --library",
                me.display()
            )
        })
}

/// LD_PRELOAD with the library before what is there already.
fn preload(library: &Path) -> Result<OsString, String> {
    let mut value = library.as_os_str().to_owned();
    // The dynamic linker splits there, and no character can hide it.
    if value.to_string_lossy().contains([' ', ':']) {
        return Err(format!(
            "{}: LD_PRELOAD takes no path with a space or a colon",
            library.display()
        ));
    }
    if let Some(before) = std::env::var_os(PRELOAD).filter(|before| !before.is_empty()) {
        value.push(":");
        value.push(before);
    }
    Ok(value)
}

/// As a shell's, of a program that could not be started: 127 where there is none, 126 where it cannot be executed.
pub fn status(error: &std::io::Error) -> u8 {
    if error.kind() == std::io::ErrorKind::NotFound {
        127
    } else {
        126
    }
}
