//! Commands about work.

use minicbor::{Decode, Encode};
use serde_json::Value;
use switchward_machine::{Micros, OpenId};

use crate::AdmissionClass::{Ends, Neither};
use crate::size::weigh;
use crate::work::WorkFailure;
use crate::{CommandTraits, ScopeKind};

/// A command about work.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub enum WorkCommand {
    /// A worker takes work.
    #[n(0)]
    Lease(#[n(0)] LeaseWork),
    /// A worker is still at it.
    #[n(1)]
    Extend(#[n(0)] ExtendLease),
    /// A worker is done.
    #[n(2)]
    Complete(#[n(0)] CompleteWork),
    /// A worker gives up.
    #[n(3)]
    Fail(#[n(0)] FailWork),
    /// A worker hands work back.
    #[n(4)]
    Release(#[n(0)] ReleaseWork),
}

impl WorkCommand {
    /// What each kind says of itself.
    #[must_use]
    pub fn traits(&self) -> CommandTraits {
        let of_session = |admission| CommandTraits::of(ScopeKind::Session, admission);
        match self {
            Self::Lease(_) => of_session(Neither).grows(),
            Self::Complete(_) => of_session(Ends).grows(),
            Self::Extend(_) | Self::Fail(_) | Self::Release(_) => of_session(Ends),
        }
    }

    /// The approximate size of what the command carries, bytes.
    #[must_use]
    pub fn carried(&self) -> usize {
        match self {
            Self::Complete(complete) => {
                weigh(&complete.result) + complete.next.as_ref().map_or(0, String::len)
            }
            Self::Fail(fail) => fail.failure.bytes(),
            Self::Lease(_) | Self::Extend(_) | Self::Release(_) => 0,
        }
    }
}

/// A worker takes work, for a time.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct LeaseWork {
    /// The work.
    #[n(0)]
    pub item: OpenId,
    /// What the worker calls itself.
    #[n(1)]
    pub worker: String,
    /// For how long, milliseconds.
    #[n(2)]
    pub lease_ms: u64,
}

/// A worker is still at it.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct ExtendLease {
    /// The work.
    #[n(0)]
    pub item: OpenId,
    /// The number of its lease.
    #[n(1)]
    pub fence: u64,
    /// For how long from now, milliseconds.
    #[n(2)]
    pub lease_ms: u64,
}

/// A worker is done.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct CompleteWork {
    /// The work.
    #[n(0)]
    pub item: OpenId,
    /// The number of its lease.
    #[n(1)]
    pub fence: u64,
    /// What came of it.
    #[cbor(n(2), with = "crate::wire::value")]
    pub result: Value,
    /// What it cost, millionths of a US dollar.
    #[n(3)]
    pub cost: Micros,
    /// What it used.
    #[n(4)]
    pub tokens: u64,
    /// The exit that the worker names beside the result; the same as in it, if both name one.
    #[n(5)]
    pub next: Option<String>,
}

/// A worker gives up: the attempt has failed.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct FailWork {
    /// The work.
    #[n(0)]
    pub item: OpenId,
    /// The number of its lease.
    #[n(1)]
    pub fence: u64,
    /// Why; at most 16 KiB.
    #[n(2)]
    pub failure: WorkFailure,
    /// What it cost, millionths of a US dollar.
    #[n(3)]
    pub cost: Micros,
    /// What it used.
    #[n(4)]
    pub tokens: u64,
    /// Whether it may have been done all the same: the next attempt at it then keeps the name by which receivers outside
    /// recognise repeats.
    #[n(5)]
    pub unknown: bool,
}

/// A worker hands work back, which does not count as an attempt.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct ReleaseWork {
    /// The work.
    #[n(0)]
    pub item: OpenId,
    /// The number of its lease.
    #[n(1)]
    pub fence: u64,
}
