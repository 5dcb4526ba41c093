//! Events as the outside sees them: a public type, and what a reader needs of it.

mod calls;
mod pending;
mod said;

use said::{posted, replied};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use switchward_machine::{
    BudgetUnit, Exit, ExitIx, GateKind, Machine, Micros, Node, NodeIx, OpenId, Outcome, RunId, SessionId,
    TenantId, WorkKind,
};

use crate::event::{PageCodeFact, PageCodeStep, PendingFact, RemovalFact, ReplyFact, VoteFact};
use crate::intent;
use crate::policy::machine_of;
use crate::state::{OpenItemBody, Via};
use crate::working::Working;
use crate::{Event, Flow, Key, LinkAuth, View, ViewError};
use calls::calls;

/// An event for a reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicEvent {
    /// Its type: `session.started`, `policy.denied`.
    pub kind: &'static str,
    /// Name and value, in order.
    pub fields: Vec<(&'static str, String)>,
}

impl PublicEvent {
    fn new(kind: &'static str) -> Self {
        Self { kind, fields: Vec::new() }
    }

    fn with(mut self, name: &'static str, value: impl ToString) -> Self {
        let value = value.to_string();
        if !value.is_empty() {
            self.fields.push((name, value));
        }
        self
    }
}

/// The machines of runs, by which their nodes have names, and which of the runs are children.
#[derive(Debug, Clone, Default)]
pub struct Machines(BTreeMap<RunId, (Arc<Machine>, bool)>);

impl Machines {
    /// The machine of a run.
    #[must_use]
    pub fn machine(&self, run: RunId) -> Option<&Arc<Machine>> {
        self.0.get(&run).map(|(machine, _)| machine)
    }

    fn is_child(&self, run: RunId) -> bool {
        self.0.get(&run).is_some_and(|(_, child)| *child)
    }

    fn node(&self, run: RunId, node: NodeIx) -> Option<&Node> {
        self.machine(run)?.node(node)
    }

    fn name(&self, run: RunId, node: NodeIx) -> String {
        self.node(run, node).map(|node| node.name.clone()).unwrap_or_default()
    }

    fn exit(&self, run: RunId, node: NodeIx, exit: ExitIx) -> Option<&Exit> {
        self.node(run, node)?.exits.get(usize::from(exit.0))
    }
}

/// The machines of the runs that these events of a session are about.
///
/// # Errors
/// A row cannot be read.
pub fn machines_of<'e>(
    view: &dyn View,
    tenant: TenantId,
    session: SessionId,
    events: impl IntoIterator<Item = &'e Event>,
) -> Result<Machines, ViewError> {
    machines_in(&Working::new(view), tenant, session, events)
}

/// The same of rows that a turn works on.
pub(crate) fn machines_in<'e>(
    rows: &Working<'_>,
    tenant: TenantId,
    session: SessionId,
    events: impl IntoIterator<Item = &'e Event>,
) -> Result<Machines, ViewError> {
    let mut machines = Machines::default();
    for run in events.into_iter().filter_map(run_of) {
        if machines.0.contains_key(&run) {
            continue;
        }
        if let Some(row) = rows.run_at(&Key::run(tenant, session, run))? {
            machines.0.insert(run, (machine_of(rows, tenant, &row)?, row.parent.is_some()));
        }
    }
    Ok(machines)
}

/// What a reader is shown of each of these events, in order; internal events are left out. What happens in a child
/// carries the child's number.
pub fn public_events<'a>(
    events: &'a [Event],
    machines: &'a Machines,
) -> impl Iterator<Item = (usize, PublicEvent)> + 'a {
    events.iter().enumerate().filter_map(|(at, event)| {
        let public = moves(event, machines)
            .or_else(|| flow(event, machines))
            .or_else(|| gates(event))
            .or_else(|| calls(event))
            .or_else(|| usage(event))?;
        let child = run_of(event).filter(|run| machines.is_child(*run));
        let named = public.fields.iter().any(|(name, _)| *name == RUN);
        Some((
            at,
            match child.filter(|_| !named) {
                Some(run) => public.with(RUN, run.0),
                None => public,
            },
        ))
    })
}

/// The field that says which run an event is about.
const RUN: &str = "run";

/// The run that an event is about, if it is about one.
#[expect(clippy::wildcard_enum_match_arm, reason = "an event that no reader needs is shown to none")]
fn run_of(event: &Event) -> Option<RunId> {
    Some(match event {
        Event::RunCreated { run, .. }
        | Event::Entered { run, .. }
        | Event::Answered { run, .. }
        | Event::Left { run, .. }
        | Event::RunEnded { run, .. }
        | Event::GateOpened { run, .. }
        | Event::Voided { run: Some(run), .. } => *run,
        Event::EffectQueued { effect } => effect.run,
        Event::Flow(
            Flow::RunActivated { run }
            | Flow::TurnEnded { run }
            | Flow::Signalled { run }
            | Flow::Wrote { run, .. }
            | Flow::Faulted { run, .. }
            | Flow::Restarted { run, .. }
            | Flow::ItemOpened { run, .. }
            | Flow::EventRecorded { run, .. }
            | Flow::Pending(PendingFact::Held { run, .. } | PendingFact::Entered { run, .. })
            | Flow::ReplyRecorded(ReplyFact { run, .. })
            | Flow::WorkDone { run, .. }
            | Flow::Judged { run, .. }
            | Flow::ChildCreated { run, .. },
        ) => *run,
        _ => return None,
    })
}

fn number(gate: &OpenId) -> String {
    gate.0.to_string()
}

#[expect(clippy::wildcard_enum_match_arm, reason = "an event that no reader needs is shown to none")]
fn moves(event: &Event, machines: &Machines) -> Option<PublicEvent> {
    Some(match event {
        Event::SessionStarted { definition, version, role, key, .. } => PublicEvent::new("session.started")
            .with("definition", definition)
            .with("version", if definition.is_empty() { String::new() } else { version.to_string() })
            .with("role", role)
            .with("key", key.as_deref().unwrap_or_default()),
        // The node of the session's own run is not a state of any workflow.
        Event::Entered { run, .. } if *run == intent::RUN => return None,
        Event::Entered { run, node } => {
            PublicEvent::new("session.state_entered").with("state", machines.name(*run, *node))
        }
        Event::Answered { run, node, answer, note } => PublicEvent::new("session.answered")
            .with("state", machines.name(*run, *node))
            .with("answer", answer)
            .with("note", note),
        Event::RunEnded { run, ending, comment } if machines.is_child(*run) => PublicEvent::new("run.ended")
            .with(RUN, run.0)
            .with("status", ending.outcome.status().word())
            .with("reason", ending.reason.as_deref().unwrap_or_default())
            .with("comment", comment),
        Event::RunEnded { ending, comment, .. } => PublicEvent::new(ended(ending.outcome))
            .with("reason", ending.reason.as_deref().unwrap_or_default())
            .with("comment", comment),
        Event::Warned { text, of_definition: true } => {
            PublicEvent::new("definition.warning").with("text", text)
        }
        Event::Warned { text, of_definition: false } => PublicEvent::new("session.warned").with("text", text),
        Event::Left { run, node, exit } => left(machines, *run, *node, *exit)?,
        Event::Removals(RemovalFact::Begun { how, by, .. }) => {
            PublicEvent::new("session.removed").with("how", how.word()).with("by", by)
        }
        Event::Paused { comment } => PublicEvent::new("session.paused").with("comment", comment),
        Event::Unpaused { comment } => PublicEvent::new("session.resumed").with("comment", comment),
        _ => return None,
    })
}

/// What moves inside a run.
fn flow(event: &Event, machines: &Machines) -> Option<PublicEvent> {
    let Event::Flow(flow) = event else { return None };
    Some(match flow {
        Flow::RunActivated { run } => PublicEvent::new("run.activated").with(RUN, run.0),
        Flow::ChildCreated { run, definition, version, parent, .. } => PublicEvent::new("run.started")
            .with(RUN, run.0)
            .with("definition", definition)
            .with("version", version)
            .with("parent", parent.run.0),
        Flow::MessagePosted { text, speaker } => posted(text, *speaker),
        Flow::Assisted { assistant } => {
            PublicEvent::new("session.assisted").with("assistant", &assistant.name)
        }
        Flow::TurnEnded { .. } => PublicEvent::new("turn.ended"),
        Flow::Signalled { .. } => PublicEvent::new("completion.signalled"),
        Flow::Wrote { key, value, .. } => {
            PublicEvent::new("data.recorded").with("key", key).with("value", &value.0)
        }
        Flow::Faulted { run, node, code, message } => PublicEvent::new("pass.failed")
            .with("state", if *run == intent::RUN { String::new() } else { machines.name(*run, *node) })
            .with("code", code)
            .with("message", message),
        Flow::Restarted { asked, .. } => PublicEvent::new("state.retried").with("asked", asked),
        Flow::ItemOpened { body, .. } => opened(body),
        Flow::EventRecorded { key, early, source, .. } => PublicEvent::new("event.recorded")
            .with("key", key)
            .with("source", source.label())
            .with("early", early.is_some()),
        Flow::Pending(fact) => pending::public_event(fact),
        Flow::Votes(fact) => return voted(fact),
        Flow::PageCodes(fact) => page_code(fact),
        Flow::GateEscalated { .. }
        | Flow::GateReminded { .. }
        | Flow::MailBounced { .. }
        | Flow::GateLapsed { .. } => return undecided(flow),
        Flow::ReplyRecorded(_) | Flow::ReplyAnswered { .. } => return replied(flow),
        Flow::GateAnswered { gate, by, answer, comment, via } => PublicEvent::new("task.completed")
            .with("gate", number(gate))
            .with("by", by)
            .with("via", via.word())
            .with("vouched_by", via.vouched_by(by))
            .with("answer", &answer.0)
            .with("comment", comment),
        Flow::WorkLeased { .. } | Flow::WorkReleased { .. } | Flow::WorkDone { .. } => return worked(flow),
        Flow::EffectFailed { .. }
        | Flow::EffectRetried { .. }
        | Flow::EffectDismissed { .. }
        | Flow::EffectDeferred { .. }
        | Flow::EffectHeld { .. } => return delivered(flow),
        Flow::Judged { judged, .. } => PublicEvent::new("guard.judged").with("holds", judged.holds),
        Flow::ChoicePending { .. } | Flow::ChoiceOver { .. } => return None,
        Flow::Rested { .. }
        | Flow::EarlyTaken { .. }
        | Flow::MessageRecorded { .. }
        | Flow::ItemClosed { .. }
        | Flow::Looped { .. } => {
            return None;
        }
        Flow::CalleesPinned { .. }
        | Flow::ReplyTokensBegun { .. }
        | Flow::AudienceSet { .. }
        | Flow::RemindersSet { .. }
        | Flow::ChildrenPlanned { .. }
        | Flow::ChildEnded { .. }
        | Flow::ChildrenJoined { .. } => return None,
    })
}

/// What happens at a gate while nobody decides.
fn undecided(flow: &Flow) -> Option<PublicEvent> {
    let of_gate = |kind, gate| PublicEvent::new(kind).with("gate", number(gate));
    if let Flow::GateEscalated { gate, to, .. } = flow {
        Some(of_gate("approval.escalated", gate).with("to", to.join(" ")))
    } else if let Flow::GateReminded { gate, to, .. } = flow {
        Some(of_gate("approval.reminded", gate).with("to", to.join(" ")))
    } else if let Flow::MailBounced { gate, to, message, proved } = flow {
        let public = of_gate("approval.undeliverable", gate).with("to", to).with("message", message);
        Some(public.with("proved", proved))
    } else if let Flow::GateLapsed { gate } = flow {
        Some(of_gate("approval.timed_out", gate))
    } else {
        None
    }
}

/// Somebody has approved, and it counts.
fn voted(fact: &VoteFact) -> Option<PublicEvent> {
    match fact {
        VoteFact::Cast { gate, vote, need } => {
            let public = PublicEvent::new("approval.voted").with("gate", number(gate)).with("by", &vote.by);
            let public =
                public.with("via", vote.via.word()).with("vouched_by", vote.via.vouched_by(&vote.by));
            let public = public.with("needed", need);
            Some(public.with("comment", &vote.comment))
        }
        VoteFact::Notified { gate, asked } => {
            let public = PublicEvent::new("approval.told").with("gate", number(gate));
            Some(public.with("to", asked.to.join(" ")))
        }
        VoteFact::QuorumSet { .. }
        | VoteFact::Needed { .. }
        | VoteFact::EscalationSet { .. }
        | VoteFact::Dropped { .. } => None,
    }
}

/// What becomes of an effect that cannot be delivered.
fn delivered(flow: &Flow) -> Option<PublicEvent> {
    if let Flow::EffectFailed { number, code, message } = flow {
        let public = PublicEvent::new("delivery.exhausted").with("number", number);
        Some(public.with("code", code).with("message", message))
    } else if let Flow::EffectRetried { number } = flow {
        Some(PublicEvent::new("delivery.retried").with("number", number))
    } else if let Flow::EffectDismissed { number } = flow {
        Some(PublicEvent::new("delivery.dismissed").with("number", number))
    } else if let Flow::EffectDeferred { number, until, code, message }
    | Flow::EffectHeld { number, until, code, message } = flow
    {
        let public = PublicEvent::new("delivery.deferred").with("number", number).with("until_ms", until.0);
        Some(public.with("code", code).with("message", message))
    } else {
        None
    }
}

/// What workers do.
fn worked(flow: &Flow) -> Option<PublicEvent> {
    if let Flow::WorkLeased { item, worker, until, again: false } = flow {
        let public = PublicEvent::new("work.leased").with("work", item.0).with("worker", worker);
        Some(public.with("until_ms", until.0))
    } else if let Flow::WorkReleased { item, lapsed } = flow {
        Some(PublicEvent::new("work.released").with("work", item.0).with("lapsed", lapsed))
    } else if let Flow::WorkDone { item, worker, wrong, .. } = flow {
        let public = PublicEvent::new("work.done").with("work", item.0).with("worker", worker);
        Some(public.with("wrong", wrong.as_deref().unwrap_or_default()))
    } else {
        None
    }
}

/// A node that is left by an exit that the format names: its guards, or its port.
fn left(machines: &Machines, run: RunId, node: NodeIx, exit: ExitIx) -> Option<PublicEvent> {
    let label = &machines.exit(run, node, exit)?.label;
    let public =
        PublicEvent::new("session.state_left").with("state", machines.name(run, node)).with("by", label);
    (!label.is_empty()).then_some(public)
}

fn opened(body: &OpenItemBody) -> PublicEvent {
    match body {
        OpenItemBody::Work { kind, owed } => PublicEvent::new("work.opened")
            .with("kind", kind.word())
            .with("input", shown(*kind, &owed.input.0)),
        OpenItemBody::Wait { on, due, .. } => {
            PublicEvent::new("wait.opened").with("for", on.word()).with("due_ms", due.0)
        }
        OpenItemBody::Timer { due, why } => {
            PublicEvent::new("timer.set").with("for", why.word()).with("due_ms", due.0)
        }
    }
}

fn ended(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Completed => "session.completed",
        Outcome::Blocked => "session.blocked",
        Outcome::Failed => "session.failed",
        Outcome::Cancelled => "session.cancelled",
        Outcome::Abandoned => "session.abandoned",
    }
}

fn page_code(PageCodeFact { gate, to, step }: &PageCodeFact) -> PublicEvent {
    let kind = match step {
        PageCodeStep::Sent => "approval.code_sent",
        PageCodeStep::Refused => "approval.code_refused",
        PageCodeStep::Accepted => "approval.code_accepted",
    };
    PublicEvent::new(kind).with("gate", number(gate)).with("to", to)
}

#[expect(clippy::wildcard_enum_match_arm, reason = "an event that no reader needs is shown to none")]
fn gates(event: &Event) -> Option<PublicEvent> {
    Some(match event {
        Event::GateOpened { gate, body, .. } => {
            let kind = match body.kind {
                GateKind::Notify | GateKind::ToolAsk | GateKind::Approval => "approval.requested",
                GateKind::Task => "task.created",
            };
            let public = PublicEvent::new(kind).with("gate", number(gate)).with("kind", body.kind.word());
            let public = public.with("requester", &body.requester);
            let to = body.asked.as_ref().map(|asked| asked.to.join(" ")).unwrap_or_default();
            let public = public.with("to", to);
            match &body.call {
                Some(call) => public.with("capability", &call.capability).with("args_digest", call.digest),
                None => {
                    public.with("digest", body.shown().map(|digest| digest.to_string()).unwrap_or_default())
                }
            }
        }
        Event::GateClosed { gate, decision, by, comment, via } => PublicEvent::new("approval.decided")
            .with("gate", number(gate))
            .with("decision", decision.word())
            .with("by", by)
            .with("via", if matches!(via, Via::Mail | Via::Vouched) { via.word() } else { "" })
            .with("vouched_by", via.vouched_by(by))
            .with("link_auth", via.link_auth().map_or("", LinkAuth::word))
            .with("comment", comment),
        Event::GateDiscussed { gate, by, comment } => PublicEvent::new("approval.discussed")
            .with("gate", number(gate))
            .with("by", by)
            .with("comment", comment),
        Event::Voided { gates, .. } if !gates.is_empty() => {
            let list: Vec<String> = gates.iter().map(number).collect();
            PublicEvent::new("approval.voided").with("gates", list.join(" "))
        }
        _ => return None,
    })
}

#[expect(clippy::wildcard_enum_match_arm, reason = "an event that no reader needs is shown to none")]
fn usage(event: &Event) -> Option<PublicEvent> {
    Some(match event {
        Event::Metered { cost, tokens } if cost.0 > 0 || *tokens > 0 => {
            PublicEvent::new("usage.reported").with("cost_usd", cost).with("tokens", tokens)
        }
        Event::BudgetExhausted { unit: BudgetUnit::UsdMicros, cap } => {
            PublicEvent::new("budget.exhausted").with("cap_usd", Micros(*cap))
        }
        Event::BudgetExhausted { unit: BudgetUnit::Mails, cap } => {
            PublicEvent::new("budget.exhausted").with("cap_mails", cap)
        }
        Event::CapRaised { value, .. } => PublicEvent::new("cap.raised").with("value", value),
        Event::EffectQueued { effect } => match &effect.body {
            crate::EffectBody::Notice { gate, kind, subject } => PublicEvent::new("effect.queued")
                .with("number", effect.number)
                .with("kind", "notice")
                .with("gate", number(gate))
                .with("gate_kind", kind.word())
                .with("subject", subject)
                .with("traceparent", effect.trace.as_deref().unwrap_or_default()),
            crate::EffectBody::Message { channel, to, subject, .. } => PublicEvent::new("effect.queued")
                .with("number", effect.number)
                .with("kind", channel.word())
                .with("to", to)
                .with("subject", subject.as_deref().unwrap_or_default())
                .with("traceparent", effect.trace.as_deref().unwrap_or_default()),
            crate::EffectBody::Confirm { .. }
            | crate::EffectBody::Settle { .. }
            | crate::EffectBody::Publish { .. } => return None,
        },
        _ => return None,
    })
}

/// What readers of a history see of a worker's input: of a request its method and its destination, because its headers,
/// its query and its body may hold secrets.
fn shown(kind: WorkKind, input: &Value) -> Value {
    match kind {
        WorkKind::Http => {
            let url = input.get("url").and_then(Value::as_str).unwrap_or_default();
            let url = url.split(['?', '#']).next().unwrap_or_default();
            let url = url.rsplit_once('@').map_or(url, |(_, rest)| rest);
            json!({ "method": input.get("method"), "url": url })
        }
        WorkKind::Agent
        | WorkKind::Extract
        | WorkKind::Judge
        | WorkKind::Classify
        | WorkKind::Delegate
        | WorkKind::Intent => input.clone(),
    }
}
