//! Lists: pages that make up the whole list, page tokens that are valid for one list, filters, and orders.

use prost::Message;
use prost_reflect::{DynamicMessage, Value};
use serde_json::Value as Json;
use switchward_api::v1;
use switchward_machine::{SessionId, TenantId};
use switchward_testkit::Pages;

use crate::ending::id_of;
use crate::harness::{Harness, RELEASE, named, put_assistant};
use crate::protocols::Protocol;
use crate::refusal::{Refusal, refused};
use crate::rpcs::{Kind, Rpc, all, set};
use crate::same::shown;

/// The number of sessions started for a list; enough for several in each of four shards.
const SESSIONS: usize = 41;

pub(crate) async fn call(
    harness: &Harness,
    rpc: &Rpc,
    message: &DynamicMessage,
) -> Result<Json, tonic::Status> {
    let secret = harness.acme.key(rpc.role());
    let outcome = harness.node.line.call(Protocol::Grpc, rpc.method, secret, &message.encode_to_vec()).await;
    outcome.map(|reply| shown(rpc, &reply))
}

/// The entries of a page and the token of the next one.
pub(crate) fn page(reply: Json) -> (Vec<Json>, String) {
    let (mut entries, mut token) = (Vec::new(), String::new());
    let Json::Object(members) = reply else { panic!("{reply}") };
    for (name, value) in members {
        match value {
            Json::Array(list) => entries = list,
            Json::String(text) if name == "nextPageToken" => token = text,
            other => panic!("{name}: {other}"),
        }
    }
    (entries, token)
}

/// A whole list, read in pages of this size.
async fn whole(harness: &Harness, rpc: &Rpc, mut message: DynamicMessage, size: u32) -> Vec<Json> {
    set(&mut message, "page_size", Value::U32(size));
    let (mut found, mut pages) = (Vec::new(), Pages::default());
    while let Some(token) = pages.next_token() {
        set(&mut message, "page_token", Value::String(token));
        let (entries, token) = page(call(harness, rpc, &message).await.expect(rpc.method));
        assert!(entries.len() <= usize::try_from(size).expect("a size"), "{}", rpc.method);
        found.extend(entries);
        pages.read(token);
    }
    found
}

/// A session of acme with a history, and several of every other listed resource.
pub(crate) async fn furnish(harness: &Harness) -> String {
    for number in 0..SESSIONS {
        // Some begin at the same time.
        harness.node.clock.advance(u64::from(number % 3 == 0));
        let request = v1::StartSessionRequest {
            session_id: format!("listed-{number}"),
            definition: if number % 2 == 0 { "release".into() } else { harness.acme.only.into() },
            labels: [("team".to_owned(), format!("team-{}", number % 5))].into(),
            ..v1::StartSessionRequest::default()
        };
        let started: v1::StartSessionResponse = harness.ask("agent", "StartSession", &request).await;
        let name = started.session.expect("a session").name;
        match number % 4 {
            0 => drop(harness.answer(&name, "stop").await),
            1 => drop(harness.authorize(&name, "mcp:filesystem:write_file").await),
            2 => drop(harness.answer(&name, "review").await),
            _ => {}
        }
    }
    for number in 0..7 {
        let source = RELEASE.replace("Is it ready?", &format!("Is it ready, for the {number}th time?"));
        harness.deploy(&source).await;
        harness.deploy(&named(&harness.fresh("process"))).await;
        harness.node.clock.advance(1);
        let worker = put_assistant(&harness.fresh("desk"));
        let _: v1::PutAssistantResponse = harness.ask("author", "PutAssistant", &worker).await;
        harness.source().await;
        harness.endpoint().await;
        harness.quarantined().await;
        let key = v1::CreateApiKeyRequest { role: v1::KeyRole::Agent.into(), ..Default::default() };
        let _: v1::CreateApiKeyResponse = harness.ask("admin", "CreateApiKey", &key).await;
        let tenant = v1::CreateTenantRequest { tenant_id: harness.fresh("tenant"), ..Default::default() };
        let _: v1::CreateTenantResponse = harness.ask("admin", "CreateTenant", &tenant).await;
    }
    let name = harness.session().await.name;
    for number in 0..23 {
        let capability = ["bash", "mcp:shell:rm", "mcp:filesystem:write_file"][number % 3];
        harness.authorize(&name, capability).await;
    }
    harness.node.quiet().await;
    name
}

pub(crate) fn pointed(rpc: &Rpc, mut message: DynamicMessage, session: &str) -> DynamicMessage {
    match rpc.name {
        Some((field, Kind::Session)) => set(&mut message, field, Value::String(session.to_owned())),
        Some((field, Kind::Definition)) => set(&mut message, field, Value::String("release".into())),
        Some(_) | None => {}
    }
    message
}

pub(crate) fn lists() -> Vec<Rpc> {
    let lists: Vec<Rpc> = all().into_iter().filter(|rpc| rpc.method.starts_with("List")).collect();
    for rpc in &lists {
        let input = rpc.descriptor().input();
        for (field, number) in [("page_size", 10), ("page_token", 11)] {
            let found = input.get_field_by_name(field).map(|field| field.number());
            assert_eq!(found, Some(number), "{}: {field}", rpc.method);
        }
    }
    lists
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_make_up_the_whole_list() {
    let harness = Harness::start().await;
    let session = furnish(&harness).await;
    let shards = harness.node.cluster.shards().len();
    let mut spread = vec![0; shards];
    for number in 0..SESSIONS {
        let id = SessionId::from_key(TenantId(1), &format!("listed-{number}"));
        spread[usize::from(id.bucket().number()) % shards] += 1;
    }
    assert!(shards == 4 && spread.iter().all(|count| *count > 5), "{spread:?}");
    for rpc in lists() {
        let message = pointed(&rpc, rpc.request(&harness).await, &session);
        let wanted = whole(&harness, &rpc, message.clone(), 1_000).await;
        assert!(wanted.len() > 7, "{} has {}", rpc.method, wanted.len());
        for (at, entry) in wanted.iter().enumerate() {
            assert!(!wanted[..at].contains(entry), "{} lists {entry} twice", rpc.method);
        }
        for size in [1, 3, 7, u32::try_from(wanted.len()).expect("few")] {
            let pages = whole(&harness, &rpc, message.clone(), size).await;
            assert_eq!(pages, wanted, "{} in pages of {size}", rpc.method);
        }
        in_order(rpc.method, &wanted);
    }
    harness.node.end().await;
}

/// Checks that a list is in the order that the API documents.
fn in_order(method: &str, entries: &[Json]) {
    let (member, newest_first) = match method {
        "ListSessions" | "ListApiKeys" | "ListQuarantinedMail" => ("createTime", true),
        "ListGates" | "ListEffects" => ("createTime", false),
        "ListVersions" => ("number", true),
        "ListDecisions" => ("sequence", true),
        "ListSessionEvents" => ("sequence", false),
        "ListDefinitions"
        | "ListAssistants"
        | "ListTenants"
        | "ListWebhookSources"
        | "ListWebhookEndpoints" => ("name", false),
        other => panic!("in which order is {other}?"),
    };
    let key = |entry: &Json| match &entry[member] {
        // Times of one length and numbers as text, which are compared as numbers.
        Json::String(text) => format!("{text:0>30}"),
        number => format!("{:0>30}", number.to_string()),
    };
    let mut keys: Vec<String> = entries.iter().map(key).collect();
    if member == "createTime" {
        // Nanoseconds are written only if there are any.
        keys = keys.into_iter().map(|text| text.replace('Z', ".000Z").replace(".000Z.", ".")).collect();
        keys.iter_mut().for_each(|text| *text = text.trim_start_matches('0')[..23].to_owned());
    }
    if member == "name" {
        keys = entries.iter().map(|entry| entry["name"].as_str().expect("a name").to_owned()).collect();
    }
    if newest_first {
        keys.reverse();
    }
    assert!(keys.is_sorted(), "{method}: {keys:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_is_good_for_its_own_list() {
    let harness = Harness::start().await;
    let session = furnish(&harness).await;
    let mut tokens = Vec::new();
    let mut requests = Vec::new();
    for rpc in lists() {
        let mut message = pointed(&rpc, rpc.request(&harness).await, &session);
        set(&mut message, "page_size", Value::U32(2));
        let (_, token) = page(call(&harness, &rpc, &message).await.expect(rpc.method));
        assert!(!token.is_empty(), "{}", rpc.method);
        tokens.push(token);
        requests.push((rpc, message));
    }
    for (at, (rpc, message)) in requests.iter().enumerate() {
        let own = &tokens[at];
        let mut bad: Vec<String> = tokens.iter().filter(|token| *token != own).cloned().collect();
        bad.extend([own[..own.len() - 1].to_owned(), own[..own.len() - 2].to_owned(), format!("{own}00")]);
        bad.extend([
            format!("{own}g"),
            own.to_uppercase() + "X",
            "0".into(),
            "\u{1f680}".into(),
            "0".repeat(2_000),
        ]);
        bad.extend((0..own.len()).map(|at| {
            let other = if own.as_bytes()[at] == b'0' { "1" } else { "0" };
            format!("{}{other}{}", &own[..at], &own[at + 1..])
        }));
        for token in bad {
            let mut message = message.clone();
            set(&mut message, "page_token", Value::String(token.clone()));
            let outcome = call(&harness, rpc, &message).await;
            assert!(outcome.is_err(), "{} accepted {token:?} for {own:?}", rpc.method);
            assert_eq!(refused(outcome, "FIELD_INVALID").fields, ["page_token"], "{}", rpc.method);
        }
        let mut message = message.clone();
        set(&mut message, "page_token", Value::String(own.clone()));
        call(&harness, rpc, &message).await.expect("the list's own token is accepted");
        if let Some((_, filter)) = FILTERS.iter().find(|(method, _)| *method == rpc.method) {
            set(&mut message, "filter", Value::String((*filter).to_owned()));
            assert_eq!(refused(call(&harness, rpc, &message).await, "FIELD_INVALID").fields, ["page_token"]);
        }
    }
    harness.node.end().await;
}

/// A filter for each list that takes one.
const FILTERS: [(&str, &str); 4] = [
    ("ListEffects", "status=\"dead_letter\""),
    ("ListSessions", "status=\"waiting\""),
    ("ListGates", "kind=\"notify\""),
    ("ListDecisions", "decision=\"deny\""),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_has_at_most_1000_entries() {
    let harness = Harness::start().await;
    for rpc in lists() {
        let mut message = rpc.request(&harness).await;
        for (size, good) in [(0, true), (1, true), (1_000, true), (1_001, false), (u32::MAX, false)] {
            set(&mut message, "page_size", Value::U32(size));
            match call(&harness, &rpc, &message).await {
                Ok(_) => assert!(good, "{} accepted {size}", rpc.method),
                refusal => assert_eq!(refused(refusal, "FIELD_INVALID").fields, ["page_size"], "{size}"),
            }
        }
    }
    harness.node.end().await;
}

/// A time in the middle of the sessions.
const BETWEEN: &str = "2026-06-21T00:00:00.007Z";

fn at(text: &str) -> std::time::SystemTime {
    text.parse::<prost_types::Timestamp>().expect("a time").try_into().expect("a time since 1970")
}

fn created(entry: &Json) -> std::time::SystemTime {
    at(entry["createTime"].as_str().expect("a time"))
}

/// Filters that match everything.
const ALL: [&str; 3] = ["", "status=\"open\"", "create_time>=\"1970-01-01T00:00:00Z\""];

/// Filters, each with the check that every matching entry must pass.
type Filter = (&'static str, &'static str, fn(&Json) -> bool);

const WANTED: [Filter; 17] = [
    ("ListSessions", "", |_| true),
    ("ListSessions", "status=\"waiting\"", |entry| entry["status"] == "SESSION_STATUS_WAITING"),
    ("ListSessions", "status=\"BLOCKED\"", |entry| entry["status"] == "SESSION_STATUS_BLOCKED"),
    ("ListSessions", "create_time>=\"1970-01-01T00:00:00Z\"", |_| true),
    ("ListSessions", "create_time>\"BETWEEN\"", |entry| created(entry) > at(BETWEEN)),
    ("ListSessions", "create_time<=\"BETWEEN\" AND status=\"waiting\"", |entry| {
        created(entry) <= at(BETWEEN) && entry["status"] == "SESSION_STATUS_WAITING"
    }),
    ("ListSessions", "definition=\"release\"", |entry| {
        entry["definition"] == "tenants/acme/definitions/release"
    }),
    ("ListSessions", "labels.team=\"team-3\"", |entry| entry["labels"]["team"] == "team-3"),
    ("ListSessions", "status=\"waiting\" AND definition=\"only-acme\" AND labels.team=\"team-1\"", |entry| {
        entry["status"] == "SESSION_STATUS_WAITING"
            && entry["definition"] == "tenants/acme/definitions/only-acme"
            && entry["labels"]["team"] == "team-1"
    }),
    ("ListGates", "", |entry| entry["status"] == "GATE_STATUS_OPEN"),
    ("ListGates", "status=\"open\"", |entry| entry["status"] == "GATE_STATUS_OPEN"),
    ("ListGates", "kind=\"tool_ask\"", |entry| entry["kind"] == "GATE_KIND_TOOL_ASK"),
    ("ListGates", "kind=\"notify\" AND status=\"open\"", |entry| entry["kind"] == "GATE_KIND_NOTIFY"),
    ("ListDecisions", "", |_| true),
    ("ListDecisions", "decision=\"deny\"", |entry| entry["decision"] == "TOOL_DECISION_DENY"),
    ("ListDecisions", "capability=\"bash\"", |entry| entry["capability"] == "bash"),
    ("ListDecisions", "decision=\"ask\" AND capability=\"mcp:filesystem:write_file\"", |entry| {
        entry["decision"] == "TOOL_DECISION_ASK"
    }),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_filter_lets_through_what_it_says_and_all_of_it() {
    let harness = Harness::start().await;
    let session = furnish(&harness).await;
    let rpcs = lists();
    for (method, filter, fits) in WANTED {
        let rpc = rpcs.iter().find(|rpc| rpc.method == method).expect("a row");
        let mut message = pointed(rpc, rpc.request(&harness).await, &session);
        let everything = whole(&harness, rpc, message.clone(), 1_000).await;
        let wanted: Vec<Json> = everything.iter().filter(|entry| fits(entry)).cloned().collect();
        assert!(!wanted.is_empty(), "{method} {filter}");
        assert!(wanted.len() < everything.len() || ALL.contains(&filter), "{filter}");
        set(&mut message, "filter", Value::String(filter.replace("BETWEEN", BETWEEN)));
        for size in [1_000, 2] {
            assert_eq!(whole(&harness, rpc, message.clone(), size).await, wanted, "{method} {filter}");
        }
    }
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_filter_that_is_not_understood_is_refused() {
    let harness = Harness::start().await;
    let with_filter =
        lists().into_iter().filter(|rpc| rpc.descriptor().input().get_field_by_name("filter").is_some());
    for rpc in with_filter {
        let mut message = rpc.request(&harness).await;
        for filter in [
            "colour=\"red\"",
            "status=\"happy\"",
            "kind=\"none\"",
            "decision=\"maybe\"",
            "waiting",
            "=",
            "=\"\"",
            "status=waiting",
            "status=\"waiting",
            "status=\"waiting\" OR kind=\"notify\"",
            "status=\"open\" AND",
            "AND status=\"open\"",
            "status=\"open\"status=\"open\"",
            "status=\"open\" ANDstatus=\"open\"",
            "\0",
            "status!=\"open\"",
            "labels.=x",
            "status>\"open\"",
            "kind<=\"notify\"",
            "create_time>\"yesterday\"",
            "create_time=>\"2026-01-01T00:00:00Z\"",
            "create_time<>\"2026-01-01T00:00:00Z\"",
            "create_time>2026-01-01",
        ] {
            set(&mut message, "filter", Value::String(filter.to_owned()));
            let outcome = call(&harness, &rpc, &message).await;
            assert!(outcome.is_err(), "{} accepted {filter:?}", rpc.method);
            assert_eq!(refused(outcome, "FIELD_INVALID").fields, ["filter"], "{} {filter:?}", rpc.method);
        }
    }
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_expected_sequence_is_the_sessions_or_nothing_is_done() {
    let harness = Harness::start().await;
    let takes = |rpc: &Rpc| rpc.descriptor().input().get_field_by_name("expected_sequence").is_some();
    let rpcs: Vec<Rpc> = all().into_iter().filter(takes).collect();
    assert_eq!(rpcs.len(), 18);
    for rpc in rpcs {
        let mut message = rpc.request(&harness).await;
        let name = crate::rpcs::text(&message, "name");
        let session = if ["DecideGate", "AssignGate"].contains(&rpc.method) {
            let gate: v1::GetGateResponse =
                harness.ask("agent", "GetGate", &v1::GetGateRequest { name, ..Default::default() }).await;
            gate.gate.expect("a gate").session
        } else if rpc.method.ends_with("Effect") {
            let request = v1::GetEffectRequest { name, ..Default::default() };
            let effect: v1::GetEffectResponse = harness.ask("agent", "GetEffect", &request).await;
            effect.effect.expect("an effect").session
        } else {
            name
        };
        let sequence = harness.look(&session).await.sequence;
        let before = harness.node.state().await;
        for wrong in [0, sequence - 1, sequence + 1, u64::MAX] {
            set(&mut message, "expected_sequence", Value::U64(wrong));
            let refusal = refused(call(&harness, &rpc, &message).await, "SEQUENCE_CONFLICT");
            assert_eq!(refusal.metadata["sequence"], sequence.to_string(), "{}", rpc.method);
        }
        assert_eq!(harness.node.state().await, before, "{}", rpc.method);
        set(&mut message, "expected_sequence", Value::U64(sequence));
        call(&harness, &rpc, &message).await.expect("the current sequence is accepted");
        assert!(harness.look(&session).await.sequence > sequence, "{}", rpc.method);
    }
    harness.node.end().await;
}

/// The largest message that a client accepts by default, in bytes.
const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Creates entries that are as large as entries can be; returns the session.
pub(crate) async fn furnish_with_large_entries(harness: &Harness) -> String {
    let source = named("large").replace("Is it ready?", &"?".repeat(250_000));
    harness.deploy(&source).await;
    let mut name = String::new();
    for _ in 0..20 {
        let request = v1::StartSessionRequest { definition: "large".into(), ..Default::default() };
        let started: v1::StartSessionResponse = harness.ask("agent", "StartSession", &request).await;
        name = started.session.expect("a session").name;
    }
    for number in 0..24 {
        let args = format!("{{\"{number}\":\"{}\"}}", "x".repeat(255_000)).into_bytes();
        let call = v1::AuthorizeToolCallRequest {
            args: args.into(),
            ..crate::harness::tool_call(&name, "mcp:filesystem:write_file")
        };
        let _: v1::AuthorizeToolCallResponse = harness.ask("agent", "AuthorizeToolCall", &call).await;
    }
    for number in 0..150 {
        let answer = v1::AnswerCheckpointRequest {
            name: harness.acme.session.name.clone(),
            answer: ["go", "back"][number % 2].into(),
            note: "n".repeat(16 * 1024),
            ..v1::AnswerCheckpointRequest::default()
        };
        let _: v1::AnswerCheckpointResponse = harness.ask("agent", "AnswerCheckpoint", &answer).await;
    }
    harness.acme.session.name.clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_is_never_too_large_to_be_read() {
    let harness = Harness::start().await;
    let session = furnish_with_large_entries(&harness).await;
    for rpc in lists() {
        let mut message = pointed(&rpc, rpc.request(&harness).await, &session);
        let wanted = whole(&harness, &rpc, message.clone(), 2).await;
        assert_eq!(whole(&harness, &rpc, message.clone(), 1_000).await, wanted, "{}", rpc.method);
        set(&mut message, "page_size", Value::U32(1_000));
        let secret = harness.acme.key(rpc.role());
        for protocol in Protocol::ALL {
            let reply = harness.node.line.call(protocol, rpc.method, secret, &message.encode_to_vec()).await;
            let bytes =
                reply.unwrap_or_else(|status| panic!("{} by {protocol:?}: {status:?}", rpc.method)).len();
            assert!(bytes < MESSAGE_BYTES_MAX, "{} by {protocol:?}: {bytes} bytes", rpc.method);
        }
    }
    harness.node.end().await;
}

/// A process with this many answers, short in the source.
fn answering(count: usize) -> String {
    let answer = |at: usize| format!("\"{at:x}\":{{\"next\":null}}");
    let state = |from: usize| {
        let answers: Vec<String> = (from..count.min(from + 1_000)).map(answer).collect();
        format!("\"s{from}\":{{\"question\":\"q\",\"answers\":{{{}}}}}", answers.join(","))
    };
    let states: Vec<String> = (0..count).step_by(1_000).map(state).collect();
    format!("{{\"name\":\"huge\",\"initial\":\"s0\",\"states\":{{{}}}}}", states.join(","))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_largest_version_can_be_read_in_every_view() {
    let harness = Harness::start().await;
    // As many as the limits on a source's size and number of values allow.
    let most = 49_900;
    let version = harness.deploy(&answering(most)).await;
    for view in [v1::VersionView::Unspecified, v1::VersionView::Source, v1::VersionView::Compiled] {
        let get =
            v1::GetVersionRequest { name: version.name.clone(), view: view.into(), ..Default::default() }
                .encode_to_vec();
        for protocol in [Protocol::Grpc, Protocol::Json] {
            let reply = harness.node.line.call(protocol, "GetVersion", harness.acme.key("agent"), &get).await;
            let bytes = reply.unwrap_or_else(|status| panic!("{view:?} by {protocol:?}: {status:?}")).len();
            assert!(bytes < MESSAGE_BYTES_MAX, "{view:?} by {protocol:?}: {bytes} bytes of {most} answers");
        }
    }
    harness.node.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shard_that_cannot_be_read_is_named_and_the_others_are_listed() {
    let harness = Harness::start().await;
    for _ in 0..SESSIONS {
        harness.session().await;
    }
    let failed = harness.node.cluster.shards()[0].clone();
    harness.node.fail(&failed).await;
    let lacks = vec![format!("shards/{}", failed.number())];
    let (mut found, mut pages) = (Vec::new(), Pages::default());
    while let Some(page_token) = pages.next_token() {
        let list = v1::ListSessionsRequest { page_size: 5, page_token, ..Default::default() };
        let reply: v1::ListSessionsResponse = harness.ask("agent", "ListSessions", &list).await;
        assert_eq!(reply.unreachable, lacks);
        found.extend(reply.sessions.into_iter().map(|session| id_of(&session)));
        pages.read(reply.next_page_token);
    }
    let of_failed = |id: &SessionId| harness.node.cluster.shard_of(id.bucket()).number() == failed.number();
    assert!(found.len() > SESSIONS / 2 && !found.iter().any(of_failed), "{}", found.len());
    let gates: v1::ListGatesResponse =
        harness.ask("agent", "ListGates", &v1::ListGatesRequest::default()).await;
    let effects: v1::ListEffectsResponse =
        harness.ask("agent", "ListEffects", &v1::ListEffectsRequest::default()).await;
    assert_eq!((&gates.unreachable, &effects.unreachable), (&lacks, &lacks));
    // Of several that fail, each is named; a list of nothing is refused.
    for shard in &harness.node.cluster.shards()[1..] {
        harness.node.fail(shard).await;
    }
    let list = v1::ListSessionsRequest::default();
    let none: Result<v1::ListSessionsResponse, _> = harness.attempt("agent", "ListSessions", &list).await;
    let none = none.expect_err("a refusal");
    assert!(harness.node.says_failed(&Refusal::of(&none).reason), "{none:?}");
}
