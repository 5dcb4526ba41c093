//! Definitions and commands of the workload.

use std::sync::{Arc, LazyLock};
use switchward_formats::{Definition, SourceFile, compile};
use switchward_machine::{Decision, Digest, Micros, OpenId, SessionId, TenantId};
use switchward_state::approval::{ApprovalCommand, DecideGate};
use switchward_state::catalogue::{CatalogueCommand, InstallMachine, Role};
use switchward_state::delivery::{DeliveryCommand, DismissEffect, RetryEffect};
use switchward_state::policy::{Args, Authorize, PolicyCommand, ReportCall};
use switchward_state::run::{Answer, RunCommand};
use switchward_state::session::{Cancel, SessionCommand, Start, Sweep};
use switchward_state::{Actor, Body, Command, Due, RequestId, Scope};
use switchward_testkit::start_of;

/// The only tenant.
pub(crate) const TENANT: TenantId = TenantId(1);
/// Definitions whose calls are limited, each with a ledger of its own.
pub(crate) const COUNTERS: [&str; 2] = ["counter-a", "counter-b"];
/// Calls that an hour allows without anybody being asked.
pub(crate) const CALLS_MAX: usize = 8;
/// Calls that an hour allows after somebody was asked.
pub(crate) const APPROVED_MAX: usize = 5;
/// Calls that [`READ_WINDOW_MS`] allows.
pub(crate) const READS_MAX: usize = 2;
pub(crate) const READ_WINDOW_MS: u64 = 4_000;
/// Calls with a price that [`SHIP_WINDOW_MS`] allows: one that counts too late, or too briefly, lets another one through.
pub(crate) const SHIPS_MAX: usize = 1;
pub(crate) const SHIP_WINDOW_MS: u64 = 3_000;
/// What calls may cost in an hour.
pub(crate) const BUDGET: Micros = Micros(1_000_000);
/// What a session may spend; a call beyond that is denied after its reservation.
const SESSION_BUDGET: &str = "0.30";
/// How long sessions wait, milliseconds.
pub(crate) const NAPS_MS: [u64; 2] = [1_800, 3_600];
/// States of a register.
pub(crate) const VALUES: usize = 3;

/// What a call costs.
pub(crate) struct Price {
    /// What it is believed to cost: this is held for it.
    pub(crate) estimate: Micros,
    /// What it costs, unless it is free in the end.
    pub(crate) cost: Micros,
}

/// The price of a call; `None` if it has none.
pub(crate) fn price(capability: &str) -> Option<Price> {
    match capability {
        "pay" => Some(Price { estimate: Micros(120_000), cost: Micros(70_000) }),
        "ship" => Some(Price { estimate: Micros(20_000), cost: Micros(5_000) }),
        _ => None,
    }
}

/// The compiled definitions, with the digests of their machines.
static DEFINITIONS: LazyLock<Vec<(Definition, Digest)>> = LazyLock::new(|| {
    let mut sources = vec![register(), post()];
    sources.extend(COUNTERS.map(counter));
    sources.extend(NAPS_MS.map(nap));
    let with_digest = |source: &String| {
        let definition = definition(source);
        let digest = definition.machine.digest();
        (definition, digest)
    };
    sources.iter().map(with_digest).collect()
});

fn register() -> String {
    let state = |value: usize| {
        let answers: Vec<String> =
            (0..VALUES).map(|to| format!(r#""to{to}": {{ "next": "s{to}" }}"#)).collect();
        format!(r#""s{value}": {{ "question": "What next?", "answers": {{ {} }} }}"#, answers.join(", "))
    };
    let states: Vec<String> = (0..VALUES).map(state).collect();
    let states = states.join(", ");
    format!(
        r#"{{ "name": "register", "initial": "s0", "states": {{ {states} }}, "policy": {{ "role": "agent" }} }}"#
    )
}

fn counter(name: &str) -> String {
    let (read_s, ship_s) = (READ_WINDOW_MS / 1_000, SHIP_WINDOW_MS / 1_000);
    format!(
        r#"{{
            "name": "{name}", "initial": "open", "session_budget_usd": {SESSION_BUDGET},
            "states": {{ "open": {{ "question": "Done?",
                "answers": {{ "yes": {{ "next": null, "action": "complete" }} }} }} }},
            "policy": {{ "role": "agent", "allow": [
                {{ "capability": "bash", "rate_limit": {{ "max_calls": {CALLS_MAX}, "window_seconds": 3600 }} }},
                {{ "capability": "read", "rate_limit": {{ "max_calls": {READS_MAX}, "window_seconds": {read_s} }} }},
                {{ "capability": "ship", "rate_limit": {{ "max_calls": {SHIPS_MAX}, "window_seconds": {ship_s} }} }},
                {{ "capability": "pay", "budget_limit": {{ "max_usd": 1.00, "period": "hourly" }} }}
            ], "ask": [
                {{ "capability": "deploy",
                   "rate_limit": {{ "max_calls": {APPROVED_MAX}, "window_seconds": 3600 }} }}
            ] }}
        }}"#
    )
}

/// A conversation that waits this long, milliseconds, and ends.
fn nap(ms: u64) -> String {
    let hours = format!("0.{:06}", ms * 10 / 36);
    format!(
        r#"{{
            "name": "nap-{ms}",
            "states": [
                {{ "name": "rest", "type": "wait", "wait_for": "timer", "timeout_hours": {hours} }},
                {{ "name": "up", "type": "output", "template": "Good morning.", "target": "conversation" }}
            ],
            "transitions": [{{ "from": "rest", "port": "received", "to": "up" }}]
        }}"#
    )
}

/// A conversation that sends webhooks and a mail.
fn post() -> String {
    r#"{
        "name": "post",
        "states": [
            { "name": "say", "type": "output", "target": "webhook", "template": "ordered",
              "recipients": ["https://a.example/one", "https://b.example/two"] },
            { "name": "write", "type": "output", "target": "email", "subject_template": "Ordered",
              "template": "It is ordered.", "recipients": ["ann@ours.example"] },
            { "name": "sent", "type": "conversation" }
        ],
        "transitions": [
            { "from": "say", "port": "done", "to": "write" },
            { "from": "write", "port": "done", "to": "sent" }
        ]
    }"#
    .to_owned()
}

fn definition(source: &str) -> Definition {
    let compiled = compile(&[SourceFile { path: "definition.json", bytes: source.as_bytes() }], None);
    compiled.definition.unwrap_or_else(|| panic!("{:?}", compiled.findings))
}

/// Installs all machines in a shard.
pub(crate) fn install() -> Vec<Command> {
    let install = |definition: &Definition| {
        let machine = Arc::new(definition.machine.clone());
        let body = Body::Catalogue(CatalogueCommand::InstallMachine(InstallMachine { machine }));
        Command::of_server(TENANT, Scope::Shard, body)
    };
    DEFINITIONS.iter().map(|(definition, _)| install(definition)).collect()
}

/// The session of a key.
pub(crate) fn session(key: &str) -> SessionId {
    SessionId::from_key(TENANT, key)
}

/// A request id with the digest of its body.
pub(crate) fn request(id: &str) -> RequestId {
    RequestId { id: id.to_owned(), body: Digest::of(id.as_bytes()) }
}

fn by_agent(session: SessionId, body: Body) -> Command {
    let actor = Actor { subject: "agent-1".into(), role: Role::Agent };
    Command { actor, ..Command::of_server(TENANT, Scope::Session(session), body) }
}

fn by_person(session: SessionId, role: Role, body: Body) -> Command {
    let actor = Actor { subject: "kim".into(), role };
    Command { actor, ..Command::of_server(TENANT, Scope::Session(session), body) }
}

/// Starts the session of this key.
pub(crate) fn start(name: &str, key: &str) -> Command {
    let (_, digest) = DEFINITIONS.iter().find(|(definition, _)| definition.name == name).unwrap();
    let body = Start { key: Some(key.to_owned()), ..start_of(name, 1, *digest, "agent") };
    by_agent(session(key), Body::Session(SessionCommand::Start(body)))
}

/// Sets a register, if its session is at this sequence.
pub(crate) fn set(session: SessionId, to: usize, at: Option<u64>) -> Command {
    let body = Answer { state: None, answer: format!("to{to}"), note: String::new() };
    Command { expected_sequence: at, ..by_agent(session, Body::Run(RunCommand::Answer(body))) }
}

/// Asks whether a call may be made.
pub(crate) fn authorize(session: SessionId, call: &str, capability: &str) -> Command {
    let body = Authorize {
        capability: capability.to_owned(),
        args: Args::parse(b"{}").unwrap(),
        estimate: price(capability).map(|price| price.estimate),
        call_id: call.to_owned(),
        limits: None,
        mail: None,
    };
    by_agent(session, Body::Policy(PolicyCommand::Authorize(body)))
}

/// Reports what a call has cost.
pub(crate) fn report(session: SessionId, call: &str, cost: Micros) -> Command {
    let call_id = Some(call.to_owned());
    let body = ReportCall { call_id, capability: None, success: true, cost, tokens: 0 };
    by_agent(session, Body::Policy(PolicyCommand::ReportCall(body)))
}

/// Decides a gate.
pub(crate) fn decide(session: SessionId, gate: OpenId, decision: Decision) -> Command {
    let body = DecideGate { gate, decision, comment: "seen".into(), shown: None, limits: None, proof: None };
    by_person(session, Role::Approver, Body::Approval(ApprovalCommand::DecideGate(body)))
}

/// Ends a session.
pub(crate) fn cancel(session: SessionId) -> Command {
    let body = Cancel::written("enough");
    by_person(session, Role::Operator, Body::Session(SessionCommand::Cancel(body)))
}

/// Sends a dead letter again.
pub(crate) fn retry(session: SessionId, number: u64) -> Command {
    let body = DeliveryCommand::RetryEffect(RetryEffect { number });
    by_person(session, Role::Operator, Body::Delivery(body))
}

/// Gives a dead letter up.
pub(crate) fn dismiss(session: SessionId, number: u64) -> Command {
    let body = DeliveryCommand::DismissEffect(DismissEffect { number });
    by_person(session, Role::Operator, Body::Delivery(body))
}

/// Fires what is due.
pub(crate) fn sweep(due: &Due) -> Command {
    let body = Body::Session(SessionCommand::Sweep(Sweep { key: due.key.clone() }));
    Command::of_server(due.key.tenant_of(), due.scope(), body)
}
