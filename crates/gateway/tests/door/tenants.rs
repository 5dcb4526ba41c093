//! To a caller another tenant does not exist: its names are answered exactly as names that never existed.

use prost::Message;
use prost_reflect::Value;
use switchward_api::v1;

use crate::rpcs::{Kind, Rpc, all, set};
use crate::told::{Told, refused};
use crate::ways::Way;
use crate::world::{World, tool_call};

/// A session that was never started, and so a gate that was never opened.
pub(crate) const NEVER: &str = "0123456789abcdefghjkmnpqrs";

/// The short id at the end of a name.
fn short(name: &str) -> &str {
    name.rsplit('/').next().expect("a part")
}

/// Names of things of globex, each with the same name of something that never was.
fn names(world: &World, kind: Kind) -> Vec<(String, String)> {
    let globex = &world.globex;
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

/// What acme is told of a name.
async fn told(world: &World, rpc: &Rpc, field: &str, name: &str) -> Told {
    let mut message = rpc.request(world).await;
    set(&mut message, field, Value::String(name.to_owned()));
    let (line, secret) = (&world.node.line, world.acme.key(rpc.role()));
    let before = world.node.state().await;
    let outcome = if rpc.streams() {
        let (messages, end) = line.watch(Way::Grpc, rpc.method, secret, &message.encode_to_vec()).await;
        assert!(messages.is_empty(), "{} of {name} told something", rpc.method);
        end
    } else {
        line.call(Way::Grpc, rpc.method, secret, &message.encode_to_vec()).await.map(drop)
    };
    assert_eq!(world.node.state().await, before, "{} of {name} left something", rpc.method);
    assert!(outcome.is_err(), "{} of {name} was accepted", rpc.method);
    refused(outcome, "NOT_FOUND").with(name, "NAME")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_another_tenants_never_existed() {
    let world = World::start().await;
    let mut tried = 0;
    for rpc in all() {
        let Some((field, kind)) = rpc.name else { continue };
        let mut first: Option<Told> = None;
        for (theirs, never) in names(&world, kind) {
            let answers = [told(&world, &rpc, field, &theirs).await, told(&world, &rpc, field, &never).await];
            assert_eq!(answers[0], answers[1], "{}: {theirs} and {never}", rpc.method);
            // The way in which a name is written must not tell anything either.
            let first = first.get_or_insert_with(|| answers[0].clone());
            assert_eq!(answers[0], *first, "{}: {theirs}", rpc.method);
            tried += 1;
        }
    }
    assert!(tried > 150, "{tried}");
    world.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_another_tenant_uses_is_free() {
    let world = World::start().await;
    let request = v1::StartSessionRequest {
        definition: "release".into(),
        session_id: "globex-order".into(),
        request_id: "one".into(),
        ..v1::StartSessionRequest::default()
    };
    let mut names = Vec::new();
    for tenant in [&world.acme, &world.globex] {
        let outcome: Result<v1::StartSessionResponse, _> =
            world.node.line.ask(tenant.key("agent"), "StartSession", &request).await;
        match outcome {
            Ok(reply) => names.push(reply.session.expect("a session").name),
            Err(status) => {
                let told = refused::<()>(Err(status), "ALREADY_EXISTS");
                assert_eq!(told.metadata["session"], short(&world.globex.session.name));
            }
        }
    }
    assert_eq!(names.len(), 1, "acme's starts, globex's is taken");
    assert!(names[0].starts_with("tenants/acme/sessions/"), "{names:?}");
    world.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_hold_what_is_the_callers_own() {
    let world = World::start().await;
    for tenant in [&world.acme, &world.globex] {
        let own = format!("tenants/{}/", tenant.name);
        for rpc in all().into_iter().filter(|rpc| rpc.method.starts_with("List")) {
            if rpc.method == "ListTenants" {
                continue;
            }
            let mut message = rpc.request(&world).await;
            if let Some((field, Kind::Session)) = rpc.name {
                set(&mut message, field, Value::String(tenant.session.name.clone()));
            }
            if let Some((field, Kind::Definition)) = rpc.name {
                set(&mut message, field, Value::String("release".into()));
            }
            let bytes = message.encode_to_vec();
            let reply = world.node.line.call(Way::Json, rpc.method, tenant.key("admin"), &bytes).await;
            let text = String::from_utf8_lossy(&reply.expect("a list")).into_owned();
            let names = text.matches("tenants/").count();
            assert_eq!(names, text.matches(&own).count(), "{} of {}", rpc.method, tenant.name);
            assert!(names > 0 || rpc.method == "ListSessionEvents", "{} is empty", rpc.method);
        }
    }
    world.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filters_and_tokens_see_no_further_than_lists() {
    let world = World::start().await;
    let gates = |session: &str| v1::ListGatesRequest {
        filter: format!("session=\"{session}\""),
        ..v1::ListGatesRequest::default()
    };
    let mut told = Vec::new();
    for session in [short(&world.globex.session.name), "globex-order", "never-order"] {
        let reply: v1::ListGatesResponse = world.ask("admin", "ListGates", &gates(session)).await;
        told.push((reply.gates, reply.next_page_token));
    }
    assert!(told.iter().all(|reply| *reply == (Vec::new(), String::new())), "{told:?}");
    let name = world.globex.session.name.as_str();
    refused(world.attempt::<v1::ListGatesResponse>("admin", "ListGates", &gates(name)).await, "NOT_FOUND");

    for _ in 0..3 {
        let call = tool_call(name, "mcp:shell:rm");
        let asked: Result<v1::AuthorizeToolCallResponse, _> =
            world.node.line.ask(world.globex.key("agent"), "AuthorizeToolCall", &call).await;
        asked.expect("a decision");
    }
    let list = v1::ListSessionsRequest { page_size: 1, ..v1::ListSessionsRequest::default() };
    world.session().await;
    let page: v1::ListSessionsResponse = world.ask("agent", "ListSessions", &list).await;
    assert!(!page.next_page_token.is_empty());
    let foreign = v1::ListSessionsRequest { page_token: page.next_page_token, ..list };
    let outcome: Result<v1::ListSessionsResponse, _> =
        world.node.line.ask(world.globex.key("agent"), "ListSessions", &foreign).await;
    assert_eq!(refused(outcome, "FIELD_INVALID").fields, ["page_token"]);
    world.node.end().await;
}
