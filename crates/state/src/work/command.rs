//! Commands about work.

use serde_json::Value;
use switchward_machine::{Micros, OpenId};

use crate::AdmissionClass;
use crate::size::weigh;

/// A command about work.
#[derive(Debug, Clone)]
pub enum WorkCommand {
    /// A worker takes work.
    Lease(LeaseWork),
    /// A worker is still at it.
    Extend(ExtendLease),
    /// A worker is done.
    Complete(CompleteWork),
    /// A worker gives up.
    Fail(FailWork),
    /// A worker hands work back.
    Release(ReleaseWork),
}

impl WorkCommand {
    /// What the command does to the load of a shard.
    #[must_use]
    pub fn admission(&self) -> AdmissionClass {
        match self {
            Self::Extend(_) | Self::Complete(_) | Self::Fail(_) | Self::Release(_) => AdmissionClass::Ends,
            Self::Lease(_) => AdmissionClass::Neither,
        }
    }

    /// Returns true if the command makes the stored data grow.
    #[must_use]
    pub fn grows(&self) -> bool {
        match self {
            Self::Lease(_) | Self::Complete(_) => true,
            Self::Extend(_) | Self::Fail(_) | Self::Release(_) => false,
        }
    }

    /// The approximate size of what the command carries, bytes.
    #[must_use]
    pub fn carried(&self) -> usize {
        match self {
            Self::Complete(complete) => weigh(&complete.result),
            Self::Fail(fail) => fail.message.len(),
            Self::Lease(_) | Self::Extend(_) | Self::Release(_) => 0,
        }
    }
}

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
