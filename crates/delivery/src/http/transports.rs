//! Pools connections for a moment, so that many requests to one destination need not connect each time.
//!
//! A pooled connection belongs to one tenant, one scheme, host and port, and exactly the addresses that were resolved and
//! checked for the request: if a name has other addresses by now, no pooled connection is used.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Instant;

use parking_lot::Mutex;
use reqwest::Url;

use crate::Failed;
use crate::limits::TRANSPORTS_MAX;

/// The key of a pool: the tenant and the destination.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct To {
    /// `None` for an endpoint that the operator set up.
    tenant: Option<u32>,
    /// Scheme, host and port.
    origin: String,
    /// Sorted, so that a name server that rotates them makes no difference.
    addresses: Vec<SocketAddr>,
}

impl To {
    pub(super) fn new(tenant: Option<u32>, url: &Url, addresses: &[SocketAddr]) -> Self {
        let mut addresses = addresses.to_vec();
        addresses.sort_unstable();
        Self { tenant, origin: url.origin().ascii_serialization(), addresses }
    }
}

/// The recent transports, and when each was last used.
#[derive(Default)]
pub(super) struct Transports(Mutex<BTreeMap<To, (reqwest::Client, Instant)>>);

impl Transports {
    /// Returns the transport of this key, or a new one, which replaces the least recently used if there are too many.
    pub(super) fn get(
        &self,
        to: To,
        make: impl FnOnce() -> Result<reqwest::Client, Failed>,
    ) -> Result<reqwest::Client, Failed> {
        let now = Instant::now();
        if let Some((found, used)) = self.0.lock().get_mut(&to) {
            *used = now;
            return Ok(found.clone());
        }
        let made = make()?;
        let mut kept = self.0.lock();
        if kept.len() >= TRANSPORTS_MAX {
            let oldest = kept.iter().min_by_key(|(_, (_, used))| *used).map(|(to, _)| to.clone());
            oldest.and_then(|oldest| kept.remove(&oldest));
        }
        kept.insert(to, (made.clone(), now));
        Ok(made)
    }
}
