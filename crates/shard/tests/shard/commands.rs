//! Commands like those of a gateway.

use std::sync::Arc;
use switchward_formats::{Definition, SourceFile, compile};
use switchward_machine::{Digest, Micros, SessionId, TenantId};
use switchward_shard::Failure;
use switchward_state::catalogue::{CatalogueCommand, CreateTenant, Deploy, Role, Settings};
use switchward_state::policy::{Args, Authorize, PolicyCommand, ReportCall};
use switchward_state::run::{Answer, RunCommand};
use switchward_state::session::{SessionCommand, Start};
use switchward_state::{Actor, Body, Command, Reply, RequestId, Scope};
use switchward_testkit::start_of;

/// The format's first example.
pub(crate) const DEPLOY_GATE: &str = include_str!("../../../formats/tests/fixtures/deploy-gate.json");

/// Two tenants, each with sessions, machines and ledgers of its own.
pub(crate) const TENANTS: [TenantId; 2] = [TenantId(1), TenantId(2)];

/// The tenant of a session key: numbered keys alternate.
pub(crate) fn tenant(key: &str) -> TenantId {
    TENANTS[usize::from(key.bytes().last().is_some_and(|last| last % 2 == 1))]
}

/// A definition that must compile.
pub(crate) fn definition(source: &str) -> Definition {
    let file = SourceFile { path: "definition.json", bytes: source.as_bytes() };
    let compiled = compile(&[file], None);
    compiled.definition.unwrap_or_else(|| panic!("{:?}", compiled.findings))
}

/// A command of an agent; with a request id, its body is assumed to be given by the id.
pub(crate) fn command(tenant: TenantId, scope: Scope, request: Option<&str>, body: Body) -> Command {
    Command {
        tenant,
        scope,
        request: request.map(|id| RequestId { id: id.to_owned(), body: Digest::of(id.as_bytes()) }),
        expected_sequence: None,
        actor: Actor { subject: "agent-1".into(), role: Role::Agent },
        settings: Settings::default(),
        trace: None,
        address: None,
        body,
    }
}

/// Creates both tenants, in order.
pub(crate) fn create_tenants() -> [Command; 2] {
    ["acme", "globex"].map(|name| {
        let body =
            CreateTenant { name: name.into(), display_name: name.into(), settings: Settings::default() };
        let request = format!("tenant {name}");
        command(
            TENANTS[0],
            Scope::Catalogue,
            Some(&request),
            Body::Catalogue(CatalogueCommand::CreateTenant(body)),
        )
    })
}

/// Deploys a definition for both tenants.
pub(crate) fn deploys(definition: &Definition, source: &str) -> [Command; 2] {
    let body = Deploy {
        findings: Vec::new(),
        name: definition.name.clone(),
        format: "checkpoint".into(),
        files: vec![switchward_state::catalogue::SourceFile {
            path: "definition.json".into(),
            bytes: source.as_bytes().to_vec(),
        }],
        source: definition.source,
        machine: Arc::new(definition.machine.clone()),
        activate: true,
        etag: String::new(),
    };
    let request = format!("deploy {}", definition.source);
    TENANTS.map(|tenant| {
        command(
            tenant,
            Scope::Catalogue,
            Some(&request),
            Body::Catalogue(CatalogueCommand::Deploy(body.clone())),
        )
    })
}

pub(crate) fn session(key: &str) -> SessionId {
    SessionId::from_key(tenant(key), key)
}

/// Starts the session of this key.
pub(crate) fn start(definition: &Definition, key: &str) -> Command {
    let body = Start {
        key: Some(key.to_owned()),
        ..start_of(definition.name.clone(), 1, definition.machine.digest(), "agent")
    };
    command(
        tenant(key),
        Scope::Session(session(key)),
        Some(&format!("start {key}")),
        Body::Session(SessionCommand::Start(body)),
    )
}

pub(crate) fn answer(key: &str, request: &str, answer: &str) -> Command {
    let body = Answer { state: None, answer: answer.to_owned(), note: String::new() };
    command(tenant(key), Scope::Session(session(key)), Some(request), Body::Run(RunCommand::Answer(body)))
}

/// Authorizes a call, whose name is its request id.
pub(crate) fn authorize(key: &str, call: &str, capability: &str, estimate: Option<Micros>) -> Command {
    let body = Authorize {
        capability: capability.to_owned(),
        args: Args::parse(b"{}").unwrap(),
        estimate,
        call_id: call.to_owned(),
        limits: None,
        mail: None,
    };
    command(
        tenant(key),
        Scope::Session(session(key)),
        Some(call),
        Body::Policy(PolicyCommand::Authorize(body)),
    )
}

/// Reports a call.
pub(crate) fn report(key: &str, call: &str, cost: Micros) -> Command {
    let body =
        ReportCall { call_id: Some(call.to_owned()), capability: None, success: true, cost, tokens: 0 };
    command(
        tenant(key),
        Scope::Session(session(key)),
        Some(&format!("report {call}")),
        Body::Policy(PolicyCommand::ReportCall(body)),
    )
}

/// The sequence of a session that a command has moved.
pub(crate) fn moved(outcome: Result<Reply, Failure>) -> u64 {
    match outcome {
        Ok(Reply::Session { sequence, position: Some(_) }) => sequence,
        other => panic!("the session was not moved: {other:?}"),
    }
}
