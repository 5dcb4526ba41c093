//! What the catalogue says of a tenant reaches every shard by itself; a shard that cannot ask it takes no decisions.

use switchward_machine::{Decision, OpenId};
use switchward_shard::{Failure, Shard};
use switchward_state::approval::{ApprovalCommand, DecideGate};
use switchward_state::catalogue::{CatalogueCommand, Directory, PutDirectory};
use switchward_state::{Body, Command, Key, Reason, Reply, Row, Scope, View};
use switchward_testkit::until;

use crate::commands::{TENANTS, answer, command, session, tenant};
use crate::server::{Server, Setup};
use crate::three_voters::{callers, hand_over, key_in};
use crate::trio::{NODES, Trio};

/// The tenant's people are these from now on.
fn put(people: &str) -> Command {
    let directory = Directory { audience: vec![people.to_owned()], ..Directory::default() };
    let body = CatalogueCommand::PutDirectory(PutDirectory { directory, key: None, etag: String::new() });
    command(TENANTS[0], Scope::Catalogue, None, Body::Catalogue(body))
}

/// The people whom a shard knows.
fn people(shard: &Shard) -> Vec<String> {
    match shard.read_stale().row(&Key::tenancy(TENANTS[0])).unwrap().as_deref() {
        Some(Row::Tenancy(tenancy)) => tenancy.directory.audience.clone(),
        _ => Vec::new(),
    }
}

/// Approves a gate of a session that does not exist.
fn approve(key: &str) -> Command {
    let (decision, comment) = (Decision::Approve, String::new());
    let decide = DecideGate { gate: OpenId(1), decision, comment, shown: None, limits: None, proof: None };
    let body = Body::Approval(ApprovalCommand::DecideGate(decide));
    command(tenant(key), Scope::Session(session(key)), None, body)
}

fn is_decided(answer: &Result<Reply, Failure>) -> bool {
    matches!(answer, Err(Failure::Rejected(no)) if no.reason == Reason::NotFound)
}

async fn lead_all(trio: &Trio) {
    for group in 0..3 {
        hand_over(trio, group, NODES[0]).await;
    }
}

async fn insist(trio: &Trio, command: Command) -> Reply {
    let mut done = None;
    until("the server leads", async || {
        done = trio.cluster(NODES[0]).execute(command.clone()).await.ok();
        done.is_some()
    })
    .await;
    done.unwrap()
}

#[test]
fn a_shard_that_missed_a_change_gets_it_by_itself() {
    let trio = Trio::patient();
    callers().block_on(async {
        lead_all(&trio).await;
        insist(&trio, put("kim@example.com")).await;
        let [first, second] = [1, 2].map(|group| trio.shard(NODES[0], group));
        assert!([first, second].map(people).iter().all(|people| people == &["kim@example.com"]));
        hand_over(&trio, 1, NODES[1]).await;
        let changed = trio.cluster(NODES[0]).execute(put("dana@example.com")).await;
        assert_eq!(changed, Err(Failure::OutcomeUnknown), "a shard could not be reached");
        assert_eq!(people(second), ["dana@example.com"], "a shard that was not reached stops no other");
        assert_eq!(people(first), ["kim@example.com"]);
        hand_over(&trio, 1, NODES[0]).await;
        until("the shard has the change", async || people(first) == ["dana@example.com"]).await;
    });
    trio.assert_sound();
}

#[test]
fn a_shard_that_cannot_reach_the_catalogue_takes_no_decisions() {
    let trio = Trio::patient();
    callers().block_on(async {
        lead_all(&trio).await;
        insist(&trio, put("kim@example.com")).await;
        let key = key_in(&trio, 1, "session");
        let cluster = trio.cluster(NODES[0]);
        until("decisions are taken", async || is_decided(&cluster.execute(approve(&key)).await)).await;
        hand_over(&trio, 0, NODES[1]).await;
        until("decisions are refused", async || {
            let answer = cluster.execute(approve(&key)).await;
            assert!(is_decided(&answer) || answer == Err(Failure::Unconfirmed), "{answer:?}");
            answer == Err(Failure::Unconfirmed)
        })
        .await;
        let step = cluster.execute(answer(&key, "step", "yes")).await;
        assert!(is_decided(&step), "a step needs no record: {step:?}");
        hand_over(&trio, 0, NODES[0]).await;
        until("decisions are taken again", async || is_decided(&cluster.execute(approve(&key)).await)).await;
    });
    trio.assert_sound();
}

#[test]
fn a_server_takes_decisions_as_soon_as_it_is_open() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::open(&Setup::new(folder.path()));
    for number in 0..8 {
        let answer = server.run(server.cluster().execute(approve(&format!("session {number}"))));
        assert!(is_decided(&answer), "{answer:?}");
    }
    server.shut_down();
}
