//! A limit counts every permitted call, even if its ledger learns of it late.

use std::sync::Arc;
use switchward_engine::policy::{Ledgers, Plan, plan};
use switchward_engine::{decide, evolve};
use switchward_formats::compile_file;
use switchward_machine::{Decision, Limit, Micros, OpenId, SessionId, TenantId, Time};
use switchward_state::approval::{ApprovalCommand, DecideGate, MailKey, Quorum, RecordReply, TokenUse};
use switchward_state::catalogue::{CatalogueCommand, InstallMachine, Role, Settings, Tenancy};
use switchward_state::delivery::{AckEffect, DeliveryCommand, DeliveryEvent, EffectBody};
use switchward_state::limits::RESERVATION_USABLE_MS;
use switchward_state::policy::{
    Args, Authorize, CallEffect, Confirm, HeldSince, LedgerRule, LimitCheck, LimitOutcome, PolicyCommand,
    Remaining, Reserve, check_limits,
};
use switchward_state::seal::SEAL_NONCE_BYTES;
use switchward_state::session::{SessionCommand, Start};
use switchward_state::{
    Actor, Body, Command, Event, Key, OpenItem, Reason, Rejection, Reply, Row, Scope, View,
};
use switchward_testkit::{Rows, ring, start_of};

const TENANT: TenantId = TenantId(1);
const NOW: Time = Time(1_782_000_000_000);
const ANN: &str = "ann@x.example";
/// What tokens are made with.
const KEY: MailKey = MailKey([5; 32]);
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

const FREE: &str = r"
name: p
initial: a
states: {a: {question: q, answers: {y: {next: null}}}}
policy: {role: agent, allow: [{capability: pay}]}
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
            address: None,
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
        let command = self.reserved(call_id)?;
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

    /// A payment by the agent that the ledger has answered about, and that is not decided yet.
    fn reserved(&mut self, call_id: &str) -> Result<Command, Reason> {
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
        Ok(command)
    }

    /// Authorizes a payment that a person is asked about; returns the gate, and the limits that were looked at.
    fn ask(&mut self) -> (OpenId, Ledgers) {
        let call = Authorize {
            capability: "pay".into(),
            call_id: "one".into(),
            args: Args::parse(b"{}").unwrap(),
            estimate: None,
            limits: None,
            mail: None,
        };
        let mut command = self.command(Scope::Session(self.1), Body::Policy(PolicyCommand::Authorize(call)));
        let Plan::Look(asked) = plan(&self.0, &command, NOW).unwrap() else { panic!("there is a limit") };
        command.take_along(Some(check_limits(&self.0, TENANT, &asked.rules, asked.estimate, NOW).unwrap()));
        let Reply::Authorized(said) = self.submit(command).0.unwrap() else { panic!("a call is answered") };
        (said.gate.unwrap(), asked)
    }

    /// The plan of a reply by mail.
    fn planned(&self, reply: RecordReply) -> Plan {
        let body = Body::Approval(ApprovalCommand::RecordReply(reply));
        plan(&self.0, &self.command(Scope::Session(self.1), body), NOW).unwrap()
    }

    /// An approver's reply that approves, with the token of the mail that asked them.
    fn approves(&self, gate: OpenId, usage: TokenUse) -> RecordReply {
        let open = match self.0.row(&Key::item(TENANT, self.1, gate)).unwrap().as_deref() {
            Some(Row::OpenItem(OpenItem::Gate(open))) => open.clone(),
            other => panic!("{other:?} is no gate"),
        };
        let round = open.body.asked.unwrap().request_of(ANN).unwrap();
        RecordReply {
            from: ANN.into(),
            subject: "Pay".into(),
            text: "approve".into(),
            authenticated: true,
            signed: true,
            pages_only: false,
            brought_by: None,
            vouched: false,
            model: false,
            token: Some(KEY.token(usage, TENANT, self.1, gate, round, ANN)),
            evidence: None,
            limits: None,
        }
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
    started(source, |start| Start { quorum, ..start })
}

fn started(source: &str, with: impl FnOnce(Start) -> Start) -> Harness {
    let compiled = compile_file("p.yaml", source.as_bytes(), None);
    let definition = compiled.definition.unwrap_or_else(|| panic!("{:?}", compiled.findings));
    let machine = Arc::new(definition.machine);
    let mut harness = Harness(Rows::default(), SessionId::from_key(TENANT, "s"));
    let tenancy = Tenancy::first(KEY.sealed(ring(), TENANT, [0; SEAL_NONCE_BYTES]));
    harness.0.apply([(Key::tenancy(TENANT), Some(Arc::new(Row::Tenancy(tenancy))))].into());
    let install =
        Body::Catalogue(CatalogueCommand::InstallMachine(InstallMachine { machine: Arc::clone(&machine) }));
    harness.submit(harness.command(Scope::Shard, install)).0.unwrap();
    let start = with(Start { key: Some("s".into()), ..start_of("p", 1, machine.digest(), "agent") });
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

fn by(person: &str, command: Command) -> Command {
    Command { actor: Actor { subject: person.into(), role: Role::Approver }, ..command }
}

/// A ledger that holds the call since this time of its own.
fn reserved_at(at: Time, rules: Vec<LedgerRule>, estimate: Micros) -> LimitCheck {
    let outcome = LimitOutcome::Available { remaining: Remaining { calls: Some(1), usd: None } };
    LimitCheck { rules, estimate, age_ms: 0, outcome, held: vec![HeldSince { process: "p".into(), at }] }
}

#[test]
fn an_approval_is_judged_by_the_age_of_its_reservation_and_not_by_the_clock_of_the_ledger() {
    let hour_ms = 3_600_000;
    for at in [NOW.after_ms(hour_ms), Time(NOW.0 - hour_ms)] {
        let mut harness = harness_of(ASKED, None);
        let (gate, asked) = harness.ask();
        let check = reserved_at(at, asked.rules, asked.estimate);
        let approve = |harness: &Harness, check: LimitCheck| {
            by("kim", harness.command(Scope::Session(harness.1), decide_gate(gate, Some(check))))
        };
        let old = approve(&harness, check.clone().aged(RESERVATION_USABLE_MS));
        assert_eq!(harness.submit(old).0.unwrap_err().reason, Reason::LimitsStale);
        let (reply, events) = harness.submit(approve(&harness, check.aged(RESERVATION_USABLE_MS - 1)));
        reply.unwrap();
        let counts = events.iter().find_map(|event| match event {
            Event::Delivery(DeliveryEvent::Queued { effect }) => match effect.body {
                EffectBody::Confirm { at, .. } => Some(at),
                _ => None,
            },
            _ => None,
        });
        assert_eq!(counts, Some(at), "it counts from when the ledger has reserved it, by the ledger's clock");
    }
}

#[test]
fn only_the_last_approval_of_several_reserves_and_another_releases_what_was_reserved() {
    let mut harness = harness_of(ASKED, Some(Quorum::AtLeast(2)));
    let session = Scope::Session(harness.1);
    let (gate, asked) = harness.ask();
    let vote = by("kim", harness.command(session.clone(), decide_gate(gate, None)));
    assert_eq!(plan(&harness.0, &vote, NOW).unwrap(), Plan::Direct);

    // A check from before more approvals were needed: the vote counts, and releases the reservation.
    let check = reserved_at(NOW, asked.rules, asked.estimate);
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
fn a_reply_reserves_only_if_it_would_count() {
    let mut harness = started(ASKED, |start| Start { audience: vec![ANN.into(), "agent".into()], ..start });
    let (gate, _) = harness.ask();
    let counts = harness.approves(gate, TokenUse::Reply);
    assert!(matches!(harness.planned(counts.clone()), Plan::Reserve(_)));
    let with = |change: &dyn Fn(&mut RecordReply)| {
        let mut reply = counts.clone();
        change(&mut reply);
        reply
    };
    let strangers = [
        with(&|reply| reply.authenticated = false),
        with(&|reply| reply.from = "eve@x.example".into()),
        with(&|reply| reply.pages_only = true),
        with(&|reply| (reply.brought_by, reply.signed) = (Some("agent".into()), false)),
        with(&|reply| (reply.token, reply.authenticated) = (None, false)),
        with(&|reply| reply.text = "what is this?".into()),
        with(&|reply| reply.text = String::new()),
        harness.approves(gate, TokenUse::Page),
        with(&|reply| {
            reply.token = Some(MailKey([6; 32]).token(TokenUse::Reply, TENANT, harness.1, gate, 0, ANN));
        }),
        // An agent may not vouch.
        with(&|reply| (reply.token, reply.vouched) = (None, true)),
    ];
    for stranger in strangers {
        assert_eq!(harness.planned(stranger.clone()), Plan::Direct, "{stranger:?}");
    }
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
        matches!(denied, Reply::Authorized(authorized) if authorized.reason == Some(Reason::RateLimited))
    );
    assert!(counted.is_none());
}

#[test]
fn a_call_that_was_reserved_before_another_of_its_name_was_counted_is_not_permitted() {
    let mut harness = harness();
    let second = harness.reserved("one").unwrap();
    let (_, counted) = harness.pay("one").unwrap();
    harness.carry(counted.expect("it is counted"));
    assert_eq!(harness.submit(second).0.unwrap_err().reason, Reason::RequestIdReused);
}

#[test]
fn a_call_that_no_limit_applies_to_any_more_gives_back_what_was_reserved() {
    let mut harness = harness_of(FREE, None);
    let limits = vec![Limit::Rate { max: 2, window_ms: 86_400_000 }];
    let (process, role, capability) = ("p".into(), "agent".into(), "pay".into());
    let rules = vec![LedgerRule { process, role, capability, limits, layers: vec!["policy".into()] }];
    let call = Authorize {
        capability: "pay".into(),
        call_id: "one".into(),
        args: Args::parse(b"{}").unwrap(),
        estimate: Some(Micros(5)),
        limits: Some(reserved_at(NOW, rules, Micros(5))),
        mail: None,
    };
    let command = harness.command(Scope::Session(harness.1), Body::Policy(PolicyCommand::Authorize(call)));
    assert_eq!(plan(&harness.0, &command, NOW).unwrap(), Plan::Direct);
    let (reply, events) = harness.submit(command);
    assert!(matches!(reply.unwrap(), Reply::Authorized(said) if said.effect == CallEffect::Allow));
    let sent: Vec<&EffectBody> = events.iter().filter_map(queued).collect();
    assert!(matches!(sent.as_slice(), [EffectBody::Settle { release: true, .. }]), "{sent:?}");
}

#[test]
fn a_call_that_a_person_is_asked_about_or_has_approved_meanwhile_gives_back_what_was_reserved() {
    let mut harness = harness_of(ASKED, None);
    let (gate, asked) = harness.ask();
    let check = reserved_at(NOW, asked.rules, asked.estimate);
    let call = Authorize {
        capability: "pay".into(),
        call_id: "two".into(),
        args: Args::parse(b"{}").unwrap(),
        estimate: None,
        limits: Some(check.clone()),
        mail: None,
    };
    let session = Scope::Session(harness.1);
    let authorize = harness.command(session.clone(), Body::Policy(PolicyCommand::Authorize(call)));
    for effect in [CallEffect::Ask, CallEffect::Allow] {
        let (reply, events) = harness.submit(authorize.clone());
        assert!(matches!(reply.unwrap(), Reply::Authorized(said) if said.effect == effect));
        let sent: Vec<&EffectBody> = events.iter().filter_map(queued).collect();
        assert!(
            matches!(sent.as_slice(), [EffectBody::Settle { release: true, .. }]),
            "{effect:?}: {sent:?}"
        );
        if effect == CallEffect::Ask {
            let approve = by("kim", harness.command(session.clone(), decide_gate(gate, Some(check.clone()))));
            harness.submit(approve).0.unwrap();
        }
    }
}

/// What an event puts into the outbox; `None` if it puts nothing there.
fn queued(event: &Event) -> Option<&EffectBody> {
    if let Event::Delivery(DeliveryEvent::Queued { effect }) = event { Some(&effect.body) } else { None }
}
