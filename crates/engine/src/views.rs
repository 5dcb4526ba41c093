//! What a caller is shown of a session and of a gate.

use serde_json::{Map, Value};
use std::sync::Arc;
use switchward_machine::{Machine, Node, OpenId, RunId, SessionId, Status, TenantId, Text, WorkKind};

use crate::commands::schema_of;
use crate::scope::Scope;
use crate::state::{Assisted, Closed, Open, Owed, Run, Session, Thing, ThingBody};
use crate::working::Working;
use crate::{Key, View, ViewError};

/// A session, with all that is needed to show it.
#[derive(Debug, Clone)]
pub struct SessionView {
    /// Which.
    pub id: SessionId,
    /// Its row.
    pub session: Session,
    /// Its root run.
    pub run: Run,
    /// The machine that it is pinned to.
    pub machine: Arc<Machine>,
    /// The root run's data.
    pub data: Map<String, Value>,
    /// What is open of the root run beside gates, oldest first.
    pub things: Vec<(OpenId, Thing)>,
}

/// A gate, open or closed.
#[derive(Debug, Clone)]
pub enum GateView {
    /// Somebody owes a decision.
    Open(Open),
    /// It was decided or voided.
    Closed(Closed),
}

impl SessionView {
    /// The name of the node that it stands at, or ended in.
    #[must_use]
    pub fn at(&self) -> &str {
        self.machine.node(self.run.node).map_or("", |node| node.name.as_str())
    }

    /// What the agent is shown: the text put before the first turn, and the question; nothing at the end but the
    /// closing text of a final node.
    #[must_use]
    pub fn shows(&self) -> (Option<&str>, Option<String>) {
        let ended = self.session.status.ended();
        let opening = self.machine.opening.text.as_deref().filter(|_| self.run.entry <= 1 && !ended);
        let node = self.machine.node(self.run.node).filter(|node| !ended || node.exits.is_empty());
        (opening, node.and_then(|node| self.text(node)))
    }

    /// A node's text with the data in it; as it was written where it cannot be rendered.
    fn text(&self, node: &Node) -> Option<String> {
        let source = node.text.as_ref()?;
        let text = Text { source: source.clone(), dialect: node.dialect };
        Some(Scope::of(self.data.clone()).text(&text, false).unwrap_or_else(|_| source.clone()))
    }

    /// The answers that it takes now: none at the end, and none while it is frozen or paused.
    pub fn answers(&self) -> impl Iterator<Item = &str> {
        let open = self.session.status == Status::Waiting && self.run.held.is_none();
        let node = self.machine.node(self.run.node).filter(|_| open);
        node.into_iter().flat_map(|node| node.answers())
    }

    /// The format's own word for its status.
    #[must_use]
    pub fn word(&self) -> &str {
        self.machine.words.word(self.session.status, !self.session.opens.is_empty())
    }

    /// The cap on its money, in micros, and nothing where there is none.
    #[must_use]
    pub fn usd_cap(&self) -> Option<u64> {
        let of = |unit: &&switchward_machine::Budget| unit.unit == switchward_machine::BudgetUnit::UsdMicros;
        self.machine
            .budgets
            .iter()
            .find(of)
            .map(|budget| crate::policy::cap_of(budget, &self.machine, &self.run))
    }
}

/// A session of this tenant; nothing where there is none.
///
/// # Errors
/// A row cannot be read.
pub fn session_view(
    view: &dyn View,
    tenant: TenantId,
    id: SessionId,
) -> Result<Option<SessionView>, ViewError> {
    let rows = Working::new(view);
    let Some(session) = rows.session(tenant, id)? else { return Ok(None) };
    let run = rows.run(tenant, id, session.root)?;
    let machine = rows.machine(tenant, run.machine)?;
    let machine = machine.ok_or_else(|| ViewError(format!("machine {} is not installed", run.machine)))?;
    let data = rows.data_at(&Key::data(tenant, id, session.root))?;
    let data = data.map(|data| data.values.clone()).unwrap_or_default();
    let mut things = Vec::new();
    for thing in &run.things {
        let row = rows.thing_at(&Key::thing(tenant, id, *thing))?;
        things.extend(row.map(|row| (*thing, Thing::clone(&row))));
    }
    let (session, run) = (Session::clone(&session), Run::clone(&run));
    Ok(Some(SessionView { id, session, run, machine, data, things }))
}

/// The runs of a session, oldest first: what each is a run of, and its status.
///
/// # Errors
/// A row cannot be read.
pub fn run_views(
    view: &dyn View,
    tenant: TenantId,
    of: &SessionView,
) -> Result<Vec<(String, Status)>, ViewError> {
    let rows = Working::new(view);
    let mut runs = Vec::new();
    for number in 1..=of.session.runs {
        let run = RunId(number);
        let row = rows.run(tenant, of.id, run)?;
        let status = match &row.ending {
            Some(ending) => ending.outcome.status(),
            None if of.session.queue.contains(&run) => Status::Queued,
            None => of.session.status,
        };
        runs.push((row.definition.clone(), status));
    }
    Ok(runs)
}

/// Work of a session, with all that a worker needs.
#[derive(Debug, Clone)]
pub struct WorkView {
    /// Its number in the session.
    pub id: OpenId,
    /// Its row.
    pub thing: Thing,
    /// What kind of work it is.
    pub kind: WorkKind,
    /// What the worker is handed, and who has it.
    pub owed: Owed,
    /// The name of its node.
    pub node: String,
    /// Which attempt of the node's body it belongs to, from 1.
    pub attempt: u32,
    /// The definition's version.
    pub version: u32,
    /// The JSON Schema of a result.
    pub schema: Value,
    /// The run's data.
    pub data: Map<String, Value>,
    /// The user's last message.
    pub said: Option<String>,
    /// The assistant that the session is with, where it is with one.
    pub assistant: Option<Assisted>,
}

/// Open work of a session of this tenant; nothing where there is none.
///
/// # Errors
/// A row cannot be read.
pub fn work_view(
    view: &dyn View,
    tenant: TenantId,
    session: SessionId,
    work: OpenId,
) -> Result<Option<WorkView>, ViewError> {
    let rows = Working::new(view);
    let Some(thing) = rows.thing_at(&Key::thing(tenant, session, work))? else { return Ok(None) };
    let ThingBody::Work { kind, owed } = thing.body.clone() else { return Ok(None) };
    let run = rows.run(tenant, session, thing.run)?;
    let machine = rows.machine(tenant, run.machine)?;
    let machine = machine.ok_or_else(|| ViewError(format!("machine {} is not installed", run.machine)))?;
    let data = rows.data_at(&Key::data(tenant, session, thing.run))?;
    let said = rows.said_at(&Key::said(tenant, session))?;
    Ok(Some(WorkView {
        id: work,
        kind,
        node: machine.node(thing.node).map(|node| node.name.clone()).unwrap_or_default(),
        attempt: run.attempt,
        version: run.version,
        schema: schema_of(&machine, &run, &owed),
        data: data.map(|data| data.values.clone()).unwrap_or_default(),
        said: said.map(|said| String::clone(&said)),
        assistant: rows.session(tenant, session)?.and_then(|row| row.assistant.clone()),
        thing: Thing::clone(&thing),
        owed,
    }))
}

/// A gate of a session of this tenant; nothing where there is none.
///
/// # Errors
/// A row cannot be read.
pub fn gate_view(
    view: &dyn View,
    tenant: TenantId,
    session: SessionId,
    gate: OpenId,
) -> Result<Option<GateView>, ViewError> {
    let rows = Working::new(view);
    if let Some(open) = rows.open(tenant, session, gate)? {
        return Ok(Some(GateView::Open(Open::clone(&open))));
    }
    let closed = rows.closed_at(&crate::Key::closed(tenant, session, gate))?;
    Ok(closed.map(|closed| GateView::Closed(Closed::clone(&closed))))
}
