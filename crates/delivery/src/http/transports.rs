//! Connections that are kept for a moment, so that many requests to one place need not connect anew for each.
//!
//! What is kept is kept for one tenant, one scheme, host and port, and the very addresses that were resolved and checked for
//! the request at hand: where a name leads elsewhere by now, nothing that was kept is used.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Instant;

use parking_lot::Mutex;
use reqwest::Url;

use crate::Failed;
use crate::limits::TRANSPORTS_MAX;

/// For whom, where to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct To {
    /// The tenant; nothing for what the operator set up.
    tenant: Option<u32>,
    /// Scheme, host and port.
    origin: String,
    /// In order, so that a name server that turns them makes no difference.
    addresses: Vec<SocketAddr>,
}

impl To {
    pub(super) fn new(tenant: Option<u32>, url: &Url, addresses: &[SocketAddr]) -> Self {
        let mut addresses = addresses.to_vec();
        addresses.sort_unstable();
        Self { tenant, origin: url.origin().ascii_serialization(), addresses }
    }
}

/// The transports of late, and when each was used last.
#[derive(Default)]
pub(super) struct Transports(Mutex<BTreeMap<To, (reqwest::Client, Instant)>>);

impl Transports {
    /// The one for this, or a new one, in the place of what was unused for longest where there are too many.
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
