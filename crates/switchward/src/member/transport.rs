//! The transport between servers, as the shards use it.

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use switchward_gateway::proxy::{CallIo, ServerDialer};
use switchward_peer::limits::{BULK_REQUESTS_MAX, HANDSHAKES_MAX, IDLE_MAX, QUEUED_BYTES_MAX};
use switchward_peer::{CallDialer, Contact, PeerError as Failed, Peers, Request, Traffic};
use switchward_shard::limits::{FORWARD_PERMIT_BYTES, FORWARDS_MAX, RAFT_MESSAGE_BYTES_MAX, SHARDS_MAX};
use switchward_shard::{ClockOffset, Peer, PeerConnection, PeerError, PeerRequest, PeerStream, Transport};
use switchward_state::limits::SERVERS_MAX;
use tokio::time::Instant;

use super::config::ServerClocks;
use super::inbound::Removed;

// The connection for commands has the limits of the one for long messages. It carries as many as are passed on, and one that
// is longer than what it counts as; the other one carries a long message of each group.
const _: () = assert!(FORWARDS_MAX <= BULK_REQUESTS_MAX && (SHARDS_MAX as usize) < BULK_REQUESTS_MAX);
const _: () = assert!(FORWARDS_MAX * FORWARD_PERMIT_BYTES + RAFT_MESSAGE_BYTES_MAX <= QUEUED_BYTES_MAX);
// All others dial a server that starts at once, each for three classes of traffic.
const _: () = assert!((SERVERS_MAX - 1) * 3 <= HANDSHAKES_MAX);

/// Carries the messages of the shards over the connections between servers.
pub(crate) struct ToPeers {
    peers: Peers,
    known: Mutex<Known>,
    /// The servers whose addresses stay as they were configured; those of a development cluster.
    fixed: BTreeSet<u64>,
    clocks: ServerClocks,
    removed: Arc<Removed>,
}

/// What is known of the addresses of others.
#[derive(Default)]
struct Known {
    /// The addresses that the cluster has named, by the servers' numbers.
    named: BTreeMap<u64, String>,
    /// The servers that are reached where the configuration says, until the cluster names another address than at first:
    /// what this server's rows say may be older than the configuration.
    configured: BTreeSet<u64>,
}

/// What follows from new names.
#[derive(Debug, Default, PartialEq, Eq)]
struct Changes {
    /// The servers to forget.
    removed: Vec<u64>,
    /// The servers that are reached elsewhere from now on.
    moved: Vec<(u64, String)>,
}

impl Known {
    /// Takes in the addresses that the cluster names now.
    fn take(&mut self, now: BTreeMap<u64, String>) -> Changes {
        let removed: Vec<u64> =
            self.named.keys().filter(|number| !now.contains_key(number)).copied().collect();
        for number in &removed {
            self.configured.remove(number);
        }
        let mut moved = Vec::new();
        for (number, address) in &now {
            match self.named.get(number) {
                Some(named) if named == address => {}
                None if self.configured.contains(number) => {}
                Some(_) | None => moved.push((*number, address.clone())),
            }
        }
        self.named = now;
        Changes { removed, moved }
    }
}

impl ToPeers {
    /// Over these connections, which have the addresses of the `configured` servers. The addresses of `fixed` servers are
    /// not changed when the cluster names others.
    pub(crate) fn over(
        peers: Peers,
        configured: BTreeSet<u64>,
        fixed: BTreeSet<u64>,
        clocks: ServerClocks,
        removed: Arc<Removed>,
    ) -> Self {
        let known = Known { named: BTreeMap::new(), configured };
        Self { peers, known: Mutex::new(known), fixed, clocks, removed }
    }

    /// Ends the connections with all servers that were removed, and refuses them from now on. Called when the cluster is
    /// known, and after each change of its servers.
    pub(crate) fn refuse_removed(&self) {
        for server in self.removed.read() {
            self.peers.remove(server);
        }
    }
}

/// Dials servers for calls of clients.
pub(crate) struct ToServers(pub(crate) CallDialer);

#[async_trait]
impl ServerDialer for ToServers {
    async fn dial(&self, server: u64, address: &str) -> io::Result<Box<dyn CallIo>> {
        Ok(Box::new(self.0.dial(server, address).await.map_err(io::Error::other)?))
    }
}

/// How far a server's clock is ahead; `None` if that is not known, or nothing came from the server lately.
fn offset(server: u64, contact: &Contact, now: Instant) -> Option<ClockOffset> {
    let is_reached = now.saturating_duration_since(contact.seen) <= IDLE_MAX;
    contact.clock_offset_ms.filter(|_| is_reached).map(|ms| ClockOffset { server, ms })
}

/// One of the transport's streams.
pub(super) struct Stream(pub(super) switchward_peer::PeerStream);

fn failed(error: Failed) -> PeerError {
    match error {
        Failed::NotSent(why) => PeerError::NotSent(why),
        Failed::Unknown(why) => PeerError::Unknown(why),
        Failed::Refused(why) => PeerError::Refused(why),
        Failed::TimedOut => PeerError::TimedOut,
    }
}

fn request(request: PeerRequest) -> Request {
    Request { kind: request.kind, group: request.group, body: request.body }
}

#[async_trait]
impl Transport for ToPeers {
    async fn call(
        &self,
        to: u64,
        over: PeerConnection,
        asked: PeerRequest,
        deadline: Duration,
    ) -> Result<Bytes, PeerError> {
        let traffic = match over {
            PeerConnection::Control => Traffic::Control,
            PeerConnection::Bulk => Traffic::Bulk,
            PeerConnection::Commands => Traffic::Commands,
        };
        self.peers.call(to, traffic, request(asked), deadline).await.map_err(failed)
    }

    fn know(&self, peers: &[Peer]) {
        let now: BTreeMap<u64, String> =
            peers.iter().map(|peer| (peer.number, peer.address.clone())).collect();
        // Held meanwhile, so that of two changes the later one stays.
        let mut known = self.known.lock();
        let Changes { removed, moved } = known.take(now);
        // Rows that are not complete yet name fewer servers. A fixed address would not be named again.
        let is_fixed = |number: &u64| self.fixed.contains(number);
        removed.into_iter().filter(|number| !is_fixed(number)).for_each(|number| self.peers.forget(number));
        for (number, address) in moved.into_iter().filter(|(number, _)| !is_fixed(number)) {
            self.peers.set_address(number, address);
        }
        drop(known);
        self.refuse_removed();
    }

    fn clock_offsets(&self) -> Option<Vec<ClockOffset>> {
        match self.clocks {
            ServerClocks::Compared => {}
            ServerClocks::MovedByHand => return None,
        }
        let known = self.known.lock();
        let offset = |server: &u64| offset(*server, &self.peers.contact(*server)?, Instant::now());
        Some(known.named.keys().filter_map(offset).collect())
    }

    async fn stream(&self, to: u64, asked: PeerRequest) -> Result<Arc<dyn PeerStream>, PeerError> {
        let stream = self.peers.stream(to, request(asked)).await.map_err(failed)?;
        Ok(Arc::new(Stream(stream)))
    }
}

#[async_trait]
impl PeerStream for Stream {
    async fn send(&self, chunk: Bytes) -> Result<(), PeerError> {
        self.0.send(chunk).await.map_err(failed)
    }

    async fn finish(&self) -> Result<(), PeerError> {
        self.0.finish().await.map_err(failed)
    }

    async fn recv(&self) -> Result<Option<Bytes>, PeerError> {
        self.0.recv().await.map_err(failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchward_peer::Hello;

    #[test]
    fn a_configured_address_holds_until_the_cluster_names_another_one_than_at_first() {
        let mut known = Known { named: BTreeMap::new(), configured: BTreeSet::from([2]) };
        let mut take = |servers: &[(u64, &str)]| -> (Vec<u64>, Vec<String>) {
            let now = servers.iter().map(|(number, address)| (*number, (*address).to_owned()));
            let Changes { removed, moved } = known.take(now.collect());
            (removed, moved.into_iter().map(|(number, address)| format!("{number} {address}")).collect())
        };
        let moved = |lines: &[&str]| -> (Vec<u64>, Vec<String>) {
            (vec![], lines.iter().map(|line| (*line).to_owned()).collect())
        };
        assert_eq!(take(&[(2, "old"), (3, "c")]), moved(&["3 c"]), "the rows may be older");
        assert_eq!(take(&[(2, "old"), (3, "c")]), moved(&[]));
        assert_eq!(take(&[(2, "new"), (3, "c")]), moved(&["2 new"]));
        assert_eq!(take(&[(2, "old"), (3, "c")]), moved(&["2 old"]));
        assert_eq!(take(&[(3, "c")]), (vec![2], vec![]));
        assert_eq!(take(&[(2, "old"), (3, "d")]), moved(&["2 old", "3 d"]), "its address was forgotten");
    }

    #[test]
    fn a_clock_counts_only_if_it_was_measured_and_its_server_has_sent_something_lately() {
        let seen = Instant::now();
        let hello = Hello {
            cluster: [1; 16],
            server: 2,
            folder: [2; 16],
            boot: 1,
            boot_id: [5; 16],
            protocol: 1,
            lowest_level: 1,
            highest_level: 1,
            keys: [0; 32],
            clock_ms: 0,
        };
        let measured = Contact { seen, clock_offset_ms: Some(-2_500), hello };
        let expected = Some(ClockOffset { server: 2, ms: -2_500 });
        assert_eq!(offset(2, &measured, seen), expected);
        assert_eq!(offset(2, &measured, seen + IDLE_MAX), expected);
        assert_eq!(offset(2, &measured, seen + IDLE_MAX + Duration::from_millis(1)), None);
        let unmeasured = Contact { clock_offset_ms: None, ..measured };
        assert_eq!(offset(2, &unmeasured, seen), None);
    }
}
