//! `read_mask` and `order_by`: every call that reads resources takes them, and refuses unknown fields.

use prost_reflect::{DynamicMessage, ReflectMessage, Value};
use serde_json::Value as Json;

use crate::harness::Harness;
use crate::lists::{call, furnish, lists, page, pointed};
use crate::refusal::refused;
use crate::rpcs::{Rpc, all, set};

/// Calls that read one resource. The clock and the cluster are not resources.
fn gets() -> Vec<Rpc> {
    let reads =
        |rpc: &Rpc| rpc.method.starts_with("Get") && !["GetClock", "GetCluster"].contains(&rpc.method);
    all().into_iter().filter(reads).collect()
}

fn masked(message: &DynamicMessage, paths: &[&str]) -> DynamicMessage {
    let mut message = message.clone();
    let field = message.descriptor().get_field_by_name("read_mask").expect("read_mask");
    assert_eq!(field.number(), 14);
    let mut mask = DynamicMessage::new(field.kind().as_message().expect("a message").clone());
    let paths = paths.iter().map(|path| Value::String((*path).to_owned())).collect();
    set(&mut mask, "paths", Value::List(paths));
    set(&mut message, "read_mask", Value::Message(mask));
    message
}

/// The resources of a reply: a page of them, or one.
fn resources(rpc: &Rpc, reply: Json) -> Vec<Json> {
    if rpc.method.starts_with("List") {
        return page(reply).0;
    }
    let Json::Object(members) = reply else { panic!("{reply}") };
    // Lists beside the resource are not part of it.
    members.into_iter().map(|(_, resource)| resource).filter(Json::is_object).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mask_leaves_the_named_fields_and_nothing_else() {
    let harness = Harness::start().await;
    let session = furnish(&harness).await;
    for rpc in lists().into_iter().chain(gets()) {
        let message = pointed(&rpc, rpc.request(&harness).await, &session);
        let whole = resources(&rpc, call(&harness, &rpc, &message).await.expect(rpc.method));
        let rich = |resource: &Json| resource.as_object().is_some_and(|fields| fields.len() > 1);
        assert!(whole.iter().all(rich), "{}: {whole:?}", rpc.method);
        let known = ["name", "sequence", "etag"].into_iter().find(|name| whole[0].get(name).is_some());
        let first = known.expect("a field that all have");
        for (paths, all) in
            [(vec![first], false), (vec!["*"], true), (vec![first, "*"], true), (vec![], true)]
        {
            let reply = call(&harness, &rpc, &masked(&message, &paths)).await.expect(rpc.method);
            let wanted: Vec<Json> = if all {
                whole.clone()
            } else {
                whole.iter().map(|resource| serde_json::json!({ first: resource[first] })).collect()
            };
            assert_eq!(resources(&rpc, reply), wanted, "{} {paths:?}", rpc.method);
        }
        for path in ["nothing", "", "name.x", "Name", "labels.team", "name ", "a.b.c.d.e.f.g.h"] {
            let outcome = call(&harness, &rpc, &masked(&message, &[first, path])).await;
            assert!(outcome.is_err(), "{} accepted {path:?}", rpc.method);
            assert_eq!(refused(outcome, "FIELD_INVALID").fields, ["read_mask"], "{} {path:?}", rpc.method);
        }
        let many = vec![first; switchward_gateway::limits::MASK_PATHS_MAX + 1];
        let outcome = call(&harness, &rpc, &masked(&message, &many)).await;
        assert_eq!(refused(outcome, "FIELD_INVALID").fields, ["read_mask"], "{}", rpc.method);
    }
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_says_its_order_and_refuses_any_other() {
    let harness = Harness::start().await;
    let session = furnish(&harness).await;
    for rpc in lists() {
        let known = match rpc.method {
            "ListSessions" | "ListApiKeys" | "ListQuarantinedMail" => "create_time desc",
            "ListGates" => "create_time",
            "ListEffects" => "status",
            "ListVersions" => "number desc",
            "ListDecisions" => "sequence desc",
            "ListSessionEvents" => "sequence",
            "ListDefinitions"
            | "ListAssistants"
            | "ListTenants"
            | "ListWebhookSources"
            | "ListWebhookEndpoints" => "name",
            other => panic!("in which order is {other}?"),
        };
        let mut message = pointed(&rpc, rpc.request(&harness).await, &session);
        let usual = call(&harness, &rpc, &message).await.expect(rpc.method);
        let ascending = format!("{known} asc");
        let other =
            if known.ends_with("desc") { known.replace(" desc", "") } else { format!("{known} desc") };
        let spelled: Vec<(&str, bool)> = vec![
            (known, true),
            (&ascending, !known.ends_with("desc")),
            (&other, false),
            ("colour", false),
            ("desc", false),
            (",", false),
            ("asc", false),
        ];
        for (order, good) in spelled {
            set(&mut message, "order_by", Value::String(order.to_owned()));
            match call(&harness, &rpc, &message).await {
                Ok(reply) => assert!(good && reply == usual, "{} accepted {order:?}", rpc.method),
                refusal => {
                    assert!(!good, "{} refused {order:?}", rpc.method);
                    let refusal = refused(refusal, "FIELD_INVALID");
                    assert_eq!(refusal.fields, ["order_by"], "{} {order:?}", rpc.method);
                }
            }
        }
    }
    harness.node.end().await;
}
