//! Advances of the clock that were answered, so that a repeated request is answered the same.

use std::collections::BTreeMap;
use switchward_machine::{Digest, TenantId, Time};
use tokio::sync::Mutex;

/// What an advance answered, by tenant and request id.
#[derive(Debug, Default)]
pub(crate) struct Advances(pub(super) Mutex<BTreeMap<(TenantId, String), (Digest, Time)>>);
