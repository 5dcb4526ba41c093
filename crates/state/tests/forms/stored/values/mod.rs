//! Values of what is stored about people who are written to.

use switchward_machine::DeliveryReason;
use switchward_state::approval::{ApprovalEvent, Call};
use switchward_state::catalogue::CatalogueEvent;
use switchward_state::delivery::{DeliveryEvent, ExchangeProblem};
pub(crate) mod faults;
pub(crate) mod notices;
pub(crate) mod page_codes;
mod removal;
mod servers;
pub(crate) mod warnings;

use super::*;
use switchward_state::run::ActiveRuns;
use switchward_state::session::{
    GatePosition, ItemPosition, Listening, Position, RunPosition, SessionWarning,
};

/// Where a session stands.
pub(crate) fn position() -> Option<Box<Position>> {
    let gate = GatePosition {
        gate: OpenId(6),
        kind: GateKind::ToolAsk,
        state: "pay".into(),
        capability: Some("mcp:bank:pay".into()),
        shown: Some(digest()),
        at: Time(2),
        to: vec!["kim@example.com".into()],
        open: true,
        needed: 2,
        approvals: 1,
        unnotified: true,
        run: None,
    };
    Some(Box::new(Position {
        sequence: 5,
        status: Status::Waiting,
        reason: Some(StatusReason::Paused),
        updated: Time(3),
        ended: Some(Time(4)),
        root: RunPosition { machine: Some(digest()), node: NodeIx(1) },
        leaf: Some(RunPosition { machine: None, node: NodeIx(2) }),
        opening: true,
        text: Some("Pay 5?".into()),
        takes_answers: true,
        gates: vec![gate],
        items: vec![ItemPosition {
            item: ItemType::Wait(WaitOn::Time),
            state: "settle".into(),
            at: Time(2),
            due: Some(Time(9)),
            run: None,
        }],
        voided: vec![OpenId(5)],
        warnings: vec![SessionWarning::NobodyBehind { name: "group:none".into() }],
        meters: Meters { usd_micros: 1, reserved_micros: 2, tokens: 3, mails: 4 },
        usd_cap: Some(5),
        mail_cap: Some(6),
        listens: Some(Listening { run: RunId(1), entry: 2 }),
        active: ActiveRuns::default(),
        loaded: switchward_state::Loaded::default(),
    }))
}

/// A gate with people who were notified of its closing, and with one whose newest request was dismissed.
fn notified_and_bounced() -> GateRequest {
    let notified = vec!["ann@example.com".into()];
    let bounced = vec![Bounced { to: "lead@example.com".into(), proved: false }];
    let (dismissed, newest) = (vec!["kim@example.com".into()], vec![9]);
    GateRequest {
        last: vec![1],
        open: true,
        closed_notified: notified,
        bounced,
        dismissed,
        newest,
        ..asked()
    }
}

fn tenancy() -> Tenancy {
    let members = vec!["kim@example.com".into()];
    let entry = DirectoryEntry { name: "group:release".into(), members, ..DirectoryEntry::default() };
    let binding = EventBinding {
        definition: "order".into(),
        event_key: "paid".into(),
        sources: vec!["webhook:shop".into(), "integration".into()],
    };
    let (audience, event_bindings) = (vec!["group:release".into()], vec![binding]);
    let directory = Directory { entries: vec![entry], audience, event_bindings, ..Directory::default() };
    Tenancy {
        revision: 3,
        keys: vec![super::sealed(SecretOf::Mail, &[5; 32])],
        directory,
        endpoints: Vec::new(),
        outbox: None,
        policies: vec![super::tenant_policy()],
        any_approver_address: false,
        link_auth: None,
        retention: Retention::default(),
        held: None,
        deletion: None,
        changes: 0,
    }
}

const REMINDERS: Reminders = Reminders { every_ms: 3_600_000, max: 2 };
const REMINDING: Reminding = Reminding { next: Time(9), left: 1, every_ms: 3_600_000 };

/// A gate of which people are reminded.
fn reminded() -> Row {
    let asked = GateRequest { remind: Some(REMINDING), ..asked() };
    gate_row(Gate { asked: Some(asked), ..super::gate() })
}

fn vote() -> Vote {
    let (by, address) = ("kim".to_owned(), "kim@example.com".to_owned());
    Vote { by, address, at: Time(8), comment: "fine".into(), via: Via::Page, shown: digest() }
}

/// A gate that one of several has approved.
fn voted() -> Row {
    let voting = Voting { quorum: Quorum::All, need: 3, votes: vec![vote()] };
    let asked = GateRequest { voting: Some(voting), ..asked() };
    gate_row(Gate { asked: Some(asked), ..super::gate() })
}

/// What the checks of a mail have shown.
fn evidence() -> ReplyEvidence {
    ReplyEvidence {
        proof: OriginProof::Aligned,
        by: CheckedBy::TrustedHost,
        dkim: MailCheck::Fail,
        spf: MailCheck::Temporary,
        dmarc: MailCheck::Pass,
        hidden_text: false,
        reasons: vec![OriginReason::HostPassed],
    }
}

/// Values of what is known about mail recipients.
pub(super) fn written_to() -> Vec<(&'static str, Row)> {
    let session = Session { stable_from: Some(7), audience: vec!["kim".into()], ..session() };
    let last = DeliveryFailure {
        code: "smtp_421".parse().expect("a code"),
        detail: DeliveryDetail::quote("later"),
        at: Time(5),
    };
    let progress = EffectProgress { round: 1, dead_letter: None, attempts: 2, last: Some(last), since: None };
    let since = Some(Box::new(EffectProgress { since: Some(Time(2)), ..progress.clone() }));
    let progress = Some(Box::new(progress));
    let about_gate = |purpose| {
        let EffectBody::Message { channel, to, text, gate, .. } = message() else { unreachable!() };
        EffectBody::Message { channel, to, text, gate, purpose, head: None }
    };
    let (ask, remind) = (about_gate(Purpose::Ask), about_gate(Purpose::Remind));
    let head = MailHead {
        from: Some("bot@example.com".into()),
        to: vec!["sam@example.com".into()],
        cc: vec!["lead@example.com".into()],
    };
    let EffectBody::Message { channel, to, .. } = message() else { unreachable!() };
    let (subject, body) = (Some("Refund".into()), "It is on its way.".into());
    let text = MessageText::Written { subject, body, content: Content::Text };
    let mail = EffectBody::Message { channel, to, text, gate: None, purpose: Purpose::Say, head: Some(head) };
    vec![
        ("open-reminded", reminded()),
        ("session-reminders", Row::Session(Session { reminders: Some(REMINDERS), ..super::session() })),
        ("open-votes", voted()),
        ("session-quorum", Row::Session(Session { quorum: Some(Quorum::AtLeast(2)), ..super::session() })),
        ("effect-remind", Row::Outbox(effect(remind))),
        ("effect-mail", Row::Outbox(effect(mail))),
        ("session-uncounted", Row::Session(Session { uncounted: vec![Digest([8; 32])], ..super::session() })),
        (
            "session-mailed",
            Row::Session(Session { mailed: Some(MailDay { day: 20, count: 3 }), ..super::session() }),
        ),
        ("tenancy", Row::Tenancy(tenancy())),
        ("session-audience", Row::Session(session)),
        ("effect-deferred", Row::Outbox(Effect { progress, ..effect(ask.clone()) })),
        ("effect-since", Row::Outbox(Effect { progress: since, ..effect(ask) })),
        ("run-requester", Row::Run(Run { requester: Some("agent".into()), ..run() })),
        ("data-provenance", Row::Data(bound_data())),
        ("run-failure", Row::Run(Run { failure: Some(failure()), ..run() })),
        ("run-answered-back", Row::Run(Run { answered_back: vec!["lead@example.com".into()], ..run() })),
        ("run-frame", Row::Run(Run { frame: Some(Frame { label: "check.legal".into() }), ..run() })),
        ("call-run", Row::Call(Call { run: Some(RunId(2)), ..call() })),
        ("open-notified", gate_row(Gate { asked: Some(notified_and_bounced()), ..super::gate() })),
    ]
}

/// Data with where they come from.
fn bound_data() -> Data {
    let start =
        Provenance { by: Writer::Start, who: "kim".into(), node: None, entry: 0, attempt: 1, sequence: 2 };
    let worker = Provenance { by: Writer::Worker, node: Some(NodeIx(1)), entry: 2, ..start.clone() };
    Data {
        values: serde_json::Map::from_iter([("amount".to_owned(), 1.into()), ("score".to_owned(), 2.into())]),
        provenance: [("amount".to_owned(), start), ("score".to_owned(), worker)].into_iter().collect(),
    }
}

fn failure() -> Failure {
    Failure { attempt: 2, fault: FaultCause::NoTransition { state: "pay".into() }.into() }
}

fn vouched() -> SenderProof {
    SenderProof::Vouched { by: "kim".into() }
}

/// Values of what is known about mail recipients.
pub(super) fn mailed() -> Vec<Event> {
    let (run, about, evidence) = (RunId(1), Some(OpenId(6)), Some(evidence()));
    let (from, text) = ("ann@example.com".to_owned(), "fine".to_owned());
    let (number, until, code, detail) =
        (9, Time(90), "smtp_421".parse::<FailureCode>().expect("a code"), DeliveryDetail::quote("later"));
    let flows = [
        Event::Approval(ApprovalEvent::ReplyRecorded(ReplyFact {
            run,
            from,
            text,
            proof: SenderProof::None,
            about,
            evidence,
            why: None,
            brought_by: Some("kim".into()),
        })),
        Event::Approval(ApprovalEvent::AudienceSet { audience: vec!["kim".into()] }),
        Event::Delivery(DeliveryEvent::MailBounced {
            gate: OpenId(6),
            to: "lead@example.com".into(),
            message: "5.1.1".into(),
            proved: true,
        }),
        Event::Delivery(DeliveryEvent::Deferred {
            number,
            until,
            code: code.clone(),
            detail: detail.clone(),
        }),
    ];
    flows
        .into_iter()
        .chain(later())
        .chain(removal::events())
        .chain(servers::events())
        .chain(page_codes::events())
        .collect()
}

/// What was added later.
fn later() -> Vec<Event> {
    let (number, until, code, detail) =
        (9, Time(90), "smtp_421".parse::<FailureCode>().expect("a code"), DeliveryDetail::quote("later"));
    let held = Event::Delivery(DeliveryEvent::Held { number, until, code, detail });
    let to = vec!["lead@example.com".to_owned()];
    let (run, again) = (RunId(1), to[0].clone());
    let (from, text, why) = (to[0].clone(), "fine".to_owned(), Some(ReplyOutcome::Foreign));
    let latest = vec![
        Event::Catalogue(CatalogueEvent::TenancyPut(tenancy())),
        held,
        Event::Approval(ApprovalEvent::RemindersSet { reminders: REMINDERS }),
        Event::Approval(ApprovalEvent::Reminded { gate: OpenId(6), to, next: Some(REMINDING) }),
        DeliveryEvent::EndpointNoted { id: "ops".into(), health: noted() }.into(),
        DeliveryEvent::Queued { effect: Effect { source: EffectSource::Tenant, ..effect(tenant_event()) } }
            .into(),
        Event::Approval(ApprovalEvent::Votes(VoteFact::QuorumSet { quorum: Quorum::All })),
        Event::Approval(ApprovalEvent::Votes(VoteFact::Given { gate: OpenId(6), vote: vote(), need: 3 })),
        Event::Approval(ApprovalEvent::Votes(VoteFact::Needed { gate: OpenId(6), need: 4 })),
        Event::Approval(ApprovalEvent::ReplyRecorded(ReplyFact {
            run,
            from,
            text,
            proof: vouched(),
            about: None,
            evidence: None,
            why,
            brought_by: None,
        })),
        Event::Approval(ApprovalEvent::ReplyAnswered { gate: OpenId(0), run: Some(run), to: again }),
        Event::Approval(ApprovalEvent::Votes(VoteFact::Notified {
            gate: OpenId(6),
            asked: Box::new(asked()),
        })),
        Event::Approval(ApprovalEvent::Votes(VoteFact::EscalationSet { contacts: vec!["lead".into()] })),
        Event::Approval(ApprovalEvent::Votes(VoteFact::Dropped {
            gate: OpenId(6),
            who: vec!["eve@example.com".into()],
        })),
        Event::Approval(ApprovalEvent::Votes(VoteFact::Assigned {
            gate: OpenId(6),
            by: "kim@example.com".into(),
            via: Via::Mail,
            from: vec!["kim@example.com".into()],
            to: "dana@example.com".into(),
            asked: Box::new(asked()),
        })),
    ];
    latest
}

/// A published event of the tenant itself.
fn tenant_event() -> EffectBody {
    let about = Some(EventSubject::Version { definition: "release".into(), number: 3 });
    let kind = PublishedType::DefinitionDeployed;
    EffectBody::Publish { endpoint: "ops".into(), kind, sequence: 7, at: Time(5), about }
}

/// The health of an endpoint.
fn noted() -> EndpointHealth {
    let failed = DeliveryFailure {
        code: FailureCode::Attempt(DeliveryReason::ReceiverRefused),
        detail: Some(ExchangeProblem::EndpointStatus { status: 500 }.into()),
        at: Time(8),
    };
    EndpointHealth { failing_since: Some(Time(6)), succeeded: Some(Time(5)), failed: Some(failed) }
}

/// Rows of endpoints and of published events.
pub(super) fn endpoint_rows() -> Vec<(&'static str, Row)> {
    let secret = SourceSecret {
        sealed: super::sealed(SecretOf::Endpoint("ops"), b"whsec_c2VjcmV0"),
        until: Some(Time(9)),
    };
    let (id, url, filters) = ("ops".into(), "https://ops.example/in".into(), vec!["session.*".into()]);
    let disabled = Some(DisabledReason::Gone);
    let endpoint =
        Endpoint { id, url, secrets: vec![secret], filters, disabled, created: Time(4), health: None };
    let noted = Endpoint { health: Some(noted()), ..endpoint.clone() };
    let (endpoint_id, kind) = ("ops".into(), PublishedType::SessionStateEntered);
    let about = Some(EventSubject::OfSession("review".into()));
    let publish = EffectBody::Publish { endpoint: endpoint_id, kind, sequence: 12, at: Time(5), about };
    let outbox = Some(Box::new(Outbox { count: 1, bytes: 400, dead_letters: 0, published: 2 }));
    let rows = vec![
        ("session-published", Row::Session(Session { outbox, ..session() })),
        ("tenancy-endpoints", Row::Tenancy(Tenancy { endpoints: vec![endpoint], ..tenancy() })),
        (
            "tenancy-endpoints-noted",
            Row::Tenancy(Tenancy {
                endpoints: vec![noted],
                outbox: Some(TenantOutbox { last: 7, waiting: 2 }),
                ..tenancy()
            }),
        ),
        ("effect-published", Row::Outbox(effect(publish))),
    ];
    rows.into_iter().chain(removal::rows()).chain(servers::rows()).collect()
}

/// Settings outside of a definition: of the directory and of a start; and the retired versions.
pub(super) fn settled() -> Vec<(&'static str, Row)> {
    let settings = GateSettings {
        audience: vec!["kim".into()],
        quorum: Some(Quorum::AtLeast(2)),
        reminders: Some(REMINDERS),
        escalation: vec!["lead@example.com".into()],
    };
    let entry = DirectoryEntry { name: "definition:deploy-gate".into(), members: Vec::new(), settings };
    let directory = Directory { entries: vec![entry], ..Directory::default() };
    let escalation = vec!["lead@example.com".into()];
    let session = Session { escalation, any_approver_address: true, ..session() };
    let retired = vec![Retired { number: 1, at: Time(2), by: "kim".into() }];
    let disposal = || Some(Disposal { at: Time(3), by: "kim".into() });
    let asked = GateRequest {
        dropped: vec!["eve@example.com".into()],
        bounced: vec![Bounced { to: "lead@example.com".into(), proved: true }],
        ..asked()
    };
    let listed = GateRequest { listed: super::listed(), ..super::asked() };
    vec![
        ("tenancy-settings", Row::Tenancy(Tenancy { directory, any_approver_address: true, ..tenancy() })),
        ("session-escalation", Row::Session(session)),
        ("definition-retired", Row::Definition(Definition { retired, ..definition() })),
        ("definition-archived", Row::Definition(Definition { archived: disposal(), ..definition() })),
        ("definition-deleted", Row::Definition(Definition { deleted: disposal(), ..definition() })),
        ("open-dropped", gate_row(Gate { asked: Some(asked), ..gate() })),
        ("open-listed", gate_row(Gate { asked: Some(listed), ..gate() })),
    ]
}
