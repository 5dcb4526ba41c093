//! The transport over real sockets of this machine.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod calls;
mod contacts;
mod handshakes;
mod hostile;
mod proxy;
mod raw;
mod recovery;
mod removals;
mod streams;
mod support;
