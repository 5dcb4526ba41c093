//! A shard over real files: openraft's own suite, one server, three voters, replay.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod commands;
#[path = "../../../engine/tests/replay/definitions.rs"]
mod definitions;
#[path = "../../../engine/tests/replay/commands.rs"]
mod generator;
mod jumping;
mod limits;
mod live;
mod log_bound;
mod network;
mod one_server;
mod quotas;
mod replay;
#[path = "../../../engine/tests/replay/rng.rs"]
mod rng;
#[path = "../../../engine/tests/replay/rows.rs"]
#[expect(dead_code, reason = "the tests of the engine use more of its functions")]
mod rows;
mod runs;
mod scenarios;
mod server;
mod storage_suite;
mod three_voters;
mod timers;
mod torn_state;
mod trio;
