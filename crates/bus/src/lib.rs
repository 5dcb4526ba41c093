//! The bus: streams of envelopes that workers share. It is never the record: the owner of the record publishes again what is
//! lost here.
//!
//! - [`Bus`] is the trait: publish, take, acknowledge; at least once, in order of publishing as long as nobody fails. It
//!   also counts ids in counters that all its ends share.
//! - [`Memory`] is the bus of a single process.
//! - [`Redis`] is the bus of several, over Redis streams.
//!
//! The tests have one suite for every implementation, `conformance`.
//!
//! It must never know what an envelope holds, who reads it, or what becomes of it.
//!
//! Chosen: the trait says what Redis streams can keep (entries with ids, one consumer group a stream, claims after an
//! idle time), so that an implementation over them changes nothing here. Rejected: exactly once, which no transport can
//! promise; receivers get a stable id instead.

mod bus;
#[cfg(test)]
mod conformance;
mod error;
pub mod limits;
mod memory;
mod redis;

pub use crate::redis::{OpenError, Probe, Redis, RedisConfig, probe};
pub use bus::{Bus, Count, Counter, Counting, Delivery, Envelope, Published, Receipt, Settings, Stream};
pub use error::BusError;
pub use memory::Memory;
