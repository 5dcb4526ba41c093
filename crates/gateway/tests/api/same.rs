//! Every unary call returns the same by gRPC, gRPC-Web and JSON, and every stream the same by all that have streams.

use bytes::Bytes;
use prost::Message;
use prost_reflect::{DynamicMessage, ReflectMessage, Value};
use serde_json::Value as Json;
use switchward_api::v1;

use crate::harness::Harness;
use crate::protocols::{Protocol, Raw, body, reply, send};
use crate::refusal::Refusal;
use crate::rpcs::{Rpc, all, set};

/// A reply as JSON, without what differs in a repetition: secrets, which are shown once, and a session's sequence, which
/// the server's own bookkeeping advances after a call.
pub(crate) fn shown(rpc: &Rpc, reply: &Bytes) -> Json {
    let reply = DynamicMessage::decode(rpc.descriptor().output(), reply.clone()).expect("a reply");
    let mut shown = serde_json::to_value(&reply).expect("proto-JSON");
    // Each verification is of another entry.
    for once in ["secret", "adminSecret", "sequence", "index"] {
        shown.as_object_mut().expect("an object").remove(once);
    }
    without_progress(&mut shown);
    shown
}

/// Takes from the view of a cluster of several servers which of them answered, and how far replicas are that follow.
fn without_progress(shown: &mut Json) {
    let mut follow = false;
    for group in shown.get_mut("groups").and_then(Json::as_array_mut).into_iter().flatten() {
        let leader = group["leader"].clone();
        let replicas = group.get_mut("replicas").and_then(Json::as_array_mut);
        for replica in replicas.into_iter().flatten().filter(|replica| replica["server"] != leader) {
            follow = true;
            for progress in ["appliedIndex", "lagEntries", "silentMs"] {
                replica.as_object_mut().expect("an object").remove(progress);
            }
        }
    }
    if follow {
        shown.as_object_mut().expect("an object").remove("answeredBy");
    }
}

/// The request with its own request id, if it takes one. Of an export, a page so short that it is full before its time is up.
fn repeatable(harness: &Harness, mut message: DynamicMessage) -> Vec<u8> {
    if message.descriptor().get_field_by_name("export_time").is_some() {
        set(&mut message, "page_size", Value::U32(16));
    }
    if message.descriptor().get_field_by_name("request_id").is_some() {
        set(&mut message, "request_id", Value::String(harness.fresh("same")));
    }
    message.encode_to_vec()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_done_and_read_is_the_same_by_every_protocol() {
    let harness = Harness::start().await;
    // The first poll leases the work.
    for rpc in all().into_iter().filter(|rpc| !rpc.streams() && rpc.method != "PollWork") {
        let secret = harness.acme.key(rpc.role());
        // Each way is first once: it makes the change, and the others repeat it.
        for first in Protocol::ALL {
            let request = repeatable(&harness, rpc.request(&harness).await);
            // What a tenant uses is shown as far as a server knows it.
            harness.node.caught_up().await;
            let call = async |protocol| {
                let outcome = harness.node.line.call(protocol, rpc.method, secret, &request).await;
                let reply = outcome.unwrap_or_else(|e| panic!("{} by {protocol:?}: {e:?}", rpc.method));
                shown(&rpc, &reply)
            };
            let wanted = call(first).await;
            let before = harness.node.state().await;
            for protocol in Protocol::ALL {
                assert_eq!(call(protocol).await, wanted, "{} by {protocol:?} after {first:?}", rpc.method);
            }
            assert_eq!(harness.node.state().await, before, "{} was done twice", rpc.method);
        }
    }
    harness.node.end().await;
}

/// Requests of a call that are refused, each for a different reason.
async fn bad(harness: &Harness, rpc: &Rpc) -> Vec<(&'static str, DynamicMessage, String)> {
    let good = rpc.request(harness).await;
    let own = harness.acme.key(rpc.role()).to_owned();
    let mut bad = vec![("no credential", good.clone(), "nobody".to_owned())];
    if rpc.name.is_some() || rpc.changes() {
        bad.push(("nothing said", DynamicMessage::new(rpc.descriptor().input()), own.clone()));
    }
    if let Some((field, _)) = rpc.name {
        for (what, name) in
            [("a name of nothing", "tenants/\u{202e}never/"), ("a long name", &"n".repeat(600))]
        {
            let mut message = good.clone();
            set(&mut message, field, Value::String(name.to_owned()));
            bad.push((what, message, own.clone()));
        }
    }
    for (field, value) in [
        ("request_id", Value::String("r".repeat(129))),
        ("page_token", Value::String("nonsense".into())),
        ("page_size", Value::U32(1_001)),
        ("filter", Value::String("colour=\"red\"".into())),
        ("expected_sequence", Value::U64(u64::MAX)),
    ] {
        if good.descriptor().get_field_by_name(field).is_some() {
            let mut message = good.clone();
            set(&mut message, field, value);
            bad.push((field, message, own.clone()));
        }
    }
    bad
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_refused_is_refused_the_same_by_every_protocol() {
    let harness = Harness::start().await;
    let mut compared = 0;
    for rpc in all().into_iter().filter(|rpc| !rpc.streams()) {
        for (what, message, secret) in bad(&harness, &rpc).await {
            let bytes = message.encode_to_vec();
            let mut wanted: Option<Result<Json, Refusal>> = None;
            for protocol in Protocol::ALL {
                let outcome = harness.node.line.call(protocol, rpc.method, &secret, &bytes).await;
                let got = outcome.map(|reply| shown(&rpc, &reply)).map_err(|status| Refusal::of(&status));
                assert!(got.is_err() || what == "nothing said", "{} accepted {what}", rpc.method);
                let Err(refusal) = &got else { break };
                compared += usize::from(!refusal.message.is_empty());
                assert_eq!(
                    got,
                    *wanted.get_or_insert_with(|| got.clone()),
                    "{} by {protocol:?}: {what}",
                    rpc.method
                );
            }
        }
    }
    assert!(compared > 400, "{compared}");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_is_the_same_by_every_protocol_that_has_streams() {
    let harness = Harness::start().await;
    for rpc in all().into_iter().filter(|rpc| rpc.streams() && rpc.method != "StreamWork") {
        let request = rpc.request(&harness).await.encode_to_vec();
        let secret = harness.acme.key("agent");
        let (wanted, end) = harness.node.line.watch(Protocol::Grpc, rpc.method, secret, &request).await;
        assert!(end.is_ok() && wanted.len() > 3, "{wanted:?} {end:?}");
        for protocol in [Protocol::Web, Protocol::WebText] {
            let (seen, end) = harness.node.line.watch(protocol, rpc.method, secret, &request).await;
            assert!(end.is_ok(), "{protocol:?} {end:?}");
            assert_eq!(seen, wanted, "{} by {protocol:?}", rpc.method);
        }
        let refused = harness.node.line.call(Protocol::Json, rpc.method, secret, &request).await;
        assert_eq!(Refusal::of(&refused.expect_err("no stream in JSON")).reason, "UNIMPLEMENTED");
    }
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parameters_of_a_content_type_change_nothing() {
    let harness = Harness::start().await;
    let (method, secret) = ("ListApiKeys", harness.acme.key("admin"));
    let list = v1::ListApiKeysRequest { page_size: 10, ..v1::ListApiKeysRequest::default() }.encode_to_vec();
    let wanted = harness.node.line.call(Protocol::Grpc, method, secret, &list).await.expect("the keys");
    for protocol in [Protocol::Web, Protocol::WebText] {
        for http2 in [false, true] {
            let mut call = Raw { http2, ..Raw::post(protocol, method, body(protocol, method, &list)) };
            call.headers.iter_mut().for_each(|(_, kind)| kind.push_str("; charset=utf-8"));
            let answer = send(harness.node.line.address, call.with_key(secret)).await;
            let got = reply(protocol, method, &answer).expect("the keys");
            assert_eq!(got, wanted, "{protocol:?}, HTTP/2: {http2}");
        }
    }
    harness.node.end().await;
}
