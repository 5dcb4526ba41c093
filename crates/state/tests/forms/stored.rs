//! Stored forms: one of each, as hex, so that a change of a form is seen in review. `BLESS=1` rewrites the files.

use event_lists::{calls, flow_events, later, moves, other_kinds};
use switchward_state::approval::{ApprovalEvent, Warning};
use switchward_state::catalogue::CatalogueEvent;
use switchward_state::delivery::DeliveryEvent;
use switchward_state::policy::PolicyEvent;
use switchward_state::run::RunEvent;
use switchward_state::session::SessionEvent;
use switchward_state::work::WorkEvent;

mod event_lists;
mod events;
mod open;
mod pending;
mod policies;
mod values;

use events::{assistants, children, dead_letters, shared, webhook_sources};
use policies::{call, definition, grant, layers, pinned_policy, rule, rules, tenant_policy};
use std::collections::BTreeSet;
use std::sync::Arc;
use switchward_machine::{
    Accept, ActIx, BudgetUnit, Callee, CalleeKind, Channel, Content, Decision as GateDecision, Digest,
    EndReason, Ending, ExitIx, GateIx, GateKind, Machine, Meta, Micros, NoExit, Node, NodeIx, OpenId,
    Opening, Outcome, ParamIx, Period, Policy, Port, Reads, RunId, SessionId, Status, StatusWords, Templates,
    TenantId, Time, WaitOn, Work, WorkKind,
};
use switchward_state::approval::{
    Bounced, CheckedBy, Closed, Gate, GateRequest, GateSettings, Listed, MailCheck, OpenGate, OriginProof,
    OriginReason, PageCodeFact, PageCodeStep, Part, ProposedCall, Quorum, Reminders, Reminding,
    ReplyEvidence, ReplyFact, ReplyOutcome, RequestSubject, Resolution, SenderProof, Via, Vote, VoteFact,
    Voting,
};
use switchward_state::catalogue::{
    ApiKey, Assistant, AssistantFact, DefaultEffect, DefaultSetIn, Definition, DeletedVersion, Directory,
    DirectoryEntry, Disposal, EventBinding, LinkAuth, Quotas, Retired, Role, Settings, SourceFile, Tenancy,
    Tenant, TenantOutbox, Version, VersionFact,
};
use switchward_state::delivery::{
    Correlation, DeliveryDetail, DeliveryFailure, DisabledReason, Effect, EffectBody, EffectProgress,
    EffectSource, Endpoint, EndpointHealth, EventSubject, FailureCode, MailHead, MessageText, Outbox,
    PublishedType, Purpose, SourceSecret, TextSource, WebhookSource, WebhookSourceFact, WebhookSourceKind,
};
use switchward_state::policy::{
    Authorized, CallEffect, CallGrounds, HeldSince, LedgerRow, LimitCheck, LimitOutcome, PolicyFact,
    Remaining, Reservation, Spent,
};
use switchward_state::run::{
    Choice, Data, Deferral, EndComment, Failure, FaultCause, Frame, Held, Json, Judged, Loop, Parent, Pinned,
    Provenance, ResultProblem, Run, Slot, Unknown, Writer,
};
use switchward_state::seal::{KeyRing, RingKey, RingKeyId, SEAL_NONCE_BYTES, Sealed, SecretOf};
use switchward_state::session::{
    Assisted, Attached, Early, EventSource, LastMessage, MailDay, Meters, NextReply, Remembered, Replies,
    ReplySource, Retention, Session, SessionWarning, Speaker, StatusReason, StoredReply,
};
use switchward_state::work::{
    About, Lease, OpenItemBody, Owed, TimerItem, WaitItem, Why, WorkFailure, WorkItem, WorkProblem,
};
use switchward_state::{
    Actor, Answered, Decision, Event, History, ItemHead, ItemKind, ItemType, Level, ListedItem, Open,
    OpenItem, Reason, Reply, Request, Row, Scope, StoredHistory, TurnRecord,
};

use open::{gate_row, item, open_gate};

fn check(name: &str, lines: &[(&str, Vec<u8>)]) {
    let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let text: String = lines.iter().map(|(of, bytes)| format!("{of} {}\n", hex(bytes))).collect();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text, known, "a stored form has changed: old data folders could not be read");
}

fn digest() -> Digest {
    Digest([7; 32])
}

fn actor() -> Actor {
    Actor { subject: "kim".into(), role: Role::Approver }
}

/// A machine of one node, which ends at once.
pub(crate) fn machine() -> Arc<Machine> {
    let nothing =
        switchward_machine::Act { kind: switchward_machine::ActKind::Do(Vec::new()), then: Vec::new() };
    let on_no_exit = NoExit::End(Ending::plain(Outcome::Completed));
    let node = Node { on_no_exit, ..Node::new("end", vec![nothing]) };
    Arc::new(Machine {
        start: NodeIx(0),
        nodes: vec![node],
        gates: Vec::new(),
        policy: Policy::default(),
        budgets: Vec::new(),
        params: Vec::new(),
        opening: Opening::default(),
        words: StatusWords::default(),
        meta: Meta::default(),
        fields: Vec::new(),
        inputs: Vec::new(),
        reserved_keys: Vec::new(),
        callees: Vec::new(),
        data_schema: None,
        initial: Vec::new(),
        model: None,
        templates: Templates::Lenient,
    })
}

/// Replies that are all listed, decoded from their stored form: only the events of a session create them.
fn all_listed(replies: &[Remembered]) -> Replies {
    let entry = |one: &Remembered| {
        let sequence = one.sequence.unwrap_or(u64::MAX);
        [&one.hash[..], &one.at.0.to_be_bytes(), &sequence.to_be_bytes()].concat()
    };
    let entries: Vec<u8> = replies.iter().flat_map(entry).collect();
    let mut form = Vec::new();
    minicbor::Encoder::new(&mut form).array(1).unwrap().bytes(&entries).unwrap();
    minicbor::decode(&form).unwrap()
}

fn session() -> Session {
    Session {
        machine: digest(),
        definition: "deploy-gate".into(),
        version: 3,
        key: Some("release-42".into()),
        role: "agent".into(),
        without_policy: false,
        labels: vec![("team".into(), "web".into())],
        created: Time(1),
        updated: Time(2),
        ended: Some(Time(3)),
        sequence: 4,
        next_id: 5,
        root: RunId(1),
        status: Status::Blocked,
        reason: Some(StatusReason::Paused),
        meters: Meters { usd_micros: 1, reserved_micros: 2, tokens: 3, mails: 4 },
        items: vec![
            ListedItem { item: OpenId(6), run: RunId(1), kind: ItemKind::Gate },
            ListedItem { item: OpenId(10), run: RunId(1), kind: ItemKind::Work },
        ],
        calls: vec![7],
        grants: vec![8],
        head: Digest([8; 32]),
        queue: vec![RunId(2)],
        runs: 2,
        contact: Some("sam@example.com".into()),
        early: vec![Early {
            key: "paid".into(),
            data: Json(serde_json::json!({"usd": 3})),
            until: Time(9),
            model: true,
            source: EventSource::Webhook("shop".into()),
        }],
        workflows: vec![attached()],
        answered: vec![OpenId(4)],
        replies: all_listed(&[Remembered { hash: [9; 16], at: Time(2), sequence: Some(3) }]),
        assistant: None,
        reply_tenant: None,
        outbox: None,
        stable_from: None,
        audience: Vec::new(),
        mailed: None,
        uncounted: Vec::new(),
        reminders: None,
        quorum: None,
        policies: Vec::new(),
        escalation: Vec::new(),
        any_approver_address: false,
        callees: Vec::new(),
        removal: None,
        bytes: 0,
    }
}

/// A sealed secret of the tenant 1, with a fixed nonce so that its stored form stays the same.
fn sealed(owner: SecretOf<'_>, secret: &[u8]) -> Sealed {
    let ring = KeyRing::of(vec![RingKey::of([1; 32])]);
    let sealed = ring.seal([2; SEAL_NONCE_BYTES], TenantId(1), owner, secret).expect("there is a key");
    let key: RingKeyId = RingKey::of([1; 32]).id();
    assert_eq!(sealed.key, key);
    sealed
}

fn assisted() -> Option<Assisted> {
    Some(Assisted { name: "support".into(), instructions: "Be brief.".into() })
}

fn webhook_source() -> WebhookSource {
    let sealed = |text: &str| sealed(SecretOf::Source("shop"), text.as_bytes());
    let secret = |text: &str, until| SourceSecret { sealed: sealed(text), until };
    WebhookSource {
        name: "shop".into(),
        kind: WebhookSourceKind::Github,
        secrets: vec![secret("sixteen letters.", None), secret("those before them", Some(Time(9)))],
        correlation: Correlation {
            session: TextSource::Pointer("/order/id".into()),
            event_key: TextSource::Fixed("paid".into()),
            data: "/order".into(),
            known_ms: Some(3_600_000),
        },
        revision: 2,
        created: Time(3),
        updated: Time(4),
    }
}

fn assistant() -> Assistant {
    Assistant {
        name: "support".into(),
        workflows: vec!["refund".into(), "shipping".into()],
        instructions: "Be brief.".into(),
        machine: digest(),
        created: Time(1),
        updated: Time(2),
    }
}

/// A machine whose intent work chooses workflows.
fn asking() -> Arc<Machine> {
    let accept = Some(Accept::Workflows);
    let work = Work { accept, reads: Some(Reads::UserMessage), ..Work::plain(WorkKind::Intent) };
    let act = switchward_machine::Act { kind: switchward_machine::ActKind::Work(work), then: Vec::new() };
    let meta = Meta { description: Some("Money back.".into()), ..Meta::default() };
    let mut machine = Machine::clone(&machine());
    machine.nodes = vec![Node::new("intent", vec![act])];
    Arc::new(Machine { meta, ..machine })
}

fn attached() -> Attached {
    Attached { definition: "shipping".into(), version: 2, machine: digest() }
}

fn run() -> Run {
    Run {
        machine: digest(),
        node: NodeIx(1),
        act: ActIx(0),
        entry: 2,
        drained: 1,
        since: Time(3),
        params: vec![(ParamIx(0), 9)],
        held: Some(Held { exit: ExitIx(1), gate: OpenId(6) }),
        due: Some(Deferral::Take(ExitIx(1))),
        ending: Some(Ending::failed(EndReason::DrainLimit)),
        definition: "deploy-gate".into(),
        version: 3,
        attempt: 2,
        asked: 1,
        rests: true,
        called: vec![("lookup".into(), true)],
        loops: vec![looped()],
        seen: vec!["paid".into()],
        choice: Some(Choice { event: true, judged: vec![judged()], requester: "kim".into() }),
        refused: Some(Port::Named("received".into())),
        mailed: vec!["sam@example.com".into()],
        recipients: vec!["sam@example.com".into()],
        answered_back: Vec::new(),
        parent: None,
        slots: 0,
        unknown: None,
        pending: Vec::new(),
        entered: 5,
        requester: None,
        failure: None,
        frame: None,
    }
}

fn pinned() -> Pinned {
    let callee = Callee { name: "shipping".into(), version: Some(2), kind: CalleeKind::Definition };
    Pinned { callee, version: 2, machine: digest() }
}

fn parent() -> Parent {
    Parent { run: RunId(1), entry: 2, index: 0 }
}

/// Values of nested runs.
fn below() -> Vec<(&'static str, Row)> {
    let ended = Slot::Ended { run: RunId(2), outcome: Outcome::Failed };
    let slot = |slot| ("slot", Row::Slot(slot));
    vec![
        ("session", Row::Session(Session { callees: vec![pinned()], ..session() })),
        ("session-policies", Row::Session(Session { policies: vec![pinned_policy()], ..session() })),
        ("run", Row::Run(Run { parent: Some(parent()), slots: 1, ..run() })),
        ("run", Row::Run(Run { unknown: Some(Unknown { key: OpenId(10), of: digest() }), ..run() })),
        slot(Slot::Empty),
        slot(Slot::Runs(RunId(2))),
        slot(ended),
    ]
}

fn judged() -> Judged {
    Judged { exit: ExitIx(1), nth: 2, holds: true }
}

fn looped() -> Loop {
    Loop { name: "item".into(), items: Json(serde_json::json!(["a", 1])), at: 1 }
}

fn data() -> Row {
    let values =
        serde_json::Map::from_iter([("amount".to_owned(), serde_json::json!({"usd": [1, 2.5, null]}))]);
    Row::Data(Data { values, ..Data::default() })
}

fn message() -> EffectBody {
    EffectBody::Message {
        channel: Channel::Email,
        to: "sam@example.com".into(),
        text: MessageText::Written {
            subject: Some("Refund".into()),
            body: "It is on its way.".into(),
            content: Content::Html,
        },
        gate: Some(OpenId(6)),
        purpose: Purpose::Say,
        head: None,
    }
}

fn gate() -> Gate {
    let call = ProposedCall {
        capability: "bash".into(),
        args: b"{}".to_vec(),
        digest: digest(),
        estimate: Micros(5),
        asked_by: vec!["policy".into()],
    };
    Gate {
        spec: GateIx(0),
        kind: GateKind::ToolAsk,
        requester: "agent".into(),
        call: Some(call),
        exit: None,
        notice: Some(9),
        asked: Some(asked()),
        part: None,
    }
}

/// A gate of a task, for one of its participants.
fn part() -> Gate {
    let asked = GateRequest::once("ann@example.com", &"Your answer is needed: survey".into(), "Rate us.");
    let part = Part { first: OpenId(6), of: 2 };
    let plain = Gate::open_to_all(GateIx(1), GateKind::Task, "agent".into());
    Gate { asked: Some(asked), part: Some(part), ..plain }
}

fn answered() -> Resolution {
    let answer = Json(serde_json::json!({ "rating": 5 }));
    Resolution::Answered { by: "ann@example.com".into(), answer, comment: "fine".into(), via: Via::Mail }
}

fn asked() -> GateRequest {
    GateRequest {
        to: vec!["lead@example.com".into()],
        subject: "Refund".into(),
        body: "May we?".into(),
        round: 1,
        due: Some(Time(9)),
        mails: vec![9],
        answered: vec!["sam@example.com".into()],
        last: Vec::new(),
        open: false,
        closed_notified: Vec::new(),
        bounced: Vec::new(),
        remind: None,
        voting: None,
        values: None,
        dropped: Vec::new(),
        codes: Vec::new(),
        request: 2,
        listed: Listed::default(),
        dismissed: Vec::new(),
        newest: Vec::new(),
    }
}

/// People whom the directory led to.
fn listed() -> Listed {
    Listed { to: vec!["lead@example.com".into()], names: vec!["group:release".into(), String::new()] }
}

fn effect(body: EffectBody) -> Effect {
    let trace = Some("00-00000000000000000000000000000001-0000000000000001-01".into());
    Effect {
        source: EffectSource::Run { run: RunId(1), node: NodeIx(1), entry: 2 },
        number: 9,
        deliver_at: Time(3),
        trace,
        body,
        progress: None,
    }
}

/// Values of effects that cannot be delivered.
fn undelivered() -> [(&'static str, Row); 3] {
    let dead = DeliveryFailure {
        code: "no_such_host".parse().expect("a code"),
        detail: DeliveryDetail::quote("it is unknown"),
        at: Time(4),
    };
    let effect = |dead_letter| Effect {
        progress: Some(Box::new(EffectProgress { round: 2, dead_letter, ..EffectProgress::default() })),
        ..effect(message())
    };
    let outbox = Some(Box::new(Outbox { count: 3, bytes: 4_000, dead_letters: 1, published: 0 }));
    [
        ("outbox-dead", Row::Outbox(effect(Some(dead)))),
        ("outbox-again", Row::Outbox(effect(None))),
        ("session-outbox", Row::Session(Session { outbox, ..session() })),
    ]
}

fn page_code_fact(step: PageCodeStep) -> PageCodeFact {
    PageCodeFact { gate: OpenId(6), to: "lead@example.com".into(), step }
}

fn notice() -> EffectBody {
    let subject = RequestSubject::Written("review".into());
    EffectBody::Notice { gate: OpenId(6), kind: GateKind::Notify, subject }
}

fn ledger() -> LedgerRow {
    LedgerRow {
        calls: vec![Time(1), Time(2)],
        window_ms: 3_600_000,
        reservations: vec![Reservation { call: digest(), at: Time(3), estimate: Micros(5), confirmed: true }],
        spent: vec![Spent { period: Period::Day, start: Time(0), micros: Micros(7) }],
    }
}

fn tenant() -> Tenant {
    let settings = Settings {
        default_effect: DefaultEffect::Ask,
        allow_foreign_role: true,
        default_set_in: DefaultSetIn::Tenant,
        any_approver_address: true,
        link_auth: Some(LinkAuth::Code),
        browser_known_ms: Some(3_600_000),
        quotas: Quotas::default(),
    };
    let (created, updated) = (Time(1), Time(2));
    let (name, display_name) = ("acme".into(), "Acme".into());
    Tenant { id: TenantId(1), name, display_name, settings, created, updated, deleted: None }
}

fn api_key() -> ApiKey {
    ApiKey {
        id: "0011".into(),
        hash: digest(),
        tenant: TenantId(1),
        role: Role::Admin,
        subject: "kim".into(),
        display_name: "Kim".into(),
        created: Time(1),
        expires: Some(Time(9)),
        revoked: Some(Time(5)),
        tenant_name: "acme".into(),
    }
}

fn version() -> Version {
    let files = vec![SourceFile { path: "a.json".into(), bytes: b"{}".to_vec() }];
    Version { number: 1, source: digest(), machine: digest(), files, created: Time(1), by: "kim".into() }
}

fn remembered() -> Answered {
    Answered { body: digest(), reply: Reply::Session { sequence: 5, position: None } }
}

fn history() -> History {
    let events = vec![Event::Session(SessionEvent::RequestsForgotten)];
    History { at: Time(3), by: actor(), request: Some("r-1".into()), events, answered: Some(remembered()) }
}

fn authorized() -> Authorized {
    Authorized {
        effect: CallEffect::Ask,
        reason: Some(Reason::RateLimited),
        grounds: Some(CallGrounds::Ask { capability: "bash".into() }),
        rule: Some(rule()),
        gate: Some(OpenId(6)),
        granted_by: Some(OpenId(6)),
        call_id: "c-1".into(),
        retry_after_ms: Some(10),
        remaining: Remaining { calls: Some(49), usd: Some(Micros(5)) },
        layers: layers(),
        sequence: 4,
        unnotified: true,
        warnings: vec![Warning::Unreachable],
    }
}

fn replies() -> Vec<Reply> {
    let remaining = Remaining { calls: Some(49), usd: Some(Micros(5)) };
    let full = LimitOutcome::Full { money: true, capability: "bash".into(), wait_ms: 9 };
    let held = || vec![HeldSince { process: "order".into(), at: Time(3) }];
    let check = |outcome, held| LimitCheck { rules: rules(), estimate: Micros(5), age_ms: 2, outcome, held };
    [
        Reply::Session { sequence: 4, position: values::position() },
        Reply::Authorized(Box::new(authorized())),
        Reply::Gate { gate: OpenId(6), sequence: 4, summary: None },
        Reply::Limits(check(LimitOutcome::Available { remaining }, held())),
        Reply::Limits(check(full, Vec::new())),
        Reply::Done,
        Reply::Worked { session: SessionId([1; 16]), sequence: 4, wrong: Some(ResultProblem::NoObject) },
        Reply::Replied {
            session: SessionId([1; 16]),
            sequence: 4,
            outcome: ReplyOutcome::Counted,
            position: None,
        },
        Reply::Recorded { session: SessionId([1; 16]), sequence: 4, event: 3, position: None },
        values::page_codes::reply(),
    ]
    .into_iter()
    .chain(values::faults::replies())
    .chain(crate::replies::all())
    .collect()
}

/// A row of each kind.
fn rows() -> Vec<(&'static str, Row)> {
    let decided = |decision| {
        let (by, comment) = ("kim".into(), "fine".into());
        Resolution::Decided { decision, by, comment, via: Via::Mail }
    };
    let closed = |resolution| Row::Closed(Closed { open: open_gate(), resolution, at: Time(4) });
    let mut rows = vec![
        ("session", Row::Session(session())),
        ("run", Row::Run(run())),
        ("open", gate_row(gate())),
        ("closed", closed(decided(GateDecision::Refuse))),
        ("closed-voided", closed(Resolution::Voided)),
        ("call", Row::Call(call())),
        ("history", Row::History(StoredHistory::from(history()))),
        ("ledger", Row::Ledger(ledger())),
        ("outbox-notice", Row::Outbox(effect(notice()))),
        ("outbox-message", Row::Outbox(effect(message()))),
        ("outbox-confirm", Row::Outbox(effect(confirm()))),
        ("outbox-settle", Row::Outbox(effect(settle()))),
        ("machine", Row::Machine(machine())),
        ("grant", Row::Grant(grant())),
        ("tenant", Row::Tenant(tenant())),
        ("api-key", Row::ApiKey(api_key())),
        ("definition", Row::Definition(definition())),
        ("version", Row::Version(version())),
        ("clock", Row::Clock(Time(3))),
        ("level", Row::Level(Level(2))),
        ("index", Row::Index),
        ("last-tenant", Row::LastTenant(3)),
        ("mailed", Row::Mailed(3)),
        ("source", Row::Source(3)),
        ("data", data()),
        ("said", Row::LastMessage(LastMessage { text: "yes".into(), by_user: true, sequence: 7 })),
    ];
    rows.push((
        "session-assisted",
        Row::Session(Session { assistant: assisted().map(Box::new), ..session() }),
    ));
    rows.push(("assistant", Row::Assistant(assistant())));
    rows.push(("machine-asking", Row::Machine(asking())));
    rows.push(("closed-lapsed", closed(Resolution::Lapsed)));
    rows.push(("closed-discussed", closed(decided(GateDecision::Discuss))));
    rows.push(("open-part", gate_row(part())));
    rows.push(("closed-answered", closed(answered())));
    let request = |reply| Row::Request(Request { body: digest(), reply, at: Time(3) });
    rows.extend(open::items().into_iter().map(|body| ("item", item(body))));
    rows.extend(replies().into_iter().map(|reply| ("request", request(reply))));
    let next = Some(NextReply { hash: [7; 16], at: Time(4) });
    let reply = |source, next| Row::Reply(StoredReply { source, next });
    rows.push(("reply-in-history", reply(ReplySource::History(3), next)));
    let answered = Answered { body: digest(), reply: Reply::Done };
    rows.push(("reply-alone", reply(ReplySource::Here(Box::new(answered)), None)));
    let replies = [0, 1].map(|at| Remembered { hash: [at; 16], at: Time(u64::from(at)), sequence: None });
    let replies = all_listed(&replies);
    rows.push(("session-unchanged", Row::Session(Session { replies, ..session() })));
    rows.extend(below());
    rows.push((
        "session-reachable",
        Row::Session(Session { reply_tenant: Some("acme".into()), ..session() }),
    ));
    rows.extend(undelivered());
    rows.push(("webhook-source", Row::WebhookSource(webhook_source())));
    rows.extend(values::written_to());
    rows.extend(values::endpoint_rows());
    rows.extend(pending::rows());
    rows.extend(values::settled());
    rows.extend(values::page_codes::rows());
    rows.extend(values::notices::rows());
    rows
}

#[test]
fn rows_keep_their_form() {
    let rows = rows();
    let lines: Vec<(&str, Vec<u8>)> = rows.iter().map(|(of, row)| (*of, row.encode())).collect();
    for ((of, row), (_, bytes)) in rows.iter().zip(&lines) {
        assert_eq!(Row::decode(bytes).as_ref(), Ok(row), "{of} is not read back");
    }
    check("row.v1.txt", &lines);
}

fn confirm() -> EffectBody {
    let process = "deploy-gate".into();
    EffectBody::Confirm { process, call: digest(), rules: rules(), estimate: Micros(5), at: Time(3) }
}

fn settle() -> EffectBody {
    let process = "deploy-gate".into();
    let (cost, at) = (Micros(5), Time(3));
    EffectBody::Settle { process, call: Some(digest()), rules: rules(), cost, at, release: true }
}

#[test]
fn decisions_keep_their_form() {
    let scopes = [
        Scope::Session(SessionId([1; 16])),
        Scope::Ledger("deploy-gate".into()),
        Scope::Catalogue,
        Scope::Shard,
    ];
    let mut decisions = Vec::new();
    let trace = Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".to_owned());
    let traced = Event::Work(WorkEvent::Opened {
        item: OpenId(10),
        run: RunId(1),
        body: open::items().remove(1),
        trace,
    });
    let own = [Event::Session(SessionEvent::ReplyTokensBegun { tenant: "acme".into() }), traced];
    let latest = own.into_iter().chain(dead_letters()).chain(webhook_sources()).chain(values::mailed());
    let latest =
        latest.chain(pending::events()).chain(values::warnings::events()).chain(values::faults::events());
    let known = moves().into_iter().chain(calls()).chain(flow_events()).chain(shared());
    let events: Vec<Event> =
        known.chain(later()).chain(children()).chain(latest).chain(other_kinds()).collect();
    let met: BTreeSet<String> = events.iter().map(switchward_testkit::kind).collect();
    assert_eq!(met, switchward_testkit::kinds(), "each kind has a value");
    for (at, event) in events.into_iter().enumerate() {
        let turn = TurnRecord {
            tenant: TenantId(1),
            scope: scopes[at % scopes.len()].clone(),
            by: actor(),
            request: (at % 2 == 0).then(|| ("r-1".to_owned(), digest())),
            reply: Reply::Done,
            events: vec![event],
        };
        decisions.push(Decision::new(Level::FIRST, Time(3), vec![turn]));
    }
    let lines: Vec<(&str, Vec<u8>)> =
        decisions.iter().map(|decision| ("decision", decision.encode())).collect();
    for (decision, (_, bytes)) in decisions.iter().zip(&lines) {
        assert_eq!(Decision::decode(bytes).as_ref(), Ok(decision));
    }
    check("decision.v1.txt", &lines);
}
