//! To a caller another tenant does not exist: its names are answered exactly as names that never existed.

use prost::Message;
use prost_reflect::Value;
use switchward_api::v1;

use crate::harness::{Harness, tool_call};
use crate::protocols::Protocol;
use crate::refusal::{Refusal, refused};
use crate::rpcs::{Kind, Rpc, all, set};

/// A session that was never started, and so a gate that was never opened.
pub(crate) const NEVER: &str = "0123456789abcdefghjkmnpqrs";

/// The short id at the end of a name.
fn short(name: &str) -> &str {
    name.rsplit('/').next().expect("a part")
}

/// Names of globex's resources, each with the same form of a name that never existed.
fn names(harness: &Harness, kind: Kind) -> Vec<(String, String)> {
    let globex = &harness.globex;
    let full = |collection: &str, theirs: &str, never: &str| {
        let pair = |tenant: &str| {
            let of = |id: &str| format!("tenants/{tenant}/{collection}/{id}");
            (of(theirs), of(never))
        };
        let nowhere = format!("tenants/never/{collection}/{theirs}");
        let here = (theirs.to_owned(), never.to_owned());
        vec![pair("globex"), pair("acme"), pair("-"), here, (pair("globex").0, nowhere)]
    };
    match kind {
        Kind::Tenant => {
            vec![("tenants/globex".into(), "tenants/never".into()), ("globex".into(), "never".into())]
        }
        Kind::Session => {
            let mut all = full("sessions", short(&globex.session.name), &format!("ses_{NEVER}"));
            all.extend(full("sessions", "globex-order", "never-order"));
            all
        }
        Kind::Gate => {
            let session = short(&globex.session.name).trim_start_matches("ses_");
            let number = short(&globex.gate).rsplit('_').next().expect("its number");
            let mut all = full("gates", short(&globex.gate), &format!("gat_{NEVER}_{number}"));
            all.extend(full("gates", short(&globex.gate), &format!("gat_{session}_99")));
            all.extend(full("gates", short(&globex.gate), "nonsense"));
            all
        }
        Kind::Effect => {
            let session = short(&globex.session.name).trim_start_matches("ses_");
            let gate = short(&globex.gate).rsplit('_').next().expect("its number");
            // The notice of a gate has the number after it.
            let number = gate.parse::<u64>().expect("a number") + 1;
            let theirs = format!("eff_{session}_{number}");
            let mut all = full("effects", &theirs, &format!("eff_{NEVER}_{number}"));
            all.extend(full("effects", &theirs, &format!("eff_{session}_99")));
            all.extend(full("effects", &theirs, "nonsense"));
            all
        }
        Kind::Definition => full("definitions", globex.only, "only-never"),
        Kind::Assistant => full("assistants", "globex-desk", "never-desk"),
        Kind::Source => full("sources", "globex-shop", "never-shop"),
        Kind::Mail => full("quarantine", "globex-mail", "never-mail"),
        Kind::Endpoint => full("endpoints", "globex-ops", "never-ops"),
        Kind::Version => {
            let mut all =
                full("definitions", &format!("{}/versions/1", globex.only), "only-never/versions/1");
            all.extend(full("definitions", &format!("{}/versions/1", globex.only), "release/versions/99"));
            all.extend(full(
                "definitions",
                &format!("{}/versions/latest", globex.only),
                "only-never/versions/latest",
            ));
            all
        }
        Kind::Work => {
            let session = short(&globex.session.name).trim_start_matches("ses_");
            let mut all = full("work", &format!("wrk_{session}_1"), &format!("wrk_{NEVER}_1"));
            all.extend(full("work", &format!("wrk_{session}_1"), "nonsense"));
            all
        }
        Kind::Key => full("keys", short(&globex.agent_key), "0123456789abcdef"),
    }
}

/// The refusal that acme gets for a name.
async fn refused_name(harness: &Harness, rpc: &Rpc, field: &str, name: &str) -> Refusal {
    let mut message = rpc.request(harness).await;
    set(&mut message, field, Value::String(name.to_owned()));
    let (line, secret) = (&harness.node.line, harness.acme.key(rpc.role()));
    let before = harness.node.state().await;
    let outcome = if rpc.streams() {
        let (messages, end) = line.watch(Protocol::Grpc, rpc.method, secret, &message.encode_to_vec()).await;
        assert!(messages.is_empty(), "{} of {name} sent messages", rpc.method);
        end
    } else {
        line.call(Protocol::Grpc, rpc.method, secret, &message.encode_to_vec()).await.map(drop)
    };
    assert_eq!(harness.node.state().await, before, "{} of {name} changed the state", rpc.method);
    assert!(outcome.is_err(), "{} of {name} was accepted", rpc.method);
    refused(outcome, "NOT_FOUND").with(name, "NAME")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_another_tenants_never_existed() {
    let harness = Harness::start().await;
    let mut tried = 0;
    for rpc in all() {
        let Some((field, kind)) = rpc.name else { continue };
        let mut first: Option<Refusal> = None;
        for (theirs, never) in names(&harness, kind) {
            let answers = [
                refused_name(&harness, &rpc, field, &theirs).await,
                refused_name(&harness, &rpc, field, &never).await,
            ];
            assert_eq!(answers[0], answers[1], "{}: {theirs} and {never}", rpc.method);
            // The spelling of a name must not reveal anything either.
            let first = first.get_or_insert_with(|| answers[0].clone());
            assert_eq!(answers[0], *first, "{}: {theirs}", rpc.method);
            tried += 1;
        }
    }
    assert!(tried > 150, "{tried}");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_another_tenant_uses_is_free() {
    let harness = Harness::start().await;
    let request = v1::StartSessionRequest {
        definition: "release".into(),
        session_id: "globex-order".into(),
        request_id: "one".into(),
        ..v1::StartSessionRequest::default()
    };
    let mut names = Vec::new();
    for tenant in [&harness.acme, &harness.globex] {
        let outcome: Result<v1::StartSessionResponse, _> =
            harness.node.line.ask(tenant.key("agent"), "StartSession", &request).await;
        match outcome {
            Ok(reply) => names.push(reply.session.expect("a session").name),
            Err(status) => {
                let refusal = refused::<()>(Err(status), "ALREADY_EXISTS");
                assert_eq!(refusal.metadata["session"], short(&harness.globex.session.name));
            }
        }
    }
    assert_eq!(names.len(), 1, "only the name of acme's session is returned");
    assert!(names[0].starts_with("tenants/acme/sessions/"), "{names:?}");
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_hold_what_is_the_callers_own() {
    let harness = Harness::start().await;
    for tenant in [&harness.acme, &harness.globex] {
        let own = format!("tenants/{}/", tenant.name);
        for rpc in all().into_iter().filter(|rpc| rpc.method.starts_with("List")) {
            if rpc.method == "ListTenants" {
                continue;
            }
            let mut message = rpc.request(&harness).await;
            if let Some((field, Kind::Session)) = rpc.name {
                set(&mut message, field, Value::String(tenant.session.name.clone()));
            }
            if let Some((field, Kind::Definition)) = rpc.name {
                set(&mut message, field, Value::String("release".into()));
            }
            let bytes = message.encode_to_vec();
            let reply = harness.node.line.call(Protocol::Json, rpc.method, tenant.key("admin"), &bytes).await;
            let text = String::from_utf8_lossy(&reply.expect("a list")).into_owned();
            let names = text.matches("tenants/").count();
            assert_eq!(names, text.matches(&own).count(), "{} of {}", rpc.method, tenant.name);
            assert!(names > 0 || rpc.method == "ListSessionEvents", "{} is empty", rpc.method);
        }
    }
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filters_and_tokens_see_no_further_than_lists() {
    let harness = Harness::start().await;
    let gates = |session: &str| v1::ListGatesRequest {
        filter: format!("session=\"{session}\""),
        ..v1::ListGatesRequest::default()
    };
    let mut replies = Vec::new();
    for session in [short(&harness.globex.session.name), "globex-order", "never-order"] {
        let reply: v1::ListGatesResponse = harness.ask("admin", "ListGates", &gates(session)).await;
        replies.push((reply.gates, reply.next_page_token));
    }
    assert!(replies.iter().all(|reply| *reply == (Vec::new(), String::new())), "{replies:?}");
    let name = harness.globex.session.name.as_str();
    refused(harness.attempt::<v1::ListGatesResponse>("admin", "ListGates", &gates(name)).await, "NOT_FOUND");

    for _ in 0..3 {
        let call = tool_call(name, "mcp:shell:rm");
        let asked: Result<v1::AuthorizeToolCallResponse, _> =
            harness.node.line.ask(harness.globex.key("agent"), "AuthorizeToolCall", &call).await;
        asked.expect("a decision");
    }
    let list = v1::ListSessionsRequest { page_size: 1, ..v1::ListSessionsRequest::default() };
    harness.session().await;
    let page: v1::ListSessionsResponse = harness.ask("agent", "ListSessions", &list).await;
    assert!(!page.next_page_token.is_empty());
    let foreign = v1::ListSessionsRequest { page_token: page.next_page_token, ..list };
    let outcome: Result<v1::ListSessionsResponse, _> =
        harness.node.line.ask(harness.globex.key("agent"), "ListSessions", &foreign).await;
    assert_eq!(refused(outcome, "FIELD_INVALID").fields, ["page_token"]);
    harness.node.end().await;
}
