//! How many calls and pages this process passes on at one time: as many as its memory can hold unread answers of, and a part
//! of them for callers whom no server has accepted yet.

use http::Extensions;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::client_address::ClientAddress;
use crate::connections::{Open, of_network};
use crate::limits::{
    PROXIED_ADDRESS_PART, PROXIED_CALLS_MAX, PROXIED_CALLS_MIN, PROXIED_PART, PROXIED_STREAM_WINDOW_BYTES,
    PROXIED_UNPROVEN_PART,
};
use crate::tallies::{Tallied, Tallies};

/// The permits of a process.
pub(super) struct Permits {
    calls: usize,
    all: Arc<Semaphore>,
    unproven: Arc<Semaphore>,
    addresses: Tallies<IpAddr>,
}

impl Permits {
    /// As many permits as `memory` has space for, bytes.
    pub(super) fn within(memory: usize) -> Self {
        let window = usize::try_from(PROXIED_STREAM_WINDOW_BYTES).unwrap_or(usize::MAX);
        Self::new((memory / PROXIED_PART / window).clamp(PROXIED_CALLS_MIN, PROXIED_CALLS_MAX))
    }

    /// Permits for this many calls.
    pub(super) fn new(calls: usize) -> Self {
        let unproven = Arc::new(Semaphore::new(calls / PROXIED_UNPROVEN_PART));
        Self { calls, all: Arc::new(Semaphore::new(calls)), unproven, addresses: Tallies::default() }
    }

    /// How many there are.
    pub(super) fn calls(&self) -> usize {
        self.calls
    }

    /// A permit for a request with these extensions; `None` if there is none now. A request over a connection without an
    /// accepted API key has one of those for unproven requests, of which one client address may have a part. What comes from
    /// a proxy before this process is of no single address.
    pub(super) fn take(&self, extensions: &Extensions) -> Option<Permit> {
        let open = extensions.get::<Arc<Open>>();
        let mut permit =
            Permit { _one: Arc::clone(&self.all).try_acquire_owned().ok()?, unproven: None, address: None };
        if open.is_some_and(|open| open.connection.is_keyed()) {
            return Some(permit);
        }
        permit.unproven = Some(Arc::clone(&self.unproven).try_acquire_owned().ok()?);
        let direct = open.is_none_or(|open| !open.connection.is_of_proxy());
        if let Some(ClientAddress(address)) = extensions.get().filter(|_| direct) {
            let most = self.calls / PROXIED_ADDRESS_PART;
            permit.address = Some(self.addresses.add(of_network(*address), 1, most)?);
        }
        Some(permit)
    }
}

/// A permit, until the answer has ended.
pub(super) struct Permit {
    _one: OwnedSemaphorePermit,
    unproven: Option<OwnedSemaphorePermit>,
    address: Option<Tallied<IpAddr>>,
}

impl Permit {
    /// A server has accepted the API key of the request: it does not count as unproven any more.
    pub(super) fn prove(&mut self) {
        self.unproven = None;
        self.address = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connections::Connection;

    fn from(address: &str, connection: &Arc<Connection>) -> Extensions {
        let mut extensions = Extensions::new();
        extensions.insert(ClientAddress(address.parse().expect("an address")));
        extensions.insert(Arc::new(connection.begin()));
        extensions
    }

    #[test]
    fn unproven_requests_and_one_address_have_a_part_of_the_permits() {
        let permits = Permits::new(64);
        let unproven = Arc::new(Connection::direct());
        let take = |address: &str| permits.take(&from(address, &unproven));
        let of_one: Vec<Permit> = (0..64).map_while(|_| take("192.0.2.1")).collect();
        assert_eq!(of_one.len(), 8);
        let mut of_other: Vec<Permit> = (0..64).map_while(|_| take("192.0.2.2")).collect();
        assert_eq!((of_other.len(), take("192.0.2.3").is_none()), (8, true));
        of_other[0].prove();
        assert!(take("192.0.2.3").is_some(), "the other one has an API key");
        let keyed = Arc::new(Connection::direct());
        keyed.has_foreign_key();
        let rest: Vec<Permit> = (0..64).map_while(|_| permits.take(&from("192.0.2.1", &keyed))).collect();
        assert_eq!(rest.len(), 64 - 16);
        drop((of_one, of_other, rest));
        assert_eq!((permits.all.available_permits(), permits.unproven.available_permits()), (64, 16));
    }

    #[test]
    fn a_proxy_is_not_limited_by_its_address() {
        let permits = Permits::new(64);
        let of_proxy = Arc::<Connection>::default();
        let taken: Vec<Permit> = (0..64).map_while(|_| permits.take(&from("192.0.2.1", &of_proxy))).collect();
        assert_eq!(taken.len(), 16);
    }

    #[test]
    fn unread_answers_fit_into_the_memory() {
        assert_eq!(Permits::within(0).calls(), PROXIED_CALLS_MIN);
        assert_eq!(Permits::within(1 << 30).calls(), 4_096);
        assert_eq!(Permits::within(usize::MAX).calls(), PROXIED_CALLS_MAX);
    }
}
