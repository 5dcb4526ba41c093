//! How many calls and pages this process passes on at one time: as many as its memory can hold unread answers of, a part of
//! them for each tenant, however many API keys it has, and a part for callers whom no server has accepted yet.
//!
//! Servers keep the quotas of tenants. A process that passes calls and pages on has no keys of tenants: it knows which
//! credentials servers have accepted, and whose they are.

use http::{Extensions, HeaderMap};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use switchward_machine::TenantId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::client_address::ClientAddress;
use super::credentials::CredentialHash;
use crate::limits::{
    PROXIED_ADDRESS_PART, PROXIED_CALLS_MAX, PROXIED_CALLS_MIN, PROXIED_KEYS_MAX, PROXIED_PART,
    PROXIED_STREAM_WINDOW_BYTES, PROXIED_TENANT_PART, PROXIED_UNPROVEN_PART,
};
use crate::tallies::{Tallied, Tallies};

/// The permits of a process.
pub(super) struct Permits {
    calls: usize,
    all: Arc<Semaphore>,
    unproven: Arc<Semaphore>,
    addresses: Tallies<IpAddr>,
    tenants: Tallies<TenantId>,
    /// The API keys that servers have accepted, each with its tenant, [`PROXIED_KEYS_MAX`] at most.
    accepted: Mutex<HashMap<CredentialHash, TenantId>>,
}

impl Permits {
    /// As many permits as `memory` has space for, bytes.
    pub(super) fn within(memory: usize) -> Self {
        let window = usize::try_from(PROXIED_STREAM_WINDOW_BYTES).unwrap_or(usize::MAX);
        Self::new((memory / PROXIED_PART / window).clamp(PROXIED_CALLS_MIN, PROXIED_CALLS_MAX))
    }

    /// Permits for this many calls.
    pub(super) fn new(calls: usize) -> Self {
        Self {
            calls,
            all: Arc::new(Semaphore::new(calls)),
            unproven: Arc::new(Semaphore::new(calls / PROXIED_UNPROVEN_PART)),
            addresses: Tallies::default(),
            tenants: Tallies::default(),
            accepted: Mutex::default(),
        }
    }

    /// How many there are.
    pub(super) fn calls(&self) -> usize {
        self.calls
    }

    /// A permit for a request with these headers and extensions; `None` if there is none now. The accepted API keys of one
    /// tenant may have a part of the permits. All other requests have those for unproven ones, of which one client address may
    /// have a part. What comes from a proxy before this process is of no single address.
    pub(super) fn take(&self, headers: &HeaderMap, extensions: &Extensions) -> Option<Permit> {
        let one = Arc::clone(&self.all).try_acquire_owned().ok()?;
        let key = CredentialHash::of(headers);
        let mut permit = Permit { _one: one, key, of_tenant: None, unproven: None, address: None };
        if let Some(tenant) = key.and_then(|key| self.accepted.lock().get(&key).copied()) {
            permit.of_tenant = Some(self.tenants.add(tenant, 1, self.calls / PROXIED_TENANT_PART)?);
            return Some(permit);
        }
        permit.unproven = Some(Arc::clone(&self.unproven).try_acquire_owned().ok()?);
        if let Some(address) = ClientAddress::counted(extensions) {
            let most = self.calls / PROXIED_ADDRESS_PART;
            permit.address = Some(self.addresses.add(address, 1, most)?);
        }
        Some(permit)
    }

    /// A server has accepted the API key of a request: it does not count as unproven any more, but as one of its tenant, if the
    /// server has said which.
    pub(super) fn prove(&self, permit: &mut Permit, tenant: Option<TenantId>) {
        permit.unproven = None;
        permit.address = None;
        let (Some(key), Some(tenant)) = (permit.key, tenant) else { return };
        if permit.of_tenant.is_none() {
            // It was passed on already, and counts even if the tenant has its part.
            let mut of_tenant = self.tenants.begin(tenant);
            of_tenant.grow(1);
            permit.of_tenant = Some(of_tenant);
        }
        self.accept(key, tenant);
    }

    /// A server has accepted an API key of a tenant: requests with it count as those of that tenant.
    pub(super) fn accept(&self, key: CredentialHash, tenant: TenantId) {
        let mut accepted = self.accepted.lock();
        if accepted.len() >= PROXIED_KEYS_MAX
            && !accepted.contains_key(&key)
            && let Some(any) = accepted.keys().next().copied()
        {
            accepted.remove(&any);
        }
        accepted.insert(key, tenant);
    }

    /// A server has refused this credential: the next request with it is unproven.
    pub(super) fn refuse(&self, key: CredentialHash) {
        self.accepted.lock().remove(&key);
    }
}

/// A permit, until the answer has ended.
pub(super) struct Permit {
    _one: OwnedSemaphorePermit,
    /// The credential of its request.
    pub(super) key: Option<CredentialHash>,
    of_tenant: Option<Tallied<TenantId>>,
    unproven: Option<OwnedSemaphorePermit>,
    address: Option<Tallied<IpAddr>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connections::Connection;
    use http::{HeaderValue, header::AUTHORIZATION};
    use switchward_machine::TenantId;

    fn from(address: &str, connection: &Arc<Connection>) -> Extensions {
        let mut extensions = Extensions::new();
        extensions.insert(ClientAddress(address.parse().expect("an address")));
        extensions.insert(Arc::new(connection.begin()));
        extensions
    }

    fn with(credential: &str) -> HeaderMap {
        let value = HeaderValue::try_from(format!("Bearer {credential}")).expect("a header");
        HeaderMap::from_iter([(AUTHORIZATION, value)])
    }

    /// As many permits as there are for one credential.
    fn all_of(permits: &Permits, credential: &str, extensions: &Extensions) -> Vec<Permit> {
        (0..permits.calls()).map_while(|_| permits.take(&with(credential), extensions)).collect()
    }

    #[test]
    fn unproven_requests_and_one_address_have_a_part_of_the_permits() {
        let permits = Permits::new(64);
        let unproven = Arc::new(Connection::direct());
        let take = |address: &str| permits.take(&HeaderMap::new(), &from(address, &unproven));
        let of_one = all_of(&permits, "swk_wrong", &from("192.0.2.1", &unproven));
        assert_eq!(of_one.len(), 8);
        let mut of_other = all_of(&permits, "swk_other", &from("192.0.2.2", &unproven));
        assert_eq!((of_other.len(), take("192.0.2.3").is_none()), (8, true));
        permits.prove(&mut of_other[0], Some(TenantId(1)));
        assert!(take("192.0.2.3").is_some(), "the other one has an API key");
        drop((of_one, of_other));
        assert_eq!((permits.all.available_permits(), permits.unproven.available_permits()), (64, 16));
    }

    #[test]
    fn one_tenant_has_a_part_of_the_permits_with_all_its_keys_and_others_get_through() {
        let permits = Permits::new(64);
        let client = from("192.0.2.1", &Arc::new(Connection::direct()));
        let mut first = [("swk_a", 1), ("swk_b", 2)].map(|(key, tenant)| {
            let mut permit = permits.take(&with(key), &client).expect("a permit");
            permits.prove(&mut permit, Some(TenantId(tenant)));
            permit
        });
        let (one, other) = (CredentialHash::of(&with("swk_c")), CredentialHash::of(&with("swk_d")));
        permits.accept(one.expect("a credential"), TenantId(1));
        permits.accept(other.expect("a credential"), TenantId(1));
        let of_a = all_of(&permits, "swk_a", &client);
        assert_eq!(of_a.len(), 64 / PROXIED_TENANT_PART - 1, "the first one counts, too");
        for key in ["swk_a ", "swk_c", "swk_d"] {
            assert!(permits.take(&with(key), &client).is_none(), "{key} is of the same tenant");
        }
        let of_b = all_of(&permits, "swk_b", &client);
        assert_eq!(of_b.len(), 64 / PROXIED_TENANT_PART - 1);
        permits.prove(&mut first[0], Some(TenantId(1)));
        drop((first, of_a, of_b));
        assert_eq!((permits.all.available_permits(), permits.unproven.available_permits()), (64, 16));
        assert_eq!(all_of(&permits, "swk_c", &client).len(), 64 / PROXIED_TENANT_PART);
    }

    #[test]
    fn a_key_whose_tenant_no_server_says_is_proven_for_one_request() {
        let permits = Permits::new(64);
        let mut permit = permits.take(&with("swk_a"), &Extensions::new()).expect("a permit");
        permits.prove(&mut permit, None);
        assert_eq!((permits.unproven.available_permits(), permits.accepted.lock().len()), (16, 0));
    }

    #[test]
    fn a_key_on_the_connection_of_an_accepted_one_proves_itself() {
        let permits = Permits::new(64);
        let connection = Arc::new(Connection::direct());
        connection.has_key(TenantId(1)).expect("the first one");
        let client = from("192.0.2.1", &connection);
        let mut own = permits.take(&with("swk_a"), &client).expect("a permit");
        permits.prove(&mut own, Some(TenantId(1)));
        for credential in ["swk_b", "swk_c"] {
            assert_eq!(all_of(&permits, credential, &client).len(), 8, "{credential}");
        }
        permits.refuse(own.key.expect("a credential"));
        assert_eq!(all_of(&permits, "swk_a", &client).len(), 8, "it was revoked");
    }

    #[test]
    fn accepted_keys_that_are_remembered_have_a_limit() {
        let permits = Permits::new(64);
        for number in 0..=PROXIED_KEYS_MAX {
            let mut permit = permits.take(&with(&format!("swk_{number}")), &Extensions::new());
            permits.prove(permit.as_mut().expect("a permit"), Some(TenantId(1)));
        }
        assert_eq!(permits.accepted.lock().len(), PROXIED_KEYS_MAX);
    }

    #[test]
    fn a_proxy_is_not_limited_by_its_address() {
        let permits = Permits::new(64);
        let taken = all_of(&permits, "swk_a", &from("192.0.2.1", &Arc::default()));
        assert_eq!(taken.len(), 16);
    }

    #[test]
    fn unread_answers_fit_into_the_memory() {
        assert_eq!(Permits::within(0).calls(), PROXIED_CALLS_MIN);
        assert_eq!(Permits::within(1 << 30).calls(), 4_096);
        assert_eq!(Permits::within(usize::MAX).calls(), PROXIED_CALLS_MAX);
    }
}
