// SPDX-License-Identifier: GPL-2.0-only
//! Knobs and contexts while the scheduler runs: what may be asked of it over a UNIX
//! socket.
//!
//! `dump_socket` is another socket, that of a flight recorder (`record --dump`).
//! `protocol` is what is asked and answered, `state` decides what a request does,
//! `server` listens, and [`ask`] is the other side, for the commands.

mod ask;
pub mod dump_socket;
#[cfg(test)]
mod fuzz;
mod protocol;
mod server;
mod state;

pub use ask::{ask, unexpected};
pub use protocol::{Answer, Change, Error, Peer, Request, Running, SOCKET};
pub use server::{Asked, Server};
pub use state::Settings;
