//! Every call of the API, with a request that succeeds. A call without its row here fails every test that goes
//! through the table.

use futures::{FutureExt, future::BoxFuture};
use prost::Message;
use prost_reflect::{DynamicMessage, MethodDescriptor, Value};
use prost_types::{field_descriptor_proto::Type, method_options::IdempotencyLevel};
use switchward_api::{descriptor_pool, v1};

use crate::harness::{Harness, bundle, deployment, named, put_assistant, tool_call};
use crate::named::BESIDE;
use crate::protocols::find;

/// The kind of resource that a name in a request names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Tenant,
    Session,
    Gate,
    Effect,
    Definition,
    Assistant,
    Source,
    Endpoint,
    Mail,
    Version,
    Key,
    Work,
}

/// One call.
pub(crate) struct Rpc {
    pub(crate) method: &'static str,
    /// The field that names a resource of a tenant.
    pub(crate) name: Option<(&'static str, Kind)>,
    /// Creates all that a request of acme needs, and the request.
    pub(crate) ready: for<'w> fn(&'w Harness) -> BoxFuture<'w, Vec<u8>>,
    /// Turns it into a different request that could succeed as well.
    pub(crate) other: fn(&mut DynamicMessage),
}

impl Rpc {
    pub(crate) fn descriptor(&self) -> MethodDescriptor {
        find(self.method)
    }

    pub(crate) fn changes(&self) -> bool {
        changes(&self.descriptor())
    }

    /// Returns true if a request id identifies its repeats. Not so for polling work and extending leases, as a lease has a
    /// token, nor for calls that change nothing here, nothing the second time, or that compare replicas.
    pub(crate) fn is_once(&self) -> bool {
        let has = self.descriptor().input().get_field_by_name("request_id").is_some();
        let of_leases = ["PollWork", "StreamWork", "ExtendLease"].contains(&self.method);
        let of_endpoints =
            ["PingWebhookEndpoint", "RecoverWebhookEndpoint", "DeleteQuarantinedMail"].contains(&self.method);
        let compares = self.method == "VerifyGroup";
        assert_eq!(has, self.changes() && !of_leases && !of_endpoints && !compares, "{}", self.method);
        has
    }

    pub(crate) fn streams(&self) -> bool {
        self.descriptor().is_server_streaming()
    }

    /// A fresh request of acme.
    pub(crate) async fn request(&self, harness: &Harness) -> DynamicMessage {
        let bytes = (self.ready)(harness).await;
        DynamicMessage::decode(self.descriptor().input(), &bytes[..]).expect("a request")
    }

    /// Returns true if the request is about a lease, which only the worker of [`Harness::leased`] can extend or end.
    pub(crate) fn is_about_a_lease(&self) -> bool {
        ["ExtendLease", "CompleteWork", "FailWork", "ReleaseWork"].contains(&self.method)
    }

    /// The first role in `proto/README.md` that may make the call; of calls about a lease, the one that has it.
    pub(crate) fn role(&self) -> &'static str {
        if self.is_about_a_lease() {
            return "worker";
        }
        let (word, _) = crate::harness::ROLES
            .into_iter()
            .rev()
            .find(|(word, _)| crate::roles::allowed(&self.descriptor(), word))
            .expect("a role that may make the call");
        word
    }
}

/// Returns true if a method changes something, according to its options.
pub(crate) fn changes(method: &MethodDescriptor) -> bool {
    let options = method.method_descriptor_proto().options.clone().unwrap_or_default();
    options.idempotency_level() != IdempotencyLevel::NoSideEffects
}

/// Sets a field by its path, like `tenant.name`.
pub(crate) fn set(message: &mut DynamicMessage, path: &str, value: Value) {
    match path.split_once('.') {
        None => message.set_field_by_name(path, value),
        Some((first, rest)) => match message.get_field_by_name_mut(first) {
            Some(Value::Message(inner)) => set(inner, rest, value),
            other => panic!("{path} is {other:?}"),
        },
    }
}

/// The text of a field.
pub(crate) fn text(message: &DynamicMessage, field: &str) -> String {
    message.get_field_by_name(field).and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

fn put(field: &'static str, value: impl Into<String>) -> impl Fn(&mut DynamicMessage) {
    let value = value.into();
    move |message| set(message, field, Value::String(value.clone()))
}

/// The rows, which must be exactly the methods of the API.
pub(crate) fn all() -> Vec<Rpc> {
    let rows: Vec<Rpc> = [
        definitions(),
        definitions::rows(),
        assistants(),
        directory::rows(),
        webhooks::sources(),
        webhooks::endpoints(),
        sessions(),
        mail::rows(),
        retention::rows(),
        policy::rows(),
        gates(),
        effects(),
        export::rows(),
        tenants(),
        keys(),
        clock(),
        cluster::rows(),
        workers(),
    ]
    .into_iter()
    .flatten()
    .collect();
    let mut missing: Vec<String> = descriptor_pool()
        .services()
        .flat_map(|service| service.methods().map(|method| method.name().to_owned()).collect::<Vec<_>>())
        .collect();
    for row in &rows {
        let at = missing.iter().position(|name| name == row.method);
        missing.remove(at.unwrap_or_else(|| panic!("{} is not a method, or has two rows", row.method)));
        every_name_is_declared(row);
    }
    assert_eq!(missing, Vec::<String>::new(), "these methods have no row");
    rows
}

/// Checks that a field called like a name is in the row or in `BESIDE`, so that every name is tested.
fn every_name_is_declared(row: &Rpc) {
    let declared = row.name.map_or("", |(field, _)| field.split('.').next().unwrap_or(field));
    for field in row.descriptor().input().fields() {
        let word = ["name", "parent", "session", "definition"].contains(&field.name());
        let name = word && field.field_descriptor_proto().r#type() == Type::String;
        let beside = BESIDE.iter().any(|(method, path, _)| *method == row.method && *path == field.name());
        assert!(!name || beside || field.name() == declared, "{}: {} is a name", row.method, field.name());
    }
}

macro_rules! ready {
    (|$harness:ident| $body:expr) => {
        |$harness: &Harness| async move { Message::encode_to_vec(&$body) }.boxed()
    };
}

mod cluster;
mod definitions;
pub(crate) mod directory;
mod export;
mod mail;
mod policy;
mod retention;
mod webhooks;

fn read(method: &'static str, name: Option<(&'static str, Kind)>, ready: Ready) -> Rpc {
    Rpc { method, name, ready, other: |_| {} }
}

type Ready = for<'w> fn(&'w Harness) -> BoxFuture<'w, Vec<u8>>;

fn definitions() -> Vec<Rpc> {
    let name = Some(("name", Kind::Definition));
    let parent = Some(("parent", Kind::Tenant));
    vec![
        read(
            "CheckDefinition",
            None,
            ready!(|_harness| v1::CheckDefinitionRequest { files: bundle(&named("checked")), format: 0 }),
        ),
        Rpc {
            method: "DeployDefinition",
            name: parent,
            ready: ready!(|harness| deployment(&named(&harness.fresh("process")))),
            other: |message| set(message, "activate", Value::Bool(false)),
        },
        read(
            "GetDefinition",
            name,
            ready!(|harness| v1::GetDefinitionRequest {
                name: harness.acme.only.to_owned(),
                ..Default::default()
            }),
        ),
        read("ListDefinitions", parent, ready!(|_harness| v1::ListDefinitionsRequest::default())),
        read(
            "GetVersion",
            Some(("name", Kind::Version)),
            ready!(|harness| v1::GetVersionRequest {
                name: format!("{}/versions/1", harness.acme.only),
                view: v1::VersionView::Source.into(),
                ..Default::default()
            }),
        ),
        read(
            "ListVersions",
            Some(("parent", Kind::Definition)),
            ready!(|harness| v1::ListVersionsRequest {
                parent: harness.acme.only.to_owned(),
                ..v1::ListVersionsRequest::default()
            }),
        ),
        Rpc {
            method: "ActivateVersion",
            name: Some(("name", Kind::Version)),
            ready: ready!(|harness| {
                let first = harness.deploy(&named(&harness.fresh("process"))).await;
                let source = named(first.name.split('/').nth(3).expect("the definition's name"));
                harness.deploy(&source.replace("Is it ready?", "Is it all ready?")).await;
                v1::ActivateVersionRequest { name: first.name, ..v1::ActivateVersionRequest::default() }
            }),
            other: |message| {
                let latest = text(message, "name").replace("/versions/1", "/versions/2");
                set(message, "name", Value::String(latest));
            },
        },
    ]
}

fn assistants() -> Vec<Rpc> {
    let name = Some(("name", Kind::Assistant));
    vec![
        Rpc {
            method: "PutAssistant",
            // Any unused name is valid here.
            name: None,
            ready: ready!(|harness| put_assistant(&harness.fresh("desk"))),
            other: |message| put("assistant.instructions", "Be brief.")(message),
        },
        read(
            "GetAssistant",
            name,
            ready!(|harness| v1::GetAssistantRequest {
                name: format!("{}-desk", harness.acme.name),
                ..Default::default()
            }),
        ),
        read(
            "ListAssistants",
            Some(("parent", Kind::Tenant)),
            ready!(|_harness| v1::ListAssistantsRequest::default()),
        ),
        Rpc {
            method: "DeleteAssistant",
            name,
            ready: ready!(|harness| {
                let name = harness.fresh("desk");
                let _: v1::PutAssistantResponse =
                    harness.ask("author", "PutAssistant", &put_assistant(&name)).await;
                v1::DeleteAssistantRequest {
                    name: format!("tenants/acme/assistants/{name}"),
                    ..Default::default()
                }
            }),
            other: short_name,
        },
    ]
}

fn sessions() -> Vec<Rpc> {
    let name = Some(("name", Kind::Session));
    let mut rows = moves();
    rows.extend(conversation());
    rows.extend(turns());
    rows.extend([
        Rpc {
            method: "StartSession",
            name: Some(("definition", Kind::Definition)),
            ready: ready!(|harness| v1::StartSessionRequest {
                definition: "release".into(),
                session_id: harness.fresh("start"),
                ..v1::StartSessionRequest::default()
            }),
            other: |message| put("role", "agent")(message),
        },
        read(
            "GetSession",
            name,
            ready!(|harness| v1::GetSessionRequest {
                name: harness.session().await.name,
                ..Default::default()
            }),
        ),
        read(
            "ListSessions",
            Some(("parent", Kind::Tenant)),
            ready!(|_harness| v1::ListSessionsRequest::default()),
        ),
        read(
            "WatchSession",
            name,
            ready!(|harness| {
                let session = harness.session().await;
                harness.answer(&session.name, "stop").await;
                v1::WatchSessionRequest { name: session.name, from_sequence: 0 }
            }),
        ),
        read(
            "ListSessionEvents",
            name,
            ready!(|harness| v1::ListSessionEventsRequest {
                name: harness.session().await.name,
                ..v1::ListSessionEventsRequest::default()
            }),
        ),
    ]);
    rows
}

/// The calls that advance an existing session.
fn moves() -> Vec<Rpc> {
    let name = Some(("name", Kind::Session));
    vec![
        Rpc {
            method: "AnswerCheckpoint",
            name,
            ready: ready!(|harness| v1::AnswerCheckpointRequest {
                name: harness.session().await.name,
                answer: "go".into(),
                ..v1::AnswerCheckpointRequest::default()
            }),
            other: |message| put("note", "another note")(message),
        },
        Rpc {
            method: "PauseSession",
            name,
            ready: ready!(|harness| v1::PauseSessionRequest {
                name: harness.session().await.name,
                ..v1::PauseSessionRequest::default()
            }),
            other: |message| put("reason", "another reason")(message),
        },
        Rpc {
            method: "ResumeSession",
            name,
            ready: ready!(|harness| {
                let name = harness.session().await.name;
                let pause =
                    v1::PauseSessionRequest { name: name.clone(), ..v1::PauseSessionRequest::default() };
                let _: v1::PauseSessionResponse = harness.ask("operator", "PauseSession", &pause).await;
                v1::ResumeSessionRequest { name, ..v1::ResumeSessionRequest::default() }
            }),
            other: |message| put("reason", "another reason")(message),
        },
        Rpc {
            method: "CancelSession",
            name,
            ready: ready!(|harness| v1::CancelSessionRequest {
                name: harness.session().await.name,
                ..v1::CancelSessionRequest::default()
            }),
            other: |message| put("reason", "another reason")(message),
        },
        Rpc {
            method: "RaiseCap",
            name,
            ready: ready!(|harness| v1::RaiseCapRequest {
                name: harness.session().await.name,
                cap: Some(v1::raise_cap_request::Cap::CostUsd("20".into())),
                ..v1::RaiseCapRequest::default()
            }),
            other: |message| put("cost_usd", "30")(message),
        },
    ]
}

/// The calls that advance a conversation.
fn conversation() -> Vec<Rpc> {
    let name = Some(("name", Kind::Session));
    vec![
        Rpc {
            method: "PostMessage",
            name,
            ready: ready!(|harness| v1::PostMessageRequest {
                name: harness.talk().await.name,
                text: "Hello".into(),
                ..v1::PostMessageRequest::default()
            }),
            other: |message| put("text", "Hello again")(message),
        },
        Rpc {
            method: "EndTurn",
            name,
            ready: ready!(|harness| v1::EndTurnRequest {
                name: harness.talk().await.name,
                text: "Which order?".into(),
                ..v1::EndTurnRequest::default()
            }),
            other: |message| put("text", "Which one?")(message),
        },
        Rpc {
            method: "RecordData",
            name,
            ready: ready!(|harness| v1::RecordDataRequest {
                name: harness.talk().await.name,
                values: Some(one_value("order")),
                ..v1::RecordDataRequest::default()
            }),
            other: short_name,
        },
        Rpc {
            method: "SignalCompletion",
            name,
            ready: ready!(|harness| v1::SignalCompletionRequest {
                name: harness.talk().await.name,
                ..v1::SignalCompletionRequest::default()
            }),
            other: short_name,
        },
        Rpc {
            method: "RetryState",
            name,
            ready: ready!(|harness| v1::RetryStateRequest {
                name: harness.talk().await.name,
                ..v1::RetryStateRequest::default()
            }),
            other: short_name,
        },
    ]
}

/// The calls that redirect a conversation.
fn turns() -> Vec<Rpc> {
    let name = Some(("name", Kind::Session));
    vec![
        Rpc {
            method: "RecordEvent",
            name,
            ready: ready!(|harness| v1::RecordEventRequest {
                name: harness.talk().await.name,
                key: "paid".into(),
                data: Some(one_value("order")),
                state: "ask".into(),
                ..v1::RecordEventRequest::default()
            }),
            other: |message| put("key", "delivered")(message),
        },
        Rpc {
            method: "RecordReply",
            name,
            ready: ready!(|harness| v1::RecordReplyRequest {
                name: harness.talk().await.name,
                from: "sam@example.com".into(),
                text: "yes".into(),
                ..v1::RecordReplyRequest::default()
            }),
            other: |message| put("text", "no")(message),
        },
        Rpc {
            method: "SwitchWorkflow",
            name,
            ready: ready!(|harness| v1::SwitchWorkflowRequest {
                name: harness.talk().await.name,
                workflow: "talk".into(),
                ..v1::SwitchWorkflowRequest::default()
            }),
            other: |message| put("workflow", "chat")(message),
        },
    ]
}

/// An object with one text.
fn one_value(key: &str) -> prost_types::Struct {
    let value = prost_types::Value { kind: Some(prost_types::value::Kind::StringValue("A-17".into())) };
    prost_types::Struct { fields: [(key.to_owned(), value)].into() }
}

/// The same session by its other name.
fn short_name(message: &mut DynamicMessage) {
    let short = text(message, "name").replace("tenants/acme/", "tenants/-/");
    set(message, "name", Value::String(short));
}

fn gates() -> Vec<Rpc> {
    let name = Some(("name", Kind::Gate));
    vec![
        read("ListGates", Some(("parent", Kind::Tenant)), ready!(|_harness| v1::ListGatesRequest::default())),
        read(
            "GetGate",
            name,
            ready!(|harness| v1::GetGateRequest { name: harness.gate().await, ..Default::default() }),
        ),
        Rpc {
            method: "DecideGate",
            name,
            ready: ready!(|harness| v1::DecideGateRequest {
                name: harness.gate().await,
                decision: v1::GateDecision::Approve.into(),
                ..v1::DecideGateRequest::default()
            }),
            other: |message| put("comment", "another comment")(message),
        },
        Rpc {
            method: "AssignGate",
            name,
            ready: ready!(|harness| {
                // A gate of which the key of the role approver is notified, and somebody who may receive it.
                let put = directory::of(&directory::NEEDED);
                let _: v1::PutDirectoryResponse = harness.ask("admin", "PutDirectory", &put).await;
                v1::AssignGateRequest {
                    name: harness.gate().await,
                    to: "kim".into(),
                    ..v1::AssignGateRequest::default()
                }
            }),
            other: |message| put("comment", "another comment")(message),
        },
    ]
}

fn effects() -> Vec<Rpc> {
    let name = Some(("name", Kind::Effect));
    vec![
        read(
            "ListEffects",
            Some(("parent", Kind::Tenant)),
            ready!(|_harness| v1::ListEffectsRequest::default()),
        ),
        read(
            "GetEffect",
            name,
            ready!(|harness| v1::GetEffectRequest { name: harness.effect().await, ..Default::default() }),
        ),
        Rpc {
            method: "FailEffect",
            name,
            ready: ready!(|harness| v1::FailEffectRequest {
                name: harness.effect().await,
                code: "no_such_host".into(),
                ..v1::FailEffectRequest::default()
            }),
            other: |message| put("message", "another message")(message),
        },
        Rpc {
            method: "RetryEffect",
            name,
            ready: ready!(|harness| v1::RetryEffectRequest {
                name: harness.dead_letter().await,
                ..v1::RetryEffectRequest::default()
            }),
            other: short_name,
        },
        Rpc {
            method: "DismissEffect",
            name,
            ready: ready!(|harness| v1::DismissEffectRequest {
                name: harness.dead_letter().await,
                ..v1::DismissEffectRequest::default()
            }),
            other: short_name,
        },
        Rpc {
            method: "ReleaseEffects",
            name: Some(("parent", Kind::Tenant)),
            ready: ready!(|harness| {
                harness.node.hold().await;
                v1::ReleaseEffectsRequest::default()
            }),
            other: |message| put("parent", "-")(message),
        },
    ]
}

fn tenants() -> Vec<Rpc> {
    vec![
        Rpc {
            method: "CreateTenant",
            name: None,
            ready: ready!(|harness| v1::CreateTenantRequest {
                tenant_id: harness.fresh("tenant"),
                ..v1::CreateTenantRequest::default()
            }),
            other: |message| put("tenant_id", format!("{}x", text(message, "tenant_id")))(message),
        },
        read(
            "GetTenant",
            Some(("name", Kind::Tenant)),
            ready!(|_harness| v1::GetTenantRequest { name: "-".into(), ..Default::default() }),
        ),
        read("ListTenants", None, ready!(|_harness| v1::ListTenantsRequest::default())),
        Rpc {
            method: "UpdateTenant",
            name: Some(("tenant.name", Kind::Tenant)),
            ready: ready!(|harness| {
                let get = v1::GetTenantRequest { name: "-".into(), ..Default::default() };
                let now: v1::GetTenantResponse = harness.ask("agent", "GetTenant", &get).await;
                let now = now.tenant.expect("a tenant");
                let paths = vec!["allow_foreign_role".to_owned()];
                v1::UpdateTenantRequest {
                    tenant: Some(v1::Tenant { allow_foreign_role: !now.allow_foreign_role, ..now }),
                    update_mask: Some(prost_types::FieldMask { paths }),
                    ..v1::UpdateTenantRequest::default()
                }
            }),
            other: |message| put("tenant.display_name", "another name")(message),
        },
        read(
            "GetTenantQuotas",
            None,
            ready!(|_harness| v1::GetTenantQuotasRequest {
                tenant_id: "globex".into(),
                ..Default::default()
            }),
        ),
        Rpc {
            method: "SetTenantQuotas",
            name: None,
            ready: ready!(|harness| {
                let tenant_id = harness.fresh("tenant");
                let create = v1::CreateTenantRequest { tenant_id: tenant_id.clone(), ..Default::default() };
                let _: v1::CreateTenantResponse = harness.ask("admin", "CreateTenant", &create).await;
                let quotas = v1::Quotas { sessions: Some(9), ..v1::Quotas::default() };
                v1::SetTenantQuotasRequest { tenant_id, quotas: Some(quotas), ..Default::default() }
            }),
            other: |message| set(message, "quotas.sessions", Value::U64(10)),
        },
        Rpc {
            method: "DeleteTenant",
            name: None,
            ready: ready!(|harness| {
                let tenant_id = harness.fresh("tenant");
                let create = v1::CreateTenantRequest {
                    tenant_id: tenant_id.clone(),
                    ..v1::CreateTenantRequest::default()
                };
                let _: v1::CreateTenantResponse = harness.ask("admin", "CreateTenant", &create).await;
                v1::DeleteTenantRequest { tenant_id, ..v1::DeleteTenantRequest::default() }
            }),
            other: |message| put("tenant_id", format!("{}x", text(message, "tenant_id")))(message),
        },
    ]
}

fn keys() -> Vec<Rpc> {
    vec![
        Rpc {
            method: "CreateApiKey",
            name: Some(("parent", Kind::Tenant)),
            ready: ready!(|_harness| v1::CreateApiKeyRequest {
                role: v1::KeyRole::Agent.into(),
                ..v1::CreateApiKeyRequest::default()
            }),
            other: |message| put("display_name", "another name")(message),
        },
        read(
            "ListApiKeys",
            Some(("parent", Kind::Tenant)),
            ready!(|_harness| v1::ListApiKeysRequest::default()),
        ),
        Rpc {
            method: "RevokeApiKey",
            name: Some(("name", Kind::Key)),
            ready: ready!(|harness| {
                let create = v1::CreateApiKeyRequest {
                    role: v1::KeyRole::Agent.into(),
                    ..v1::CreateApiKeyRequest::default()
                };
                let made: v1::CreateApiKeyResponse = harness.ask("admin", "CreateApiKey", &create).await;
                let name = made.api_key.expect("a key").name;
                v1::RevokeApiKeyRequest { name, ..v1::RevokeApiKeyRequest::default() }
            }),
            other: |message| {
                let short = text(message, "name").rsplit('/').next().unwrap_or_default().to_owned();
                put("name", short)(message);
            },
        },
    ]
}

fn clock() -> Vec<Rpc> {
    vec![
        Rpc {
            method: "AdvanceClock",
            name: None,
            ready: ready!(|_harness| v1::AdvanceClockRequest {
                duration: Some(prost_types::Duration { seconds: 1, nanos: 0 }),
                ..v1::AdvanceClockRequest::default()
            }),
            other: |message| {
                let nanos = Value::I32(500_000_000);
                set(message, "duration.nanos", nanos);
            },
        },
        read("GetClock", None, ready!(|_harness| v1::GetClockRequest {})),
    ]
}

fn wanted(queue: String) -> Option<v1::WorkWanted> {
    Some(v1::WorkWanted { queues: vec![queue], ..v1::WorkWanted::default() })
}

fn workers() -> Vec<Rpc> {
    let (name, parent) = (Some(("name", Kind::Work)), Some(("parent", Kind::Tenant)));
    let nothing = |_: &mut DynamicMessage| {};
    vec![
        Rpc {
            method: "PollWork",
            name: parent,
            ready: ready!(|harness| v1::PollWorkRequest {
                wanted: wanted(harness.owing().await.1),
                ..v1::PollWorkRequest::default()
            }),
            other: nothing,
        },
        Rpc {
            method: "StreamWork",
            name: parent,
            ready: ready!(|harness| v1::StreamWorkRequest {
                wanted: wanted(harness.owing().await.1),
                lifetime: Some(prost_types::Duration { seconds: 0, nanos: 200_000_000 }),
                ..v1::StreamWorkRequest::default()
            }),
            other: nothing,
        },
        Rpc {
            method: "ExtendLease",
            name,
            ready: ready!(|harness| {
                let v1::WorkItem { name, lease_token, .. } = harness.leased().await;
                v1::ExtendLeaseRequest { name, lease_token, ..v1::ExtendLeaseRequest::default() }
            }),
            other: nothing,
        },
        Rpc {
            method: "CompleteWork",
            name,
            ready: ready!(|harness| {
                let v1::WorkItem { name, lease_token, .. } = harness.leased().await;
                let result = Some(one_value("sum"));
                v1::CompleteWorkRequest { name, lease_token, result, ..v1::CompleteWorkRequest::default() }
            }),
            other: |message| set(message, "tokens", Value::U64(7)),
        },
        Rpc {
            method: "FailWork",
            name,
            ready: ready!(|harness| {
                let v1::WorkItem { name, lease_token, .. } = harness.leased().await;
                v1::FailWorkRequest { name, lease_token, ..v1::FailWorkRequest::default() }
            }),
            other: |message| put("message", "no paper")(message),
        },
        Rpc {
            method: "ReleaseWork",
            name,
            ready: ready!(|harness| {
                let v1::WorkItem { name, lease_token, .. } = harness.leased().await;
                v1::ReleaseWorkRequest { name, lease_token, ..v1::ReleaseWorkRequest::default() }
            }),
            other: short_name,
        },
    ]
}
