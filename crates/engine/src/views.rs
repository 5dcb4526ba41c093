//! What a caller is shown of a session.

use serde_json::{Map, Value};
use std::ops::ControlFlow;
use std::sync::Arc;
use switchward_machine::{
    Content, Machine, Node, NodeIx, OpenId, Recipient, RunId, SessionId, Status, TenantId, Text, WorkKind,
    reserved_keys::REPLY_TOKEN,
};
use switchward_state::approval::{MailKey, Setting, SettingSource, Settled};
use switchward_state::delivery::{Effect, EffectSource};
use switchward_state::limits::{INCIDENTS_SHOWN_MAX, RUNS_SHOWN_MAX};
use switchward_state::run::Run;
use switchward_state::session::{Assisted, ReplyToken, Session};
use switchward_state::work::{Owed, WorkItem};
use switchward_state::{ItemHead, ItemKind, Key, Kind, OpenItem, Row, SharedRow, View, ViewError, Working};

use crate::policy::machine_of;
use crate::run::scope::Scope;
use crate::turn::settled;
use crate::work::leases::schema_of;

/// A session, with all that is needed to show it.
#[derive(Debug, Clone)]
pub struct SessionView {
    /// Which.
    pub id: SessionId,
    /// Its row.
    pub session: SharedRow<Session>,
    /// Its root run.
    pub run: SharedRow<Run>,
    /// The machine that it is pinned to.
    pub machine: Arc<Machine>,
    /// The root run's data.
    pub data: Map<String, Value>,
    /// The child that the root run waits for, the child that this one waits for, and so on; mostly none.
    pub below: Vec<Below>,
    /// What is open of all of them beside gates, oldest first.
    pub items: Vec<(OpenId, OpenItem)>,
    /// Its dead letters, each of which is an incident; of more than [`INCIDENTS_SHOWN_MAX`], the oldest.
    pub incidents: Vec<Effect>,
    /// What caps it, of its definition and of the policies that hold: unit and cap.
    pub caps: Vec<(switchward_machine::BudgetUnit, u64)>,
    /// What holds for the gates of its root run now.
    pub settled: Settled,
    /// What its reply tokens are made with, if it has some.
    mail_key: Option<MailKey>,
}

/// A run that another one waits for.
#[derive(Debug, Clone)]
pub struct Below {
    /// Which.
    pub id: RunId,
    /// Its row.
    pub run: Run,
    /// Its machine.
    pub machine: Arc<Machine>,
    /// Its data.
    pub data: Map<String, Value>,
}

impl SessionView {
    /// The run that commands are about which name nothing open, with its machine and its data: the active leaf.
    fn leaf(&self) -> (&Run, &Machine, &Map<String, Value>) {
        match self.below.last() {
            Some(leaf) => (&leaf.run, &leaf.machine, &leaf.data),
            None => (&self.run, &self.machine, &self.data),
        }
    }

    fn token_of_leaf(&self) -> Option<ReplyToken> {
        let (run, machine, _) = self.leaf();
        self.token_of(self.below.last().map_or(self.session.root, |leaf| leaf.id), run, machine)
    }

    /// The node that the active leaf stands at, or ended in.
    #[must_use]
    pub fn node(&self) -> Option<&Node> {
        let (run, machine, _) = self.leaf();
        machine.node(run.node)
    }

    /// The name of a node of a run that is active or the root.
    #[must_use]
    pub fn name_of(&self, run: RunId, node: NodeIx) -> &str {
        let below = self.below.iter().find(|below| below.id == run);
        let machine = below.map_or(&self.machine, |below| &below.machine);
        machine.node(node).map_or("", |node| node.name.as_str())
    }

    /// The name of the node that its root run stands at, or ended in.
    #[must_use]
    pub fn at(&self) -> &str {
        self.machine.node(self.run.node).map_or("", |node| node.name.as_str())
    }

    /// What the agent is shown: the text put before the first turn, and the question; at the end only the closing text of
    /// a final node.
    #[must_use]
    pub fn shows(&self) -> (Option<&str>, Option<String>) {
        let ended = self.session.status.ended();
        let (run, machine, _) = self.leaf();
        let opening = machine.opening.text.as_deref().filter(|_| run.entry <= 1 && !ended);
        let node = self.node().filter(|node| !ended || node.exits.is_empty());
        (opening, node.and_then(|node| self.text(node)))
    }

    /// A node's text with the data in it; as it was written if it cannot be rendered.
    fn text(&self, node: &Node) -> Option<String> {
        let source = node.text.as_ref()?;
        let text = Text { source: source.clone(), dialect: node.dialect };
        let (_, machine, data) = self.leaf();
        let token = self.token_of_leaf().filter(|_| machine.reserves(REPLY_TOKEN));
        let scope = Scope::of(data.clone()).with_token(token);
        Some(scope.text(&text, Content::Text).unwrap_or_else(|_| source.clone()))
    }

    /// What somebody outside needs to send an event to its state: of the active leaf, or else of the run nearest above it
    /// that events are for; `None` if they are for none, and at the end.
    #[must_use]
    pub fn reply_token(&self) -> Option<ReplyToken> {
        if self.session.status.ended() {
            return None;
        }
        let below = self.below.iter().rev().map(|below| (below.id, &below.run, &below.machine));
        let mut runs = below.chain([(self.session.root, &*self.run, &self.machine)]);
        runs.find_map(|(id, run, machine)| self.token_of(id, run, machine))
    }

    fn token_of(&self, id: RunId, run: &Run, machine: &Machine) -> Option<ReplyToken> {
        let (tenant, key) = (self.session.reply_tenant.as_ref()?, self.mail_key.as_ref()?);
        let listens = machine.node(run.node).is_some_and(Node::listens_to_events);
        listens.then(|| key.reply_token(tenant, self.id, id, run.entry))
    }

    /// The answers that it takes now: none at the end, and none while it is frozen or paused.
    pub fn answers(&self) -> impl Iterator<Item = &str> {
        let open = self.session.status == Status::Waiting && self.leaf().0.held.is_none();
        let node = self.node().filter(|_| open);
        node.into_iter().flat_map(|node| node.answers())
    }

    /// The format's own word for its status.
    #[must_use]
    pub fn word(&self) -> &str {
        let words = &self.machine.words;
        if self.session.gates().next().is_none() {
            words.word(self.session.status)
        } else {
            words.word_at_gate(self.session.status)
        }
    }

    /// The least cap on its money, in micros; `None` if there is none.
    #[must_use]
    pub fn usd_cap(&self) -> Option<u64> {
        self.cap(switchward_machine::BudgetUnit::UsdMicros)
    }

    /// The least cap of this unit, of its definition's and of the policies that hold; `None` if there is none.
    #[must_use]
    pub fn cap(&self, unit: switchward_machine::BudgetUnit) -> Option<u64> {
        self.caps.iter().filter(|(known, _)| *known == unit).map(|(_, value)| *value).min()
    }
}

/// A session of this tenant; `None` if there is none.
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
    if session.is_hidden() {
        return Ok(None);
    }
    let run = rows.run(tenant, id, session.root)?;
    let machine = machine_of(&rows, tenant, &run)?;
    let erased = session.is_erased();
    let data = if erased { Map::new() } else { data_of(&rows, tenant, id, session.root)? };
    let items = items_of(&rows, tenant, id, &session)?;
    let mut below: Vec<Below> = Vec::new();
    let mut leaf = session.root;
    while let Some(child) = rows.child(tenant, id, leaf)? {
        let run = rows.run(tenant, id, child)?;
        let (machine, data) = (machine_of(&rows, tenant, &run)?, data_of(&rows, tenant, id, child)?);
        below.push(Below { id: child, run: Run::clone(&run), machine, data });
        leaf = child;
    }
    let dead = if erased { 0 } else { session.outbox().dead };
    let incidents = dead_letters(view, tenant, id, usize::try_from(dead).unwrap_or(usize::MAX))?;
    let force = crate::policy::in_force(&rows, tenant, id, &session, leaf)?;
    let caps = force.caps.iter().map(|cap| (cap.budget.unit, cap.value)).collect();
    let mut settled = settled(&rows, tenant, id, &session, session.root)?;
    if settled.escalation.source == SettingSource::Unset {
        settled.escalation = own_contacts(&machine);
    }
    let listens = session.reply_tenant.is_some();
    let mail_key = if listens { rows.mail_keys(tenant)?.into_iter().next() } else { None };
    Ok(Some(SessionView {
        id,
        session,
        run,
        machine,
        data,
        below,
        items,
        incidents,
        caps,
        settled,
        mail_key,
    }))
}

/// Whom a definition itself names to be asked if nobody decides, as it is written there.
fn own_contacts(machine: &Machine) -> Setting<Vec<String>> {
    let mut value: Vec<String> = Vec::new();
    let rounds = machine.gates.iter().filter_map(|gate| gate.inquiry.as_ref()?.rounds.as_ref());
    for one in rounds.flat_map(|rounds| &rounds.to).map(Recipient::text) {
        if !value.iter().any(|known| *known == one) {
            value.push(one.into_owned());
        }
    }
    let source = if value.is_empty() { SettingSource::Unset } else { SettingSource::Definition };
    Setting { value, source }
}

/// The first dead letters of a session that has this many.
fn dead_letters(
    view: &dyn View,
    tenant: TenantId,
    id: SessionId,
    count: usize,
) -> Result<Vec<Effect>, ViewError> {
    let (wanted, mut found) = (count.min(INCIDENTS_SHOWN_MAX), Vec::new());
    if wanted == 0 {
        return Ok(found);
    }
    view.scan(&Key::prefix_of_session(tenant, id, Kind::Outbox), None, &mut |_, row| {
        if let Row::Outbox(effect) = &**row
            && effect.dead().is_some()
        {
            found.push(effect.clone());
        }
        if found.len() < wanted { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(found)
}

fn data_of(
    rows: &Working<'_>,
    tenant: TenantId,
    id: SessionId,
    run: RunId,
) -> Result<Map<String, Value>, ViewError> {
    let data = rows.data_at(&Key::data(tenant, id, run))?;
    Ok(data.map(|data| data.values.clone()).unwrap_or_default())
}

fn items_of(
    rows: &Working<'_>,
    tenant: TenantId,
    id: SessionId,
    session: &Session,
) -> Result<Vec<(OpenId, OpenItem)>, ViewError> {
    let mut items = Vec::new();
    for listed in session.items.iter().filter(|listed| listed.kind != ItemKind::Gate) {
        let row = rows.item_at(&Key::item(tenant, id, listed.item))?;
        items.extend(row.map(|row| (listed.item, OpenItem::clone(&row))));
    }
    Ok(items)
}

/// A run of a session, as its list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunView {
    /// Its number in the session, from 1.
    pub id: RunId,
    /// What it is a run of.
    pub definition: String,
    /// Its version.
    pub version: u32,
    /// What it is doing.
    pub status: Status,
    /// The node that it stands at, or ended in; empty if it has not begun.
    pub at: String,
    /// The run that has called it.
    pub parent: Option<RunId>,
}

/// The runs of a session, oldest first; of more than [`RUNS_SHOWN_MAX`], the newest.
///
/// # Errors
/// A row cannot be read.
pub fn run_views(view: &dyn View, tenant: TenantId, of: &SessionView) -> Result<Vec<RunView>, ViewError> {
    let rows = Working::new(view);
    let mut runs = Vec::new();
    let first = of.session.runs.saturating_sub(RUNS_SHOWN_MAX) + 1;
    for number in first..=of.session.runs {
        let run = RunId(number);
        let row = rows.run(tenant, of.id, run)?;
        let status = match &row.ending {
            Some(ending) => ending.outcome.status(),
            None if of.session.queue.contains(&run) => Status::Queued,
            None => of.session.status,
        };
        let machine = machine_of(&rows, tenant, &row)?;
        let node = machine.node(row.node).filter(|_| row.entry > 0);
        runs.push(RunView {
            id: run,
            definition: row.definition.clone(),
            version: row.version,
            status,
            at: node.map(|node| node.name.clone()).unwrap_or_default(),
            parent: row.parent.map(|parent| parent.run),
        });
    }
    Ok(runs)
}

/// Work of a session, with all that a worker needs.
#[derive(Debug, Clone)]
pub struct WorkView {
    /// Its number in the session.
    pub id: OpenId,
    /// Where it belongs, and since when it is open.
    pub head: ItemHead,
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
    /// The assistant that the session is with, if any.
    pub assistant: Option<Assisted>,
}

impl WorkView {
    /// The name by which a receiver outside can recognise repeats.
    #[must_use]
    pub fn name_outside(&self, session: SessionId) -> String {
        format!("{session}-{}", self.owed.known_as(self.id).0)
    }
}

/// Open work of a session of this tenant; `None` if there is none.
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
    let Some(open) = rows.work_at(&Key::item(tenant, session, work))? else { return Ok(None) };
    let (head, WorkItem { kind, owed }) = (open.head.clone(), open.body.clone());
    let run = rows.run(tenant, session, head.run)?;
    let machine = machine_of(&rows, tenant, &run)?;
    let data = data_of(&rows, tenant, session, head.run)?;
    let said = rows.said_at(&Key::said(tenant, session))?;
    Ok(Some(WorkView {
        id: work,
        kind,
        node: machine.node(head.node).map(|node| node.name.clone()).unwrap_or_default(),
        attempt: run.attempt,
        version: run.version,
        schema: schema_of(&machine, &run, &owed),
        data,
        said: said.map(|said| said.text.clone()),
        assistant: rows.session(tenant, session)?.and_then(|row| row.assistant.as_deref().cloned()),
        head,
        owed,
    }))
}

/// An effect for somebody outside that has not arrived.
#[derive(Debug, Clone)]
pub struct EffectView {
    /// Its row.
    pub effect: Effect,
    /// The name of the node that caused it.
    pub node: String,
}

/// An effect of a session of this tenant that goes outside; `None` if it has arrived or never was.
///
/// # Errors
/// A row cannot be read.
pub fn effect_view(
    view: &dyn View,
    tenant: TenantId,
    session: SessionId,
    number: u64,
) -> Result<Option<EffectView>, ViewError> {
    let rows = Working::new(view);
    if rows.session(tenant, session)?.is_some_and(|session| session.is_hidden()) {
        return Ok(None);
    }
    let found = rows.outbox_at(&Key::outbox(tenant, session, number))?;
    let Some(effect) = found.filter(|effect| !effect.body.inner()) else { return Ok(None) };
    let EffectSource::Run { run, node, .. } = effect.source else { return Ok(None) };
    let machine = machine_of(&rows, tenant, &*rows.run(tenant, session, run)?)?;
    let node = machine.node(node).map(|node| node.name.clone()).unwrap_or_default();
    Ok(Some(EffectView { effect: Effect::clone(&effect), node }))
}
