//! Request ids: a repeated request is carried out once, another request with the same id is refused, and replies are
//! stored while they can be needed.

use prost::Message;
use prost_reflect::{DynamicMessage, ReflectMessage, Value};
use serde_json::Value as Json;
use switchward_api::v1;
use switchward_state::limits::REPLIES_KEPT_MS;

use crate::calling::Pair;
use crate::harness::{Harness, create_source, deployment, put_assistant};
use crate::protocols::Protocol;
use crate::refusal::{Refusal, refused};
use crate::rpcs::{Rpc, all, set};
use crate::same::shown;

const DAY_MS: u64 = 24 * 3_600_000;
/// Requests of one session within its quarter of an hour: more than are listed in its row.
const REPORTS: usize = 150;
/// How often a test polls for something that the server does on its own, before it fails.
const ASKED_MAX: usize = 100_000;

async fn call(harness: &Harness, rpc: &Rpc, message: &DynamicMessage) -> Result<Json, tonic::Status> {
    let secret = harness.acme.key(rpc.role());
    let outcome = harness.node.line.call(Protocol::Grpc, rpc.method, secret, &message.encode_to_vec()).await;
    outcome.map(|reply| shown(rpc, &reply))
}

/// AdvanceClock does not store the time in rows, so the time is compared as well.
async fn state(harness: &Harness) -> (Vec<[u8; 32]>, u64) {
    (harness.node.state().await, switchward_shard::Clock::now(&harness.node.clock).0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_request_is_one_transition() {
    let harness = Harness::start().await;
    for rpc in all().into_iter().filter(Rpc::is_once) {
        let mut message = rpc.request(&harness).await;
        set(&mut message, "request_id", Value::String(harness.fresh("once")));
        let before = state(&harness).await;
        let reply = call(&harness, &rpc, &message).await.expect(rpc.method);
        let after = state(&harness).await;
        assert_ne!(before, after, "{} changed nothing", rpc.method);
        for _ in 0..2 {
            assert_eq!(call(&harness, &rpc, &message).await.expect(rpc.method), reply, "{}", rpc.method);
        }
        (rpc.other)(&mut message);
        let refusal = refused(call(&harness, &rpc, &message).await, "REQUEST_ID_REUSED");
        assert!(refusal.metadata["request_id"].starts_with("once-"), "{refusal:?}");
        assert_eq!(state(&harness).await, after, "{} was done twice", rpc.method);
        // The other request is valid, or its refusal would prove nothing.
        set(&mut message, "request_id", Value::String(harness.fresh("other")));
        match call(&harness, &rpc, &message).await {
            Ok(_) => {}
            Err(status) => assert_ne!(Refusal::of(&status).reason, "REQUEST_ID_REUSED", "{}", rpc.method),
        }
    }
    harness.node.end().await;
}

/// Returns true for calls that answer with where a session stands.
fn moves_session(rpc: &Rpc) -> bool {
    let session = rpc.descriptor().output().get_field_by_name("session").map(|field| field.kind());
    let kind = session.as_ref().and_then(|kind| kind.as_message());
    rpc.is_once() && kind.is_some_and(|message| message.full_name() == "switchward.v1.Session")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_comes_again_to_the_byte_although_others_have_changed_what_it_is_about() {
    let harness = Harness::start().await;
    let mut changed = 0;
    for rpc in all().into_iter().filter(|rpc| rpc.is_once() && !moves_session(rpc)) {
        let mut message = rpc.request(&harness).await;
        set(&mut message, "request_id", Value::String(harness.fresh("bytes")));
        let again = async || {
            let (secret, request) = (harness.acme.key(rpc.role()), message.encode_to_vec());
            harness.node.line.call(Protocol::Grpc, rpc.method, secret, &request).await
        };
        let first = without_secrets(&rpc, &again().await.expect(rpc.method));
        let mut other = message.clone();
        (rpc.other)(&mut other);
        set(&mut other, "request_id", Value::String(harness.fresh("other")));
        changed += usize::from(call(&harness, &rpc, &other).await.is_ok());
        assert_eq!(without_secrets(&rpc, &again().await.expect(rpc.method)), first, "{}", rpc.method);
    }
    assert!(changed > 20, "{changed}");
    harness.node.end().await;
}

/// The bytes of a reply, without secrets: they are shown once and stored nowhere.
pub(crate) fn without_secrets(rpc: &Rpc, reply: &[u8]) -> Vec<u8> {
    let mut message = DynamicMessage::decode(rpc.descriptor().output(), reply).expect("a reply");
    let secrets = ["secret", "admin_secret"];
    if !secrets.iter().any(|secret| message.descriptor().get_field_by_name(secret).is_some()) {
        return reply.to_vec();
    }
    for secret in secrets {
        message.clear_field_by_name(secret);
    }
    message.encode_to_vec()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_comes_again_to_the_byte_although_the_session_has_moved_on() {
    let harness = Harness::start().await;
    let (mut made, mut moved_on) = (0, 0);
    for rpc in all().into_iter().filter(moves_session) {
        made += 1;
        let mut message = rpc.request(&harness).await;
        set(&mut message, "request_id", Value::String(harness.fresh("bytes")));
        let request = message.encode_to_vec();
        let again = async || {
            harness.node.line.call(Protocol::Grpc, rpc.method, harness.acme.key(rpc.role()), &request).await
        };
        let first = again().await.expect(rpc.method);
        let reply = DynamicMessage::decode(rpc.descriptor().output(), first.clone()).expect("a reply");
        let session = reply.get_field_by_name("session").expect("a session").as_message().cloned();
        let name = session.and_then(|it| Some(it.get_field_by_name("name")?.as_str()?.to_owned()));
        let name = name.expect("a name");
        // What it can is enough: a session that has ended is neither paused nor cancelled.
        let pause = v1::PauseSessionRequest { name: name.clone(), ..v1::PauseSessionRequest::default() };
        let paused: Result<v1::PauseSessionResponse, _> =
            harness.attempt("operator", "PauseSession", &pause).await;
        let cancel = v1::CancelSessionRequest { name, ..v1::CancelSessionRequest::default() };
        let ended: Result<v1::CancelSessionResponse, _> =
            harness.attempt("operator", "CancelSession", &cancel).await;
        moved_on += usize::from(paused.is_ok() || ended.is_ok());
        assert_eq!(again().await.expect(rpc.method), first, "{}", rpc.method);
    }
    assert!(moved_on > 10 && moved_on + 3 >= made, "{moved_on} of {made}");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_id_has_1_to_128_characters() {
    let harness = Harness::start().await;
    for rpc in all().into_iter().filter(Rpc::is_once) {
        let bad = ["x".repeat(129), "ü".repeat(129), "x".repeat(10_240), "a\0b".into(), "a\nb".into()];
        let mut message = rpc.request(&harness).await;
        let before = state(&harness).await;
        for id in bad {
            set(&mut message, "request_id", Value::String(id));
            let refusal = refused(call(&harness, &rpc, &message).await, "FIELD_INVALID");
            assert_eq!(refusal.fields, ["request_id"], "{}", rpc.method);
        }
        assert_eq!(state(&harness).await, before, "{} changed the state", rpc.method);
        for char in ["x", "ü", "\u{1f680}"] {
            let mut message = rpc.request(&harness).await;
            set(&mut message, "request_id", Value::String(char.repeat(128)));
            // Each call has its own sessions, but they share one catalogue, where another call has used the id.
            match call(&harness, &rpc, &message).await {
                Ok(_) => {}
                Err(status) => assert_eq!(Refusal::of(&status).reason, "REQUEST_ID_REUSED", "{}", rpc.method),
            }
        }
    }
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_request_id_a_repetition_is_a_new_request() {
    let harness = Harness::start().await;
    let session = harness.session().await;
    let (first, second) =
        (harness.authorize(&session.name, "bash").await, harness.authorize(&session.name, "bash").await);
    assert_ne!(first.call_id, second.call_id);
    let left = |reply: &v1::AuthorizeToolCallResponse| reply.remaining.as_ref().and_then(|left| left.calls);
    assert_eq!(left(&first).expect("a limit") - 1, left(&second).expect("a limit"));
    harness.node.end().await;
}

fn start(key: &str, request: &str) -> v1::StartSessionRequest {
    v1::StartSessionRequest {
        definition: "release".into(),
        session_id: key.to_owned(),
        request_id: request.to_owned(),
        ..v1::StartSessionRequest::default()
    }
}

async fn started(harness: &Harness, request: &v1::StartSessionRequest) -> Result<String, Refusal> {
    let outcome: Result<v1::StartSessionResponse, _> =
        harness.attempt("agent", "StartSession", request).await;
    outcome.map(|reply| reply.session.expect("a session").name).map_err(|status| Refusal::of(&status))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_is_found_again_by_its_key_or_its_request_id() {
    let harness = Harness::start().await;
    let reason = |outcome: Result<String, Refusal>| outcome.expect_err("a refusal").reason;

    let by_key = started(&harness, &start("with-key", "")).await.expect("a start");
    assert_eq!(reason(started(&harness, &start("with-key", "")).await), "ALREADY_EXISTS");
    assert_eq!(harness.look("with-key").await.name, by_key);

    let by_request = started(&harness, &start("", "with-request")).await.expect("a start");
    assert_eq!(started(&harness, &start("", "with-request")).await, Ok(by_request.clone()));
    assert_ne!(by_request, by_key);

    let by_both = started(&harness, &start("with-both", "with-both")).await.expect("a start");
    assert_eq!(started(&harness, &start("with-both", "with-both")).await, Ok(by_both.clone()));
    assert_eq!(reason(started(&harness, &start("with-both", "another")).await), "ALREADY_EXISTS");
    let other = v1::StartSessionRequest { role: "agent".into(), ..start("with-both", "with-both") };
    assert_eq!(reason(started(&harness, &other).await), "REQUEST_ID_REUSED");
    let other = v1::StartSessionRequest { role: "agent".into(), ..start("", "with-request") };
    assert_eq!(reason(started(&harness, &other).await), "REQUEST_ID_REUSED");

    let (one, two) = (start("", ""), start("", ""));
    let (one, two) =
        (started(&harness, &one).await.expect("one"), started(&harness, &two).await.expect("two"));
    assert_ne!(one, two, "with neither, a repetition is a new session");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_finds_its_session_wherever_that_has_come_to() {
    let harness = Harness::start().await;
    let request = start("", "far");
    let name = started(&harness, &request).await.expect("a start");
    harness.answer(&name, "go").await;
    assert_eq!(started(&harness, &request).await, Ok(name.clone()));
    assert_eq!(harness.look(&name).await.at, ["check"], "the session was not started again");
    harness.deploy(&crate::harness::RELEASE.replace("Is it ready?", "Is it all ready?")).await;
    assert_eq!(started(&harness, &request).await, Ok(name.clone()));
    assert_eq!(harness.look(&name).await.version, 1, "the session keeps its version");
    harness.node.end().await;
}

/// Asks until the answer changes; the server forgets on its own.
async fn until<R>(ask: impl AsyncFn() -> R, done: impl Fn(&R) -> bool) -> R {
    for _ in 0..ASKED_MAX {
        let answer = ask().await;
        if done(&answer) {
            return answer;
        }
    }
    panic!("the expected answer never came")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replies_are_kept_for_a_day_after_the_end() {
    let harness = Harness::start().await;
    let name = started(&harness, &start("", "short-life")).await.expect("a start");
    let stop = v1::AnswerCheckpointRequest {
        name: name.clone(),
        answer: "stop".into(),
        request_id: "stop".into(),
        ..v1::AnswerCheckpointRequest::default()
    };
    let answer = async || {
        let outcome: Result<v1::AnswerCheckpointResponse, _> =
            harness.attempt("agent", "AnswerCheckpoint", &stop).await;
        outcome.map_err(|status| Refusal::of(&status).reason)
    };
    let ended = answer().await;
    assert!(ended.is_ok(), "{ended:?}");
    harness.node.clock.advance(DAY_MS - 1);
    harness.session().await;
    assert_eq!(answer().await, ended, "a day less a millisecond");
    harness.node.clock.advance(1);
    let after = until(answer, Result::is_err).await;
    assert_eq!(after, Err("SESSION_TERMINAL".into()));
    let again = started(&harness, &start("", "short-life")).await.expect_err("a refusal");
    assert_eq!(again.reason, "ALREADY_EXISTS");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replies_of_the_catalogue_are_kept_for_a_day() {
    let harness = Harness::start().await;
    let create = v1::CreateApiKeyRequest {
        role: v1::KeyRole::Agent.into(),
        request_id: "one-key".into(),
        ..v1::CreateApiKeyRequest::default()
    };
    let make = async || {
        let reply: v1::CreateApiKeyResponse = harness.ask("admin", "CreateApiKey", &create).await;
        (reply.api_key.expect("a key").name, reply.secret)
    };
    let (name, secret) = make().await;
    assert!(!secret.is_empty());
    harness.node.clock.advance(DAY_MS - 1);
    assert_eq!(make().await, (name.clone(), String::new()), "its secret is shown once");
    harness.node.clock.advance(1);
    let (another, secret) = until(make, |(made, _)| *made != name).await;
    assert!(!secret.is_empty(), "{another}");
    harness.node.end().await;
}

/// Sends a call again after others, which must not change its answer.
async fn comes_again(
    harness: &Harness,
    role: &str,
    method: &'static str,
    request: &impl Message,
    meanwhile: impl Future<Output = ()>,
) {
    let again = async || {
        harness.node.line.call(Protocol::Grpc, method, harness.acme.key(role), &request.encode_to_vec()).await
    };
    let first = again().await.expect(method);
    meanwhile.await;
    assert_eq!(again().await.expect(method), first, "{method}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_comes_again_to_the_byte_although_the_call_changed_nothing() {
    let harness = Harness::start().await;
    let first = harness.deploy(&crate::harness::named("twice")).await;
    let second = harness.deploy(&crate::harness::named("twice").replace("ready?", "all ready?")).await;
    let activate = |version: &v1::Version, id: &str| v1::ActivateVersionRequest {
        name: version.name.clone(),
        request_id: id.to_owned(),
        ..v1::ActivateVersionRequest::default()
    };
    comes_again(&harness, "author", "ActivateVersion", &activate(&second, "active-already"), async {
        let _: v1::ActivateVersionResponse =
            harness.ask("author", "ActivateVersion", &activate(&first, "the-other")).await;
    })
    .await;
    let request = v1::GetVersionRequest { name: first.name.clone(), ..v1::GetVersionRequest::default() };
    let now: v1::GetVersionResponse = harness.ask("author", "GetVersion", &request).await;
    assert!(now.version.expect("a version").active, "the repeated call activated nothing");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_comes_again_to_the_byte_although_its_source_is_gone() {
    let harness = Harness::start().await;
    let name = harness.source().await;
    let source = v1::WebhookSource { name: name.clone(), ..create_source("any").source.expect("a source") };
    let update = v1::UpdateWebhookSourceRequest { source: Some(source), request_id: "update".into() };
    let rotate = v1::RotateWebhookSourceSecretRequest {
        name: name.clone(),
        request_id: "rotate".into(),
        ..v1::RotateWebhookSourceSecretRequest::default()
    };
    let rotated = async || {
        let reply: v1::RotateWebhookSourceSecretResponse =
            harness.ask("admin", "RotateWebhookSourceSecret", &rotate).await;
        (reply.source, reply.secret)
    };
    let (shown, secret) = rotated().await;
    assert!(!secret.is_empty());
    comes_again(&harness, "admin", "UpdateWebhookSource", &update, async {
        let delete = v1::DeleteWebhookSourceRequest { name, ..v1::DeleteWebhookSourceRequest::default() };
        let _: v1::DeleteWebhookSourceResponse = harness.ask("admin", "DeleteWebhookSource", &delete).await;
    })
    .await;
    assert_eq!(rotated().await, (shown, String::new()), "its secret is shown once");
    let other = v1::RotateWebhookSourceSecretRequest { overlap: None, request_id: "other".into(), ..rotate };
    let other: Result<v1::RotateWebhookSourceSecretResponse, _> =
        harness.attempt("admin", "RotateWebhookSourceSecret", &other).await;
    refused(other.map(drop), "NOT_FOUND");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_comes_again_to_the_byte_although_the_catalogue_has_changed() {
    let harness = Harness::start().await;
    let pair = Pair::of(&harness);
    let deploy = v1::DeployDefinitionRequest {
        activate: Some(false),
        request_id: "deploy".into(),
        ..deployment(&pair.caller())
    };
    comes_again(&harness, "author", "DeployDefinition", &deploy, async {
        harness.deploy(&pair.called()).await;
    })
    .await;
    let mut put = put_assistant("later-desk");
    put.request_id = "put".into();
    comes_again(&harness, "author", "PutAssistant", &put, async {
        let mut other = put_assistant("later-desk");
        other.request_id = "put-other".into();
        other.assistant.as_mut().expect("an assistant").instructions = "Say less.".into();
        let _: v1::PutAssistantResponse = harness.ask("author", "PutAssistant", &other).await;
    })
    .await;
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_keeps_each_reply_for_a_quarter_of_an_hour() {
    let harness = Harness::start().await;
    let name = harness.session().await.name;
    let report = async |number: usize| {
        let request = v1::ReportUsageRequest {
            session: name.clone(),
            tokens: 1,
            request_id: format!("report-{number}"),
            ..v1::ReportUsageRequest::default()
        };
        let reply: v1::ReportUsageResponse = harness.ask("agent", "ReportUsage", &request).await;
        usize::try_from(reply.budget.expect("a budget").used_tokens).expect("few")
    };
    for number in 0..REPORTS {
        assert_eq!(report(number).await, number + 1);
    }
    for number in [0, 1, REPORTS / 2, REPORTS - 1] {
        assert_eq!(report(number).await, number + 1, "the request is answered as it was then");
    }
    harness.node.clock.advance(REPLIES_KEPT_MS);
    for number in REPORTS..2 * REPORTS {
        assert_eq!(report(number).await, number + 1);
    }
    assert_eq!(report(0).await, 2 * REPORTS + 1, "the first requests are forgotten");
    assert_eq!(report(REPORTS).await, REPORTS + 1);
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_at_once_under_one_id_are_one() {
    let harness = Harness::start().await;
    let session = harness.session().await;
    let request = v1::AuthorizeToolCallRequest {
        request_id: "together".into(),
        ..crate::harness::tool_call(&session.name, "bash")
    };
    let calls = (0..64)
        .map(|_| harness.attempt::<v1::AuthorizeToolCallResponse>("agent", "AuthorizeToolCall", &request));
    let replies: Vec<_> = futures::future::join_all(calls).await;
    for reply in &replies {
        let reply = reply.as_ref().unwrap_or_else(|status| panic!("{status:?}"));
        assert_eq!(reply.decision(), v1::ToolDecision::Allow);
        assert_eq!(reply.call_id, replies[0].as_ref().expect("a reply").call_id);
    }
    harness.node.quiet().await;
    assert_eq!(
        harness.authorize(&session.name, "bash").await.remaining.and_then(|left| left.calls),
        Some(4_998)
    );
    harness.node.end().await;
}
