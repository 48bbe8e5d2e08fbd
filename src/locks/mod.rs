// SPDX-License-Identifier: GPL-2.0-only
//! Locks that tasks wait for: by which hooks their holders are found (`hooks`),
//! the profile that the scheduler keeps of each (`profile`), what follows from it for how long
//! to spin (`spin_limit`), and the names of addresses in it (`names`).

mod hooks;
mod names;
mod profile;
mod spin_limit;

pub use hooks::Hooks;
pub(crate) use names::Names;
pub use profile::{LockProfile, LockProfiles};
pub use spin_limit::SpinLimit;
