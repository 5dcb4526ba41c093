//! What workers do.

use serde_json::Value;
use switchward_machine::{Micros, OpenId};

/// A worker takes work, for a time.
#[derive(Debug, Clone)]
pub struct LeaseWork {
    /// The work.
    pub item: OpenId,
    /// What the worker calls itself.
    pub worker: String,
    /// For how long, milliseconds.
    pub lease_ms: u64,
}

/// A worker is still at it.
#[derive(Debug, Clone)]
pub struct ExtendLease {
    /// The work.
    pub item: OpenId,
    /// The number of its lease.
    pub fence: u64,
    /// For how long from now, milliseconds.
    pub lease_ms: u64,
}

/// A worker is done.
#[derive(Debug, Clone)]
pub struct CompleteWork {
    /// The work.
    pub item: OpenId,
    /// The number of its lease.
    pub fence: u64,
    /// What came of it.
    pub result: Value,
    /// What it cost.
    pub cost: Micros,
    /// What it used.
    pub tokens: u64,
}

/// A worker gives up: the attempt has failed.
#[derive(Debug, Clone)]
pub struct FailWork {
    /// The work.
    pub item: OpenId,
    /// The number of its lease.
    pub fence: u64,
    /// Why, for a person.
    pub message: String,
    /// What it cost.
    pub cost: Micros,
    /// What it used.
    pub tokens: u64,
    /// Whether it may have been done all the same: the next attempt at it then keeps the name by which receivers outside
    /// recognise repeats.
    pub unknown: bool,
}

/// A worker hands work back: it is no attempt.
#[derive(Debug, Clone)]
pub struct ReleaseWork {
    /// The work.
    pub item: OpenId,
    /// The number of its lease.
    pub fence: u64,
}
