//! A shard over real files: openraft's own suite, one server, three voters, replay.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod commands;
mod jumping;
mod limits;
mod live;
mod log_bound;
mod network;
mod one_server;
mod quotas;
mod replay;
mod runs;
mod scenarios;
mod server;
mod storage_suite;
mod three_voters;
mod timers;
mod torn_state;
mod trio;
