// SPDX-License-Identifier: GPL-2.0-only
//! Locks that tasks wait for: by which hooks their holders are found ([`hooks`]),
//! the profile that the scheduler keeps of each ([`profile`]), the names of
//! addresses in it ([`names`]), and the table for people ([`view`]).

mod hooks;
mod names;
mod profile;
mod view;

pub use hooks::Hooks;
pub use names::Names;
pub use profile::{LockProfile, LockProfiles};
pub use view::{print, table, Choice, LocksArgs, Sort};
