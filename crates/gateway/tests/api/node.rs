//! A node in this process, with a manual clock: one server, or as many as [`SERVERS`] says, of which each request is sent to
//! a random one.

use parking_lot::Mutex;
use std::ops::ControlFlow;
use std::sync::{Arc, atomic::Ordering};
use switchward_gateway::{
    Admission, Api, ConnectionLimits, PageSettings, Port,
    auth::NewKey,
    decision::{self, SignIn},
    mail,
    one_port::{OneService, one_port},
    routes::Services,
    sealing,
    serve::serve,
    services::{self, Pinged, Pings},
    webhooks,
};
use switchward_machine::{SessionId, TenantId, Time};
use switchward_shard::{
    ClockAgreement, ClockOffset, Cluster, GroupStatus, ManualClock, Payload, RaftSettings, Shard, StateView,
};
use switchward_state::catalogue::{
    CatalogueCommand, CreateKey, CreateTenant, Deploy, EnsureTenancy, FoundCluster, JoinServer, LinkAuth,
    Role, ServerState, SetServerState, Settings, UpdateTenant,
};
use switchward_state::delivery::{DeliveryCommand, Endpoint, HoldEffects};
use switchward_state::session::{Cancel, SessionCommand};
use switchward_state::{Actor, Body, Command, IndexKey, Levels, Scope, View};
use switchward_testkit::until;
use switchward_testnet::{Network, Server};
use switchward_webhook::EventType;
use tempfile::TempDir;
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};

mod restart;
mod tenants;

use crate::client::{Line, Wire};
use crate::posting;
use crate::proxying::{Far, Fixed, Gateway};
use crate::quarantine_store::{Memory, Quarantines};
use restart::Remains;
use tenants::Tenants;

/// The variable with the number of servers: 1, which is the default, or 3.
const SERVERS: &str = "SWITCHWARD_TEST_SERVERS";
/// `gateway`: the tests call a gateway that holds nothing, which passes their calls on.
const VIA: &str = "SWITCHWARD_TEST_VIA";
const SHARDS: u32 = 4;
const CACHE_BYTES: usize = 16 * 1024 * 1024;
/// A summer's day, so that calendar periods have something before them.
const BEGUN: Time = Time(1_782_000_000_000);

/// Leaders stay leaders on a machine that is busy for seconds.
pub(crate) const PATIENT: RaftSettings =
    RaftSettings { heartbeat_ms: 100, election_min_ms: 3_000, election_max_ms: 6_000 };

/// See the module.
pub(crate) struct Node {
    /// The first server's.
    pub(crate) cluster: Cluster,
    pub(crate) clock: ManualClock,
    pub(crate) line: Line,
    /// The first server's.
    pub(crate) api: Api,
    /// What the first server's port answers with.
    pub(crate) app: Port,
    /// The first server's.
    pub(crate) quarantine: Arc<Memory>,
    /// How the servers ask each other about the mail that they keep.
    pub(crate) quarantines: Arc<Quarantines>,
    servers: Vec<Served>,
    /// Set if there are several servers.
    pub(crate) network: Option<Network>,
    fatal: Arc<Mutex<Vec<String>>>,
    data: TempDir,
    tenants: Tenants,
}

/// One server behind its port.
struct Served {
    cluster: Cluster,
    api: Api,
    app: Port,
    quarantine: Arc<Memory>,
    /// What is before the port, if the tests run through a gateway.
    through: Option<(Far, Gateway)>,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<()>,
}

impl Node {
    /// Starts a node whose pages sign people in with `sign_in`, if given.
    pub(crate) async fn start(sign_in: Option<Arc<dyn SignIn>>) -> Self {
        match std::env::var(SERVERS).as_deref() {
            Err(_) | Ok("1") => Self::start_one(sign_in).await,
            Ok("3") => Self::start_three(sign_in, PATIENT).await,
            Ok(other) => panic!("{SERVERS} must be 1 or 3, and is {other:?}"),
        }
    }

    /// Starts a server alone.
    pub(crate) async fn start_one(sign_in: Option<Arc<dyn SignIn>>) -> Self {
        let kept = Remains::new();
        let cluster = kept.open_one().await;
        Self::serving(vec![cluster], None, kept, sign_in).await
    }

    /// Starts three servers that are one cluster.
    pub(crate) async fn start_three(sign_in: Option<Arc<dyn SignIn>>, raft: RaftSettings) -> Self {
        Self::start_three_over(Network::default(), sign_in, raft).await
    }

    /// Starts three servers that are one cluster and compare their clocks, which agree.
    pub(crate) async fn start_three_comparing() -> Self {
        let network = Network::default();
        (1..=3).for_each(|server| set_ahead(&network, server, 0));
        Self::start_three_over(network, None, PATIENT).await
    }

    async fn start_three_over(
        network: Network,
        sign_in: Option<Arc<dyn SignIn>>,
        raft: RaftSettings,
    ) -> Self {
        let kept = Remains::new();
        let servers = kept.open_three(&network, raft).await;
        let has_compared = |server: &Server| server.cluster.clock_agreement() != ClockAgreement::Unknown;
        until("the clocks are compared", async || servers.iter().all(has_compared)).await;
        found(&servers).await;
        let clusters = servers.into_iter().map(|server| server.cluster).collect();
        Self::serving(clusters, Some(network), kept, sign_in).await
    }

    async fn serving(
        clusters: Vec<Cluster>,
        network: Option<Network>,
        kept: Remains,
        sign_in: Option<Arc<dyn SignIn>>,
    ) -> Self {
        let Remains { data, clock, fatal, quarantines: stores } = kept;
        let (mut servers, mut wires) = (Vec::new(), Vec::new());
        let quarantines = Arc::<Quarantines>::default();
        for ((cluster, number), quarantine) in clusters.into_iter().zip(1..).zip(stores) {
            let (served, wire) = serve_one(cluster, &clock, quarantine, sign_in.clone()).await;
            if network.is_some() {
                quarantines.join(number, &served.api);
            }
            servers.push(served);
            wires.push(wire);
        }
        let first = &servers[0];
        Self {
            cluster: first.cluster.clone(),
            clock,
            line: Line::of(wires),
            api: first.api.clone(),
            app: first.app.clone(),
            quarantine: Arc::clone(&first.quarantine),
            quarantines,
            servers,
            network,
            fatal,
            data,
            tenants: Tenants::default(),
        }
    }

    /// Tells the third server that the others' clocks are this far ahead of its own, and waits until it leads nothing. No
    /// clock moves. The servers must compare their clocks.
    pub(crate) async fn set_third_behind(&self, ms: u64) {
        let network = self.network.as_ref().expect("three servers");
        set_ahead(network, 3, i64::try_from(ms).expect("a time"));
        let (median, third) = (self.cluster.now().after_ms(ms), &self.servers[2].cluster);
        until("the third server knows the median and leads nothing", async || {
            third.now_or_median() == median && !third.all().any(Shard::leads)
        })
        .await;
    }

    /// Waits until each server has applied everything that was answered before: what a tenant uses is shown as far as a
    /// server has applied it.
    pub(crate) async fn caught_up(&self) {
        for shard in self.clusters().flat_map(Cluster::all) {
            shard.read().await.expect("a leader");
        }
    }

    /// How often each quota has refused something at any server.
    pub(crate) fn quota_refusals(&self) -> [u64; 3] {
        let each = self.servers.iter().map(|served| served.api.quota_refusals().map(|(_, count)| count));
        each.fold([0; 3], |all, each| std::array::from_fn(|at| all[at] + each[at]))
    }

    /// The number of servers that run.
    pub(crate) fn running(&self) -> usize {
        self.servers.len()
    }

    /// Another quarantine, which the first server asks, and a server that does not answer the first one's questions: the
    /// second and the third of three servers. Beside a server alone, they are made for this.
    pub(crate) fn other_quarantines(&self) -> (Arc<Memory>, u64) {
        const SILENT: u64 = 3;
        let other = if let Some(second) = self.servers.get(1) {
            Arc::clone(&second.quarantine)
        } else {
            let other = Arc::<Memory>::default();
            let pretended = Api::new(self.cluster.clone(), None);
            pretended.keeping(Arc::<Memory>::clone(&other));
            self.quarantines.join(2, &pretended);
            self.quarantines.join(1, &self.api);
            other
        };
        self.quarantines.silence(SILENT);
        (other, SILENT)
    }

    /// What each server's port answers with, and what knows its keys.
    pub(crate) fn ports(&self) -> impl Iterator<Item = (Port, Api)> {
        self.servers.iter().map(|served| (served.app.clone(), served.api.clone()))
    }

    /// Ends the open streams of all servers.
    pub(crate) fn drain(&self) {
        self.servers.iter().for_each(|served| served.api.drain());
    }

    /// The servers' shards.
    pub(crate) fn clusters(&self) -> impl Iterator<Item = &Cluster> {
        self.servers.iter().map(|served| &served.cluster)
    }

    /// Creates the server's first tenant and its first key; returns the key's secret.
    pub(crate) async fn first_tenant(&self, name: &str) -> String {
        let key = NewKey::draw();
        let tenant =
            CreateTenant { name: name.into(), display_name: name.into(), settings: Settings::default() };
        self.inner(TenantId(0), Body::Catalogue(CatalogueCommand::CreateTenant(tenant))).await;
        let drawn = sealing::mail_key(&self.cluster.ring(), TenantId(1));
        let ensure = EnsureTenancy { any_approver_address: false, link_auth: None, key: drawn };
        self.inner(TenantId(1), Body::Catalogue(CatalogueCommand::EnsureTenancy(ensure))).await;
        let first = CreateKey {
            id: key.id.clone(),
            tenant_name: name.into(),
            hash: key.hash,
            role: Role::Admin,
            subject: "first".into(),
            display_name: "first".into(),
            expires: None,
        };
        self.inner(TenantId(1), Body::Catalogue(CatalogueCommand::CreateKey(first))).await;
        key.secret
    }

    /// The number of a server that does not run, in this state. The first call makes a server alone the first one of a
    /// cluster.
    pub(crate) async fn spare_server(&self, state: ServerState) -> u64 {
        self.one_of_servers(state, 0).await
    }

    /// The same, in the state of a server that may be removed. It is another one, so that what removes it spoils no other
    /// call.
    pub(crate) async fn server_to_remove(&self) -> u64 {
        self.one_of_servers(ServerState::Draining, 1).await
    }

    /// A server that does not run, in this state, with an even number (0) or an odd one (1).
    async fn one_of_servers(&self, state: ServerState, parity: u64) -> u64 {
        let join = |number: u64| JoinServer {
            number,
            folder: number.to_be_bytes().repeat(2).try_into().expect("16 bytes"),
            address: format!("10.0.0.1:{number}"),
            levels: Levels::OF_PROGRAM,
        };
        let last = u64::try_from(self.running()).expect("few");
        let act = async |command| self.inner(TenantId(0), Body::Catalogue(command)).await;
        if self.cluster.map().expect("rows that can be read").is_none() {
            act(found_by(join(1))).await;
        }
        let servers = self.cluster.servers().expect("rows that can be read");
        let mut spare = servers
            .iter()
            .filter(|one| one.number > last && one.number % 2 == parity && one.state != ServerState::Removed);
        let number = match spare.next() {
            Some(spare) => spare.number,
            None => {
                let next = servers.iter().map(|server| server.number).max().unwrap_or(last) + 1;
                let number = next + (next % 2).abs_diff(parity);
                act(CatalogueCommand::JoinServer(join(number))).await;
                number
            }
        };
        let set = SetServerState { number, state, replaced_by: None, epoch: None };
        act(CatalogueCommand::SetServerState(set)).await;
        number
    }

    /// Holds the effects of the first tenant, as a restore does.
    pub(crate) async fn hold(&self) {
        self.hold_of(TenantId(1)).await;
    }

    /// The same for any tenant.
    pub(crate) async fn hold_of(&self, tenant: TenantId) {
        self.inner(tenant, Body::Delivery(DeliveryCommand::HoldEffects(HoldEffects { held: true }))).await;
    }

    /// Makes a tenant's pages require a sign-in, even without a provider.
    pub(crate) async fn want_sign_in(&self, name: &str) {
        let settings = Settings { link_auth: Some(LinkAuth::Oidc), ..Settings::default() };
        let update = UpdateTenant { name: name.into(), settings, etag: String::new() };
        self.inner(TenantId(1), Body::Catalogue(CatalogueCommand::UpdateTenant(update))).await;
    }

    /// Deploys a definition as it is, under a name that its own format need not allow.
    pub(crate) async fn deploy(&self, tenant: TenantId, deploy: Deploy) {
        self.inner(tenant, Body::Catalogue(CatalogueCommand::Deploy(deploy))).await;
    }

    async fn inner(&self, tenant: TenantId, body: Body) {
        self.cluster.execute(command(tenant, Scope::Catalogue, body)).await.expect("the server may");
    }

    /// Returns a hash over the rows of each shard, once no effect is in transit between shards.
    pub(crate) async fn state(&self) -> Vec<[u8; 32]> {
        self.quiet().await;
        let mut digests = Vec::new();
        for shard in self.cluster.all() {
            shard.read().await.expect("a leader");
            digests.push(shard.group().digest().expect("rows that can be read"));
        }
        digests
    }

    /// The number of log entries; a call that changes nothing adds none.
    pub(crate) fn entries(&self) -> u64 {
        let count = |shard: &switchward_shard::Shard| shard.group().metrics().entries.load(Ordering::Relaxed);
        self.clusters().flat_map(Cluster::all).map(count).sum()
    }

    /// Returns true if each shard besides the catalogue has decided a command, at any server.
    pub(crate) fn every_shard_has_decided(&self) -> bool {
        let decided = |shard: &Shard| shard.group().metrics().commands.load(Ordering::Relaxed) > 0;
        let has = |at: usize| self.clusters().any(|cluster| decided(&cluster.shards()[at]));
        (0..self.cluster.shards().len()).all(has)
    }

    /// The data folder.
    pub(crate) fn folder(&self) -> &std::path::Path {
        self.data.path()
    }

    /// Waits until the condition holds.
    pub(crate) async fn until(&self, holds: impl Fn() -> bool) {
        until("the condition of the test", async || holds()).await;
    }

    /// Waits until no effect is in transit to another shard, and no removal is running.
    pub(crate) async fn quiet(&self) {
        let none_of = |rows: &StateView, index: &[u8]| {
            let mut none = true;
            let read = rows.scan(index, None, &mut |_, _| {
                none = false;
                ControlFlow::Break(())
            });
            read.expect("rows that can be read");
            none
        };
        let quiet = async || {
            for shard in self.cluster.all() {
                let rows = shard.read().await.expect("a leader");
                if !none_of(&rows, &IndexKey::relay()) || !none_of(&rows, &IndexKey::removals()) {
                    return false;
                }
            }
            // The catalogue's rows of a tenant are removed last.
            !self.tenants.is_one_being_deleted(&self.cluster.catalogue().read_stale())
        };
        until("no effect is in transit, and no removal is running", quiet).await;
        // A shard that has answered this has counted all its earlier answers.
        for shard in self.cluster.all() {
            let nothing = command(
                TenantId(1),
                Scope::Session(SessionId([0; 16])),
                Body::Session(SessionCommand::Cancel(Cancel::written(""))),
            );
            shard.submit(nothing).await.expect_err("the session does not exist");
        }
    }

    /// The same shard at the server that leads it; the given one if none does at present.
    pub(crate) fn leading(&self, shard: &Shard) -> Shard {
        let same = |other: &&Shard| other.number() == shard.number() && other.leads();
        self.clusters().flat_map(Cluster::all).find(same).unwrap_or(shard).clone()
    }

    /// Makes the replicas of a shard fail: they get an entry that they cannot apply.
    pub(crate) async fn fail(&self, shard: &Shard) {
        let leader = self.leading(shard);
        let entry = Payload(b"no decision".to_vec().into());
        assert!(leader.group().raft().client_write(entry).await.is_err(), "nothing is acknowledged");
    }

    /// Returns true if a server answers so of a shard that was made to fail. One of several that still has the shard's rows
    /// waits for another leader.
    pub(crate) fn says_failed(&self, reason: &str) -> bool {
        reason == "SHARD_STOPPED" || (self.network.is_some() && reason == "SHARD_ELECTING")
    }

    /// Ends the node; fails if it stopped by itself.
    pub(crate) async fn end(self) {
        drop(self.stop().await);
    }
}

/// Sets how far the other two clocks are ahead of a server's, as that server is told.
fn set_ahead(network: &Network, server: u64, ms: i64) {
    let others = (1..=3).filter(|other| *other != server);
    network.set_clock_offsets(server, others.map(|server| ClockOffset { server, ms }).collect());
}

/// The command that makes a server the first one of a cluster.
fn found_by(server: JoinServer) -> CatalogueCommand {
    CatalogueCommand::FoundCluster(FoundCluster {
        cluster: [9; 16],
        server,
        shards: SHARDS.into(),
        voters: 3,
    })
}

/// Makes three servers that vote in all groups one cluster, and waits until all know it and all still vote.
async fn found(servers: &[Server]) {
    let [first, second, third] = servers else { panic!("{} servers", servers.len()) };
    let act = async |body: CatalogueCommand| {
        let founding = command(TenantId(0), Scope::Catalogue, Body::Catalogue(body));
        first.cluster.execute(founding).await.expect("the server may");
    };
    // At one time: as long as the catalogue has only some of them, the others are not to vote.
    tokio::join!(
        act(found_by(first.join.clone())),
        act(CatalogueCommand::JoinServer(second.join.clone())),
        act(CatalogueCommand::JoinServer(third.join.clone())),
    );
    until("three servers vote in every group, and each knows the cluster", async || {
        let status = first.cluster.status().await.expect("rows that can be read");
        let votes = |group: &GroupStatus| (1..=3).all(|server| group.voters.contains(&server));
        let whole = |group: &GroupStatus| group.leader.is_some() && votes(group);
        let knows =
            |server: &Server| server.cluster.servers().is_ok_and(|known| known.len() == servers.len());
        status.groups.iter().all(whole) && servers.iter().all(knows)
    })
    .await;
}

/// Serves a cluster at a port.
async fn serve_one(
    cluster: Cluster,
    clock: &ManualClock,
    quarantine: Arc<Memory>,
    sign_in: Option<Arc<dyn SignIn>>,
) -> (Served, Wire) {
    let (all, health) = Services::new().await;
    let api = Api::new(cluster.clone(), Some(Arc::new(clock.clone())))
        .recognising(PageSettings { link_auth: LinkAuth::Link, secure: true })
        .signing_in(sign_in);
    api.pinging(Arc::new(Echo));
    api.keeping(Arc::<Memory>::clone(&quarantine));
    let pages = health
        .pages()
        .merge(webhooks::pages(&api))
        .merge(decision::pages(api.clone()))
        .merge(mail::pages(&posting::ingress(&api), &[]));
    let app = one_port(OneService::of(services::all(all, &api)), pages, Vec::new(), &Admission::of(&api));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("the listener is bound");
    let (stop, stopped) = oneshot::channel::<()>();
    let ended = tokio::spawn(serve(listener, None, app.clone(), ConnectionLimits::default(), async {
        stopped.await.unwrap_or_default()
    }));
    let through = through_gateway(&app, &api).await;
    let called = through.as_ref().map_or(address, |(_, gateway)| gateway.address);
    let wire = Wire::connect(called, cluster.clone()).await;
    (Served { cluster, api, app, quarantine, through, stop, ended }, wire)
}

/// A gateway before the port, if `SWITCHWARD_TEST_VIA=gateway` asks for one: all tests then run through it.
async fn through_gateway(app: &Port, api: &Api) -> Option<(Far, Gateway)> {
    if std::env::var_os(VIA).is_none_or(|via| via != "gateway") {
        return None;
    }
    let holders = Arc::new(api.clone());
    let far = Far::start(app.clone(), holders, Fixed::alone).await;
    let gateway = Gateway::start(&[far.address]).await;
    gateway.ready().await;
    Some((far, gateway))
}

fn command(tenant: TenantId, scope: Scope, body: Body) -> Command {
    Command {
        tenant,
        scope,
        request: None,
        expected_sequence: None,
        actor: Actor::server(),
        settings: Settings::default(),
        trace: None,
        address: None,
        body,
    }
}

/// Accepts every ping, and returns what it received.
struct Echo;

#[tonic::async_trait]
impl Pings for Echo {
    async fn ping(&self, _tenant: TenantId, name: &str, endpoint: &Endpoint, kind: EventType) -> Pinged {
        let body = format!("{name} {} {kind}", endpoint.url);
        Pinged { message_id: "msg_1".into(), status: Some(204), body, ..Pinged::default() }
    }
}
