//! A shard over real files: openraft's own suite, one server, three voters, replay.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod chance;
mod commands;
mod limits;
mod live;
mod network;
mod one_server;
mod server;
mod storage_suite;
mod three_voters;
mod trio;
