//! A deterministic simulation of several servers: real groups with real Raft and the real loops of shards, on one thread,
//! under faults that are drawn from a seed. `tests/README.md` says how it is used, and what is deterministic.

#![recursion_limit = "256"]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod callers;
mod checks;
mod clocks;
mod commands;
mod disk;
mod faults;
mod members;
mod network;
mod plan;
mod planted;
mod process;
mod records;
mod seeds;
mod server;
mod simulation;
mod streams;
mod succession;
mod timeline;
mod workload;
