//! Advances of the clock that have a request id, so that a repeated request is answered the same, or goes on.

use std::collections::BTreeMap;
use switchward_machine::{Digest, TenantId, Time};
use tokio::sync::Mutex;

/// The advances that have begun, by tenant and request id.
#[derive(Debug, Default)]
pub(crate) struct Advances(pub(super) Mutex<BTreeMap<(TenantId, String), Advance>>);

/// An advance that has begun.
#[derive(Debug, Clone, Copy)]
pub(super) struct Advance {
    /// The digest of its request.
    pub(super) body: Digest,
    /// The clock before its first move.
    pub(super) begun: Time,
    /// The time to which it moves the clock.
    pub(super) target: Time,
    /// What it has answered; `None` if it stopped before its end.
    pub(super) answer: Option<Time>,
}
