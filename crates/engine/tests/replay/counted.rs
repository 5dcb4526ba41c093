//! A limit counts every permitted call, even if its ledger learns of it late.

use std::sync::Arc;
use switchward_engine::decide;
use switchward_engine::policy::{Plan, plan};
use switchward_formats::compile_file;
use switchward_machine::{Decision, OpenId, SessionId, TenantId, Time};
use switchward_state::approval::{ApprovalCommand, DecideGate, Quorum};
use switchward_state::catalogue::{CatalogueCommand, InstallMachine, Role, Settings};
use switchward_state::delivery::{AckEffect, DeliveryCommand, DeliveryEvent, EffectBody};
use switchward_state::policy::{
    Args, Authorize, Confirm, LimitCheck, LimitOutcome, PolicyCommand, Remaining, Reserve, check_limits,
};
use switchward_state::session::{SessionCommand, Start};
use switchward_state::{Actor, Body, Command, Event, Reason, Rejection, Reply, Scope, evolve};
use switchward_testkit::Rows;

const TENANT: TenantId = TenantId(1);
const NOW: Time = Time(1_782_000_000_000);
const SOURCE: &str = r"
name: p
initial: a
states: {a: {question: q, answers: {y: {next: null}}}}
policy: {role: agent, allow: [{capability: pay, rate_limit: {max_calls: 2, window_seconds: 86400}}]}
";

const ASKED: &str = r"
name: p
initial: a
states: {a: {question: q, answers: {y: {next: null}}}}
policy: {role: agent, ask: [{capability: pay, rate_limit: {max_calls: 2, window_seconds: 86400}}]}
";

struct Harness(Rows, SessionId);

impl Harness {
    fn command(&self, scope: Scope, body: Body) -> Command {
        Command {
            tenant: TENANT,
            scope,
            request: None,
            expected_sequence: None,
            actor: Actor { subject: "agent".into(), role: Role::Agent },
            settings: Settings::default(),
            trace: None,
            body,
        }
    }

    fn submit(&mut self, command: Command) -> (Result<Reply, Rejection>, Vec<Event>) {
        let mut decided = decide(&[command], &self.0, NOW).unwrap();
        let events = decided.decision.iter().flat_map(|it| &it.turns).flat_map(|turn| turn.events.clone());
        let events = events.collect();
        if let Some(decision) = decided.decision {
            let changes = evolve(&decision, &self.0).unwrap();
            self.0.apply(changes);
        }
        (decided.answers.pop().unwrap(), events)
    }

    /// Authorizes a payment by the agent; returns what is to be counted if it is permitted.
    fn pay(&mut self, call_id: &str) -> Result<(Reply, Option<(u64, Confirm)>), Reason> {
        let call = Authorize {
            capability: "pay".into(),
            call_id: call_id.into(),
            args: Args::parse(b"{}").unwrap(),
            estimate: None,
            limits: None,
            mail: None,
        };
        let mut command = self.command(Scope::Session(self.1), Body::Policy(PolicyCommand::Authorize(call)));
        let Plan::Reserve(asked) = plan(&self.0, &command, NOW).unwrap() else { panic!("there is a limit") };
        let process = asked.rules[0].process.clone();
        let reserve = Reserve { call: asked.call, rules: asked.rules, estimate: asked.estimate };
        let reserve = self.command(Scope::Ledger(process), Body::Policy(PolicyCommand::Reserve(reserve)));
        let Reply::Limits(check) = self.submit(reserve).0.map_err(|no| no.reason)? else {
            panic!("a ledger tells of limits")
        };
        command.take_along(Some(check));
        let (reply, events) = self.submit(command);
        let counted = events.into_iter().find_map(|event| match event {
            Event::Delivery(DeliveryEvent::Queued { effect }) => match effect.body {
                EffectBody::Confirm { call, rules, estimate, at, .. } => {
                    Some((effect.number, Confirm { call, rules, estimate, at }))
                }
                _ => None,
            },
            _ => None,
        });
        reply.map(|reply| (reply, counted)).map_err(|no| no.reason)
    }

    /// Settles the call in the ledger.
    fn carry(&mut self, (number, confirm): (u64, Confirm)) {
        let counted = confirm.request();
        let command = self.command(Scope::Ledger("p".into()), Body::Policy(PolicyCommand::Confirm(confirm)));
        self.submit(Command { request: Some(counted), ..command }).0.unwrap();
        let ack = Body::Delivery(DeliveryCommand::AckEffect(AckEffect { number }));
        self.submit(self.command(Scope::Session(self.1), ack)).0.unwrap();
    }
}

fn harness() -> Harness {
    harness_of(SOURCE, None)
}

fn harness_of(source: &str, quorum: Option<Quorum>) -> Harness {
    let compiled = compile_file("p.yaml", source.as_bytes(), None);
    let definition = compiled.definition.unwrap_or_else(|| panic!("{:?}", compiled.findings));
    let machine = Arc::new(definition.machine);
    let mut harness = Harness(Rows::default(), SessionId::from_key(TENANT, "s"));
    let install =
        Body::Catalogue(CatalogueCommand::InstallMachine(InstallMachine { machine: Arc::clone(&machine) }));
    harness.submit(harness.command(Scope::Shard, install)).0.unwrap();
    let start = Start { key: Some("s".into()), quorum, ..Start::of("p", 1, machine.digest(), "agent") };
    harness
        .submit(harness.command(Scope::Session(harness.1), Body::Session(SessionCommand::Start(start))))
        .0
        .unwrap();
    harness
}

fn decide_gate(gate: OpenId, limits: Option<LimitCheck>) -> Body {
    let (decision, comment) = (Decision::Approve, String::new());
    let decide = DecideGate { gate, decision, comment, shown: None, limits, proof: None };
    Body::Approval(ApprovalCommand::DecideGate(decide))
}

#[test]
fn only_the_last_approval_of_several_reserves_and_another_releases_what_was_reserved() {
    let mut harness = harness_of(ASKED, Some(Quorum::AtLeast(2)));
    let session = Scope::Session(harness.1);
    let call = Authorize {
        capability: "pay".into(),
        call_id: "one".into(),
        args: Args::parse(b"{}").unwrap(),
        estimate: None,
        limits: None,
        mail: None,
    };
    let mut command = harness.command(session.clone(), Body::Policy(PolicyCommand::Authorize(call)));
    let Plan::Look(asked) = plan(&harness.0, &command, NOW).unwrap() else { panic!("there is a limit") };
    command.take_along(Some(check_limits(&harness.0, TENANT, &asked.rules, asked.estimate, NOW).unwrap()));
    let Reply::Authorized(said) = harness.submit(command).0.unwrap() else { panic!("a call is answered") };
    let Some(gate) = said.gate else { panic!("a person is asked") };
    let by = |person: &str, command: Command| Command {
        actor: Actor { subject: person.into(), role: Role::Approver },
        ..command
    };
    let vote = by("kim", harness.command(session.clone(), decide_gate(gate, None)));
    assert_eq!(plan(&harness.0, &vote, NOW).unwrap(), Plan::Direct);

    // A check from before more approvals were needed: the vote counts, and releases the reservation.
    let outcome =
        LimitOutcome::Available { remaining: Remaining { calls: Some(1), usd: None }, reserved: true };
    let check = LimitCheck { rules: asked.rules, estimate: asked.estimate, at: NOW, outcome };
    let vote = by("kim", harness.command(session.clone(), decide_gate(gate, Some(check))));
    let (reply, events) = harness.submit(vote);
    reply.unwrap();
    let released = events.iter().any(|event| {
        matches!(event, Event::Delivery(DeliveryEvent::Queued { effect })
            if matches!(effect.body, EffectBody::Settle { release: true, .. }))
    });
    assert!(released, "{events:?}");

    let last = by("dana", harness.command(session, decide_gate(gate, None)));
    assert!(matches!(plan(&harness.0, &last, NOW).unwrap(), Plan::Reserve(_)));
    assert_eq!(harness.submit(last).0.unwrap_err().reason, Reason::LimitsStale);
}

#[test]
fn a_call_is_not_permitted_twice_under_one_name_while_its_ledger_does_not_know() {
    let mut harness = harness();
    let (_, counted) = harness.pay("one").unwrap();
    assert_eq!(harness.pay("one").unwrap_err(), Reason::RequestIdReused);
    harness.carry(counted.expect("it is counted"));
    assert_eq!(harness.pay("one").unwrap_err(), Reason::RequestIdReused, "now the ledger says so");
    let (_, counted) = harness.pay("two").unwrap();
    harness.carry(counted.expect("it is counted"));
    let (denied, counted) = harness.pay("three").unwrap();
    assert!(
        matches!(denied, Reply::Authorized(authorized) if authorized.reason.as_deref() == Some("RATE_LIMITED"))
    );
    assert!(counted.is_none());
}
