//! The connections of a server to the others of its cluster.

use anyhow::Context as _;
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use switchward_gateway::proxy::{AnswersDelivery, CallServer, LocalMaps, PassOn, Proxy};
use switchward_gateway::{Api, Port, mail::QuarantinesByTransport, one_port::OneService};
use switchward_machine::Digest;
use switchward_peer::{CallDialer, Hello, PROTOCOL, PeerLimits, PeerName, PeerOptions, Peers, TlsPem};
use switchward_shard::{
    Clock, Cluster, MemberHandler, MemberOptions, MemberStart, OwnRuntime, RaftSettings, Transport,
};
use switchward_state::Levels;
use switchward_state::catalogue::ServerState;
use switchward_state::seal::KeyRing;
use switchward_store::{ClusterIdentity, DataDir, FolderIdentity};
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, spawn_blocking};

use super::certificates;
use super::config::{ClusterConfig, FIRST};
use super::facts::OwnFacts;
use super::inbound::{FromPeers, Removed};
use super::transport::{ToPeers, ToServers};
use crate::outbound::RedisConfig;
use crate::reload::hangups;

/// Threads that carry Raft's tasks and the messages between servers, but not the commands that are passed on: while one of them
/// encrypts a snapshot or applies an entry, the other one has heartbeats.
const PEER_THREADS: usize = 2;
/// How often the key ring is looked at that others are shown.
const RING_LOOK: Duration = Duration::from_secs(1);

/// The connections, from the start of the server to its end.
pub(crate) struct Connections {
    config: ClusterConfig,
    /// Carries Raft's tasks and the connections of `peers`, but not those for commands.
    runtime: OwnRuntime,
    peers: Peers,
    transport: Arc<ToPeers>,
    handler: Arc<MemberHandler>,
    /// Answers about the quarantine, once the server is open.
    api: Arc<OnceLock<Api>>,
    /// Says which servers were removed, once the server is open.
    cluster: Arc<OnceLock<Cluster>>,
    /// Dials other servers for calls that this one passes on.
    dialer: CallDialer,
    /// Answers calls that others pass on, once the server is open.
    calls: Arc<OnceLock<CallServer>>,
    /// Answers delivery processes, once the server is open.
    delivery: Arc<OnceLock<Arc<dyn AnswersDelivery>>>,
    /// This server's own clock.
    clock: Arc<dyn Clock>,
    tasks: Vec<JoinHandle<()>>,
}

impl Connections {
    /// Listens for the other servers. Their messages are refused until the cluster is open.
    ///
    /// # Errors
    /// The folder is not that of this server, a certificate cannot be used, or the address is taken.
    pub(crate) fn start(
        config: &ClusterConfig,
        data: &DataDir,
        ring: &KeyRing,
        clock: &Arc<dyn Clock>,
    ) -> anyhow::Result<Self> {
        let tls = certificates::read(config)?;
        let own = certificates::identity(config)?;
        check_folder(data, &own)?;
        let expires = certificates::expires(&tls);
        let hello = hello(&own, &data.identity(), ring);
        let (clock, own_clock) = (Arc::clone(clock), Arc::clone(clock));
        let dialer = CallDialer::new(own.cluster.0, PeerName::Server(own.server), &tls)?;
        let listen = config.listen.context("cluster.listen: set where this server listens for the others")?;
        let runtime = OwnRuntime::start("peers", PEER_THREADS)?;
        let options = PeerOptions {
            listen,
            hello,
            tls,
            clock: Arc::new(move || clock.now().0.try_into().unwrap_or(i64::MAX)),
            runtime: runtime.handle().clone(),
            commands: Handle::current(),
            limits: PeerLimits::default(),
        };
        let handler = Arc::new(MemberHandler::default());
        handler.set_certificate_expires(expires);
        let (api, cluster) = (Arc::new(OnceLock::new()), Arc::new(OnceLock::new()));
        let (calls, delivery) = (Arc::new(OnceLock::new()), Arc::new(OnceLock::new()));
        let removed = Arc::new(Removed::of(Arc::clone(&cluster)));
        let answers = FromPeers {
            main: Handle::current(),
            handler: Arc::clone(&handler),
            data: data.clone(),
            api: Arc::clone(&api),
            cluster: Arc::clone(&cluster),
            removed: Arc::clone(&removed),
            calls: Arc::clone(&calls),
            delivery: Arc::clone(&delivery),
        };
        let peers = Peers::start(options, Arc::new(answers));
        let peers = peers.with_context(|| format!("cluster.listen: failed to listen on {listen}"))?;
        let configured = config.peers()?;
        for (server, address) in &configured {
            peers.set_address(*server, address.clone());
        }
        let configured: BTreeSet<u64> = configured.into_keys().collect();
        let fixed = if config.fixed_peers { configured.clone() } else { BTreeSet::new() };
        let tasks = vec![renewing(own, config.clone(), peers.clone(), dialer.clone(), Arc::clone(&handler))];
        let transport = Arc::new(ToPeers::over(peers.clone(), configured, fixed, config.clocks, removed));
        let (config, clock) = (config.clone(), own_clock);
        Ok(Self {
            config,
            runtime,
            peers,
            transport,
            handler,
            api,
            cluster,
            dialer,
            calls,
            delivery,
            clock,
            tasks,
        })
    }

    /// This server as a member of the cluster.
    ///
    /// # Errors
    /// An address of the configuration is wrong.
    pub(crate) fn member(&self, data: &DataDir) -> anyhow::Result<MemberOptions> {
        let start = match (self.config.server, data.is_initialized()) {
            (FIRST, _) => MemberStart::FoundCluster,
            (_, true) => MemberStart::Resume,
            (_, false) => MemberStart::Join { peers: self.config.peers()?.into_keys().collect() },
        };
        Ok(MemberOptions {
            levels: Levels::OF_PROGRAM,
            number: self.config.server,
            transport: self.transport(),
            handler: Arc::clone(&self.handler),
            address: self.config.address(),
            start,
            voters: self.config.voters,
            runtime: Some(self.runtime.handle().clone()),
            raft: RaftSettings::default(),
        })
    }

    /// Answers what other servers ask of this one beside its shards, calls that they and gateways pass on, and by `delivery`
    /// what delivery processes ask. Asks the servers about their quarantines, and shows them another key ring at new
    /// connections when it changes.
    pub(crate) fn serve(
        &mut self,
        cluster: &Cluster,
        api: &Api,
        app: Port,
        redis: Option<&RedisConfig>,
        delivery: Arc<dyn AnswersDelivery>,
    ) {
        if let Some(minutes) = self.config.verify_minutes {
            cluster.set_verify_interval(Duration::from_secs(u64::from(minutes) * 60));
        }
        // They are set once, when the server opens.
        let (clock, redis) = (Arc::clone(&self.clock), redis.cloned());
        let facts = OwnFacts::new(cluster.clone(), clock, Arc::clone(&self.handler), redis);
        let (holders, maps) = (Arc::new(api.clone()), Arc::new(LocalMaps(cluster.clone())));
        let calls = CallServer::new(self.config.server, app, holders, maps, Arc::new(facts));
        let _set_before = (
            self.api.set(api.clone()),
            self.cluster.set(cluster.clone()),
            self.delivery.set(delivery).is_ok(),
            self.calls.set(calls),
        );
        // Until now nobody was asked whether a server was removed.
        self.transport.refuse_removed();
        let (own, known) = (self.config.server, cluster.clone());
        let others = move || {
            let servers = known.servers().unwrap_or_default().into_iter();
            let present = servers.filter(|server| server.state != ServerState::Removed);
            present.map(|server| server.number).filter(|number| *number != own).collect()
        };
        api.keeping_elsewhere(Arc::new(QuarantinesByTransport::new(self.transport(), Box::new(others))));
        self.tasks.push(tokio::spawn(follow_ring(cluster.clone(), self.peers.clone())));
    }

    /// What answers calls that others pass on, once the server is open.
    pub(crate) fn calls(&self) -> Option<CallServer> {
        self.calls.get().cloned()
    }

    fn transport(&self) -> Arc<dyn Transport> {
        Arc::clone(&self.transport) as Arc<dyn Transport>
    }

    /// Ends all connections, and Raft's tasks. What these hold, such as the lock of the data folder, is free afterwards.
    pub(crate) async fn close(self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        self.peers.close();
        let runtime = self.runtime;
        if let Err(error) = spawn_blocking(move || runtime.end()).await {
            tracing::warn!(%error, "failed to wait for the end of the connections to other servers");
        }
    }
}

/// Services that pass on what this server's failed replicas would have answered; a server alone has nobody to pass it to.
pub(crate) fn pass_on(
    connections: Option<&Connections>,
    cluster: &Cluster,
    services: OneService,
) -> OneService {
    let Some(connections) = connections else { return services };
    let dialer = Arc::new(ToServers(connections.dialer.clone()));
    let maps = Arc::new(LocalMaps(cluster.clone()));
    let proxy = Proxy::of_server(connections.config.server, maps, dialer);
    services.passing_on(PassOn::new(cluster.clone(), proxy))
}

/// What this server says of itself at the beginning of a connection.
fn hello(own: &ClusterIdentity, identity: &FolderIdentity, ring: &KeyRing) -> Hello {
    Hello {
        cluster: own.cluster.0,
        server: own.server,
        folder: identity.folder.0,
        boot: identity.boot,
        boot_id: identity.boot_id.0,
        protocol: PROTOCOL,
        lowest_level: Levels::OF_PROGRAM.lowest.0,
        highest_level: Levels::OF_PROGRAM.highest.0,
        keys: keys_digest(ring),
        clock_ms: 0,
    }
}

/// Uses new certificates when their files change, or a SIGHUP comes.
fn renewing(
    own: ClusterIdentity,
    config: ClusterConfig,
    peers: Peers,
    dialer: CallDialer,
    handler: Arc<MemberHandler>,
) -> JoinHandle<()> {
    let set = move |tls: &TlsPem| {
        // What one of the two refuses, the other one must not use.
        let _usable = CallDialer::new(own.cluster.0, PeerName::Server(own.server), tls)?;
        peers.set_tls(tls)?;
        dialer.set_tls(tls)?;
        handler.set_certificate_expires(certificates::expires(tls));
        Ok(())
    };
    tokio::spawn(certificates::follow(config, hangups(), set))
}

/// Refuses a data folder that is not that of this server.
fn check_folder(data: &DataDir, own: &ClusterIdentity) -> anyhow::Result<()> {
    let folder = data.path().display();
    let known = data.identity().cluster.with_context(|| {
        format!(
            "the data folder {folder} belongs to no cluster yet: run `switchward cluster init` on the first server, \
             `switchward cluster join` on any other"
        )
    })?;
    anyhow::ensure!(known == *own, "the data folder {folder} belongs to {known}, not to {own}");
    Ok(())
}

/// Shows other servers the key ring that is in use.
async fn follow_ring(cluster: Cluster, peers: Peers) {
    let mut known = keys_digest(&cluster.ring());
    let mut tick = tokio::time::interval(RING_LOOK);
    loop {
        tick.tick().await;
        let now = keys_digest(&cluster.ring());
        if std::mem::replace(&mut known, now) != now {
            peers.set_keys(now);
        }
    }
}

/// What servers compare of their key rings: the ids of the keys, in any order.
pub(crate) fn keys_digest(ring: &KeyRing) -> [u8; 32] {
    let mut ids: Vec<String> = ring.ids().iter().map(ToString::to_string).collect();
    ids.sort();
    Digest::of(ids.join(" ").as_bytes()).0
}
