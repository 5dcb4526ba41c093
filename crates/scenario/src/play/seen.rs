//! The state that can be seen after a step.

use serde_json::{Map, Number, Value, json};
use std::ops::ControlFlow;
use switchward_engine::{
    Machines, RunView, SessionView, machines_of, public_events, run_views, session_view,
};
use switchward_machine::{NodeIx, RunId, SessionId, Time, WorkKind};
use switchward_messages::{Text, session_warning};
use switchward_state::approval::OpenGate;
use switchward_state::delivery::{DeliveryEvent, EffectBody};
use switchward_state::policy::Authorized;
use switchward_state::session::{ReplyTokens, SessionEvent, StatusReason};
use switchward_state::work::{OpenItemBody, WorkEvent, WorkItem};
use switchward_state::{Event, IndexKey, Key, Kind, OpenItem, Reason, Row, Scope};

use super::Player;
use crate::script::Wanted;
use crate::system::{Broken, read};

/// What a step did, as far as an expected reason depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepKind {
    /// It asked for a call, which a mail is, too.
    Call,
    /// Anything else.
    Other,
}

/// The current session, and what the step did.
pub(super) struct Seen {
    session: Option<SessionView>,
    opens: Vec<OpenGate>,
    /// Its runs, oldest first.
    runs: Vec<Value>,
    /// The session's events since the step before.
    events: Vec<Event>,
    /// The machines of the runs that the events are about.
    machines: Machines,
    /// Replaces the token marks in outgoing messages.
    tokens: Option<ReplyTokens>,
    /// The public types of events outside the session.
    published: Vec<&'static str>,
    last: Option<Authorized>,
}

impl Player<'_> {
    pub(super) fn session_view(&self, id: SessionId) -> Result<Option<SessionView>, Broken> {
        read(self.system, self.tenant, &Scope::Session(id), |view| session_view(view, self.tenant, id))
    }
}

impl Seen {
    pub(super) fn of(player: &Player<'_>) -> Result<Self, Broken> {
        let mut seen = Self {
            session: None,
            opens: Vec::new(),
            runs: Vec::new(),
            events: Vec::new(),
            machines: Machines::default(),
            tokens: None,
            published: player.published.clone(),
            last: player.last.clone(),
        };
        let Some(id) = player.session else { return Ok(seen) };
        seen.session = player.session_view(id)?;
        seen.runs = runs(player, id, seen.session.as_ref())?;
        seen.opens = open_gates(player, id)?;
        let listed = seen.opens.len();
        let counted = seen.session.as_ref().map_or(0, |view| view.session.gates().count());
        if listed != counted {
            return Err(Broken(format!("{listed} gates are listed, but the session has {counted} open")));
        }
        seen.events = events_since(player, id)?;
        seen.tokens = read(player.system, player.tenant, &Scope::Session(id), |view| {
            ReplyTokens::of_session(view, player.tenant, id)
        })?;
        let about = &seen.events;
        seen.machines = read(player.system, player.tenant, &Scope::Session(id), |view| {
            machines_of(view, player.tenant, id, about)
        })?;
        Ok(seen)
    }

    /// The number of the session's events.
    pub(super) fn sequence(&self) -> u64 {
        self.session.as_ref().map_or(0, |view| view.session.sequence)
    }

    /// The value that an expectation refers to.
    pub(super) fn value(&self, wanted: Wanted, expected: &Value, step: StepKind) -> Value {
        let view = self.session.as_ref();
        match wanted {
            Wanted::Status => view.map_or(Value::Null, |view| json!(view.session.status.word())),
            Wanted::At => view.map_or(Value::Null, |view| json!(view.at())),
            Wanted::Context => view.map_or(Value::Null, |view| Value::Object(view.data.clone())),
            Wanted::Decision => self.last.as_ref().map_or(Value::Null, |last| json!(last.effect.word())),
            Wanted::Left => self.last.as_ref().map_or(Value::Null, left),
            Wanted::Rule => self.last.as_ref().map_or(Value::Null, rule),
            Wanted::RetryAfter => seconds(self.last.as_ref().and_then(|last| last.retry_after_ms)),
            Wanted::Reason => self.reason(expected, step),
            Wanted::Open => Value::Array(self.open()),
            Wanted::Effects => Value::Array(self.effects()),
            Wanted::Events | Wanted::Without => json!(self.event_types()),
            Wanted::Log => Value::Array(self.events.iter().filter_map(warning).collect()),
            Wanted::Runs => Value::Array(self.runs.clone()),
            Wanted::Version => view.map_or(Value::Null, |view| json!(view.session.version)),
            Wanted::Shows => view.map_or(Value::Null, |view| json!(shows(view))),
        }
    }

    /// The reason of the last call, or of the status: whichever is expected. After a call, its own comes first.
    fn reason(&self, expected: &Value, step: StepKind) -> Value {
        let of_call = json!(self.last.as_ref().and_then(|last| last.reason.map(Reason::code)));
        let of_status =
            json!(self.session.as_ref().and_then(|view| view.session.reason.map(StatusReason::word)));
        let (first, second) = match step {
            StepKind::Call => (of_call, of_status),
            StepKind::Other => (of_status, of_call),
        };
        let second_fits = !second.is_null() && second == *expected;
        if second_fits || (first.is_null() && !expected.is_null()) { second } else { first }
    }

    /// Outgoing effects, as they are sent.
    fn effects(&self) -> Vec<Value> {
        let mut effects: Vec<Value> = self.events.iter().filter_map(effect).collect();
        if let Some(tokens) = &self.tokens {
            effects.iter_mut().for_each(|effect| tokens.put_into_json(effect));
        }
        effects
    }

    /// The open items: gates, then work, waits and timers, each kind oldest first.
    fn open(&self) -> Vec<Value> {
        let items = self.session.iter().flat_map(|view| &view.items);
        let items = items.flat_map(|(_, item)| self.item(item));
        self.opens.iter().flat_map(|open| self.gate(open)).chain(items).collect()
    }

    /// An open item, with the timer that ends it if it is a wait.
    fn item(&self, item: &OpenItem) -> Vec<Value> {
        let node = self.node(item.head().run, item.head().node);
        let (input, timer) = match item {
            OpenItem::Gate(open) => return self.gate(open),
            OpenItem::Work(open) => {
                let owed = &open.body.owed;
                (Some(&owed.input.0), owed.lease.as_ref().map(|_| "lease"))
            }
            OpenItem::Wait(_) => (None, Some("wait")),
            OpenItem::Timer(_) => (None, None),
        };
        let words =
            [(item.kind().word(), item.item_type().word())].into_iter().chain(timer.map(|of| ("timer", of)));
        let due = time(item.due());
        let entry =
            |(kind, of)| json!({ "kind": kind, "type": of, "node": node, "due": due, "input": input });
        words.map(entry).collect()
    }

    /// An open gate, with the timer of its round if it has one.
    fn gate(&self, open: &OpenGate) -> Vec<Value> {
        let node = self.node(open.head.run, open.head.node);
        let mut gate = Map::new();
        gate.insert("kind".into(), json!("gate"));
        gate.insert("node".into(), json!(node));
        gate.insert("type".into(), json!(open.body.kind.word()));
        if let Some(call) = &open.body.call {
            gate.insert("capability".into(), json!(call.capability));
        }
        let Some(asked) = &open.body.asked else { return vec![Value::Object(gate)] };
        let due = time(asked.due);
        gate.insert("to".into(), json!(asked.to));
        gate.insert("due".into(), json!(due));
        let round = json!({ "kind": "timer", "type": "round", "node": node, "due": due });
        [Value::Object(gate)].into_iter().chain(due.is_some().then_some(round)).collect()
    }

    /// The name of a node of a run.
    fn node(&self, run: RunId, node: NodeIx) -> Option<&str> {
        self.session.as_ref().map(|view| view.name_of(run, node))
    }

    fn event_types(&self) -> Vec<&'static str> {
        let recorded = public_events(&self.events, &self.machines).map(|(_, event)| event.kind);
        self.published.iter().copied().chain(recorded).collect()
    }

    /// The session for a report.
    pub(super) fn session_json(&self) -> Value {
        let Some(view) = &self.session else { return json!({}) };
        let session = &view.session;
        json!({
            "session": view.id.to_string(),
            "definition": session.definition,
            "version": session.version,
            "role": session.role,
            "status": session.status.word(),
            "reason": session.reason.map(StatusReason::word),
            "at": view.at(),
            "open": self.open(),
            "sequence": session.sequence,
        })
    }
}

/// A time as scenarios write it.
fn time(at: Option<Time>) -> Option<String> {
    let at = at.and_then(|at| i64::try_from(at.0).ok());
    at.and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok()).map(|at| at.to_string())
}

/// The rule that decided, by its position in the policy.
fn rule(last: &Authorized) -> Value {
    let rule = last.rule.as_ref();
    rule.map_or(
        Value::Null,
        |rule| json!({ "layer": rule.layer, "list": rule.list, "capability": rule.capability }),
    )
}

/// What the tightest limits and caps leave, if there are any.
fn left(last: &Authorized) -> Value {
    let usd = last.remaining.usd.and_then(|usd| usd.to_string().parse::<Number>().ok());
    json!({ "calls": last.remaining.calls, "usd": usd })
}

/// A wait in seconds, rounded up.
pub(super) fn seconds(ms: Option<u64>) -> Value {
    json!(ms.map(|ms| ms.div_ceil(1_000)))
}

/// The open gates of the session, oldest first, as a list of all gates of the tenant shows them.
fn open_gates(player: &Player<'_>, id: SessionId) -> Result<Vec<OpenGate>, Broken> {
    let tenant = player.tenant;
    read(player.system, tenant, &Scope::Session(id), |view| {
        let mut gates = Vec::new();
        view.scan(&IndexKey::gates(tenant), None, &mut |entry, _| {
            gates.extend(IndexKey::gate_of(entry).filter(|(session, _)| *session == id));
            ControlFlow::Continue(())
        })?;
        let mut opens = Vec::with_capacity(gates.len());
        for (session, gate) in gates {
            if let Some(open) = view.gate(tenant, session, gate)? {
                opens.push(OpenGate::clone(&open));
            }
        }
        Ok(opens)
    })
}

/// The session's events since the step before, in order.
fn events_since(player: &Player<'_>, id: SessionId) -> Result<Vec<Event>, Broken> {
    let prefix = Key::prefix_of_session(player.tenant, id, Kind::History);
    let after = player.before.checked_sub(1).map(|before| Key::history(player.tenant, id, before));
    read(player.system, player.tenant, &Scope::Session(id), |view| {
        let mut events = Vec::new();
        view.scan(&prefix, after.as_ref().map(Key::as_bytes), &mut |_, row| {
            if let Row::History(history) = &**row {
                events.extend(history.events.iter().cloned());
            }
            ControlFlow::Continue(())
        })?;
        Ok(events)
    })
}

/// The session's runs, oldest first.
fn runs(player: &Player<'_>, id: SessionId, of: Option<&SessionView>) -> Result<Vec<Value>, Broken> {
    let Some(of) = of else { return Ok(Vec::new()) };
    let runs =
        read(player.system, player.tenant, &Scope::Session(id), |view| run_views(view, player.tenant, of))?;
    let shown =
        |run: RunView| json!({ "process": run.definition, "status": run.status.word(), "at": run.at });
    Ok(runs.into_iter().map(shown).collect())
}

fn shows(view: &SessionView) -> String {
    let (opening, text) = view.shows();
    let assistant = view.session.assistant.iter().map(|assistant| assistant.instructions.clone());
    let before = opening.map(str::to_owned).into_iter().chain(assistant);
    before.chain(text).collect::<Vec<_>>().join("\n\n")
}

fn warning(event: &Event) -> Option<Value> {
    let Event::Session(SessionEvent::Warned { warning }) = event else { return None };
    Some(json!(session_warning(warning)))
}

/// An effect to people and machines outside; effects to the server's own ledgers are left out. A request over HTTP is
/// a work item of its own.
fn effect(event: &Event) -> Option<Value> {
    if let Event::Work(WorkEvent::Opened {
        body: OpenItemBody::Work(WorkItem { kind: WorkKind::Http, owed }),
        ..
    }) = event
    {
        let url = owed.input.0.get("url");
        return Some(json!({ "kind": "http", "to": url, "text": owed.input.0.to_string() }));
    }
    let Event::Delivery(DeliveryEvent::Queued { effect }) = event else { return None };
    match &effect.body {
        EffectBody::Notice { subject, .. } => {
            let subject = switchward_messages::request(subject);
            Some(json!({ "kind": "notice", "subject": subject, "text": subject }))
        }
        EffectBody::Message { channel, to, text, gate: _, purpose: _, head } => {
            let Text { subject, body, content } = switchward_messages::text(*channel, text);
            Some(json!({
                "from": head.as_ref().and_then(|head| head.from.as_ref()),
                "kind": channel.word(),
                "to": (!to.is_empty()).then_some(to),
                "subject": subject,
                "text": format!("{}\n{body}", subject.as_deref().unwrap_or_default()),
                "content_type": content.word(),
            }))
        }
        EffectBody::Confirm { .. } | EffectBody::Settle { .. } | EffectBody::Publish { .. } => None,
    }
}
