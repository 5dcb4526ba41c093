//! Webhook sources: how each kind proves a message, which event of which session it becomes, and the answer of each
//! refusal.

use http::StatusCode;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::time::Duration;
use switchward_api::v1;
use switchward_gateway::limits::SOURCE_MESSAGES_MAX;
use switchward_webhook::standard;
use tonic::Status;

use crate::callbacks::{TOO_MANY, raw, refused, shipment};
use crate::harness::{Harness, create_source};
use crate::protocols::Raw;
use crate::refusal;

const SECRET: &str = "sixteen letters.";

/// A source whose messages name their session and event, and its secret.
async fn source(harness: &Harness, kind: v1::WebhookSourceKind, secret: &str) -> (String, String) {
    let name = harness.fresh("shop");
    let source = v1::WebhookSource {
        name: name.clone(),
        kind: kind.into(),
        session_pointer: "/order/0/session".into(),
        event_key_pointer: "/type".into(),
        data_pointer: "/data".into(),
        ..v1::WebhookSource::default()
    };
    let request =
        v1::CreateWebhookSourceRequest { source: Some(source), secret: secret.into(), ..Default::default() };
    let reply: v1::CreateWebhookSourceResponse = harness.ask("admin", "CreateWebhookSource", &request).await;
    (name, reply.secret)
}

fn said(session: &v1::Session, key: &str) -> String {
    let order = [json!({ "session": session.name.rsplit('/').next() })];
    json!({ "id": "evt_1", "event_id": "Ev1", "type": key, "order": order, "data": { "paid": true } })
        .to_string()
}

fn hex_code(key: &str, text: &str) -> String {
    let mut block = [0_u8; 64];
    block[..key.len()].copy_from_slice(key.as_bytes());
    let inner = Sha256::digest([&block.map(|byte| byte ^ 0x36)[..], text.as_bytes()].concat());
    let outer = Sha256::digest([&block.map(|byte| byte ^ 0x5c)[..], &inner[..]].concat());
    outer.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn now(harness: &Harness) -> Duration {
    Duration::from_millis(switchward_shard::Clock::now(&harness.node.clock).0)
}

fn to(name: &str, body: &str) -> Raw {
    raw(&format!("/v1/in/acme/{name}"), body.to_owned())
}

/// A message signed according to Standard Webhooks.
fn signed(harness: &Harness, name: &str, secret: &str, id: &str, body: &str) -> Raw {
    let secret = secret.parse().expect("a signing secret");
    let headers =
        standard::sign(&[secret], id, now(harness), body.as_bytes()).expect("the message is signed");
    headers.into_iter().fold(to(name, body), |raw, (header, value)| raw.with(header, value))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_of_source_is_believed_by_what_it_signs() {
    use v1::WebhookSourceKind::{Bearer, Github, None, Slack, StandardWebhooks as Standard, Stripe};
    let harness = Harness::start().await;
    let line = &harness.node.line;
    let at = now(&harness).as_secs();
    for kind in [Standard, Github, Stripe, Slack, Bearer, None] {
        let session = shipment(&harness).await;
        let given = if matches!(kind, Standard | None) { "" } else { SECRET };
        let (name, secret) = source(&harness, kind, given).await;
        let body = said(&session, "noted");
        let proven = |body: &str, secret: &str| match kind {
            Standard => signed(&harness, &name, secret, "msg_1", body),
            Github => to(&name, body)
                .with("x-hub-signature-256", format!("sha256={}", hex_code(secret, body)))
                .with("x-github-delivery", "d-1"),
            Stripe => {
                let code = hex_code(secret, &format!("{at}.{body}"));
                to(&name, body).with("stripe-signature", format!("t={at},v1={code}"))
            }
            Slack => to(&name, body)
                .with("x-slack-request-timestamp", at.to_string())
                .with("x-slack-signature", format!("v0={}", hex_code(secret, &format!("v0:{at}:{body}")))),
            Bearer => to(&name, body).with_key(secret).with("webhook-id", "m-1"),
            None | v1::WebhookSourceKind::Unspecified => to(&name, body).with("webhook-id", "m-1"),
        };
        if kind != None {
            refused(&line.send(to(&name, &body)).await, 401, "CREDENTIAL_INVALID");
            let other = if kind == Standard {
                "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
            } else {
                "another, of length"
            };
            refused(&line.send(proven(&body, other)).await, 401, "CREDENTIAL_INVALID");
        }
        if !matches!(kind, Bearer | None) {
            let changed = Raw { body: body.replace("true", "false").into(), ..proven(&body, &secret) };
            refused(&line.send(changed).await, 401, "CREDENTIAL_INVALID");
        }
        assert_eq!(harness.look(&session.name).await.at, ["note it"], "{kind:?}");
        let answer = line.send(proven(&body, &secret)).await;
        assert_eq!(answer.status, StatusCode::ACCEPTED, "{kind:?}: {answer:?}");
        let moved = harness.look(&session.name).await;
        assert_eq!(moved.at, ["ship"]);
        assert_eq!(answer.json()["event"], crate::callbacks::recorded(&harness, &moved.name).await);
        let again = line.send(proven(&body, &secret)).await;
        assert_eq!((again.status, again.json()), (StatusCode::OK, json!({ "duplicate": true })), "{kind:?}");
        assert_eq!(harness.look(&session.name).await.sequence, moved.sequence);
    }
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_sender_says_when_it_is_set_up_is_no_event() {
    let harness = Harness::start().await;
    let line = &harness.node.line;
    let session = shipment(&harness).await;
    let (name, secret) = source(&harness, v1::WebhookSourceKind::Github, SECRET).await;
    let body = r#"{"zen":"Design for failure."}"#;
    let signature = format!("sha256={}", hex_code(&secret, body));
    let ping = to(&name, body).with("x-hub-signature-256", signature).with("x-github-event", "ping");
    let answer = line.send(ping).await;
    assert_eq!((answer.status, answer.json()), (StatusCode::OK, json!({ "pong": true })));
    let (name, secret) = source(&harness, v1::WebhookSourceKind::Slack, SECRET).await;
    let body = r#"{"type":"url_verification","challenge":"3eZbrw1aBm"}"#;
    let at = now(&harness).as_secs();
    let sent = |secret: &str| {
        to(&name, body)
            .with("x-slack-request-timestamp", at.to_string())
            .with("x-slack-signature", format!("v0={}", hex_code(secret, &format!("v0:{at}:{body}"))))
    };
    let answer = line.send(sent(&secret)).await;
    assert_eq!((answer.status, answer.json()), (StatusCode::OK, json!({ "challenge": "3eZbrw1aBm" })));
    refused(&line.send(sent("another, of length")).await, 401, "CREDENTIAL_INVALID");
    assert_eq!(harness.look(&session.name).await.at, ["note it"], "the session has not moved");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_exist_is_answered_like_what_is_not_proven() {
    let harness = Harness::start().await;
    let session = shipment(&harness).await;
    let (name, secret) = source(&harness, v1::WebhookSourceKind::StandardWebhooks, "").await;
    let (line, body) = (&harness.node.line, said(&session, "noted"));
    let good = signed(&harness, &name, &secret, "msg_1", &body);
    let state = harness.node.state().await;
    let mut bodies = Vec::new();
    for path in ["/v1/in/acme/never", "/v1/in/never/shop", "/v1/in/globex/globex-shop", "/v1/in/acme/%FF"] {
        let answer = line.send(Raw { path: path.into(), ..good.clone() }).await;
        refused(&answer, 401, "CREDENTIAL_INVALID");
        bodies.push(answer.body);
    }
    let forged = line.send(good.clone().with("webhook-id", "msg_2")).await;
    refused(&forged, 401, "CREDENTIAL_INVALID");
    assert!(bodies[..3].iter().all(|body| *body == forged.body), "{bodies:?}");
    let large = "a".repeat(TOO_MANY);
    for path in [format!("/v1/in/acme/{name}"), "/v1/in/acme/never".into()] {
        refused(&line.send(raw(&path, large.clone())).await, 413, "QUOTA_EXCEEDED");
        refused(&line.send(raw(&path, "").with("content-type", "text/plain")).await, 415, "FIELD_INVALID");
    }
    harness.node.clock.advance(301_000);
    refused(&line.send(good).await, 401, "CREDENTIAL_INVALID");
    assert_eq!(harness.look(&session.name).await.at, ["note it"]);
    assert_eq!(harness.node.state().await.len(), state.len());
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_of_a_deleted_tenant_proves_nothing() {
    let harness = Harness::start().await;
    let line = &harness.node.line;
    let create = create_source("late-shop");
    let created = line.ask::<v1::CreateWebhookSourceResponse>(
        harness.globex.key("admin"),
        "CreateWebhookSource",
        &create,
    );
    let secret = created.await.expect("the source is created").secret;
    let path = "/v1/in/globex/late-shop".to_owned();
    let message = Raw { path, ..signed(&harness, "late-shop", &secret, "msg_1", "{}") };
    refused(&line.send(message.clone()).await, 400, "FIELD_INVALID");
    let delete = v1::DeleteTenantRequest { tenant_id: "globex".into(), ..Default::default() };
    let _: v1::DeleteTenantResponse = harness.ask("admin", "DeleteTenant", &delete).await;
    harness.node.caught_up().await;
    refused(&line.send(message).await, 401, "CREDENTIAL_INVALID");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proven_message_that_fits_no_session_is_refused_in_words() {
    let harness = Harness::start().await;
    let session = shipment(&harness).await;
    let (name, secret) = source(&harness, v1::WebhookSourceKind::StandardWebhooks, "").await;
    let line = &harness.node.line;
    let send =
        async |body: &str| line.send(signed(&harness, &name, &secret, &harness.fresh("msg"), body)).await;
    for bad in ["", "{", "[]", "{}", r#"{"type":"a","order":[{"session":true}],"data":{}}"#] {
        refused(&send(bad).await, 400, "FIELD_INVALID");
    }
    let whole: Value = serde_json::from_str(&said(&session, "noted")).expect("JSON");
    for (pointer, by) in
        [("/type", json!("")), ("/data", json!([])), ("/data", json!({ "n": 1e300 })), ("/order/0", json!(1))]
    {
        let mut body = whole.clone();
        *body.pointer_mut(pointer).expect("a place") = by;
        refused(&send(&body.to_string()).await, 400, "FIELD_INVALID");
    }
    let mut stranger = whole.clone();
    stranger["order"][0]["session"] = json!("never-order");
    refused(&send(&stranger.to_string()).await, 404, "NOT_FOUND");
    stranger["order"][0]["session"] = json!(harness.globex.session.name);
    refused(&send(&stranger.to_string()).await, 404, "NOT_FOUND");
    stranger["order"][0]["session"] = json!(harness.globex.session.name.rsplit('/').next());
    refused(&send(&stranger.to_string()).await, 404, "NOT_FOUND");
    // A process that is not a conversation takes no events.
    stranger["order"][0]["session"] = json!("acme-order");
    refused(&send(&stranger.to_string()).await, 409, "STATE_MISMATCH");
    assert_eq!(send(&whole.to_string()).await.status, StatusCode::ACCEPTED);
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_a_secret_is_rotated_both_are_good() {
    let harness = Harness::start().await;
    let session = shipment(&harness).await;
    let (name, old) = source(&harness, v1::WebhookSourceKind::StandardWebhooks, "").await;
    let line = &harness.node.line;
    let hour = Some(prost_types::Duration { seconds: 3_600, nanos: 0 });
    let rotate =
        v1::RotateWebhookSourceSecretRequest { name: name.clone(), overlap: hour, ..Default::default() };
    let rotated: v1::RotateWebhookSourceSecretResponse =
        harness.ask("admin", "RotateWebhookSourceSecret", &rotate).await;
    let new = rotated.secret;
    assert!(rotated.source.expect("a source").old_secret_expire_time.is_some() && new != old);
    let body = said(&session, "later");
    let send = async |secret: &str| {
        line.send(signed(&harness, &name, secret, &harness.fresh("msg"), &body)).await.status
    };
    assert_eq!((send(&old).await, send(&new).await), (StatusCode::ACCEPTED, StatusCode::ACCEPTED));
    harness.node.clock.advance(3_600_000);
    assert_eq!((send(&old).await, send(&new).await), (StatusCode::UNAUTHORIZED, StatusCode::ACCEPTED));
    let now = v1::RotateWebhookSourceSecretRequest { overlap: Some(Default::default()), ..rotate };
    let last: v1::RotateWebhookSourceSecretResponse =
        harness.ask("admin", "RotateWebhookSourceSecret", &now).await;
    assert_eq!(
        (send(&new).await, send(&last.secret).await),
        (StatusCode::UNAUTHORIZED, StatusCode::ACCEPTED)
    );
    let delete = v1::DeleteWebhookSourceRequest { name: name.clone(), ..Default::default() };
    let _: v1::DeleteWebhookSourceResponse = harness.ask("admin", "DeleteWebhookSource", &delete).await;
    assert_eq!(send(&last.secret).await, StatusCode::UNAUTHORIZED);
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_is_made_whole_or_not_at_all() {
    let harness = Harness::start().await;
    let good = || create_source("one-shop");
    let with = |change: &dyn Fn(&mut v1::WebhookSource)| {
        let mut request = good();
        change(request.source.as_mut().expect("a source"));
        request
    };
    let stripe = v1::WebhookSourceKind::Stripe.into();
    let bad = [
        (v1::CreateWebhookSourceRequest::default(), "source"),
        (v1::CreateWebhookSourceRequest { secret: "whsec_short".into(), ..good() }, "secret"),
        (with(&|source| source.name = "One".into()), "source.name"),
        (with(&|source| source.kind = 0), "source.kind"),
        (with(&|source| source.kind = stripe), "secret"),
        (with(&|source| source.session_pointer = "order".into()), "source.session_pointer"),
        (with(&|source| source.session_pointer = format!("/{}", "a".repeat(512))), "source.session_pointer"),
        (with(&|source| source.session = "acme-order".into()), "source.session"),
        (with(&|source| source.event_key.clear()), "source.event_key"),
        (with(&|source| source.data_pointer = "order".into()), "source.data_pointer"),
    ];
    for (request, field) in bad {
        let outcome: Result<v1::CreateWebhookSourceResponse, Status> =
            harness.attempt("admin", "CreateWebhookSource", &request).await;
        assert_eq!(refusal::refused(outcome, "FIELD_INVALID").fields, [field]);
    }
    let made: v1::CreateWebhookSourceResponse = harness.ask("admin", "CreateWebhookSource", &good()).await;
    assert!(made.secret.starts_with("whsec_"));
    let twice: Result<v1::CreateWebhookSourceResponse, Status> =
        harness.attempt("admin", "CreateWebhookSource", &good()).await;
    refusal::refused(twice, "ALREADY_EXISTS");
    let get = v1::GetWebhookSourceRequest { name: "one-shop".into(), ..Default::default() };
    let got: v1::GetWebhookSourceResponse = harness.ask("admin", "GetWebhookSource", &get).await;
    assert_eq!(got.source, made.source);
    let source = v1::WebhookSource { event_key: "sent".into(), ..made.source.expect("a source") };
    let update = v1::UpdateWebhookSourceRequest { source: Some(source), ..Default::default() };
    let changed: v1::UpdateWebhookSourceResponse = harness.ask("admin", "UpdateWebhookSource", &update).await;
    assert_eq!(changed.source.expect("a source").event_key, "sent");
    let stale: Result<v1::UpdateWebhookSourceResponse, Status> =
        harness.attempt("admin", "UpdateWebhookSource", &update).await;
    refusal::refused(stale, "ETAG_MISMATCH");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_that_sends_too_much_waits() {
    let harness = Harness::start().await;
    let (name, secret) = source(&harness, v1::WebhookSourceKind::Bearer, SECRET).await;
    let message = to(&name, "{}").with_key(&secret);
    // Each server counts for itself.
    let line = harness.node.line.to(0);
    let mut taken = 0;
    // While it sends, some of its rate comes back.
    let full = loop {
        let answer = line.send(message.clone()).await;
        if answer.status == 429 || taken == 2 * SOURCE_MESSAGES_MAX {
            break answer;
        }
        refused(&answer, 400, "FIELD_INVALID");
        taken += 1;
    };
    refused(&full, 429, "RATE_LIMITED");
    assert!(taken >= SOURCE_MESSAGES_MAX, "{taken}");
    assert!(
        full.headers["retry-after"].to_str().expect("digits").parse::<u64>().is_ok_and(|wait| wait <= 60)
    );
    harness.node.end().await;
}

/// GitHub signs neither the time nor the delivery id, so anybody who has seen a message could send it for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_of_a_message_without_a_time_is_known_by_its_signature() {
    use v1::WebhookSourceKind::{Github, Slack};
    let harness = Harness::start().await;
    let line = &harness.node.line;
    let session = shipment(&harness).await;
    let create = |kind: v1::WebhookSourceKind, seconds: i64| v1::CreateWebhookSourceRequest {
        source: Some(v1::WebhookSource {
            name: "forge".into(),
            kind: kind.into(),
            session_pointer: "/order/0/session".into(),
            event_key_pointer: "/type".into(),
            data_pointer: "/data".into(),
            known_time: Some(prost_types::Duration { seconds, nanos: 0 }),
            ..v1::WebhookSource::default()
        }),
        secret: SECRET.into(),
        ..Default::default()
    };
    for request in [create(Slack, 3_600), create(Github, 59), create(Github, 91 * 24 * 3_600)] {
        let made: Result<v1::CreateWebhookSourceResponse, _> =
            harness.attempt("admin", "CreateWebhookSource", &request).await;
        let refusal = refusal::refused(made, "FIELD_INVALID");
        assert_eq!(refusal.fields, ["source.known_time"], "{refusal:?}");
    }
    let made: v1::CreateWebhookSourceResponse =
        harness.ask("admin", "CreateWebhookSource", &create(Github, 3_600)).await;
    let known = made.source.expect("a source").known_time.expect("a time");
    assert_eq!(known.seconds, 3_600);
    let body = said(&session, "noted");
    let copy = |delivery: &str| {
        let signature = format!("sha256={}", hex_code(SECRET, &body));
        to("forge", &body).with("x-hub-signature-256", signature).with("x-github-delivery", delivery)
    };
    assert_eq!(line.send(copy("d-1")).await.status, StatusCode::ACCEPTED);
    for delivery in ["d-1", "d-2", "d-4"] {
        let answer = line.send(copy(delivery)).await;
        assert_eq!((answer.status, answer.json()), (StatusCode::OK, json!({ "duplicate": true })));
    }
    harness.node.clock.advance(3_601_000);
    assert_eq!(line.send(copy("d-3")).await.status, StatusCode::ACCEPTED);
    // A copy is no new message, also when the session takes no more messages.
    let cancel =
        v1::CancelSessionRequest { name: session.name.clone(), ..v1::CancelSessionRequest::default() };
    let _: v1::CancelSessionResponse = harness.ask("operator", "CancelSession", &cancel).await;
    let answer = line.send(copy("d-5")).await;
    assert_eq!((answer.status, answer.json()), (StatusCode::OK, json!({ "duplicate": true })));
    harness.node.clock.advance(3_601_000);
    refused(&line.send(copy("d-6")).await, 409, "SESSION_TERMINAL");
}
