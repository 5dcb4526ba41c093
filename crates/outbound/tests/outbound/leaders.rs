//! What becomes of effects and timers when other servers become leaders.

use std::future::Future;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use switchward_bus::{Bus, Envelope, Stream};
use switchward_engine::session_view;
use switchward_machine::{Digest, SessionId, Status, TenantId};
use switchward_shard::{NotAccepted, TimerBatch, TimerTransport};
use switchward_state::catalogue::{CatalogueCommand, Deploy, EnsureTenancy};
use switchward_state::run::{Answer, RunCommand};
use switchward_state::session::{SessionCommand, Start};
use switchward_state::{Body, Command, Key, Kind, Row, Scope, View as _};
use switchward_testkit::{start_of, until};

use crate::servers::{NODES, Servers};

pub(crate) const TENANT: TenantId = TenantId(1);
pub(crate) const PROCESS: &str = r#"{
    "name": "gate", "initial": "ask",
    "states": {
        "ask": { "question": "What now?", "answers": { "help": { "next": "ask", "action": "notify_human" } } }
    }
}"#;
/// The group of the one shard.
pub(crate) const SHARD: u64 = 1;
const CHANGES: usize = 30;
/// Mails before each change of leaders. More than a relay has in flight to destinations that it does not know.
const MAILS: usize = 6;

/// Rests for an hour, and ends.
const NAP: &str = r#"{
    "name": "gate",
    "states": [
        { "name": "rest", "type": "wait", "wait_for": "timer", "timeout_hours": 1 },
        { "name": "up", "type": "output", "template": "Good morning.", "target": "conversation" }
    ],
    "transitions": [{ "from": "rest", "port": "received", "to": "up" }]
}"#;
const HOUR_MS: u64 = 3_600_000;

/// Puts a definition into the catalogue.
pub(crate) async fn deployed(servers: &Servers, format: &str, source: &str) -> Digest {
    let submit = async |body| {
        let command = Command::of_server(TENANT, Scope::Catalogue, Body::Catalogue(body));
        servers.cluster(NODES[0]).execute(command).await.unwrap()
    };
    let ensure = EnsureTenancy { any_approver_address: false, link_auth: None, key: None };
    submit(CatalogueCommand::EnsureTenancy(ensure)).await;
    let compiled = switchward_formats::compile_file("gate.json", source.as_bytes(), None);
    let definition = compiled.definition.unwrap_or_else(|| panic!("{:?}", compiled.findings));
    let machine = Arc::new(definition.machine);
    let digest = machine.digest();
    let deploy = Deploy {
        findings: Vec::new(),
        name: "gate".to_owned(),
        format: format.to_owned(),
        source: digest,
        files: Vec::new(),
        machine,
        activate: true,
        etag: String::new(),
    };
    submit(CatalogueCommand::Deploy(deploy)).await;
    digest
}

/// Begins a session that notifies somebody by mail, at any server.
pub(crate) async fn mails(servers: &Servers, number: usize, machine: Digest) -> SessionId {
    let session = SessionId(u128::try_from(number + 1).unwrap().to_be_bytes());
    let cluster = servers.cluster(NODES[number % NODES.len()]);
    let submit = async |body| {
        cluster.execute(Command::of_server(TENANT, Scope::Session(session), body)).await.unwrap()
    };
    let audience = vec![format!("kim{number}@acme.example")];
    let start = Start { audience, ..start_of("gate", 1, machine, "agent") };
    submit(Body::Session(SessionCommand::Start(start))).await;
    let answer = Answer { answer: "help".to_owned(), state: None, note: String::new() };
    submit(Body::Run(RunCommand::Answer(answer))).await;
    session
}

/// Returns true if a session has effects that are not delivered.
async fn waits(servers: &Servers, session: SessionId) -> bool {
    let Ok(view) = servers.shard(NODES[0], SHARD).read().await else { return true };
    let mut any = false;
    let prefix = Key::prefix_of_session(TENANT, session, Kind::Outbox);
    let scanned = view.scan(&prefix, None, &mut |_, _| {
        any = true;
        ControlFlow::Break(())
    });
    scanned.unwrap();
    any
}

/// Returns true if the first attempt at a session's mail has failed.
async fn is_deferred(servers: &Servers, session: SessionId) -> bool {
    let Ok(view) = servers.shard(NODES[0], SHARD).read().await else { return false };
    let mut deferred = false;
    let prefix = Key::prefix_of_session(TENANT, session, Kind::Outbox);
    let scanned = view.scan(&prefix, None, &mut |_, row| {
        deferred |= matches!(&**row, Row::Outbox(effect) if effect.attempt().number == 1);
        ControlFlow::Continue(())
    });
    scanned.unwrap();
    deferred
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thirty_changes_of_leaders_send_each_mail_once() {
    let servers = Servers::open(&NODES).await;
    each_mail_is_sent_once(&servers, CHANGES).await;
    servers.end().await;
}

/// Begins sessions that send a mail, with this many changes of the leader among them.
pub(crate) async fn each_mail_is_sent_once(servers: &Servers, changes: usize) {
    let machine = deployed(servers, "checkpoint", PROCESS).await;
    let mut sessions = Vec::new();
    for change in 0..changes {
        for _ in 0..MAILS {
            sessions.push(mails(servers, sessions.len(), machine).await);
        }
        servers.hand_over(SHARD, NODES[(change + 1) % NODES.len()]).await;
    }
    for session in &sessions {
        until("its mail is delivered", async || !waits(servers, *session).await).await;
    }
    let counts = servers.sent.counts();
    let twice: Vec<&String> = counts.iter().filter(|(_, count)| **count > 1).map(|(id, _)| id).collect();
    assert_eq!((twice, counts.len()), (Vec::new(), sessions.len()));
}

/// Jobs of one leader go to workers whose clocks are off in both directions: none of them is over before it began, and what
/// fails is tried again when its wait is over by the clock of the leader.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_whose_clocks_are_off_deliver_in_time() {
    for off_ms in [90_000, 3_600_000] {
        let servers = Servers::with_clocks(&NODES, [0, off_ms, -off_ms]).await;
        servers.sent.refusals.store(1, Ordering::SeqCst);
        let machine = deployed(&servers, "checkpoint", PROCESS).await;
        let mut sessions = Vec::new();
        for number in 0..NODES.len() {
            sessions.push(mails(&servers, number, machine).await);
        }
        until("each mail was refused", async || servers.sent.counts().len() == sessions.len()).await;
        for session in &sessions {
            until("its mail waits for the second attempt", async || is_deferred(&servers, *session).await)
                .await;
        }
        servers.clock.advance(1_000);
        for session in &sessions {
            until("its mail is delivered", async || !waits(&servers, *session).await).await;
        }
        let counts = servers.sent.counts();
        assert!(counts.values().all(|count| *count == 2), "{off_ms} ms: {counts:?}");
        servers.end().await;
    }
}

/// Puts the batches of a leader on the bus. The leader itself takes none from there.
struct ToBus(Arc<dyn Bus>);

impl TimerTransport for ToBus {
    fn hand_out(
        &self,
        batch: TimerBatch,
    ) -> Pin<Box<dyn Future<Output = Result<(), NotAccepted>> + Send + '_>> {
        Box::pin(async move {
            let envelope = Envelope { tenant: 0, id: batch.name(), body: batch.encode() };
            let published = self.0.publish(Stream::Timer, envelope).await;
            published.map(drop).map_err(|error| NotAccepted(error.to_string()))
        })
    }
}

/// Every batch comes to a server that does not lead, and goes to the leader from there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn timers_that_come_to_another_server_are_fired_by_the_leader() {
    const ROUNDS: u32 = 5;
    let servers = Servers::open(&NODES[1..]).await;
    let leader = servers.shard(NODES[0], SHARD);
    servers.cluster(NODES[0]).set_timer_transport(Some(Arc::new(ToBus(servers.bus.clone()))));
    let machine = deployed(&servers, "conversation", NAP).await;
    for round in 1..=ROUNDS {
        let session = SessionId(u128::from(round).to_be_bytes());
        let start = Body::Session(SessionCommand::Start(start_of("gate", 1, machine, "agent")));
        let command = Command::of_server(TENANT, Scope::Session(session), start);
        servers.cluster(NODES[0]).execute(command).await.unwrap();
        servers.clock.advance(HOUR_MS);
        until("it has woken", async || {
            let Ok(view) = leader.read().await else { return false };
            let found = view.consistent(|view| session_view(view, TENANT, session)).unwrap();
            found.is_some_and(|found| found.session.status == Status::Completed)
        })
        .await;
    }
    let counts = leader.timer_counts();
    // On a busy machine a batch may come too late, and is fired without it.
    assert!(counts.came > 0, "{counts:?}");
    servers.end().await;
}
