//! Several servers in one process, for tests: the network between them, and a cluster of three over it.
//!
//! Only tests use it, so it may panic if it cannot go on.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod network;
mod servers;

pub use network::Network;
pub use servers::{Server, ServerOptions, open, open_members};
