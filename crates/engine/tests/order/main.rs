//! A deterministic simulation of the engine under an order of entries: several shards with several replicas each, whose
//! leaders decide and whose followers apply what was decided, while messages between callers, ledgers, outboxes and timers
//! are lost, repeated and reordered. One thread, no clock, no Raft: `tests/README.md` says what is simulated and checked.

#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test looks at what it is about, and stops where it cannot go on"
)]

mod callers;
mod checks;
mod clocks;
mod commands;
mod deliveries;
mod effects;
mod faults;
mod ledger_calls;
mod ledgers;
mod message;
mod oracle;
mod phases;
mod plan;
mod planted;
mod relay;
mod seeds;
mod shard;
mod simulation;
mod timers;
