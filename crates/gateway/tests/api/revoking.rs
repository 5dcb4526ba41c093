//! A key is revoked, or an approver removed, at one server: within a second no other server accepts them, nor does a gateway,
//! which has no copy of the keys. A server that is cut off from the others accepts neither for more than five seconds.

use futures::StreamExt;
use futures::future::join_all;
use http::StatusCode;
use prost::Message;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use switchward_api::v1::{
    self, GateDecision, session_service_client::SessionServiceClient,
    worker_service_client::WorkerServiceClient,
};
use switchward_testkit::{PATIENCE, until};
use tokio::{task::JoinHandle, time::timeout};
use tonic::{Code, Status, Streaming, transport::Channel};

use crate::approvals::{approval_workflow, decide};
use crate::client::Line;
use crate::decision_page::{form_of, path_of, text};
use crate::harness::Harness;
use crate::mailing::{DANA, KIM};
use crate::node::{Node, PATIENT};
use crate::proxying::{Far, Fixed, Gateway};
use crate::refusal::Refusal;
use crate::rpcs::directory::of;
use crate::servers::{at, heal, insist, insist_with, isolate, three, with_key};

/// From this time on no server accepts what was revoked at another one that it reaches.
const WITHIN: Duration = Duration::from_secs(1);
/// The same for a server that reaches no other one.
const CUT_OFF_WITHIN: Duration = Duration::from_secs(5);
/// How much longer a server that is cut off is called.
const LONGER: Duration = Duration::from_secs(2);
/// The directory, and what it is without Kim.
const PEOPLE: [(&str, &str); 2] = [("dana", DANA), ("kim", KIM)];
const OTHERS: [(&str, &str); 1] = [("dana", DANA)];

/// A new key of acme.
struct NewKey {
    name: String,
    secret: String,
}

async fn key(harness: &Harness, role: v1::KeyRole, subject: &str) -> NewKey {
    let create = v1::CreateApiKeyRequest {
        role: role.into(),
        subject: subject.to_owned(),
        ..v1::CreateApiKeyRequest::default()
    };
    let made: v1::CreateApiKeyResponse = harness.ask("admin", "CreateApiKey", &create).await;
    NewKey { name: made.api_key.expect("a key").name, secret: made.secret }
}

/// Makes a call that a server answers by itself, without a leader. No rate counts it while the clock stands still.
async fn call(line: &Line, secret: &str) -> Result<(), Status> {
    let request = v1::GetClockRequest::default();
    line.ask::<v1::GetClockResponse>(secret, "GetClock", &request).await.map(drop)
}

/// Makes a change with the key of an admin, at a server that may be choosing its leaders.
async fn change<R: Message + Default>(
    harness: &Harness,
    server: usize,
    method: &str,
    request: &impl Message,
) -> R {
    let again = [Code::Unavailable, Code::Aborted];
    insist_with(harness, server, harness.acme.key("admin"), &again, method, request).await
}

/// Revokes a key at a server; returns when that was answered.
async fn revoke(harness: &Harness, server: usize, name: &str) -> Instant {
    let request = v1::RevokeApiKeyRequest { name: name.to_owned(), ..v1::RevokeApiKeyRequest::default() };
    let reply: v1::RevokeApiKeyResponse = change(harness, server, "RevokeApiKey", &request).await;
    assert!(reply.api_key.expect("a key").revoke_time.is_some());
    Instant::now()
}

/// A gateway before each server, with what answers its calls there.
async fn gateways(harness: &Harness) -> Vec<(Far, Gateway)> {
    let mut all = Vec::new();
    for (port, api) in harness.node.ports() {
        let far = Far::start(port, Arc::new(api), Fixed::alone).await;
        let gateway = Gateway::start(&[far.address]).await;
        gateway.ready().await;
        all.push((far, gateway));
    }
    all
}

/// The end of a stream: when it came, and with which status.
type End = JoinHandle<(Instant, Status)>;

fn end_of<T: Send + 'static>(mut stream: Streaming<T>) -> End {
    tokio::spawn(async move {
        loop {
            let message = stream.next().await.expect("the stream ends with a status");
            if let Err(status) = message {
                return (Instant::now(), status);
            }
        }
    })
}

/// Opens a watch and a stream of work.
async fn streams(harness: &Harness, address: SocketAddr, secret: &str) -> [End; 2] {
    let endpoint = Channel::from_shared(format!("http://{address}")).expect("an address");
    let channel = endpoint.connect().await.expect("a connection");
    let watch = v1::WatchSessionRequest { name: harness.acme.session.name.clone(), from_sequence: 1_000 };
    let watch = SessionServiceClient::new(channel.clone()).watch_session(with_key(secret, watch)).await;
    let wanted = Some(v1::WorkWanted { queues: vec!["no-work".to_owned()], ..Default::default() });
    let work = v1::StreamWorkRequest { wanted, max_items: 1, ..Default::default() };
    let work = WorkerServiceClient::new(channel).stream_work(with_key(secret, work)).await;
    [end_of(watch.expect("a stream").into_inner()), end_of(work.expect("a stream").into_inner())]
}

/// Calls one time after the other until the key is refused. No call that begins too late is accepted. A server that cannot
/// ask the leader on a busy machine fails closed.
async fn refused_soon(line: &Line, secret: &str, revoked: Instant) {
    loop {
        let begun = revoked.elapsed();
        match call(line, secret).await {
            Ok(()) => assert!(begun <= WITHIN, "{} accepts it after {begun:?}", line.address),
            Err(status) if status.code() == Code::Unauthenticated => return,
            Err(status) => {
                assert_eq!(status.code(), Code::Unavailable, "{status:?}");
                assert!(begun < PATIENCE, "{} does not answer", line.address);
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_is_revoked_at_any_server_is_refused_everywhere_within_a_second() {
    let harness = Harness::over(Node::start_three(None, PATIENT).await).await;
    let gateways = gateways(&harness).await;
    let mut lines: Vec<Line> = (0..3).map(|server| harness.node.line.to(server)).collect();
    for (_, gateway) in &gateways {
        lines.push(Line::connect(gateway.address).await);
    }
    for server in 0..3 {
        let key = key(&harness, v1::KeyRole::Admin, "short-lived").await;
        let mut open = Vec::new();
        for line in &lines {
            call(line, &key.secret).await.expect("a new key counts everywhere");
            open.extend(streams(&harness, line.address, &key.secret).await);
        }
        let revoked = revoke(&harness, server, &key.name).await;
        join_all(lines.iter().map(|line| refused_soon(line, &key.secret, revoked))).await;
        for end in open {
            let (ended, status) = timeout(PATIENCE, end).await.expect("it ends").expect("no panic");
            assert_eq!(status.code(), Code::Unauthenticated, "{status:?}");
            let late = ended.saturating_duration_since(revoked);
            assert!(late <= WITHIN, "a stream ends after {late:?}");
        }
    }
    drop((lines, gateways));
    harness.node.end().await;
}

/// Calls a server that is cut off for longer than it may accept the key. What it has refused once it does not accept later.
async fn refused_for_good(line: &Line, secret: &str, revoked: Instant) {
    let mut refused: Option<Duration> = None;
    while revoked.elapsed() < CUT_OFF_WITHIN + LONGER {
        let begun = revoked.elapsed();
        match call(line, secret).await {
            Ok(()) => {
                assert!(begun <= CUT_OFF_WITHIN, "it is accepted after {begun:?}");
                assert_eq!(refused, None, "it is accepted after {begun:?}, and was refused before");
            }
            Err(status) => {
                let fails_closed = matches!(status.code(), Code::Unavailable | Code::Unauthenticated);
                assert!(fails_closed, "{status:?}");
                refused = refused.or(Some(begun));
            }
        }
    }
    assert!(refused.is_some(), "it is never refused");
}

fn index(server: u64) -> usize {
    usize::try_from(server - 1).expect("small")
}

/// The number of the server that leads the catalogue.
async fn catalogue_leader(harness: &Harness) -> u64 {
    let mut found = None;
    until("the catalogue has a leader", async || {
        found = harness.node.clusters().zip(1..).find(|(one, _)| one.catalogue().leads());
        found.is_some()
    })
    .await;
    found.expect("a leader").1
}

/// A server that is cut off fails closed for a key that is revoked at another one, and refuses it once it is back.
async fn revoked_elsewhere(harness: &Harness, away: u64) {
    let key = key(harness, v1::KeyRole::Agent, "short-lived").await;
    let line = harness.node.line.to(index(away));
    call(&line, &key.secret).await.expect("a new key counts everywhere");
    isolate(harness, away);
    let revoked = revoke(harness, index(away % 3 + 1), &key.name).await;
    refused_for_good(&line, &key.secret, revoked).await;
    let valid =
        call(&line, harness.acme.key("agent")).await.expect_err("it cannot know that the key is valid");
    assert_eq!(valid.code(), Code::Unavailable, "{valid:?}");
    heal(harness);
    until("a valid key is accepted again", async || call(&line, harness.acme.key("agent")).await.is_ok())
        .await;
    until("the revoked key is known", async || {
        let refused = call(&line, &key.secret).await.expect_err("the key was revoked");
        refused.code() == Code::Unauthenticated
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_that_is_cut_off_refuses_a_revoked_key_after_five_seconds() {
    let harness = three().await;
    let away = catalogue_leader(&harness).await % 3 + 1;
    revoked_elsewhere(&harness, away).await;
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_leader_of_the_catalogue_that_is_cut_off_refuses_a_revoked_key_after_five_seconds() {
    let harness = three().await;
    let away = catalogue_leader(&harness).await;
    revoked_elsewhere(&harness, away).await;
    harness.node.end().await;
}

/// A gate that asks Kim and Dana by their addresses.
async fn gate(harness: &Harness) -> v1::Gate {
    let name = harness.fresh("spend");
    harness.deploy(&approval_workflow(&name, &[KIM, DANA], "Spend?", "May we?")).await;
    let start = v1::StartSessionRequest { definition: name, ..Default::default() };
    let reply: v1::StartSessionResponse = harness.ask("agent", "StartSession", &start).await;
    harness.gate_of(&reply.session.expect("a session")).await
}

/// Kim's key, and open gates that ask Kim, who is in the directory.
async fn kim(harness: &Harness, gates: usize) -> (NewKey, Vec<v1::Gate>) {
    let _: v1::PutDirectoryResponse = harness.ask("admin", "PutDirectory", &of(&PEOPLE)).await;
    let key = key(harness, v1::KeyRole::Approver, "kim").await;
    let mut open = Vec::new();
    while open.len() < gates {
        open.push(gate(harness).await);
    }
    (key, open)
}

async fn approve(
    harness: &Harness,
    server: usize,
    secret: &str,
    gate: &v1::Gate,
) -> Result<v1::DecideGateResponse, Status> {
    at(harness, server, secret, "DecideGate", &decide(gate, GateDecision::Approve)).await
}

/// The directory makes Kim's key that of an approver.
async fn may_approve(harness: &Harness, secret: &str, gate: &v1::Gate) {
    until("Kim approves", async || match approve(harness, 0, secret, gate).await {
        Ok(_) => true,
        Err(status) => {
            assert_eq!(status.code(), Code::Unavailable, "{status:?}");
            false
        }
    })
    .await;
}

async fn assert_open(harness: &Harness, gate: &v1::Gate) {
    let request = v1::GetGateRequest { name: gate.name.clone(), ..Default::default() };
    let shown: v1::GetGateResponse = insist(harness, 0, "GetGate", &request).await;
    assert_eq!(shown.gate.expect("a gate").status(), v1::GateStatus::Open);
}

/// Approves at a server until that is refused because nobody of this name is asked. It is never accepted.
async fn not_an_approver_soon(
    harness: &Harness,
    server: usize,
    secret: &str,
    gate: &v1::Gate,
    removed: Instant,
) {
    loop {
        let begun = removed.elapsed();
        let outcome = approve(harness, server, secret, gate).await;
        let refusal = Refusal::of(&outcome.expect_err("somebody who was removed approves"));
        if refusal.reason == "NOT_AN_APPROVER" {
            return;
        }
        assert_eq!(refusal.code, Code::Unavailable, "{refusal:?}");
        assert!(begun <= WITHIN, "server {server} still does not know it after {begun:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_approver_who_is_removed_at_any_server_is_refused_everywhere_within_a_second() {
    let harness = Harness::over(Node::start_three(None, PATIENT).await).await;
    for server in 0..3 {
        let (kim, gates) = kim(&harness, 4).await;
        may_approve(&harness, &kim.secret, &gates[3]).await;
        let _: v1::PutDirectoryResponse = change(&harness, server, "PutDirectory", &of(&OTHERS)).await;
        let removed = Instant::now();
        let each = gates.iter().take(3).enumerate();
        let each = each.map(|(at, gate)| not_an_approver_soon(&harness, at, &kim.secret, gate, removed));
        join_all(each).await;
        for gate in gates.iter().take(3) {
            assert_open(&harness, gate).await;
        }
    }
    harness.node.end().await;
}

/// Approves on a page at a server until that is refused because the directory does not lead to its person any more. It is
/// never accepted.
async fn page_refused_soon(line: &Line, path: &str, form: &str, removed: Instant) {
    loop {
        let begun = removed.elapsed();
        let answer = line.send(form_of(path, form)).await;
        let (status, page) = (answer.status, text(&answer));
        if status == StatusCode::FORBIDDEN && page.contains("because the directory named you") {
            return;
        }
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{page}");
        assert!(begun <= WITHIN, "{} still does not know it after {begun:?}", line.address);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_link_of_an_approver_who_is_removed_is_refused_everywhere_within_a_second() {
    let harness = Harness::over(Node::start_three(None, PATIENT).await).await;
    let asked = harness.asked().await;
    let path = path_of(&asked, KIM);
    let form = format!("decision=approve&shown={}&form={}", asked.gate.args_digest, "0".repeat(32));
    let without = of(&[("dana", DANA), ("owner:release", DANA)]);
    let _: v1::PutDirectoryResponse = change(&harness, 1, "PutDirectory", &without).await;
    let removed = Instant::now();
    let lines: Vec<Line> = (0..3).map(|server| harness.node.line.to(server)).collect();
    join_all(lines.iter().map(|line| page_refused_soon(line, &path, &form, removed))).await;
    assert_open(&harness, &asked.gate).await;
    drop(lines);
    harness.node.end().await;
}

/// Approves at a server that is cut off, again and again: that is never accepted.
async fn never_approves(harness: &Harness, server: usize, secret: &str, gate: &v1::Gate, removed: Instant) {
    while removed.elapsed() < CUT_OFF_WITHIN + LONGER {
        let outcome = approve(harness, server, secret, gate).await;
        let status = outcome.expect_err("somebody who was removed approves");
        assert!(matches!(status.code(), Code::Unavailable | Code::Aborted), "{status:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_cut_off_takes_no_decision_of_an_approver_who_was_removed() {
    let harness = three().await;
    let (kim, gates) = kim(&harness, 4).await;
    may_approve(&harness, &kim.secret, &gates[3]).await;
    let away = 3;
    isolate(&harness, away);
    let _: v1::PutDirectoryResponse = change(&harness, 0, "PutDirectory", &of(&OTHERS)).await;
    let removed = Instant::now();
    let each = gates.iter().take(3);
    join_all(each.map(|gate| never_approves(&harness, index(away), &kim.secret, gate, removed))).await;
    heal(&harness);
    for gate in gates.iter().take(3) {
        until("it is known that nobody of this name is asked", async || {
            let outcome = approve(&harness, index(away), &kim.secret, gate).await;
            let refusal = Refusal::of(&outcome.expect_err("somebody who was removed approves"));
            refusal.reason == "NOT_AN_APPROVER"
        })
        .await;
        assert_open(&harness, gate).await;
    }
    harness.node.end().await;
}
