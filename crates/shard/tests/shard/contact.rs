//! What servers know of their leaders and of each other's clocks.

use std::sync::Arc;
use std::time::Duration;
use switchward_engine::policy::{Ledgers, Plan, plan};
use switchward_machine::{Decision, OpenId, TenantId, Time};
use switchward_shard::limits::CONTACT_LOST;
use switchward_shard::{
    Clock, ClockAgreement, ClockOffset, Cluster, Failure, ManualClock, RaftSettings, Shard,
};
use switchward_state::approval::{ApprovalCommand, DecideGate};
use switchward_state::catalogue::{CatalogueCommand, CreateTenant, Role, Settings};
use switchward_state::limits::GRANT_KEPT_MS;
use switchward_state::policy::{Authorized, CallEffect, PolicyCommand, Reserve};
use switchward_state::{Actor, Body, Command, Key, Reply, Row, Scope, View as _};
use switchward_testkit::until;
use switchward_testnet::{Network, ServerOptions};
use tempfile::TempDir;

use crate::commands::{authorize, command, create_tenants, definition, deploys, session, start, tenant};
use crate::server::{BEGIN, Server, Setup};

const HOUR_MS: u64 = 3_600_000;
/// After this time, a reservation whose call was never decided has lapsed.
const HALF_HOUR_MS: u64 = HOUR_MS / 2;
/// The number of shards besides the catalogue.
const SHARDS: u64 = 2;

/// People are asked about calls of `write`, of which one an hour is allowed.
const ASKS: &str = r#"{
    "name": "asks",
    "initial": "wait",
    "states": { "wait": { "question": "Written?", "answers": { "yes": { "next": null, "action": "complete" } } } },
    "policy": {
        "role": "agent",
        "ask": [{ "capability": "write", "rate_limit": { "max_calls": 1, "window_seconds": 3600 } }]
    }
}"#;
const KEY: &str = "session 0";

/// Three servers with clocks that stand.
struct Three {
    network: Network,
    clusters: Vec<Cluster>,
    clocks: [ManualClock; 3],
    _folder: TempDir,
}

async fn three(clocks: [Time; 3], network: Network) -> Three {
    let folder = tempfile::tempdir().unwrap();
    let clocks = clocks.map(ManualClock::new);
    let options = ServerOptions {
        folder: folder.path(),
        shards: SHARDS,
        cache_bytes: 64 * 1024,
        clocks: clocks.clone().map(|clock| Arc::new(clock) as Arc<dyn Clock>),
        ring: switchward_scenario::ring().clone(),
        raft: RaftSettings { heartbeat_ms: 100, election_min_ms: 1_000, election_max_ms: 2_000 },
        on_fatal: Arc::new(|why| panic!("{why}")),
    };
    let servers = switchward_testnet::open(&options, &network).await.unwrap();
    let clusters = servers.into_iter().map(|server| server.cluster).collect();
    Three { network, clusters, clocks, _folder: folder }
}

impl Three {
    fn isolate(&self, server: u64) {
        let others: Vec<u64> = (1..=3).filter(|other| *other != server).collect();
        self.network.isolate(server, &others);
    }

    /// Moves all clocks on, and waits until the servers follow them.
    async fn advance(&self, ms: u64) {
        let later = self.clocks.iter().map(|clock| clock.advance(ms)).max();
        until("the servers follow their clocks", async || {
            self.clusters.iter().all(|cluster| Some(cluster.now_or_median()) == later)
        })
        .await;
    }

    /// The last decision's time of the catalogue.
    async fn last_decision(&self, server: usize) -> Option<Time> {
        let rows = self.clusters[server].catalogue().read().await.ok()?;
        let row = rows.row(&Key::clock()).unwrap();
        if let Some(Row::Clock(at)) = row.as_deref() { Some(*at) } else { None }
    }
}

fn create(name: &str) -> Command {
    let tenant = CreateTenant { name: name.into(), display_name: name.into(), settings: Settings::default() };
    let body = Body::Catalogue(CatalogueCommand::CreateTenant(tenant));
    Command::of_server(TenantId(0), Scope::Catalogue, body)
}

/// Executes a command until it is known to be decided.
async fn decided(cluster: &Cluster, command: &Command) {
    until("it is decided", async || {
        let outcome = cluster.execute(command.clone()).await;
        // An earlier attempt may have done it.
        matches!(outcome, Ok(_) | Err(Failure::Rejected(_)))
    })
    .await;
}

fn is_known(offset_ms: [i64; 2], of: u64) -> Vec<ClockOffset> {
    let others = (1..=3).filter(|other| *other != of);
    others.zip(offset_ms).map(|(server, ms)| ClockOffset { server, ms }).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_cut_off_knows_it_and_the_others_do_not_mind() {
    let three = three([BEGIN; 3], Network::default()).await;
    let shards: Vec<&Shard> = three.clusters.iter().map(Cluster::catalogue).collect();
    for shard in &shards {
        until("it has asked the leader", async || shard.confirmed_within(CONTACT_LOST)).await;
        assert!(!shard.watch_contact().is_lost());
    }
    for away in [1_u64, 2] {
        three.isolate(away);
        let apart = shards[usize::try_from(away).unwrap() - 1];
        let mut watch = apart.watch_contact();
        tokio::time::timeout(Duration::from_secs(60), watch.lost()).await.expect("contact is lost");
        until("it leads nothing and has asked nobody lately", async || {
            !apart.confirmed_within(Duration::from_millis(1))
        })
        .await;
        for shard in shards.iter().filter(|shard| !std::ptr::eq(**shard, apart)) {
            until("the others reach a leader", async || shard.confirmed_within(CONTACT_LOST)).await;
        }
        three.network.heal();
        until("it is back", async || !watch.is_lost() && apart.confirmed_within(CONTACT_LOST)).await;
    }
}

/// What a server has just read it need not ask for: it may have opened a moment ago, before it asks by itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_has_read_is_in_contact_at_once() {
    let three = three([BEGIN; 3], Network::default()).await;
    for shard in three.clusters.iter().flat_map(Cluster::all) {
        until("it is read", async || shard.read().await.is_ok()).await;
        assert!(shard.confirmed_within(CONTACT_LOST), "group {}", shard.number());
    }
}

#[test]
fn a_server_alone_never_loses_contact() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::open(&Setup::new(folder.path()));
    for shard in server.cluster().all() {
        assert!(shard.confirmed_within(Duration::ZERO) && !shard.watch_contact().is_lost());
    }
    assert_eq!(server.cluster().clock_agreement(), ClockAgreement::Alone);
    server.shut_down();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_whose_clock_is_wrong_leads_nothing_and_no_decision_has_its_time() {
    for (ahead, by) in [(HOUR_MS, 3_600_000), (87_600 * HOUR_MS, 87_600 * 3_600_000)] {
        let network = Network::default();
        // The server that would lead the catalogue.
        network.set_clock_offsets(1, is_known([-by, -by], 1));
        network.set_clock_offsets(2, is_known([by, 0], 2));
        network.set_clock_offsets(3, is_known([by, 0], 3));
        let three = three([BEGIN.after_ms(ahead), BEGIN, BEGIN], network).await;
        until("it leads nothing", async || !three.clusters[0].all().any(Shard::leads)).await;
        assert_eq!(three.clusters[0].clock_agreement(), ClockAgreement::Differs { by_ms: by });
        assert_eq!(three.clusters[1].clock_agreement(), ClockAgreement::Agrees);
        decided(&three.clusters[0], &create("acme")).await;
        for server in 0..3 {
            until("every server shows it", async || three.last_decision(server).await == Some(BEGIN)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_decided_by_a_clock_that_was_not_compared() {
    let network = Network::default();
    for server in 1..=3 {
        network.set_clock_offsets(server, Vec::new());
    }
    let three = three([BEGIN.after_ms(HOUR_MS), BEGIN, BEGIN], network).await;
    assert!(three.clusters[1].execute(create("acme")).await.is_err());
    assert_eq!(three.last_decision(1).await, None);
    three.network.set_clock_offsets(1, is_known([-3_600_000, -3_600_000], 1));
    three.network.set_clock_offsets(2, is_known([3_600_000, 0], 2));
    three.network.set_clock_offsets(3, is_known([3_600_000, 0], 3));
    decided(&three.clusters[1], &create("acme")).await;
    until("by the right time", async || three.last_decision(1).await == Some(BEGIN)).await;
}

/// Executes a command until it is answered.
async fn answered(cluster: &Cluster, command: &Command) -> Reply {
    let mut answer = Err(Failure::Electing);
    until("it is answered", async || {
        answer = cluster.execute(command.clone()).await;
        answer.is_ok()
    })
    .await;
    answer.unwrap()
}

/// What becomes of a call of `write`.
async fn authorized(cluster: &Cluster, call: &str) -> Authorized {
    let answer = answered(cluster, &authorize(KEY, call, "write", None)).await;
    let Reply::Authorized(said) = answer else { panic!("{answer:?}") };
    *said
}

/// Approves the call that a gate asks about.
fn approve(gate: OpenId) -> Command {
    let (decision, comment) = (Decision::Approve, String::new());
    let decide = DecideGate { gate, decision, comment, shown: None, limits: None, proof: None };
    let body = Body::Approval(ApprovalCommand::DecideGate(decide));
    let actor = Actor { subject: "kim".into(), role: Role::Approver };
    Command { actor, ..command(tenant(KEY), Scope::Session(session(KEY)), Some("approve"), body) }
}

/// Reserves a call as a server does that dies before it decides the call.
async fn reserve(cluster: &Cluster, call: &Command) {
    until("it is reserved", async || {
        let Ok(view) = cluster.shard_of(session(KEY).bucket()).read().await else { return false };
        let plan = plan(&view, call, BEGIN).unwrap();
        let Plan::Look(Ledgers { call, rules, estimate }) = plan else { panic!("nobody is asked: {plan:?}") };
        let scope = Scope::Ledger(rules[0].process.clone());
        let ledger = cluster.shard_of(scope.bucket(tenant(KEY)).unwrap());
        let body = Body::Policy(PolicyCommand::Reserve(Reserve { call, rules, estimate }));
        let reply = ledger.submit(Command::of_server(tenant(KEY), scope, body)).await;
        matches!(reply, Ok(Reply::Limits(_)))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_whose_clock_is_behind_refuses_no_call_that_a_limit_allows() {
    let (network, by) = (Network::default(), 3_600_000);
    network.set_clock_offsets(1, is_known([by, by], 1));
    network.set_clock_offsets(2, is_known([-by, 0], 2));
    network.set_clock_offsets(3, is_known([-by, 0], 3));
    let three = three([Time(BEGIN.0 - HOUR_MS), BEGIN, BEGIN], network).await;
    let [behind, right, _] = three.clusters.as_slice() else { panic!("there are three") };
    until("it leads nothing", async || !behind.all().any(Shard::leads)).await;
    let asks = definition(ASKS);
    for command in create_tenants().into_iter().chain(deploys(&asks, ASKS)).chain([start(&asks, KEY)]) {
        answered(right, &command).await;
    }
    reserve(right, &authorize(KEY, "never decided", "write", None)).await;
    assert_eq!(authorized(behind, "too early").await.effect, CallEffect::Deny);
    three.advance(HALF_HOUR_MS).await;
    let asked = authorized(behind, "in time").await;
    assert_eq!(asked.effect, CallEffect::Ask);
    // An approval that has expired is none, whatever the clock of the server says.
    answered(right, &approve(asked.gate.unwrap())).await;
    three.advance(GRANT_KEPT_MS + HALF_HOUR_MS).await;
    assert_eq!(authorized(behind, "after the approval").await.effect, CallEffect::Ask);
}
