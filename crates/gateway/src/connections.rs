//! The open connections, and which of them is closed if there are too many: first those without a credential, the one that
//! has been silent longest first, and then those without an open request. So opening many connections locks nobody out.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{
    Arc, OnceLock, Weak,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};
use std::time::Duration;
use switchward_machine::TenantId;
use tokio::{sync::Notify, time::Instant};

use crate::admission::LastKey;
use crate::error::{Reason, Refusal};
use crate::limits::{
    CONNECTIONS_MAX, CONNECTIONS_OF_PEER_MAX, CONNECTIONS_OF_TENANT_MAX, FIRST_REQUEST_MS_MAX, IDLE_MS_MAX,
    IPV6_PEER_BITS,
};
use crate::open_calls::OpenCall;

/// How many connections there may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// At one time.
    pub all: usize,
    /// Of one address at one time; of IPv6, of one network of 64 bits.
    pub of_peer: usize,
    /// Of one tenant at one time: those whose first valid API key is one of its keys.
    pub of_tenant: usize,
    /// The addresses of proxies, which bring the connections of many: they have no limit of their own, and what comes over
    /// their connections does not count as connections of a tenant.
    pub proxies: Vec<IpAddr>,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            all: CONNECTIONS_MAX,
            of_peer: CONNECTIONS_OF_PEER_MAX,
            of_tenant: CONNECTIONS_OF_TENANT_MAX,
            proxies: Vec::new(),
        }
    }
}

/// An accepted connection and its use, by which the table chooses one to close.
#[derive(Debug)]
pub(crate) struct Connection {
    began: Instant,
    /// The table of all connections; empty in tests that need no others.
    among: Weak<Mutex<Table>>,
    id: u64,
    /// How many connections its tenant may have; `None` for a proxy's connection.
    of_tenant: Option<usize>,
    /// Whose API key came over it first.
    tenant: OnceLock<TenantId>,
    /// The API key that came over it last.
    pub(crate) last_key: LastKey,
    /// Requests that are being read or answered.
    open: AtomicUsize,
    /// Requests that came.
    requests: AtomicUsize,
    /// When the last request began or ended, milliseconds after the beginning.
    last_ms: AtomicU64,
    /// Bytes of bodies that are being read or answered.
    bytes: AtomicUsize,
    /// Notified when it is to be closed in favour of another connection.
    close: Notify,
}

impl Default for Connection {
    fn default() -> Self {
        Self {
            began: Instant::now(),
            among: Weak::new(),
            id: 0,
            of_tenant: None,
            tenant: OnceLock::new(),
            last_key: LastKey::default(),
            open: AtomicUsize::default(),
            requests: AtomicUsize::default(),
            last_ms: AtomicU64::default(),
            bytes: AtomicUsize::default(),
            close: Notify::default(),
        }
    }
}

/// A request that is being read or answered.
pub(crate) struct Open {
    pub(crate) connection: Arc<Connection>,
    /// What it counts as of its tenant's calls.
    call: OnceLock<OpenCall>,
}

impl Open {
    /// It is a call of a tenant, until it is answered; the first one counts.
    pub(crate) fn is_call(&self, call: impl FnOnce() -> Result<OpenCall, Refusal>) -> Result<(), Refusal> {
        if self.call.get().is_none() {
            let _second = self.call.set(call()?);
        }
        Ok(())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.connection.touch();
        self.connection.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Connection {
    /// A request has come.
    pub(crate) fn begin(self: &Arc<Self>) -> Open {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.open.fetch_add(1, Ordering::Relaxed);
        self.touch();
        Open { connection: Arc::clone(self), call: OnceLock::new() }
    }

    /// Returns true if a request is being read or answered.
    pub(crate) fn has_open(&self) -> bool {
        self.open.load(Ordering::Relaxed) > 0
    }

    /// Records a call with a valid API key of this tenant. If the tenant already has its maximum of connections, closes one
    /// of them that has no open request.
    ///
    /// # Errors
    /// QUOTA_EXCEEDED if all of them have one.
    pub(crate) fn has_key(&self, tenant: TenantId) -> Result<(), Refusal> {
        if self.tenant.get().is_some() {
            return Ok(());
        }
        let (Some(most), Some(among)) = (self.of_tenant, self.among.upgrade()) else {
            let _second = self.tenant.set(tenant);
            return Ok(());
        };
        among.lock().give(self.id, tenant, most).ok_or_else(|| too_many(most))
    }

    /// One of a client, which counts for a tenant.
    #[cfg(test)]
    pub(crate) fn direct() -> Self {
        Self { of_tenant: Some(1), ..Self::default() }
    }

    /// Returns true if it is a proxy's, which brings the requests of many.
    pub(crate) fn is_of_proxy(&self) -> bool {
        self.of_tenant.is_none()
    }

    /// The tenant whose valid API key came over it first; `None` if none came.
    pub(crate) fn keyed_by(&self) -> Option<TenantId> {
        self.tenant.get().copied()
    }

    /// Counts bytes of bodies; returns how many there are.
    pub(crate) fn add_bytes(&self, bytes: usize) -> usize {
        self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes
    }

    pub(crate) fn take_bytes(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn touch(&self) {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_ms.store(now, Ordering::Relaxed);
    }

    /// When something last came or was answered.
    fn last(&self) -> Instant {
        self.began + Duration::from_millis(self.last_ms.load(Ordering::Relaxed))
    }

    /// Waits until it is to be closed: it was evicted, its first request did not come in time, or it was idle too long.
    pub(crate) async fn is_overdue(&self) {
        tokio::select! {
            () = self.close.notified() => {}
            () = self.silent() => {}
        }
    }

    async fn silent(&self) {
        loop {
            let until = if self.requests.load(Ordering::Relaxed) == 0 {
                self.began + Duration::from_millis(FIRST_REQUEST_MS_MAX)
            } else {
                self.last() + Duration::from_millis(IDLE_MS_MAX)
            };
            let now = Instant::now();
            if until > now {
                tokio::time::sleep(until - now).await;
            } else if self.open.load(Ordering::Relaxed) == 0 {
                return;
            } else {
                tokio::time::sleep(Duration::from_millis(IDLE_MS_MAX)).await;
            }
        }
    }
}

/// The open connections. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Connections {
    limits: Arc<ConnectionLimits>,
    table: Arc<Mutex<Table>>,
}

#[derive(Default)]
struct Table {
    next: u64,
    open: HashMap<u64, (IpAddr, Arc<Connection>)>,
    of_peer: HashMap<IpAddr, usize>,
    of_tenant: HashMap<TenantId, usize>,
}

/// Permission to hold one connection open; dropping it gives the permit back.
pub(crate) struct ConnectionPermit {
    connections: Connections,
    id: u64,
    pub(crate) connection: Arc<Connection>,
    /// The address of its other end.
    pub(crate) address: IpAddr,
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.connections.table.lock().remove(self.id);
    }
}

impl Connections {
    pub(crate) fn new(limits: ConnectionLimits) -> Self {
        Self { limits: Arc::new(limits), table: Arc::default() }
    }

    /// Admits a connection of this address. If a limit is reached, evicts another connection; returns `None` if none can be
    /// evicted.
    pub(crate) fn admit(&self, peer: IpAddr) -> Option<ConnectionPermit> {
        let proxy = self.limits.proxies.iter().any(|known| known.to_canonical() == peer.to_canonical());
        let address = peer;
        let peer = of_network(peer);
        let mut table = self.table.lock();
        let held = table.of_peer.get(&peer).copied().unwrap_or_default();
        if held >= self.limits.of_peer && !proxy {
            table.evict(|of, _| *of == peer)?;
        }
        if table.open.len() >= self.limits.all {
            table.evict(|_, _| true)?;
        }
        let id = table.next;
        table.next += 1;
        let (among, of_tenant) = (Arc::downgrade(&self.table), (!proxy).then_some(self.limits.of_tenant));
        let connection = Arc::new(Connection { among, id, of_tenant, ..Connection::default() });
        table.open.insert(id, (peer, Arc::clone(&connection)));
        *table.of_peer.entry(peer).or_default() += 1;
        Some(ConnectionPermit { connections: self.clone(), id, connection, address })
    }

    /// How many are open.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.table.lock().open.len()
    }
}

impl Table {
    /// Closes one of the connections that `may` selects. Order: those without a credential, those without an open request,
    /// the one that has been silent longest. One with both a credential and an open request is never closed.
    fn evict(&mut self, may: impl Fn(&IpAddr, &Connection) -> bool) -> Option<()> {
        let of = self.open.iter().filter(|(_, (peer, connection))| may(peer, connection));
        let ranked = of.map(|(id, (_, connection))| {
            let keyed = connection.tenant.get().is_some();
            let busy = connection.open.load(Ordering::Relaxed) > 0;
            ((keyed, busy, connection.last()), *id)
        });
        let (_, id) = ranked.filter(|((keyed, busy, _), _)| !(*keyed && *busy)).min()?;
        let (_, connection) = self.open.get(&id)?;
        connection.close.notify_one();
        self.remove(id);
        Some(())
    }

    /// Counts a connection as one of the tenant's, which may have `most`; `None` if it has as many and none can be evicted.
    /// A connection that was closed, or that counts for a tenant already, stays as it is.
    fn give(&mut self, id: u64, tenant: TenantId, most: usize) -> Option<()> {
        let connection = match self.open.get(&id) {
            Some((_, connection)) if connection.tenant.get().is_none() => Arc::clone(connection),
            _ => return Some(()),
        };
        if self.of_tenant.get(&tenant).is_some_and(|held| *held >= most) {
            self.evict(|_, connection| connection.tenant.get() == Some(&tenant))?;
        }
        *self.of_tenant.entry(tenant).or_default() += 1;
        let _second = connection.tenant.set(tenant);
        Some(())
    }

    fn remove(&mut self, id: u64) {
        let Some((peer, connection)) = self.open.remove(&id) else { return };
        one_less(&mut self.of_peer, &peer);
        if let Some(tenant) = connection.tenant.get().filter(|_| connection.of_tenant.is_some()) {
            one_less(&mut self.of_tenant, tenant);
        }
    }
}

fn one_less<K: Eq + Hash>(counts: &mut HashMap<K, usize>, key: &K) {
    if let Some(held) = counts.get_mut(key) {
        *held -= 1;
        if *held == 0 {
            counts.remove(key);
        }
    }
}

fn too_many(most: usize) -> Refusal {
    let message = format!(
        "the tenant has {most} connections with open calls, which is the limit; send several calls over one connection"
    );
    Refusal::new(Reason::QuotaExceeded, message.clone()).quota("connections", message)
}

/// The address that connections are counted by: of IPv6 a whole network, which one host has to itself.
pub(crate) fn of_network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) >> (128 - IPV6_PEER_BITS) << (128 - IPV6_PEER_BITS);
            IpAddr::V6(Ipv6Addr::from(network))
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(all: usize, of_peer: usize) -> Connections {
        let proxies = vec!["192.0.2.9".parse().expect("an address")];
        Connections::new(ConnectionLimits { all, of_peer, of_tenant: 2, proxies })
    }

    fn from(connections: &Connections, last: u8) -> Option<ConnectionPermit> {
        connections.admit(IpAddr::from([192, 0, 2, last]))
    }

    #[tokio::test]
    async fn the_one_that_is_silent_longest_is_closed_and_one_with_a_credential_is_not() {
        let connections = limited(3, 10);
        let [first, second, third] =
            [1, 2, 3].map(|peer| from(&connections, peer).expect("the limit is not reached"));
        first.connection.has_key(TenantId(1)).expect("the tenant is below its limit");
        // A connection that was active recently is not silent.
        second.connection.last_ms.store(60_000, Ordering::Relaxed);
        let fourth = from(&connections, 4).expect("a silent one is closed");
        third.connection.is_overdue().await;
        let fifth = from(&connections, 5).expect("a silent one is closed");
        tokio::select! {
            () = second.connection.is_overdue() => {}
            () = fourth.connection.is_overdue() => {}
        }
        assert_eq!(connections.len(), 3);
        // Those with a credential are closed last, and never while they have an open request.
        let held = [&first, &second, &third, &fourth, &fifth].map(|permit| {
            let tenant = TenantId(u32::try_from(permit.id).expect("there are few"));
            permit.connection.has_key(tenant).expect("the tenant is below its limit");
            permit.connection.begin()
        });
        assert!(from(&connections, 6).is_none(), "all other connections have open requests");
        drop(held);
        assert!(from(&connections, 6).is_some(), "no connection has an open request");
        drop((first, second, third, fourth, fifth));
        assert_eq!(connections.len(), 0);
    }

    /// Waits until a connection is to be closed. Returns how long that took, seconds.
    async fn closed(permit: &ConnectionPermit) -> u64 {
        let began = Instant::now();
        permit.connection.is_overdue().await;
        began.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn one_is_closed_when_its_first_request_or_the_next_one_does_not_come() {
        let connections = limited(9, 9);
        let [silent, idle, busy] =
            [1, 2, 3].map(|peer| from(&connections, peer).expect("the limit is not reached"));
        drop(idle.connection.begin());
        let open = busy.connection.begin();
        assert_eq!(closed(&silent).await, FIRST_REQUEST_MS_MAX / 1_000);
        let idle_s = IDLE_MS_MAX / 1_000;
        assert_eq!(closed(&idle).await, idle_s - FIRST_REQUEST_MS_MAX / 1_000);
        let long = Duration::from_millis(10 * IDLE_MS_MAX);
        assert!(
            tokio::time::timeout(long, closed(&busy)).await.is_err(),
            "the connection has an open request"
        );
        drop(open);
        assert_eq!(closed(&busy).await, idle_s);
    }

    #[tokio::test]
    async fn a_tenant_has_a_part_of_them_from_wherever_they_come_but_for_a_proxy() {
        let (connections, tenant) = (limited(10, 10), TenantId(1));
        let [first, second, third] =
            [1, 2, 3].map(|peer| from(&connections, peer).expect("the limit is not reached"));
        let asked = [&first, &second].map(|permit| {
            permit.connection.has_key(tenant).expect("the tenant may have two");
            permit.connection.begin()
        });
        let refusal = third.connection.has_key(tenant).expect_err("both connections have open requests");
        assert_eq!(refusal.reason(), Reason::QuotaExceeded);
        third.connection.has_key(TenantId(2)).expect("another tenant is below its limit");
        let proxied = from(&connections, 9).expect("the limit is not reached");
        proxied.connection.has_key(tenant).expect("it counts for no tenant");
        // The same key on the same connection counts once.
        first.connection.has_key(tenant).expect("the connection has the key already");
        drop(asked);
        let fourth = from(&connections, 4).expect("the limit is not reached");
        fourth.connection.has_key(tenant).expect("a connection without open requests is closed");
        first.connection.is_overdue().await;
        drop((first, second, third, fourth, proxied));
        assert!(connections.table.lock().of_tenant.is_empty());
    }

    #[test]
    fn an_address_has_a_part_of_them_and_a_proxy_all() {
        let connections = limited(10, 2);
        let held: Vec<ConnectionPermit> = (0..2).filter_map(|_| from(&connections, 1)).collect();
        let asked: Vec<Open> = held.iter().map(|permit| permit.connection.begin()).collect();
        held.iter()
            .for_each(|permit| permit.connection.has_key(TenantId(1)).expect("the tenant may have two"));
        assert!(from(&connections, 1).is_none() && from(&connections, 2).is_some());
        let of_proxy: Vec<ConnectionPermit> = (0..8).filter_map(|_| from(&connections, 9)).collect();
        assert_eq!(of_proxy.len(), 8);
        drop(asked);
        let one = |text: &str| of_network(text.parse().expect("an address"));
        assert_eq!(one("2001:db8::1"), one("2001:db8::ffff:1"));
        assert_eq!(one("::ffff:192.0.2.1"), one("192.0.2.1"));
        assert_ne!(one("2001:db8:0:1::1"), one("2001:db8::1"));
    }
}
