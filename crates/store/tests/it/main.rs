//! The store as its users see it, on real files.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod backup;
mod crash;
mod damage;
mod data_dir;
mod durability;
mod log;
mod log_model;
mod model;
mod scrub;
mod snapshot;
mod state;
mod support;
