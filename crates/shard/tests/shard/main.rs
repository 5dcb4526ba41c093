//! A shard over real files: openraft's own suite, one server, three voters, replay.

#![recursion_limit = "256"]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod backing_up;
mod beginning;
mod behind;
mod busy;
mod commands;
mod contact;
mod deleted_tenants;
mod durability;
mod ensemble;
mod failing;
mod handing_over;
mod joining;
mod jumping;
mod levels;
mod limits;
mod live;
mod log_bound;
mod members;
mod notices;
mod one_server;
mod peers;
mod placing;
mod quotas;
mod raft_messages;
mod repeating;
mod replacing;
mod replay;
mod resuming;
mod retention;
mod routing;
mod runs;
mod scenarios;
mod server;
mod skewed;
mod spoiled_log;
mod stalled_disk;
mod storage_suite;
mod tenancies;
mod three_voters;
mod timers;
mod torn_state;
mod trio;
mod verifying;
mod voteless;
