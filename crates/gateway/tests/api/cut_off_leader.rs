//! The leader of a shard is cut off from the others: what is open there ends, and nobody is told anything wrong.

use futures::future::{join, join_all};
use std::time::{Duration, Instant};
use switchward_api::v1;
use switchward_shard::limits::CONTACT_LOST;
use switchward_testkit::until;
use tonic::{Code, Status};

use crate::ending::id_of;
use crate::harness::Harness;
use crate::node::{Node, PATIENT};
use crate::refusal::{Refusal, refused};
use crate::servers::{BRISK, at, event, heal, insist, isolate, leader, next, three, watch};
use crate::watching::history;

/// Calls that are under way when the leader is cut off.
const CALLS: usize = 16;
/// The time that each of them has. A call that takes longer gets DEADLINE_EXCEEDED, which the test refuses.
const DEADLINE: Duration = Duration::from_secs(10);
/// A busy machine may be late by this much; a heartbeat of a watch would come after fifteen seconds.
const LATE: Duration = Duration::from_secs(8);

fn index(server: u64) -> usize {
    usize::try_from(server - 1).expect("small")
}

fn answer_of(session: &v1::Session, request_id: &str) -> v1::AnswerCheckpointRequest {
    v1::AnswerCheckpointRequest {
        name: session.name.clone(),
        answer: "go".into(),
        request_id: request_id.into(),
        ..Default::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_at_the_leader_ends_and_goes_on_at_another_without_a_gap() {
    let harness = three().await;
    let session = harness.session().await;
    let led = leader(&harness, &session).await;
    let other = index(led % 3 + 1);
    let mut first = watch(&harness, index(led), &session.name, 0).await;
    let before = history(&harness, &session.name).await;
    for expected in &before {
        assert_eq!(event(&mut first).await, *expected);
    }
    isolate(&harness, led);
    let begun = Instant::now();
    let end = loop {
        match next(&mut first).await {
            Ok(update) => assert!(update.is_none(), "nothing happens"),
            Err(status) => break status,
        }
    };
    assert_eq!((end.code(), Refusal::of(&end).reason.as_str()), (Code::Unavailable, "SHARD_ELECTING"));
    let election = Duration::from_millis(BRISK.election_max_ms);
    assert!(begun.elapsed() < election + CONTACT_LOST + LATE, "{:?}", begun.elapsed());
    let answer = answer_of(&session, "after the cut");
    let _: v1::AnswerCheckpointResponse = insist(&harness, other, "AnswerCheckpoint", &answer).await;
    let last = before.last().expect("an event").sequence;
    let mut second = watch(&harness, other, &session.name, last + 1).await;
    assert_eq!(event(&mut second).await.sequence, last + 1, "no event is missing between the two streams");
    heal(&harness);
    harness.node.end().await;
}

/// Answers a new session's first checkpoint at a server; returns the session and the outcome.
async fn call(harness: &Harness, server: usize, session: v1::Session) -> (v1::Session, Result<(), Status>) {
    let (key, answer) = (harness.acme.key("agent"), answer_of(&session, "at the cut"));
    let answered = at::<v1::AnswerCheckpointResponse>(harness, server, key, "AnswerCheckpoint", &answer);
    let answered = tokio::time::timeout(DEADLINE, answered).await.expect("it ends within its deadline");
    (session, answered.map(drop))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_under_way_at_the_cut_are_unavailable_or_of_unknown_outcome_and_done_once() {
    let harness = three().await;
    let first = harness.session().await;
    let led = leader(&harness, &first).await;
    let mut sessions = Vec::new();
    while sessions.len() < CALLS {
        let session = harness.session().await;
        if leader(&harness, &session).await == led {
            sessions.push(session);
        }
    }
    isolate(&harness, led);
    let calls = sessions.into_iter().map(|session| call(&harness, index(led), session));
    let outcomes = join_all(calls).await;
    for (session, outcome) in &outcomes {
        let status = outcome.as_ref().expect_err("no majority can have it");
        let reason = Refusal::of(status).reason;
        let is_right = status.code() == Code::Unavailable
            || (status.code(), reason.as_str()) == (Code::Aborted, "OUTCOME_UNKNOWN");
        assert!(is_right, "{}: {status:?}", session.name);
    }
    heal(&harness);
    for (session, _) in &outcomes {
        let answer = answer_of(session, "at the cut");
        let _: v1::AnswerCheckpointResponse = insist(&harness, index(led), "AnswerCheckpoint", &answer).await;
        let answered = history(&harness, &session.name).await;
        let answers = answered.iter().filter(|event| event.r#type == "session.answered").count();
        assert_eq!(answers, 1, "{}: {answered:?}", session.name);
    }
    harness.node.end().await;
}

/// A client repeats a call by itself if it is UNAVAILABLE. The usage of no certain call would then count twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_that_may_count_does_not_say_that_nothing_happened() {
    // Its lease lasts longer than the call, so that the leader writes the report.
    let harness = Harness::over(Node::start_three(None, PATIENT).await).await;
    let session = harness.session().await;
    let led = leader(&harness, &session).await;
    let report = v1::ReportToolUsageRequest {
        session: session.name.clone(),
        capability: "bash".into(),
        cost_usd: Some("1".into()),
        ..Default::default()
    };
    isolate(&harness, led);
    let key = harness.acme.key("agent");
    let reported = at::<v1::ReportToolUsageResponse>(&harness, index(led), key, "ReportToolUsage", &report);
    let reported = tokio::time::timeout(DEADLINE, reported).await.expect("it ends within its deadline");
    refused(reported, "OUTCOME_UNKNOWN");
    heal(&harness);
    harness.node.end().await;
}

/// A lease that the leader has written may be committed, although the poll finds no shard afterwards.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_poll_that_may_have_leased_does_not_say_that_nothing_happened() {
    let harness = Harness::over(Node::start_three(None, PATIENT).await).await;
    let (session, queue) = harness.owing().await;
    let led = leader(&harness, &session).await;
    harness.node.caught_up().await;
    let cluster = harness.node.clusters().nth(index(led)).expect("three servers");
    let shard = cluster.shard_of(id_of(&session).bucket());
    let network = harness.node.network.as_ref().expect("a network");
    // The leader can read, and its entries are not committed.
    (1..=3).filter(|other| *other != led).for_each(|other| network.withhold(other));
    let before = shard.group().log_bytes();
    let poll = v1::PollWorkRequest {
        wanted: Some(v1::WorkWanted { queues: vec![queue], ..Default::default() }),
        wait: Some(prost_types::Duration { seconds: 30, nanos: 0 }),
        ..Default::default()
    };
    let polls =
        at::<v1::PollWorkResponse>(&harness, index(led), harness.acme.key("worker"), "PollWork", &poll);
    let cuts = async {
        until("the lease is in the log", async || shard.group().log_bytes() > before).await;
        isolate(&harness, led);
    };
    let (polled, ()) = join(polls, cuts).await;
    refused(polled, "OUTCOME_UNKNOWN");
    heal(&harness);
    harness.node.end().await;
}
