//! Watching a session: a stream that can be resumed anywhere and says when it is complete.

use futures::StreamExt;
use prost::Message;
use std::time::Duration;
use switchward_api::v1::{
    self, session_service_client::SessionServiceClient, watch_session_response::Update,
};
use switchward_state::limits::NOTE_BYTES_MAX;
use tonic::{Code, Request, Status, Streaming, transport::Channel};

use crate::ending::id_of;
use crate::harness::Harness;
use crate::protocols::Protocol;
use crate::refusal::Refusal;

type Watch = Streaming<v1::WatchSessionResponse>;

async fn watch(harness: &Harness, secret: &str, name: &str, from: u64) -> Watch {
    let endpoint = Channel::from_shared(format!("http://{}", harness.node.line.address)).expect("an address");
    let mut client = SessionServiceClient::new(endpoint.connect().await.expect("a connection"));
    let mut request = Request::new(v1::WatchSessionRequest { name: name.to_owned(), from_sequence: from });
    let header = format!("Bearer {secret}").parse().expect("a header");
    request.metadata_mut().insert("authorization", header);
    client.watch_session(request).await.expect("a stream").into_inner()
}

async fn next(watch: &mut Watch) -> Option<Result<Update, Status>> {
    let message = watch.next().await?;
    Some(message.map(|message| message.update.expect("an update")))
}

async fn event(watch: &mut Watch) -> v1::SessionEvent {
    match next(watch).await.expect("the stream goes on") {
        Ok(Update::Event(event)) => event,
        other => panic!("{other:?}"),
    }
}

/// A session of many events that has ended.
async fn ended(harness: &Harness) -> String {
    let name = harness.session().await.name;
    for round in 0..60 {
        harness.answer(&name, "go").await;
        harness.answer(&name, "back").await;
        harness.authorize(&name, ["bash", "mcp:shell:rm", "mcp:filesystem:write_file"][round % 3]).await;
    }
    harness.answer(&name, "go").await;
    harness.answer(&name, "done").await;
    harness.node.quiet().await;
    name
}

pub(crate) async fn history(harness: &Harness, name: &str) -> Vec<v1::SessionEvent> {
    let request = v1::ListSessionEventsRequest {
        name: name.to_owned(),
        page_size: 1_000,
        ..v1::ListSessionEventsRequest::default()
    };
    let reply: v1::ListSessionEventsResponse = harness.ask("agent", "ListSessionEvents", &request).await;
    reply.events
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn resumed_anywhere_it_gives_the_rest() {
    let harness = Harness::start().await;
    let name = ended(&harness).await;
    let events = history(&harness, &name).await;
    // More than one read returns, so that a stream has to read on.
    assert!(events.len() > 300, "{}", events.len());
    let newest = harness.look(&name).await.sequence;
    for from in 0..=newest + 2 {
        let request = v1::WatchSessionRequest { name: name.clone(), from_sequence: from }.encode_to_vec();
        let secret = harness.acme.key("approver");
        let (messages, end) = harness.node.line.watch(Protocol::Grpc, "WatchSession", secret, &request).await;
        assert!(end.is_ok(), "from {from}: {end:?}");
        let seen: Vec<v1::SessionEvent> = messages
            .into_iter()
            .map(|message| match v1::WatchSessionResponse::decode(message).expect("a message").update {
                Some(Update::Event(event)) => event,
                other => panic!("from {from}: {other:?}"),
            })
            .collect();
        let rest = events.iter().position(|event| event.sequence >= from).unwrap_or(events.len());
        assert_eq!(seen, events[rest..], "from {from}");

        let list = v1::ListSessionEventsRequest {
            name: name.clone(),
            from_sequence: from,
            page_size: 5,
            ..v1::ListSessionEventsRequest::default()
        };
        let page: v1::ListSessionEventsResponse = harness.ask("agent", "ListSessionEvents", &list).await;
        assert_eq!(page.events, events[rest..].iter().take(5).cloned().collect::<Vec<_>>(), "from {from}");
    }
    assert_eq!(events.last().expect("an event").r#type, "session.completed");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_are_sent_in_order_and_the_end_ends_the_stream() {
    let harness = Harness::start().await;
    let name = harness.session().await.name;
    let mut watches = Vec::new();
    for role in ["agent", "author", "approver"] {
        watches.push(watch(&harness, harness.acme.key(role), &name, 0).await);
    }
    let mut late =
        watch(&harness, harness.acme.key("agent"), &name, harness.look(&name).await.sequence + 1).await;
    harness.answer(&name, "go").await;
    let first = event(&mut late).await;
    assert_eq!(first.r#type, "session.answered");
    harness.answer(&name, "done").await;
    let events = history(&harness, &name).await;
    for watch in &mut watches {
        for wanted in &events {
            assert_eq!(event(watch).await, *wanted);
        }
        assert!(next(watch).await.is_none(), "the stream ends with OK after the last event of the session");
    }
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_key_ends_it_at_once() {
    let harness = Harness::start().await;
    let create = v1::CreateApiKeyRequest { role: v1::KeyRole::Agent.into(), ..Default::default() };
    let made: v1::CreateApiKeyResponse = harness.ask("admin", "CreateApiKey", &create).await;
    let name = harness.session().await.name;
    let events = history(&harness, &name).await;
    let mut watches = [
        watch(&harness, &made.secret, &name, 0).await,
        watch(&harness, harness.acme.key("agent"), &name, 0).await,
    ];
    for watch in &mut watches {
        for wanted in &events {
            assert_eq!(event(watch).await, *wanted);
        }
    }
    let key = made.api_key.expect("a key").name;
    let revoke = v1::RevokeApiKeyRequest { name: key, ..v1::RevokeApiKeyRequest::default() };
    let _: v1::RevokeApiKeyResponse = harness.ask("admin", "RevokeApiKey", &revoke).await;
    // Long before a heartbeat would have noticed.
    let end = tokio::time::timeout(Duration::from_secs(10), next(&mut watches[0])).await.expect("at once");
    let end = end.expect("a refusal").expect_err("a refusal");
    let get = v1::GetSessionRequest { name: name.clone(), ..Default::default() };
    let fresh: Result<v1::GetSessionResponse, _> =
        harness.node.line.ask(&made.secret, "GetSession", &get).await;
    assert_eq!(
        Refusal::of(&end),
        Refusal::of(&fresh.expect_err("a refusal")),
        "the stream and the call are refused in the same way"
    );
    harness.answer(&name, "go").await;
    assert_eq!(
        event(&mut watches[1]).await.r#type,
        "session.answered",
        "the stream of another key continues"
    );
    harness.node.end().await;
}

/// Adds more events to a session than the server can send ahead of a reader. Returns the newest
/// sequence.
async fn many_long_events(harness: &Harness, name: &str) -> u64 {
    let note = "x".repeat(NOTE_BYTES_MAX);
    for answer in ["go", "back"].into_iter().cycle().take(200) {
        let (name, answer, note) = (name.to_owned(), answer.to_owned(), note.clone());
        let request = v1::AnswerCheckpointRequest { name, answer, note, ..Default::default() };
        let _: v1::AnswerCheckpointResponse = harness.ask("agent", "AnswerCheckpoint", &request).await;
    }
    harness.look(name).await.sequence
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_who_is_behind_reads_no_further_with_a_revoked_key() {
    let harness = Harness::start().await;
    let create = v1::CreateApiKeyRequest { role: v1::KeyRole::Agent.into(), ..Default::default() };
    let made: v1::CreateApiKeyResponse = harness.ask("admin", "CreateApiKey", &create).await;
    let name = harness.session().await.name;
    let newest = many_long_events(&harness, &name).await;
    let mut watch = watch(&harness, &made.secret, &name, 0).await;
    let mut last = event(&mut watch).await.sequence;
    let key = made.api_key.expect("a key").name;
    let revoke = v1::RevokeApiKeyRequest { name: key, ..v1::RevokeApiKeyRequest::default() };
    let _: v1::RevokeApiKeyResponse = harness.ask("admin", "RevokeApiKey", &revoke).await;
    harness.node.caught_up().await;
    let end = loop {
        match next(&mut watch).await.expect("it ends with a refusal") {
            Ok(Update::Event(event)) => last = event.sequence,
            Ok(other) => panic!("{other:?}"),
            Err(end) => break end,
        }
    };
    assert_eq!(Refusal::of(&end).reason, "CREDENTIAL_INVALID");
    assert!(last < newest, "all {newest} events were read");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_ends_at_once_when_its_tenant_is_deleted() {
    let harness = Harness::start().await;
    let newest = harness.globex.session.sequence;
    let mut watch =
        watch(&harness, harness.globex.key("agent"), &harness.globex.session.name, newest + 100).await;
    let delete = v1::DeleteTenantRequest { tenant_id: "globex".into(), ..Default::default() };
    let _: v1::DeleteTenantResponse = harness.ask("admin", "DeleteTenant", &delete).await;
    // Long before a heartbeat would have noticed.
    let end = tokio::time::timeout(Duration::from_secs(10), next(&mut watch)).await.expect("at once");
    let end = end.expect("a refusal").expect_err("a refusal");
    assert_eq!(Refusal::of(&end).reason, "CREDENTIAL_INVALID");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expired_key_sees_nothing_more() {
    let harness = Harness::start().await;
    let now = switchward_shard::Clock::now(&harness.node.clock).0 / 1000;
    let expires = prost_types::Timestamp { seconds: i64::try_from(now).expect("a time") + 60, nanos: 0 };
    let create = v1::CreateApiKeyRequest {
        role: v1::KeyRole::Agent.into(),
        expire_time: Some(expires),
        ..v1::CreateApiKeyRequest::default()
    };
    let made: v1::CreateApiKeyResponse = harness.ask("admin", "CreateApiKey", &create).await;
    let name = harness.session().await.name;
    let mut watch = watch(&harness, &made.secret, &name, 0).await;
    for wanted in history(&harness, &name).await {
        assert_eq!(event(&mut watch).await, wanted);
    }
    harness.node.clock.advance(60_000);
    harness.answer(&name, "go").await;
    let end = next(&mut watch).await.expect("a refusal").expect_err("a refusal");
    assert_eq!(Refusal::of(&end).reason, "CREDENTIAL_INVALID");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silence_is_broken_by_a_sign_of_life() {
    let harness = Harness::start().await;
    let name = harness.session().await.name;
    let newest = harness.look(&name).await.sequence;
    let mut far = watch(&harness, harness.acme.key("agent"), &name, newest + 100).await;
    let begun = std::time::Instant::now();
    match next(&mut far).await.expect("the stream goes on") {
        Ok(Update::Heartbeat(heartbeat)) => assert_eq!(heartbeat.sequence, newest),
        other => panic!("{other:?}"),
    }
    assert!((14..60).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shard_that_no_longer_leads_ends_it_long_before_a_sign_of_life() {
    let harness = Harness::start().await;
    let session = harness.session().await;
    let mut watch = watch(&harness, harness.acme.key("agent"), &session.name, 0).await;
    for wanted in history(&harness, &session.name).await {
        assert_eq!(event(&mut watch).await, wanted);
    }
    let shard = harness.node.cluster.shard_of(id_of(&session).bucket()).clone();
    harness.node.fail(&shard).await;
    let end = tokio::time::timeout(Duration::from_secs(10), next(&mut watch)).await.expect("soon");
    let end = end.expect("a refusal").expect_err("a refusal");
    assert_eq!(end.code(), Code::Unavailable);
    assert!(harness.node.says_failed(&Refusal::of(&end).reason), "{end:?}");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stops_ends_it_and_says_so() {
    let harness = Harness::start().await;
    let name = harness.session().await.name;
    let mut watch = watch(&harness, harness.acme.key("agent"), &name, 0).await;
    for wanted in history(&harness, &name).await {
        assert_eq!(event(&mut watch).await, wanted);
    }
    harness.node.drain();
    let end = tokio::time::timeout(Duration::from_secs(10), next(&mut watch)).await.expect("at once");
    assert_eq!(Refusal::of(&end.expect("a refusal").expect_err("a refusal")).reason, "DRAINING");
    harness.node.end().await;
}
