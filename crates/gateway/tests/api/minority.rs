//! A server that is cut off from the others: each call that needs a leader ends within its deadline with UNAVAILABLE.

use futures::future::join_all;
use prost::Message;
use switchward_api::v1;
use switchward_testkit::until;
use tonic::{Code, Status};

use crate::harness::Harness;
use crate::node::Node;
use crate::protocols::{Protocol, Raw, body, reply};
use crate::refusal::Refusal;
use crate::rpcs::{Rpc, all};
use crate::servers::{BRISK, isolate};

/// What a server answers from what it has itself.
const NEED_NO_LEADER: [&str; 2] = ["GetClock", "GetCluster"];
/// The time that each caller has, for `grpc-timeout`: as long as keys may be out of date, and some seconds.
const DEADLINE: &str = "10S";

/// The third server leads nothing any more: a call that had reached a leader may have an unknown outcome.
async fn follow(harness: &Harness) {
    let transfer = v1::TransferLeadersRequest { from_server: 3, ..Default::default() };
    until("the third server leads nothing", async || {
        let moved: Result<v1::TransferLeadersResponse, _> =
            harness.attempt("admin", "TransferLeaders", &transfer).await;
        let third = harness.node.clusters().nth(2).expect("three servers");
        moved.is_ok() && !third.all().any(switchward_shard::Shard::leads)
    })
    .await;
}

/// Makes a call at the third server.
async fn call(harness: &Harness, rpc: &Rpc, request: &[u8]) -> Result<(), Status> {
    let raw = Raw::post(Protocol::Grpc, rpc.method, body(Protocol::Grpc, rpc.method, request));
    let raw = raw.with_key(harness.acme.key(rpc.role())).with("grpc-timeout", DEADLINE);
    let answer = harness.node.line.to(2).send(raw).await;
    reply(Protocol::Grpc, rpc.method, &answer).map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_call_that_needs_a_leader_is_unavailable_at_a_server_that_is_cut_off() {
    let harness = Harness::over(Node::start_three(None, BRISK).await).await;
    let mut requests = Vec::new();
    for rpc in all().into_iter().filter(|rpc| !rpc.streams()) {
        let request = rpc.request(&harness).await.encode_to_vec();
        requests.push((rpc, request));
    }
    harness.node.caught_up().await;
    follow(&harness).await;
    isolate(&harness, 3);
    let calls = requests.iter().map(|(rpc, request)| call(&harness, rpc, request));
    let answers = join_all(calls).await;
    let mut wrong = Vec::new();
    for ((rpc, _), answer) in requests.iter().zip(answers) {
        let is_right = match &answer {
            Ok(()) => NEED_NO_LEADER.contains(&rpc.method),
            Err(status) => status.code() == Code::Unavailable && !Refusal::of(status).reason.is_empty(),
        };
        if !is_right {
            wrong.push((rpc.method, answer));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
    harness.node.end().await;
}
