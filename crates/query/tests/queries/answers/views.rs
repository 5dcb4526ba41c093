//! Views of sessions, gates, work and effects.

use serde_json::json;
use std::collections::BTreeMap;
use switchward_engine::policy::{Explanation, LimitState, LookedAt};
use switchward_engine::{
    Below, Comment, EffectView, GateView, Machines, Missed, NodeName, Reach, RunMachine, RunView,
    SessionView, WorkView,
};
use switchward_machine::{BudgetUnit, Callee, CalleeKind, NodeIx, OpenId, RunId, Status, Time};
use switchward_query::{GateShown, LinkedGate, SessionShown};
use switchward_state::approval::{Setting, SettingSource, Settled, Warning};
use switchward_state::delivery::{EventSubject, MailCap, MailFull, PublishedEvent, PublishedType};
use switchward_state::policy::{CallEffect, CallGrounds, LayerDecision, MatchedRule, Shortage};
use switchward_state::run::{ActiveRun, ActiveRuns, Json, Run};
use switchward_state::session::Assisted;
use switchward_state::work::WorkItem;
use switchward_state::{OpenItem, Reason, SharedMachine};

use super::rows::{self, machine, row};
use crate::golden::{GATE, SESSION, reply_token};

fn object() -> serde_json::Map<String, serde_json::Value> {
    serde_json::Map::from_iter([("order".to_owned(), json!({ "id": 7 }))])
}

pub(crate) fn session() -> SessionView {
    let run: Run = (*row::<Run>("run")).clone();
    let names = |source| Setting { value: vec!["kim@example.com".to_owned()], source };
    let settled = Settled {
        audience: names(SettingSource::Directory),
        escalation: names(SettingSource::Definition),
        ..Settled::default()
    };
    SessionView {
        id: SESSION,
        session: row("session"),
        run: row("run"),
        machine: machine(),
        data: object(),
        below: vec![Below { id: RunId(2), run, machine: machine(), data: object() }],
        items: vec![(OpenId(10), OpenItem::Work(rows::work()))],
        incidents: vec![rows::effect()],
        caps: vec![(BudgetUnit::Mails, 5)],
        settled,
        tokens: vec![(RunId(1), reply_token())],
        provenance: std::collections::BTreeMap::new(),
        active: ActiveRuns::default(),
        names: Vec::new(),
    }
}

/// A session with two runs side by side.
pub(crate) fn forked_session() -> SessionView {
    let active = |run, state: &str| ActiveRun {
        run: RunId(run),
        parent: Some(RunId(1)),
        definition: "deploy-gate".into(),
        version: 3,
        state: state.into(),
        label: Some(format!("split.{state}")),
    };
    SessionView {
        below: Vec::new(),
        active: ActiveRuns { runs: vec![active(2, "build"), active(3, "test")], count: 2 },
        names: vec![NodeName { run: RunId(2), node: NodeIx(1), name: "build".into() }],
        ..session()
    }
}

pub(crate) fn session_shown() -> SessionShown {
    let run = RunView {
        id: RunId(1),
        definition: "deploy-gate".into(),
        version: 3,
        status: Status::Waiting,
        at: "ready".into(),
        parent: Some(RunId(2)),
        label: None,
    };
    SessionShown { session: session(), gates: vec![(GATE, open_gate())], runs: vec![run] }
}

pub(crate) fn machines() -> Machines {
    let machine = RunMachine { machine: SharedMachine(machine()), child: true };
    Machines(BTreeMap::from([(RunId(1), machine)]))
}

/// An open gate with every kind of warning.
pub(crate) fn open_gate() -> GateView {
    let to = || vec!["kim@example.com".to_owned()];
    let full = MailFull { cap: MailCap::Address, until: Time(9) };
    let warnings = vec![
        Warning::NoRecipients,
        Warning::OnlyRequester { to: to() },
        Warning::Unreachable,
        Warning::Waiting { to: to(), more: 2, full },
        Warning::AllOfNobody,
        Warning::FewNotified { need: 2, can: 1 },
        Warning::TooFewRecipients { wanted: 3, can: 1, need: 2 },
        Warning::NotInDirectory { who: "lee".into() },
        Warning::UnprovedBounce { to: "kim@example.com".into() },
        Warning::NoLongerListed { who: to() },
    ];
    GateView::Open(rows::open(), machine(), Reach { unreached: to(), unnotified: true, warnings, held: 1 })
}

pub(crate) fn closed_gate() -> GateView {
    GateView::Closed(rows::closed(), machine())
}

fn comment() -> Comment {
    Comment { by: "lee".into(), at: Time(3), comment: "why now?".into() }
}

pub(crate) fn gate_shown() -> GateShown {
    GateShown { session: session(), id: GATE, gate: closed_gate(), comments: vec![comment()] }
}

pub(crate) fn linked() -> LinkedGate {
    let (tenancy, session) = (row("tenancy"), row("session"));
    LinkedGate { tenancy, session, gate: closed_gate(), comments: vec![comment()] }
}

pub(crate) fn work() -> WorkView {
    let open = rows::work();
    let WorkItem { kind, owed } = open.body;
    WorkView {
        id: OpenId(10),
        head: open.head,
        kind,
        owed,
        node: "ready".into(),
        attempt: 2,
        version: 3,
        schema: Json(json!({ "type": "object" })),
        data: object(),
        said: Some("Ship it".into()),
        assistant: Some(Assisted { name: "helper".into(), instructions: "Be brief.".into() }),
        exits: Vec::new(),
        model: None,
    }
}

pub(crate) fn effect() -> EffectView {
    EffectView { effect: rows::effect(), node: "ready".into() }
}

pub(crate) fn missed() -> Missed {
    let event = PublishedEvent {
        kind: PublishedType::SessionStarted,
        about: Some(EventSubject::OfSession("deploy-gate".into())),
        sequence: 1,
        at: Time(2),
    };
    Missed { retry: vec![7], events: vec![event], upto: Some(9) }
}

pub(crate) fn explanation() -> Explanation {
    let rule = MatchedRule {
        layer: "policy".into(),
        list: "ask".into(),
        capability: "bash".into(),
        default_set_in: None,
    };
    let limit = LimitState { layer: Some("limits".into()), unit: BudgetUnit::UsdMicros, used: 1, cap: 2 };
    Explanation {
        effect: CallEffect::Deny,
        reason: Some(Reason::BudgetExhausted),
        grounds: CallGrounds::Short(Shortage::Limit { capability: "bash".into() }),
        rule: Some(rule.clone()),
        granted: true,
        looked_at: vec![LookedAt { rule: rule.clone(), covers: true }],
        layers: vec![LayerDecision { effect: CallEffect::Ask, rule }],
        limited: Vec::new(),
        budgets: vec![limit],
    }
}

pub(crate) fn callee() -> Callee {
    Callee { name: "lookup".into(), version: Some(2), kind: CalleeKind::Definition }
}
