//! No credential, an unknown one, an expired and a revoked one: one answer for all, from every call.

use http::HeaderValue;
use prost::Message;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use switchward_api::v1;
use switchward_gateway::{auth::NewKey, limits::JSON_NODES_MAX};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::client::Line;
use crate::harness::Harness;
use crate::node::Node;
use crate::protocols::{Protocol, Raw, body, reply, stream};
use crate::refusal::{Refusal, refused};
use crate::rpcs::all;

/// The status UNAUTHENTICATED in the head of an answer.
const DENIED: &str = "grpc-status: 16";
/// The status OK in the trailers of gRPC-Web.
const DONE: &str = "grpc-status:0";

/// A new key of acme's, of an admin; one that is to expire does so after a minute.
async fn fresh(harness: &Harness, why: &str) -> v1::CreateApiKeyResponse {
    let now = i64::try_from(switchward_shard::Clock::now(&harness.node.clock).0 / 1000).expect("a time");
    let expires = prost_types::Timestamp { seconds: now + 60, nanos: 0 };
    let create = v1::CreateApiKeyRequest {
        role: v1::KeyRole::Admin.into(),
        expire_time: (why == "expired").then_some(expires),
        ..v1::CreateApiKeyRequest::default()
    };
    harness.ask("admin", "CreateApiKey", &create).await
}

/// Makes a key invalid.
async fn spoil(harness: &Harness, made: &v1::CreateApiKeyResponse, why: &str) {
    if why == "expired" {
        harness.node.clock.advance(60_000);
    } else {
        let name = made.api_key.clone().expect("a key").name;
        let revoke = v1::RevokeApiKeyRequest { name, ..v1::RevokeApiKeyRequest::default() };
        let _: v1::RevokeApiKeyResponse = harness.ask("admin", "RevokeApiKey", &revoke).await;
    }
}

/// A key of acme's that is no longer valid, and why.
async fn spent(harness: &Harness, why: &str) -> String {
    let made = fresh(harness, why).await;
    let list = v1::ListApiKeysRequest::default();
    let works: Result<v1::ListApiKeysResponse, _> =
        harness.node.line.ask(&made.secret, "ListApiKeys", &list).await;
    works.expect("the key works until then");
    spoil(harness, &made, why).await;
    made.secret
}

/// Headers without a valid credential.
async fn headers(harness: &Harness) -> BTreeMap<&'static str, Option<String>> {
    let good = harness.acme.key("admin");
    let (id, secret) = good.trim_start_matches("swk_").split_once('_').expect("two parts");
    let other = harness.globex.key("admin").rsplit('_').next().expect("a secret").to_owned();
    let bearer = |text: &str| Some(format!("Bearer {text}"));
    BTreeMap::from([
        ("none", None),
        ("empty", Some(String::new())),
        ("no secret", bearer("")),
        ("no key", bearer("let me in")),
        ("another scheme", Some(format!("Basic {good}"))),
        ("no scheme", Some(good.to_owned())),
        ("two keys in one", bearer(&format!("{good} {good}"))),
        ("an unknown id", bearer(&NewKey::draw().secret)),
        ("a known id with another secret", bearer(&format!("swk_{id}_{}", "0".repeat(secret.len())))),
        ("a known id with another tenant's secret", bearer(&format!("swk_{id}_{other}"))),
        ("the id in capitals", bearer(&good.to_uppercase().replace("SWK", "swk"))),
        ("a letter less", bearer(&good[..good.len() - 1])),
        ("a letter more", bearer(&format!("{good}0"))),
        (
            "a reply token of nobody",
            bearer(&format!("swr_acme.ses_{}.1.1.{}", "0".repeat(26), "0".repeat(32))),
        ),
        ("expired", bearer(&spent(harness, "expired").await)),
        ("revoked", bearer(&spent(harness, "revoked").await)),
    ])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_is_wrong_with_a_credential_the_answer_is_one() {
    let harness = Harness::start().await;
    let headers = headers(&harness).await;
    let mut first: Option<Refusal> = None;
    for rpc in all() {
        let message = rpc.request(&harness).await.encode_to_vec();
        let before = harness.node.state().await;
        for (what, header) in &headers {
            for protocol in Protocol::ALL {
                if rpc.streams() && protocol == Protocol::Json {
                    continue;
                }
                let mut raw = Raw::post(protocol, rpc.method, body(protocol, rpc.method, &message));
                if let Some(header) = header {
                    raw = raw.with("authorization", header);
                }
                let answer = harness.node.line.send(raw).await;
                let outcome = if rpc.streams() {
                    stream(protocol, &answer).1
                } else {
                    reply(protocol, rpc.method, &answer).map(drop)
                };
                let status = outcome.expect_err("the credential is refused");
                let refusal = Refusal::of(&status);
                let first = first.get_or_insert_with(|| refusal.clone());
                assert_eq!(refusal, *first, "{} with {what} by {protocol:?}", rpc.method);
            }
        }
        assert_eq!(harness.node.state().await, before, "{} changed the state", rpc.method);
    }
    assert_eq!(first.expect("an answer").reason, "CREDENTIAL_INVALID");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_credential_that_is_no_text_is_none() {
    let harness = Harness::start().await;
    let raw = Raw::post(Protocol::Grpc, "ListSessions", body(Protocol::Grpc, "ListSessions", b""));
    let mut request = Raw { http2: true, ..raw }.into_request(harness.node.line.address);
    let odd = HeaderValue::from_bytes(b"Bearer \xff\xfe").expect("bytes of a header");
    request.headers_mut().insert("authorization", odd);
    let answer = harness.node.line.exchange(request).await;
    let status = reply(Protocol::Grpc, "ListSessions", &answer).expect_err("the credential is refused");
    assert_eq!(Refusal::of(&status).reason, "CREDENTIAL_INVALID");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_is_never_without_an_admin() {
    let harness = Harness::start().await;
    let list = v1::ListApiKeysRequest::default();
    let keys: v1::ListApiKeysResponse = harness.ask("admin", "ListApiKeys", &list).await;
    let admins: Vec<&v1::ApiKey> =
        keys.api_keys.iter().filter(|key| key.role() == v1::KeyRole::Admin).collect();
    assert_eq!(admins.len(), 2, "{keys:?}");
    let revoke = |key: &v1::ApiKey| v1::RevokeApiKeyRequest {
        name: key.name.clone(),
        ..v1::RevokeApiKeyRequest::default()
    };
    let (own, first): (Vec<_>, Vec<_>) = admins.iter().partition(|key| key.subject == "admin@acme");
    let gone: v1::RevokeApiKeyResponse = harness.ask("admin", "RevokeApiKey", &revoke(first[0])).await;
    assert!(gone.api_key.expect("a key").revoke_time.is_some());
    let again: v1::RevokeApiKeyResponse = harness.ask("admin", "RevokeApiKey", &revoke(first[0])).await;
    assert!(again.api_key.expect("a key").revoke_time.is_some());
    let outcome: Result<v1::RevokeApiKeyResponse, _> =
        harness.attempt("admin", "RevokeApiKey", &revoke(own[0])).await;
    refused(outcome, "STATE_MISMATCH");
    let still: v1::ListApiKeysResponse = harness.ask("admin", "ListApiKeys", &list).await;
    assert_eq!(still.api_keys.len(), keys.api_keys.len());
    harness.node.end().await;
}

/// Sends requests whose body never comes: a caller with this credential is answered before any of it is read.
pub(crate) async fn waits_for_no_body(address: SocketAddr, credential: &str) {
    for (kind, wanted) in [
        ("application/json", "HTTP/1.1 401 "),
        ("application/grpc-web+proto", DENIED),
        ("application/grpc-web-text", DENIED),
    ] {
        let mut stream = TcpStream::connect(address).await.expect("the server listens");
        let head = format!(
            "POST /switchward.v1.SessionService/ListSessions HTTP/1.1\r\nhost: x\r\ncontent-type: {kind}\r\n\
             {credential}content-length: 4000000\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.expect("the server reads");
        comes(&mut stream, &[wanted], kind).await;
    }
}

/// Waits until one of these texts has come, and returns it.
async fn comes<'t>(stream: &mut TcpStream, wanted: &[&'t str], what: &str) -> &'t str {
    let find = |answer: &[u8]| {
        let text = String::from_utf8_lossy(answer).into_owned();
        wanted.iter().copied().find(|wanted| text.contains(*wanted))
    };
    let mut answer = Vec::new();
    let mut bytes = [0; 4096];
    loop {
        if let Some(found) = find(&answer) {
            return found;
        }
        let count = stream.read(&mut bytes).await.expect("the server answers");
        assert!(count > 0, "{what}: {:?}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&bytes[..count]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_body_is_waited_for_without_a_credential() {
    let harness = Harness::start().await;
    let unknown = format!("authorization: Bearer {}\r\n", NewKey::draw().secret);
    for credential in ["", "authorization: Bearer swk_none\r\n", &unknown] {
        waits_for_no_body(harness.node.line.address, credential).await;
    }
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_must_be_valid_when_the_body_has_come() {
    let harness = Harness::over(Node::start_one(None).await).await;
    for (what, wanted) in [("nothing", DONE), ("another key", DONE), ("expired", DENIED), ("revoked", DENIED)]
    {
        let made = fresh(&harness, what).await;
        let mut stream = TcpStream::connect(harness.node.line.address).await.expect("the server listens");
        let head = format!(
            "POST /switchward.v1.ApiKeyService/ListApiKeys HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\n\
             content-type: application/grpc-web+proto\r\nauthorization: Bearer {}\r\ncontent-length: 5\r\n\r\n",
            made.secret
        );
        stream.write_all(head.as_bytes()).await.expect("the server reads");
        // The server asks for the body of a call that it has let in.
        comes(&mut stream, &["100 Continue\r\n\r\n"], what).await;
        match what {
            "nothing" => {}
            "another key" => drop(fresh(&harness, what).await),
            why => spoil(&harness, &made, why).await,
        }
        stream.write_all(&[0; 5]).await.expect("the server reads");
        assert_eq!(comes(&mut stream, &[DONE, DENIED], what).await, wanted, "{what}");
    }
    harness.node.end().await;
}

/// The server remembers the key that came over a connection last.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_came_over_the_connection_before_must_still_be_valid() {
    let harness = Harness::over(Node::start_one(None).await).await;
    let list = v1::ListApiKeysRequest::default();
    for why in ["another secret", "expired", "revoked"] {
        let made = fresh(&harness, why).await;
        // No other key comes over it.
        let line = Line::connect(harness.node.line.address).await;
        for _ in 0..2 {
            let works: Result<v1::ListApiKeysResponse, _> =
                line.ask(&made.secret, "ListApiKeys", &list).await;
            works.expect("the key works until then");
        }
        let mut secret = made.secret.clone();
        if why == "another secret" {
            let last = secret.pop();
            secret.push(if last == Some('0') { '1' } else { '0' });
        } else {
            spoil(&harness, &made, why).await;
        }
        let outcome: Result<v1::ListApiKeysResponse, _> = line.ask(&secret, "ListApiKeys", &list).await;
        refused(outcome, "CREDENTIAL_INVALID");
    }
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_of_more_values_than_may_be_is_refused_before_it_is_read() {
    let harness = Harness::start().await;
    let nested = format!("{{\"input\":{{\"a\":[{}[]]}}}}", "[],".repeat(JSON_NODES_MAX));
    for (body, status) in
        [(nested.clone(), 429), (format!("{{\"request_id\":\"{}\"}}", ",[".repeat(60_000)), 400)]
    {
        let raw = Raw::post(Protocol::Json, "StartSession", body).with_key(harness.acme.key("agent"));
        let answer = harness.node.line.send(raw).await;
        assert_eq!(answer.status, status, "quoted text counts as one value");
        assert!(answer.headers.contains_key("content-length"), "an answer over HTTP/1.1 has a length");
    }
    harness.node.end().await;
}

/// The HTTP/2 library ends a connection on which it has reset 1,024 streams, with all calls on it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_refused_calls_leave_their_connection_open() {
    let harness = Harness::start().await;
    let list = v1::ListApiKeysRequest { page_size: 10, ..v1::ListApiKeysRequest::default() };
    for _ in 0..1_100 {
        let refused: Result<v1::ListApiKeysResponse, _> =
            harness.node.line.ask("no key", "ListApiKeys", &list).await;
        refused.expect_err("no key");
    }
    let _: v1::ListApiKeysResponse = harness.ask("admin", "ListApiKeys", &list).await;
    harness.node.end().await;
}
