//! What a caller is shown of a session.

use minicbor::{Decode, Encode};
use serde_json::{Map, Value};
use std::ops::ControlFlow;
use std::sync::Arc;
use switchward_expr::Fuel;
use switchward_machine::{
    Content, Machine, Node, NodeIx, OpenId, Recipient, RunId, SessionId, Status, TenantId, Text,
    reserved_keys::REPLY_TOKEN,
};
use switchward_state::approval::{Setting, SettingSource, Settled};
use switchward_state::delivery::Effect;
use switchward_state::limits::INCIDENTS_SHOWN_MAX;
use switchward_state::run::{Run, object};
use switchward_state::session::{ReplyToken, Session};
use switchward_state::{
    ItemKind, Key, Kind, OpenItem, ReadRows, Row, SharedRow, View, ViewError, machine_bytes,
};

use crate::policy::machine_of;
use crate::run::scope::Scope;
use crate::turn::settled;

/// A session, with all that is needed to show it.
#[derive(Debug, Clone, Encode, Decode)]
pub struct SessionView {
    /// The session that is shown.
    #[n(0)]
    pub id: SessionId,
    /// The session as it is stored.
    #[n(1)]
    pub session: SharedRow<Session>,
    /// Its root run.
    #[n(2)]
    pub run: SharedRow<Run>,
    /// The machine that it is pinned to.
    #[cbor(n(3), with = "machine_bytes")]
    pub machine: Arc<Machine>,
    /// The root run's data.
    #[cbor(n(4), with = "object")]
    pub data: Map<String, Value>,
    /// The child that the root run waits for, the child that this one waits for, and so on; mostly none.
    #[n(5)]
    pub below: Vec<Below>,
    /// What is open of all of them beside gates, oldest first.
    #[n(6)]
    pub items: Vec<(OpenId, OpenItem)>,
    /// Its dead letters, each of which is an incident; of more than [`INCIDENTS_SHOWN_MAX`], the oldest.
    #[n(7)]
    pub incidents: Vec<Effect>,
    /// What caps it, of its definition and of the policies that hold: unit and cap.
    #[n(8)]
    pub caps: Vec<(switchward_machine::BudgetUnit, u64)>,
    /// What holds for the gates of its root run now.
    #[n(9)]
    pub settled: Settled,
    /// The reply tokens of the root run and of those below it whose nodes take events from outside.
    #[n(10)]
    pub tokens: Vec<(RunId, ReplyToken)>,
}

/// A run that another one waits for.
#[derive(Debug, Clone, Encode, Decode)]
pub struct Below {
    /// The run's number in the session.
    #[n(0)]
    pub id: RunId,
    /// Its row.
    #[n(1)]
    pub run: Run,
    /// The machine that the run is pinned to.
    #[cbor(n(2), with = "machine_bytes")]
    pub machine: Arc<Machine>,
    /// The run's data by the names of its fields.
    #[cbor(n(3), with = "object")]
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
        self.token_of(self.below.last().map_or(self.session.root, |leaf| leaf.id))
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
        let scope = Scope::of(data.clone(), &Fuel::unlimited()).with_token(token);
        Some(scope.text(&text, Content::Text).unwrap_or_else(|_| source.clone()))
    }

    /// What somebody outside needs to send an event to its state: of the active leaf, or else of the run nearest above it
    /// that events are for; `None` if they are for none, and at the end.
    #[must_use]
    pub fn reply_token(&self) -> Option<ReplyToken> {
        if self.session.status.ended() {
            return None;
        }
        let mut runs = self.below.iter().rev().map(|below| below.id).chain([self.session.root]);
        runs.find_map(|run| self.token_of(run))
    }

    fn token_of(&self, run: RunId) -> Option<ReplyToken> {
        self.tokens.iter().find(|(known, _)| *known == run).map(|(_, token)| token.clone())
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
    let rows: &dyn ReadRows = view;
    let Some(session) = rows.session(tenant, id)? else { return Ok(None) };
    if session.is_hidden() {
        return Ok(None);
    }
    let run = rows.run(tenant, id, session.root)?;
    let machine = machine_of(rows, tenant, &run)?;
    let erased = session.is_erased();
    let data = if erased { Map::new() } else { data_of(rows, tenant, id, session.root)? };
    let items = items_of(rows, tenant, id, &session)?;
    let mut below: Vec<Below> = Vec::new();
    let mut leaf = session.root;
    while let Some(child) = rows.child(tenant, id, leaf)? {
        let run = rows.run(tenant, id, child)?;
        let (machine, data) = (machine_of(rows, tenant, &run)?, data_of(rows, tenant, id, child)?);
        below.push(Below { id: child, run: Run::clone(&run), machine, data });
        leaf = child;
    }
    let dead = if erased { 0 } else { session.outbox().dead_letters };
    let incidents = dead_letters(view, tenant, id, usize::try_from(dead).unwrap_or(usize::MAX))?;
    let force = crate::policy::in_force(rows, tenant, id, &session, leaf)?;
    let caps = force.caps.iter().map(|cap| (cap.budget.unit, cap.value)).collect();
    let mut settled = settled(rows, tenant, id, &session, session.root)?;
    if settled.escalation.source == SettingSource::Unset {
        settled.escalation = own_contacts(&machine);
    }
    let runs = below.iter().map(|below| (below.id, &below.run, &*below.machine));
    let tokens = tokens(rows, tenant, id, &session, runs.chain([(session.root, &*run, &*machine)]))?;
    Ok(Some(SessionView { id, session, run, machine, data, below, items, incidents, caps, settled, tokens }))
}

/// The reply tokens of those of these runs whose nodes take events from outside.
fn tokens<'r>(
    rows: &dyn ReadRows,
    tenant: TenantId,
    id: SessionId,
    session: &Session,
    runs: impl Iterator<Item = (RunId, &'r Run, &'r Machine)>,
) -> Result<Vec<(RunId, ReplyToken)>, ViewError> {
    let Some(name) = &session.reply_tenant else { return Ok(Vec::new()) };
    let Some(key) = rows.mail_keys(tenant)?.into_iter().next() else { return Ok(Vec::new()) };
    let listens = |run: &Run, machine: &Machine| machine.node(run.node).is_some_and(Node::listens_to_events);
    let listening = runs.filter(|(_, run, machine)| listens(run, machine));
    Ok(listening.map(|(run, row, _)| (run, key.reply_token(name, id, run, row.entry))).collect())
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
            && effect.dead_letter().is_some()
        {
            found.push(effect.clone());
        }
        if found.len() < wanted { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(found)
}

fn data_of(
    rows: &dyn ReadRows,
    tenant: TenantId,
    id: SessionId,
    run: RunId,
) -> Result<Map<String, Value>, ViewError> {
    let data = rows.data_at(&Key::data(tenant, id, run))?;
    Ok(data.map(|data| data.values.clone()).unwrap_or_default())
}

fn items_of(
    rows: &dyn ReadRows,
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
