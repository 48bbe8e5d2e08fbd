// SPDX-License-Identifier: GPL-2.0-only
//! All that knows the BPF object: [`load`] loads and attaches it, [`serve`] goes on while
//! it is, [`answers`] reads its figures. [`rules`] writes contexts, [`trials`] modes,
//! [`neighbours`] ends periods for the page of CPUs, [`speeds_writer`] writes that of speeds, [`rings`] takes in what it
//! reports of tasks, [`hotplug`] stores the CPUs for it, [`displaced`] chooses
//! what the kernel needs, and [`tickless`] tells it of CPUs without ticks. [`user_policies`] has
//! the kernel verify policies by users, and [`policy_requests`] puts them in and takes them out.

mod answers;
mod displaced;
mod hotplug;
pub mod load;
mod neighbours;
mod policy_requests;
mod rings;
mod rules;
pub mod serve;
mod skel;
mod speeds_writer;
mod starved;
mod tickless;
mod trials;
mod user_policies;
