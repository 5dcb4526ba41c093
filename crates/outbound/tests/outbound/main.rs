//! The delivery role on several servers that share one bus.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod apart;
mod leaders;
mod leases;
mod network;
mod servers;
