//! The servers of the cluster: what an admin changes, what is refused and why, and what auditors see of it. The servers of the
//! test vote in all groups and lead them; the others, which are changed here, do not run.

use prost::Message;
use switchward_api::v1;
use switchward_machine::TenantId;
use switchward_state::catalogue::ServerState;
use switchward_testkit::until;
use tonic::Status;

use crate::harness::Harness;
use crate::node::Node;
use crate::protocols::Protocol;
use crate::refusal::{Refusal, refused};

/// A number that no server has.
const NOBODY: u64 = 9_999;
/// A group that the first server leads, alone or beside two others.
const LED: u64 = 3;

async fn drain(harness: &Harness, server: u64, id: &str) -> Result<v1::ClusterServerChange, Status> {
    let request = v1::DrainServerRequest { server, request_id: id.to_owned() };
    let reply: Result<v1::DrainServerResponse, _> = harness.attempt("admin", "DrainServer", &request).await;
    reply.map(|reply| reply.change.expect("a change"))
}

async fn activate(harness: &Harness, server: u64) -> Result<v1::ClusterServerChange, Status> {
    let request = v1::ActivateServerRequest { server, ..Default::default() };
    let reply: Result<v1::ActivateServerResponse, _> =
        harness.attempt("admin", "ActivateServer", &request).await;
    reply.map(|reply| reply.change.expect("a change"))
}

async fn remove(harness: &Harness, server: u64) -> Result<v1::ClusterServerChange, Status> {
    let request = v1::RemoveServerRequest { server, ..Default::default() };
    let reply: Result<v1::RemoveServerResponse, _> = harness.attempt("admin", "RemoveServer", &request).await;
    reply.map(|reply| reply.change.expect("a change"))
}

async fn replace(
    harness: &Harness,
    server: u64,
    replaced_by: u64,
) -> Result<v1::ClusterServerChange, Status> {
    let request = v1::ReplaceServerRequest { server, replaced_by, ..Default::default() };
    let reply: Result<v1::ReplaceServerResponse, _> =
        harness.attempt("admin", "ReplaceServer", &request).await;
    reply.map(|reply| reply.change.expect("a change"))
}

async fn transfer(harness: &Harness, from: u64, groups: &[u64], to: u64) -> Result<(), Status> {
    let request = v1::TransferLeadersRequest {
        from_server: from,
        groups: groups.to_vec(),
        to_server: to,
        ..Default::default()
    };
    let reply: Result<v1::TransferLeadersResponse, _> =
        harness.attempt("admin", "TransferLeaders", &request).await;
    reply.map(drop)
}

async fn raise(harness: &Harness, level: u32, id: &str) -> Result<v1::RaiseLevelResponse, Status> {
    let request = v1::RaiseLevelRequest { level, request_id: id.to_owned() };
    harness.attempt("admin", "RaiseLevel", &request).await
}

async fn look(harness: &Harness) -> v1::GetClusterResponse {
    harness.ask("operator", "GetCluster", &v1::GetClusterRequest {}).await
}

fn reason<T: std::fmt::Debug>(outcome: Result<T, Status>) -> Refusal {
    Refusal::of(&outcome.expect_err("it is refused"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_drained_used_again_and_removed() {
    let harness = Harness::start().await;
    let spare = harness.node.spare_server(ServerState::Active).await;
    let drained = drain(&harness, spare, "drain-1").await.expect("it is drained");
    assert_eq!((drained.server, drained.state()), (spare, v1::ClusterServerState::Draining));
    let used = activate(&harness, spare).await.expect("it is used again");
    assert_eq!((used.state(), used.epoch), (v1::ClusterServerState::Active, drained.epoch + 1));
    assert_eq!(drain(&harness, spare, "drain-1").await.expect("the same answer"), drained);
    assert_eq!(activate(&harness, spare).await.expect("it is so already"), used, "nothing was drained again");
    let refusal = reason(drain(&harness, 1, "drain-1").await);
    assert_eq!(refusal.reason, "REQUEST_ID_REUSED");
    let removed = remove(&harness, spare).await.expect("it is removed");
    assert_eq!(removed.state(), v1::ClusterServerState::Removed);
    assert_eq!(remove(&harness, spare).await.expect("it is removed already"), removed);
    assert_eq!(reason(activate(&harness, spare).await).reason, "STATE_MISMATCH");
    let shown = look(&harness).await;
    assert_eq!((shown.epoch, shown.servers.len()), (removed.epoch, harness.node.running() + 1));
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_server_is_replaced_and_leaves_when_it_votes_nowhere() {
    let harness = Harness::start().await;
    let spare = harness.node.spare_server(ServerState::Active).await;
    let replaced = replace(&harness, spare, 1).await.expect("its seats are given to server 1");
    assert_eq!(replaced.state(), v1::ClusterServerState::Draining);
    assert_eq!(replace(&harness, spare, 1).await.expect("it is so already"), replaced);
    let drained = drain(&harness, spare, "").await.expect("it is so already");
    assert_eq!(drained, replaced, "the replacement goes on");
    let shown = look(&harness).await.servers;
    let shown = shown.into_iter().find(|server| server.number == spare).expect("the server");
    assert_eq!((shown.replaced_by, shown.reachable), (Some(1), false));
    assert_eq!((shown.version.as_str(), shown.disk_free_bytes, shown.clock_offset_ms), ("", None, None));
    remove(&harness, spare).await.expect("it votes nowhere");
    assert_eq!(
        replace(&harness, spare, 1).await.expect("it is done").state(),
        v1::ClusterServerState::Removed
    );
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_would_harm_the_cluster_is_refused_and_changes_nothing() {
    let harness = Harness::start().await;
    let spare = harness.node.spare_server(ServerState::Active).await;
    let before = harness.node.state().await;
    let votes = reason(remove(&harness, 1).await);
    assert_eq!((votes.reason.as_str(), votes.metadata["groups"].as_str()), ("SERVER_VOTES", "0,1,2,3,4"));
    assert_eq!(reason(replace(&harness, 1, spare).await).reason, "SERVER_NOT_LOST");
    let lags = reason(transfer(&harness, 1, &[LED], spare).await);
    assert_eq!((lags.reason.as_str(), lags.metadata["group"].as_str()), ("SERVER_NOT_READY", "3"));
    for (refusal, missing) in [
        (reason(drain(&harness, NOBODY, "").await), "9999"),
        (reason(activate(&harness, NOBODY).await), "9999"),
        (reason(remove(&harness, NOBODY).await), "9999"),
        (reason(replace(&harness, NOBODY, 1).await), "9999"),
        (reason(replace(&harness, spare, NOBODY).await), "9999"),
        (reason(transfer(&harness, NOBODY, &[], 0).await), "9999"),
        (reason(transfer(&harness, 1, &[77], 0).await), "77"),
    ] {
        assert_eq!(refusal.reason, "NOT_FOUND", "{refusal:?}");
        assert!(refusal.message.contains(&format!("{missing:?}")), "{refusal:?}");
    }
    for (refusal, field) in [
        (reason(drain(&harness, 0, "").await), "server"),
        (reason(replace(&harness, spare, 0).await), "replaced_by"),
        (reason(replace(&harness, spare, spare).await), "replaced_by"),
        (reason(transfer(&harness, 0, &[], 0).await), "from_server"),
        (reason(transfer(&harness, 1, &[], 1).await), "to_server"),
        (reason(transfer(&harness, 1, &[0; 66], 0).await), "groups"),
        (reason(raise(&harness, 0, "").await), "level"),
    ] {
        assert_eq!((refusal.reason.as_str(), refusal.fields), ("FIELD_INVALID", vec![field.to_owned()]));
    }
    transfer(&harness, spare, &[], 0).await.expect("it leads nothing");
    transfer(&harness, spare, &[LED], 1).await.expect("another server leads it");
    assert_eq!(harness.node.state().await, before);
    if harness.node.running() == 1 {
        too_few_voters(&harness, 1).await;
        assert_eq!(harness.node.state().await, before);
    }
    transfer_of_all(&harness, &before).await;
    if harness.node.running() > 1 {
        drain(&harness, 1, "").await.expect("the other two are a majority");
        too_few_voters(&harness, 2).await;
    }
    harness.node.end().await;
}

/// Refuses to drain a server without which a group has no majority.
async fn too_few_voters(harness: &Harness, server: u64) {
    let few = reason(drain(harness, server, "").await);
    assert_eq!((few.reason.as_str(), few.metadata["group"].as_str()), ("TOO_FEW_VOTERS", "0"));
}

/// Has the first server lead nothing any more, which it may only if there are others that vote.
async fn transfer_of_all(harness: &Harness, before: &[[u8; 32]]) {
    let moved = transfer(harness, 1, &[], 0).await;
    if harness.node.running() == 1 {
        assert_eq!(reason(moved).reason, "SERVER_NOT_READY");
        assert_eq!(harness.node.state().await, before);
        return;
    }
    moved.expect("the other two lead it");
    let shown = look(harness).await;
    let of_first = shown.servers.iter().find(|server| server.number == 1).expect("the first server");
    assert_eq!(of_first.leads, Vec::<u64>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_alone_has_nothing_to_change() {
    let harness = Harness::over(Node::start_one(None).await).await;
    let shown = look(&harness).await;
    assert_eq!((shown.cluster_id.as_str(), shown.servers.len()), ("", 1));
    assert_eq!(shown.servers[0].version, env!("CARGO_PKG_VERSION"));
    assert_eq!(reason(drain(&harness, 1, "").await).reason, "TOO_FEW_VOTERS");
    assert_eq!(reason(activate(&harness, 1).await).reason, "NOT_FOUND");
    assert_eq!(reason(raise(&harness, 1, "").await).reason, "NOT_FOUND");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_an_admin_of_the_first_tenant_changes_servers() {
    let harness = Harness::start().await;
    let spare = harness.node.spare_server(ServerState::Active).await;
    let before = harness.node.state().await;
    let request = v1::DrainServerRequest { server: spare, ..Default::default() };
    for key in [harness.acme.key("operator"), harness.globex.key("admin"), harness.globex.key("operator")] {
        let outcome: Result<v1::DrainServerResponse, _> =
            harness.node.line.ask(key, "DrainServer", &request).await;
        refused(outcome, "ROLE_NOT_ALLOWED");
    }
    assert_eq!(harness.node.state().await, before);
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_effects_of_all_tenants_are_released_at_once() {
    let harness = Harness::start().await;
    assert_eq!(look(&harness).await.effects_held_tenants, 0);
    for tenant in [1, 2] {
        harness.node.hold_of(TenantId(tenant)).await;
    }
    // Any server answers, with what it knows of the catalogue.
    let held = async |count| look(&harness).await.effects_held_tenants == count;
    until("two tenants have their effects held", async || held(2).await).await;
    let all = v1::ReleaseEffectsRequest { all_tenants: true, request_id: "all".into(), ..Default::default() };
    for role in ["admin", "operator"] {
        let outcome: Result<v1::ReleaseEffectsResponse, _> =
            harness.node.line.ask(harness.globex.key(role), "ReleaseEffects", &all).await;
        refused(outcome, "ROLE_NOT_ALLOWED");
    }
    assert_eq!(look(&harness).await.effects_held_tenants, 2);
    let request = all.encode_to_vec();
    let release = async || {
        let key = harness.acme.key("operator");
        harness
            .node
            .line
            .call(Protocol::Grpc, "ReleaseEffects", key, &request)
            .await
            .expect("they are released")
    };
    let first = release().await;
    until("nothing is held", async || held(0).await).await;
    assert_eq!(release().await, first, "a repeated request gets the same bytes");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_auditor_sees_who_changed_a_server() {
    let harness = Harness::start().await;
    let spare = harness.node.spare_server(ServerState::Active).await;
    drain(&harness, spare, "").await.expect("it is drained");
    let mut changes = Vec::new();
    let mut request = v1::ExportRecordsRequest::default();
    loop {
        let page: v1::ExportRecordsResponse = harness.ask("admin", "ExportRecords", &request).await;
        for record in page.records {
            if let Some(v1::export_record::Record::TenantChange(change)) = record.record {
                changes.push(change);
            }
        }
        if page.next_page_token.is_empty() {
            break;
        }
        request.page_token = page.next_page_token;
    }
    let name = format!("servers.{spare}");
    let of_server =
        changes.iter().filter(|change| change.parts.iter().any(|part| part.name == name)).collect::<Vec<_>>();
    let [change] = of_server.as_slice() else { panic!("{changes:?}") };
    assert_eq!(change.by.as_ref().expect("somebody").subject, "admin@acme");
    let texts = |part: &v1::ExportedPart| (format!("{:?}", part.before), format!("{:?}", part.after));
    let (before, after) = texts(&change.parts[0]);
    assert!(before.contains("active") && after.contains("draining"), "{before} {after}");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_level_is_raised_only_to_what_all_servers_know() {
    let harness = Harness::start().await;
    let _spare = harness.node.spare_server(ServerState::Active).await;
    let shown = look(&harness).await;
    assert_eq!(shown.level, 1);
    assert!(shown.servers.iter().all(|server| (server.lowest_level, server.highest_level) == (1, 1)));
    let same = raise(&harness, 1, "raise-1").await.expect("it is so already");
    assert_eq!((same.level, same.epoch), (1, shown.epoch));
    assert_eq!(raise(&harness, 1, "raise-1").await.expect("the same answer"), same);
    let refusal = reason(raise(&harness, 2, "").await);
    assert_eq!((refusal.reason.as_str(), refusal.metadata["server"].as_str()), ("STATE_MISMATCH", "1"));
    assert_eq!(look(&harness).await.epoch, shown.epoch, "nothing was changed");
    harness.node.end().await;
}
