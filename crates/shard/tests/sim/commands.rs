//! Definitions and commands of the workload.

use std::sync::Arc;
use switchward_formats::{Definition, SourceFile, compile};
use switchward_machine::{Digest, Micros, SessionId, TenantId};
use switchward_state::catalogue::{
    CatalogueCommand, CreateTenant, Deploy, Role, Settings, SourceFile as Stored,
};
use switchward_state::policy::{Args, Authorize, PolicyCommand, ReportCall};
use switchward_state::run::{Answer, RunCommand};
use switchward_state::session::{SessionCommand, Start};
use switchward_state::{Actor, Body, Command, RequestId, Scope};
use switchward_testkit::start_of;

/// The only tenant.
pub(crate) const TENANT: TenantId = TenantId(1);
/// What a register may hold: one of this number of values.
pub(crate) const VALUES: u8 = 4;
/// How many calls the counter allows.
pub(crate) const CALLS_MAX: usize = 12;
/// What calls may cost, and how much one is believed to cost, and costs.
pub(crate) const BUDGET: Micros = Micros(2_000_000);
pub(crate) const ESTIMATE: Micros = Micros(100_000);
pub(crate) const COST: Micros = Micros(40_000);
/// How long sessions wait, milliseconds. The longest wait ends only after all faults, unless a leader believes a clock that is
/// far ahead.
const NAPS: [u64; 4] = [1_800, 3_600, 7_200, 360_000];
/// The definition whose calls are limited.
pub(crate) const COUNTER: &str = "counter";

/// The definitions of the workload.
pub(crate) struct Definitions {
    pub(crate) register: Definition,
    pub(crate) counter: Definition,
    pub(crate) naps: Vec<(u64, Definition)>,
    sources: Vec<String>,
}

impl Definitions {
    pub(crate) fn new() -> Self {
        let states: Vec<String> = (0..VALUES).map(register_state).collect();
        let register = format!(
            r#"{{ "name": "register", "initial": "s0", "states": {{ {} }}, "policy": {{ "role": "agent" }} }}"#,
            states.join(", ")
        );
        let counter = format!(
            r#"{{
                "name": "{COUNTER}", "initial": "open",
                "states": {{ "open": {{ "question": "Done?",
                    "answers": {{ "yes": {{ "next": null, "action": "complete" }} }} }} }},
                "policy": {{ "role": "agent", "allow": [
                    {{ "capability": "bash",
                       "rate_limit": {{ "max_calls": {CALLS_MAX}, "window_seconds": 3600 }} }},
                    {{ "capability": "pay", "budget_limit": {{ "max_usd": 2.00, "period": "hourly" }} }}
                ] }}
            }}"#
        );
        let naps: Vec<(u64, String)> = NAPS.into_iter().map(|ms| (ms, nap(ms))).collect();
        let mut sources = vec![register, counter];
        sources.extend(naps.iter().map(|(_, source)| source.clone()));
        Self {
            register: definition(&sources[0]),
            counter: definition(&sources[1]),
            naps: naps.iter().map(|(ms, source)| (*ms, definition(source))).collect(),
            sources,
        }
    }

    fn all(&self) -> impl Iterator<Item = (&Definition, &str)> {
        let naps = self.naps.iter().map(|(_, definition)| definition);
        [&self.register, &self.counter].into_iter().chain(naps).zip(self.sources.iter().map(String::as_str))
    }

    /// Creates the tenant and deploys all definitions.
    pub(crate) fn install(&self) -> Vec<Command> {
        let body =
            CreateTenant { name: "acme".into(), display_name: "acme".into(), settings: Settings::default() };
        let tenant = Body::Catalogue(CatalogueCommand::CreateTenant(body));
        let mut commands = vec![command(Scope::Catalogue, Some("tenant"), tenant)];
        commands.extend(self.all().map(|(definition, source)| {
            let deploy = Body::Catalogue(CatalogueCommand::Deploy(deploy(definition, source)));
            command(Scope::Catalogue, Some(&format!("deploy {}", definition.name)), deploy)
        }));
        commands
    }
}

fn register_state(value: u8) -> String {
    let answers: Vec<String> = (0..VALUES).map(|to| format!(r#""to{to}": {{ "next": "s{to}" }}"#)).collect();
    format!(r#""s{value}": {{ "question": "What next?", "answers": {{ {} }} }}"#, answers.join(", "))
}

/// A conversation that waits this long, milliseconds, and ends.
fn nap(ms: u64) -> String {
    let hours = ms as f64 / 3_600_000.0;
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

fn definition(source: &str) -> Definition {
    let compiled = compile(&[SourceFile { path: "definition.json", bytes: source.as_bytes() }], None);
    compiled.definition.unwrap_or_else(|| panic!("{:?}", compiled.findings))
}

fn deploy(definition: &Definition, source: &str) -> Deploy {
    Deploy {
        findings: Vec::new(),
        name: definition.name.clone(),
        format: "checkpoint".into(),
        files: vec![Stored { path: "definition.json".into(), bytes: source.as_bytes().to_vec() }],
        source: definition.source,
        machine: Arc::new(definition.machine.clone()),
        activate: true,
        etag: String::new(),
    }
}

fn command(scope: Scope, request: Option<&str>, body: Body) -> Command {
    Command {
        tenant: TENANT,
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

/// The session of a key.
pub(crate) fn session(key: &str) -> SessionId {
    SessionId::from_key(TENANT, key)
}

/// Starts the session of this key.
pub(crate) fn start(definition: &Definition, key: &str) -> Command {
    let body = Start {
        key: Some(key.to_owned()),
        ..start_of(definition.name.clone(), 1, definition.machine.digest(), "agent")
    };
    let request = format!("start {key}");
    command(Scope::Session(session(key)), Some(&request), Body::Session(SessionCommand::Start(body)))
}

/// Sets a register, whatever it holds.
pub(crate) fn write(key: &str, request: Option<&str>, to: u8) -> Command {
    answer(key, request, None, to)
}

/// Sets a register that holds this.
pub(crate) fn exchange(key: &str, request: Option<&str>, from: u8, to: u8) -> Command {
    answer(key, request, Some(format!("s{from}")), to)
}

/// Sets a register whose session is at this sequence.
pub(crate) fn exchange_at(key: &str, request: Option<&str>, sequence: u64, to: u8) -> Command {
    Command { expected_sequence: Some(sequence), ..answer(key, request, None, to) }
}

fn answer(key: &str, request: Option<&str>, state: Option<String>, to: u8) -> Command {
    let body = Answer { state, answer: format!("to{to}"), note: String::new() };
    command(Scope::Session(session(key)), request, Body::Run(RunCommand::Answer(body)))
}

/// Asks whether a call may be made, whose name is its request id.
pub(crate) fn authorize(key: &str, call: &str, capability: &str, estimate: Option<Micros>) -> Command {
    let body = Authorize {
        capability: capability.to_owned(),
        args: Args::parse(b"{}").unwrap(),
        estimate,
        call_id: call.to_owned(),
        limits: None,
        mail: None,
    };
    command(Scope::Session(session(key)), Some(call), Body::Policy(PolicyCommand::Authorize(body)))
}

/// Reports what a call has cost.
pub(crate) fn report(key: &str, call: &str) -> Command {
    let body =
        ReportCall { call_id: Some(call.to_owned()), capability: None, success: true, cost: COST, tokens: 0 };
    let request = format!("report {call}");
    command(Scope::Session(session(key)), Some(&request), Body::Policy(PolicyCommand::ReportCall(body)))
}
