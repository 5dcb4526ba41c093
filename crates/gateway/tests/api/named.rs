//! Every text field of every request, from the descriptors: either it names a resource of a tenant, and then another
//! tenant's name is answered like one that never existed, or it is in the list of fields that name nothing.

use prost::Message as _;
use prost_reflect::{DynamicMessage, Kind as Type, MessageDescriptor, Value};
use serde_json::Value as Json;
use std::collections::BTreeSet;
use switchward_api::v1;

use crate::harness::{Harness, TALK, deployment, tool_call};
use crate::protocols::Protocol;
use crate::refusal::Refusal;
use crate::rpcs::{Rpc, all, set};
use crate::same::shown;

/// Texts that name nothing of a tenant, by the last part of their path: words, what people read, amounts, what one call
/// says of itself, and marks that only hold together with a name beside them.
const NOTHING: [&str; 31] = [
    "answer",
    "args_digest",
    "capability",
    "code",
    "comment",
    "contact",
    "cost_usd",
    "data_pointer",
    "display_name",
    "est_cost_usd",
    "etag",
    "event_key",
    "event_key_pointer",
    "expected_etag",
    "from",
    "instructions",
    "key",
    "lease_token",
    "message",
    "note",
    "order_by",
    "page_token",
    "path",
    "reason",
    "request_id",
    "role",
    "secret",
    "session_pointer",
    // Of the session that is named beside it.
    "state",
    "text",
    "worker_id",
];

/// The same for fields of a single request.
const NOTHING_THERE: [&str; 40] = [
    // A transition of the state that the work is of.
    "CompleteWork.next",
    // Output only: a policy is set by its own call.
    "CreateTenant.tenant.policies.policy",
    "CreateTenant.tenant.policies.set_by",
    "UpdateTenant.tenant.policies.policy",
    "UpdateTenant.tenant.policies.set_by",
    // Names shared by all tenants: the caller must learn that one is taken.
    "CreateTenant.tenant_id",
    "CreateTenant.tenant.name",
    "DeleteTenant.tenant_id",
    "GetTenantQuotas.tenant_id",
    "SetTenantQuotas.tenant_id",
    // Addresses, and names of the tenant's own directory.
    "PutDirectory.directory.entries.name",
    "PutDirectory.directory.entries.members",
    "PutDirectory.directory.entries.settings.audience",
    "PutDirectory.directory.entries.settings.escalation",
    "PutDirectory.directory.audience",
    "AssignGate.to",
    // Event sources: the names are looked up when an event comes.
    "PutDirectory.directory.event_bindings.definition",
    "PutDirectory.directory.event_bindings.sources",
    "StartSession.audience",
    "StartSession.escalation",
    // A rule may be for a definition that is deployed later.
    "PutRetention.retention.rules.definition",
    // A subject is a person's, of any tenant.
    "CreateApiKey.subject",
    // A business key of the tenant itself; `tenants` tests it.
    "StartSession.session_id",
    // The name of a new source, and the session of its messages, which is looked up when a message comes.
    "CreateWebhookSource.source.name",
    "CreateWebhookSource.source.session",
    "UpdateWebhookSource.source.session",
    // The name of an endpoint that is created or replaced.
    "PutWebhookEndpoint.endpoint.name",
    // An address outside.
    "PutWebhookEndpoint.endpoint.url",
    // Types of events.
    "PutWebhookEndpoint.endpoint.event_types",
    "PutWebhookEndpoint.endpoint.disabled_reason",
    // Output only.
    "PutWebhookEndpoint.endpoint.last_failure_code",
    "PutWebhookEndpoint.endpoint.last_failure_message",
    "PingWebhookEndpoint.event_type",
    // Marks of changes and reads, which are the caller's own.
    "AuthorizeToolCall.call_id",
    "SendEmail.call_id",
    // Addresses outside, and the words of a mail.
    "SendEmail.to",
    "SendEmail.cc",
    "SendEmail.bcc",
    "SendEmail.subject",
    "StartSession.labels.value",
];

/// The kind of resource that a field names, besides the row's own name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Names {
    Assistant,
    /// A new assistant: another tenant's name is free to use.
    NewAssistant,
    Definition,
    /// A list of definitions.
    Definitions,
    /// A filter that contains a definition or a session.
    Filter,
    Call,
    Session,
    /// A version of a definition.
    Version,
    Work,
}

/// The fields that name a resource of a tenant, besides the one of their row in `rpcs`.
pub(crate) const BESIDE: [(&str, &str, Names); 29] = [
    ("DiffVersions", "other", Names::Version),
    ("AttachPolicy", "policy", Names::Definition),
    ("DetachPolicy", "policy", Names::Definition),
    ("StartSession", "assistant", Names::Assistant),
    ("StartSession", "queue", Names::Definitions),
    ("StartSession", "workflows", Names::Definitions),
    ("PutAssistant", "assistant.name", Names::NewAssistant),
    ("PutAssistant", "assistant.workflows", Names::Definitions),
    ("PollWork", "wanted.queues", Names::Definitions),
    ("StreamWork", "wanted.queues", Names::Definitions),
    ("SwitchWorkflow", "workflow", Names::Definition),
    ("ReportToolUsage", "call_id", Names::Call),
    ("RecoverWebhookEndpoint", "session", Names::Session),
    ("ListSessions", "filter", Names::Filter),
    ("ListGates", "filter", Names::Filter),
    ("ListDecisions", "filter", Names::Filter),
    ("ListEffects", "filter", Names::Filter),
    ("AnswerCheckpoint", "address.work_item", Names::Work),
    ("EndTurn", "address.work_item", Names::Work),
    ("RecordData", "address.work_item", Names::Work),
    ("SignalCompletion", "address.work_item", Names::Work),
    ("RetryState", "address.work_item", Names::Work),
    ("RecordEvent", "address.work_item", Names::Work),
    ("RecordReply", "address.work_item", Names::Work),
    ("AuthorizeToolCall", "address.work_item", Names::Work),
    ("SendEmail", "address.work_item", Names::Work),
    ("ReportToolUsage", "address.work_item", Names::Work),
    ("ReportUsage", "address.work_item", Names::Work),
    ("ExplainDecision", "address.work_item", Names::Work),
];

/// The paths of all text fields of a message.
fn texts(of: &MessageDescriptor, path: &str, found: &mut Vec<String>) {
    for field in of.fields() {
        let path = format!("{path}{}", field.name());
        match field.kind() {
            Type::String => found.push(path),
            // A value of any kind is data and contains no name.
            Type::Message(inner) if inner.full_name().starts_with("google.protobuf.") => {}
            Type::Message(inner) => texts(&inner, &format!("{path}."), found),
            _ => {}
        }
    }
}

#[test]
fn every_text_of_every_request_names_something_or_nothing() {
    let mut used = BTreeSet::new();
    let mut rows: BTreeSet<_> = BESIDE.iter().map(|(method, path, _)| format!("{method}.{path}")).collect();
    for rpc in all() {
        let mut found = Vec::new();
        texts(&rpc.descriptor().input(), "", &mut found);
        for path in found {
            let full = format!("{}.{path}", rpc.method);
            let own = rpc.name.is_some_and(|(field, _)| field == path);
            let beside = rows.remove(&full);
            let there = NOTHING_THERE.contains(&full.as_str());
            let last = path.rsplit('.').next().expect("a part");
            let nothing = NOTHING.contains(&last);
            let rows_of_it = [own, beside, there, nothing].into_iter().filter(|listed| *listed).count();
            assert!(
                rows_of_it > 0,
                "{full} has no row in `rpcs`, `BESIDE` or the lists of fields that name nothing"
            );
            assert!(rows_of_it == 1, "{full} is in two lists");
            used.extend([there.then_some(full), nothing.then(|| last.to_owned())].into_iter().flatten());
        }
    }
    assert!(rows.is_empty(), "no such field: {rows:?}");
    let idle: Vec<_> = NOTHING.iter().chain(&NOTHING_THERE).filter(|it| !used.contains(**it)).collect();
    assert!(idle.is_empty(), "no such field: {idle:?}");
}

/// Names of globex's resources, each with the same form of a name that never existed.
async fn names(harness: &Harness, names: Names) -> Vec<(String, String)> {
    let full = |collection: &str, theirs: &str, never: &str| {
        let of = |tenant: &str, id: &str| format!("tenants/{tenant}/{collection}/{id}");
        let mut all: Vec<_> =
            ["globex", "acme", "-"].map(|tenant| (of(tenant, theirs), of(tenant, never))).into();
        all.push((theirs.to_owned(), never.to_owned()));
        all.push((of("globex", theirs), of("never", theirs)));
        all
    };
    let session = harness.globex.session.name.rsplit('/').next().expect("a part");
    match names {
        Names::Assistant => full("assistants", "globex-desk", "never-desk"),
        // A full name of another tenant's is refused; the bare one is free.
        Names::NewAssistant => full("assistants", "globex-desk", "never-desk"),
        Names::Definition | Names::Definitions => full("definitions", harness.globex.only, "only-never"),
        Names::Version => {
            let versions = full("definitions", harness.globex.only, "only-never").into_iter();
            versions.map(|(theirs, never)| (theirs + "/versions/1", never + "/versions/1")).collect()
        }
        Names::Filter => {
            let word = |theirs: &str, never: &str| (theirs.to_owned(), never.to_owned());
            let theirs = format!("definition=\"{}\"", harness.globex.only);
            vec![
                word(&theirs, "definition=\"only-never\""),
                word(&format!("session=\"{session}\""), "session=\"ses_0123456789abcdefghjkmnpqrs\""),
                word("session=\"globex-order\"", "session=\"never-order\""),
            ]
        }
        Names::Session => {
            let theirs = harness.globex.session.name.rsplit('/').next().expect("an id").to_owned();
            vec![(theirs, format!("ses_{}", crate::tenants::NEVER))]
        }
        Names::Work => {
            let short = session.strip_prefix("ses_").expect("an id");
            full("work", &format!("wrk_{short}_1"), &format!("wrk_{}_1", crate::tenants::NEVER))
        }
        Names::Call => {
            let call = tool_call(&harness.globex.session.name, "mcp:web:fetch");
            let secret = harness.globex.key("agent");
            let asked = harness.node.line.ask(secret, "AuthorizeToolCall", &call).await;
            let theirs: v1::AuthorizeToolCallResponse = asked.expect("the call is allowed");
            let never: String = theirs.call_id.chars().rev().collect();
            vec![(theirs.call_id, never)]
        }
    }
}

/// What acme gets with this name in a field: the reply or the refusal.
async fn attempted(
    harness: &Harness,
    rpc: &Rpc,
    path: &str,
    names: Names,
    name: &str,
) -> Result<Json, Refusal> {
    let mut message = rpc.request(harness).await;
    if path == "other" {
        // Either a version or files.
        message.clear_field_by_name("files");
    }
    if path == "assistant" {
        // An assistant determines the definition itself.
        message.clear_field_by_name("definition");
    }
    if rpc.method == "PutAssistant" && path == "assistant.workflows" {
        set(&mut message, "assistant.name", Value::String("one-desk".into()));
    }
    if path == "queue" || path == "workflows" {
        set(&mut message, "definition", Value::String("talk".into()));
    }
    let text = Value::String(name.to_owned());
    set(&mut message, path, if names == Names::Definitions { Value::List(vec![text]) } else { text });
    answered(harness, rpc, &message, name).await
}

/// The same for a whole request, without the name and without what differs in each request.
async fn answered(
    harness: &Harness,
    rpc: &Rpc,
    message: &DynamicMessage,
    name: &str,
) -> Result<Json, Refusal> {
    let (line, secret) = (&harness.node.line, harness.acme.key(rpc.role()));
    let before = harness.node.state().await;
    let bytes = message.encode_to_vec();
    let outcome = if rpc.streams() {
        let (messages, end) = line.watch(Protocol::Grpc, rpc.method, secret, &bytes).await;
        end.map(|()| Json::from(messages.len()))
    } else {
        line.call(Protocol::Grpc, rpc.method, secret, &bytes).await.map(|reply| {
            let mut shown = shown(rpc, &reply);
            if let Some(inner) = shown.get_mut("assistant").and_then(Json::as_object_mut) {
                inner.remove("etag");
            }
            shown
        })
    };
    if outcome.is_err() {
        assert_eq!(harness.node.state().await, before, "{} of {name} changed the state", rpc.method);
    }
    let own = message.get_field_by_name("name").and_then(|value| value.as_str().map(str::to_owned));
    let own = own.filter(|own| !own.is_empty()).unwrap_or_else(|| "\0".to_owned());
    let session = message.get_field_by_name("session").and_then(|value| value.as_str().map(str::to_owned));
    let session = session.filter(|own| !own.is_empty()).unwrap_or_else(|| "\0".to_owned());
    let bare = name.rsplit('/').next().expect("a part");
    let put = |text: String| {
        let texts = [(own.as_str(), "OWN"), (session.as_str(), "OWN"), (name, "NAME"), (bare, "NAME")];
        texts.into_iter().fold(text, |text, (from, to)| text.replace(from, to))
    };
    match outcome {
        Ok(reply) => Ok(serde_json::from_str(&put(reply.to_string())).expect("the reply is still JSON")),
        Err(status) => {
            let refusal = Refusal::of(&status).with(&own, "OWN").with(&session, "OWN");
            Err(refusal.with(name, "NAME").with(bare, "NAME"))
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_another_tenants_is_nowhere_in_a_request() {
    let harness = Harness::start().await;
    let mut tried = 0;
    let mut rpcs = all();
    // It goes last: afterwards acme has assistants with these names itself.
    rpcs.sort_by_key(|rpc| rpc.method == "PutAssistant");
    for rpc in rpcs {
        for (_, path, kind) in BESIDE.into_iter().filter(|(method, ..)| *method == rpc.method) {
            for (theirs, never) in names(&harness, kind).await {
                let answers = [
                    attempted(&harness, &rpc, path, kind, &theirs).await,
                    attempted(&harness, &rpc, path, kind, &never).await,
                ];
                assert_eq!(answers[0], answers[1], "{}.{path}: {theirs} and {never}", rpc.method);
                let accepted = matches!(kind, Names::NewAssistant | Names::Filter) || path == "wanted.queues";
                assert!(accepted || answers[0].is_err(), "{}.{path}: {theirs} was accepted", rpc.method);
                tried += 1;
            }
        }
    }
    assert!(tried > 40, "{tried}");
    harness.node.end().await;
}

/// A definition also names others: those that it calls, and the assistants that it delegates to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_another_tenants_is_nowhere_in_a_definition() {
    let harness = Harness::start().await;
    let only = TALK.replace("\"talk\"", "\"only-talk\"");
    let deployed: Result<v1::DeployDefinitionResponse, _> =
        harness.node.line.ask(harness.globex.key("author"), "DeployDefinition", &deployment(&only)).await;
    deployed.expect("the definition is deployed");
    let mut answers = Vec::new();
    for (name, child) in [("calls-a", "only-talk"), ("calls-b", "only-never")] {
        let source = serde_json::json!({
            "name": name,
            "states": [{ "name": "call", "type": "subworkflow", "workflow": child }],
            "transitions": [],
        });
        let outcome: Result<v1::DeployDefinitionResponse, _> =
            harness.attempt("author", "DeployDefinition", &deployment(&source.to_string())).await;
        let refusal = crate::refusal::refused(outcome, "NO_SUCH_WORKFLOW");
        answers.push(refusal.with(child, "CHILD").with(name, "NAME"));
    }
    assert_eq!(answers[0], answers[1]);
    harness.node.end().await;
}
