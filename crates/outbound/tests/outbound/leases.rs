//! What becomes of work that a leader has leased and not put on the bus before another server leads.

use std::ops::ControlFlow;

use serde_json::{Map, json};
use switchward_bus::{Delivery, Published, Stream};
use switchward_delivery::worker::{DeliveryJob, Origin};
use switchward_machine::{Digest, OpenId, SessionId};
use switchward_outbound::BusReach;
use switchward_state::run::{RecordEvent, RunCommand};
use switchward_state::session::SessionCommand;
use switchward_state::work::{LeaseWork, Owed, SERVER_WORKER, WorkCommand};
use switchward_state::{Body, Command, Key, Kind, OpenItem, Row, Scope, View as _};
use switchward_testkit::{PATIENCE, start_of};

use crate::apart::said;
use crate::leaders::{SHARD, TENANT, deployed};
use crate::servers::{NODES, Servers};

/// The lease of a relay, milliseconds.
const LEASE_MS: u64 = 90_000;

/// A definition that makes a request.
fn definition() -> String {
    let request = json!({ "type": "http_request", "config": {
        "method": "POST", "url": "https://orders.example/new", "body": {}, "into": "order" } });
    json!({
        "name": "gate",
        "states": [
            { "name": "push", "type": "logic", "operations": [request] }, { "name": "fine", "type": "conversation" } ],
        "transitions": [{ "from": "push", "to": "fine", "guards": [{ "type": "always" }] }],
    })
    .to_string()
}

/// The same, and a person is asked about its state as soon as an event has come.
fn definition_with_gate() -> String {
    let request = json!({ "type": "http_request", "config": {
        "method": "POST", "url": "https://orders.example/new", "body": {} } });
    let paid = json!({ "type": "external_event", "config": { "event_key": "paid" } });
    json!({
        "name": "gate",
        "states": [
            { "name": "push", "type": "logic", "operations": [request],
              "require_human_approval": true, "approval_contacts": ["lead@example.com"] },
            { "name": "fine", "type": "conversation" } ],
        "transitions": [{ "from": "push", "to": "fine", "guards": [paid] }],
    })
    .to_string()
}

/// The head of the job of a session's request under its first lease.
fn head_of(session: SessionId, item: OpenId) -> String {
    format!(
        r#"{{"tenant":1,"session":"{session}","origin":{{"work":{{"item":{},"fence":1}}}},"channel":"http"}}"#,
        item.0
    )
}

async fn execute(servers: &Servers, session: SessionId, body: Body) {
    let command = Command::of_server(TENANT, Scope::Session(session), body);
    servers.cluster(NODES[0]).execute(command).await.unwrap();
}

/// Begins a session that makes a request.
async fn started(servers: &Servers, number: u128, machine: Digest) -> SessionId {
    let session = SessionId(number.to_be_bytes());
    let start = SessionCommand::Start(start_of("gate", 1, machine, "agent"));
    execute(servers, session, Body::Session(start)).await;
    session
}

/// The work of a session, and who has it.
async fn work_of(servers: &Servers, session: SessionId) -> (OpenId, Owed) {
    let view = servers.shard(NODES[1], SHARD).read().await.unwrap();
    let mut found = None;
    let prefix = Key::prefix_of_session(TENANT, session, Kind::OpenItem);
    let scanned = view.scan(&prefix, None, &mut |key, row| {
        if let Row::OpenItem(OpenItem::Work(work)) = &**row {
            found = key.item_of().map(|(_, item)| (item, work.body.owed.clone()));
        }
        ControlFlow::Continue(())
    });
    scanned.unwrap();
    found.unwrap()
}

/// Leases the work of a session as a relay does, and publishes nothing.
async fn leased(servers: &Servers, session: SessionId) -> OpenId {
    let (item, _) = work_of(servers, session).await;
    let lease = LeaseWork { item, worker: SERVER_WORKER.to_owned(), lease_ms: LEASE_MS };
    execute(servers, session, Body::Work(WorkCommand::Lease(lease))).await;
    item
}

/// The next jobs on the bus.
async fn jobs(servers: &Servers) -> Vec<(Delivery, DeliveryJob)> {
    let deliveries = servers.bus.take(Stream::Http, "worker", 9, PATIENCE).await.unwrap();
    let read = |delivery: Delivery| {
        let job = DeliveryJob::read(&delivery.envelope).unwrap();
        (delivery, job)
    };
    deliveries.into_iter().map(read).collect()
}

/// No clock moves, so no lease ends in this test.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_leader_publishes_at_once_what_the_one_before_had_leased() {
    let mut servers = Servers::open(&[]).await;
    servers.relay(NODES[1], BusReach::Cluster);
    let machine = deployed(&servers, "conversation", &definition()).await;
    let session = started(&servers, 1, machine).await;
    let item = leased(&servers, session).await;
    servers.hand_over(SHARD, NODES[1]).await;
    let jobs = jobs(&servers).await;
    let [(delivery, job)] = &jobs[..] else { panic!("{jobs:?}") };
    assert_eq!((job.session, job.origin), (session, Origin::Work { item, fence: 1 }));
    let (_, owed) = work_of(&servers, session).await;
    assert_eq!((owed.fence, owed.lapsed, owed.lease.is_some()), (1, 0, true));

    // The former leader still runs, and publishes late.
    let late = async || servers.bus.publish(Stream::Http, delivery.envelope.clone()).await;
    assert_eq!(late().await, Ok(Published::Already));
    let head = head_of(session, item);
    let wanted = async || said(&servers, &format!(r#"{{"wanted":{head}}}"#)).await.unwrap();
    let answer = wanted().await;
    assert!(answer.starts_with(r#"{"wanted""#), "{answer}");
    let outcome = r#"{"http":{"status":200,"body":null}}"#;
    let report = format!(r#"{{"report":{{"job":{head},"outcome":{outcome}}}}}"#);
    assert_eq!(said(&servers, &report).await, Ok(r#""accepted""#.to_owned()));
    servers.bus.ack(Stream::Http, std::slice::from_ref(&delivery.receipt)).await.unwrap();
    // Even later the bus does not know the job any more, and nobody does it again.
    assert_eq!(late().await, Ok(Published::Added));
    assert_eq!(wanted().await, r#""gone""#);
    servers.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_is_published_by_the_next_leader_has_all_of_its_time() {
    let mut servers = Servers::open(&[]).await;
    servers.relay(NODES[1], BusReach::Cluster);
    let machine = deployed(&servers, "conversation", &definition()).await;
    let session = started(&servers, 1, machine).await;
    leased(&servers, session).await;
    let until = work_of(&servers, session).await.1.lease.unwrap().until;
    servers.clock.advance(LEASE_MS - 10_000);
    // The shard's time is that of its last decision, whatever the clock of the next leader says.
    started(&servers, 2, machine).await;
    servers.hand_over(SHARD, NODES[1]).await;
    let mut times = Vec::new();
    while times.len() < 2 {
        let jobs = jobs(&servers).await;
        assert!(!jobs.is_empty(), "both are published");
        times.extend(jobs.into_iter().map(|(_, job)| (job.session, job.ttl_ms)));
    }
    assert!(times.iter().any(|(of, _)| *of == session), "{times:?}");
    assert!(times.iter().all(|(_, ttl_ms)| *ttl_ms == times[0].1), "{times:?}");
    let extended = work_of(&servers, session).await.1.lease.unwrap().until;
    assert!(extended >= until.after_ms(LEASE_MS - 10_000), "{extended:?} after {until:?}");
    servers.end().await;
}

/// The former leader may do the job yet, and the next one could not know.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_with_a_bus_for_each_leave_the_leases_of_others() {
    let mut servers = Servers::open(&[]).await;
    servers.relay(NODES[1], BusReach::Server);
    let machine = deployed(&servers, "conversation", &definition()).await;
    let former = started(&servers, 1, machine).await;
    leased(&servers, former).await;
    let other = started(&servers, 2, machine).await;
    servers.hand_over(SHARD, NODES[1]).await;
    let jobs = jobs(&servers).await;
    let sessions: Vec<SessionId> = jobs.iter().map(|(_, job)| job.session).collect();
    assert_eq!(sessions, [other]);
    servers.end().await;
}

/// The outcome is a failure, which brings no data and does not count if the person approves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_ended_while_a_person_is_asked_is_not_done_again() {
    let mut servers = Servers::open(&[]).await;
    servers.relay(NODES[1], BusReach::Cluster);
    let machine = deployed(&servers, "conversation", &definition_with_gate()).await;
    let session = started(&servers, 1, machine).await;
    let head = head_of(session, leased(&servers, session).await);
    let event = RecordEvent {
        key: "paid".to_owned(),
        data: Map::new(),
        state: None,
        model: false,
        token: None,
        webhook: None,
        once: None,
    };
    execute(&servers, session, Body::Run(RunCommand::RecordEvent(event))).await;
    let report =
        format!(r#"{{"report":{{"job":{head},"outcome":{{"http":{{"status":503,"body":null}}}}}}}}"#);
    assert_eq!(said(&servers, &report).await, Ok(r#""accepted""#.to_owned()));
    let other = started(&servers, 2, machine).await;
    servers.hand_over(SHARD, NODES[1]).await;
    let jobs = jobs(&servers).await;
    let sessions: Vec<SessionId> = jobs.iter().map(|(_, job)| job.session).collect();
    assert_eq!(sessions, [other]);
    assert_eq!(said(&servers, &format!(r#"{{"wanted":{head}}}"#)).await, Ok(r#""gone""#.to_owned()));
    servers.end().await;
}
