//! What a caller is shown of a session.

use minicbor::{Decode, Encode};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use switchward_expr::Fuel;
use switchward_machine::{
    Content, Machine, Node, NodeIx, OpenId, Recipient, RunId, SessionId, Status, TenantId, Text,
    reserved_keys::REPLY_TOKEN,
};
use switchward_state::approval::{Setting, SettingSource, Settled};
use switchward_state::delivery::Effect;
use switchward_state::limits::{ACTIVE_RUNS_SHOWN_MAX, INCIDENTS_SHOWN_MAX, OPEN_SHOWN_MAX};
use switchward_state::run::{ActiveRuns, Data, Provenance, Run, object};
use switchward_state::session::{ReplyToken, Session};
use switchward_state::{
    ItemKind, Key, Kind, ListedItem, OpenItem, ReadRows, Row, SharedRow, View, ViewError, machine_bytes,
};

use crate::policy::machine_of;
use crate::run::address::Active;
use crate::run::scope::{Scope, read_by};
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
    /// The only child that the root run waits for, the only one that this one waits for, and so on; mostly none.
    #[n(5)]
    pub below: Vec<Below>,
    /// What is open of all active runs beside gates, oldest first; of more than [`OPEN_SHOWN_MAX`], the oldest.
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
    /// What wrote the root run's data, by their keys, where that is kept.
    #[cbor(n(20), skip_if = "BTreeMap::is_empty")]
    pub provenance: BTreeMap<String, Provenance>,
    /// The runs that are active side by side. If there are any, no question and no answers are shown: they would be of one
    /// of them.
    #[cbor(n(11), default, skip_if = "ActiveRuns::is_empty")]
    pub active: ActiveRuns,
    /// The names of the nodes at which something is open, of runs that have a name of their own, or are neither the root run
    /// nor in `below`.
    #[cbor(n(12), default, skip_if = "Vec::is_empty")]
    pub names: Vec<NodeName>,
}

/// The name of a node of a run.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct NodeName {
    /// The run's number in the session.
    #[n(0)]
    pub run: RunId,
    /// The node in the run's machine.
    #[n(1)]
    pub node: NodeIx,
    /// What its definition calls it, or the run's own name if it is one of several children.
    #[n(2)]
    pub name: String,
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
    /// The run that commands are about which name nothing open, with its machine and its data: the only active leaf. If
    /// several runs are active, the one that waits for them.
    fn leaf(&self) -> (&Run, &Machine, &Map<String, Value>) {
        match self.below.last() {
            Some(leaf) => (&leaf.run, &leaf.machine, &leaf.data),
            None => (&self.run, &self.machine, &self.data),
        }
    }

    fn token_of_leaf(&self) -> Option<ReplyToken> {
        self.token_of(self.below.last().map_or(self.session.root, |leaf| leaf.id))
    }

    /// The node that the only active leaf stands at, or ended in; `None` if several runs are active.
    #[must_use]
    pub fn node(&self) -> Option<&Node> {
        if !self.active.is_empty() {
            return None;
        }
        let (run, machine, _) = self.leaf();
        machine.node(run.node)
    }

    /// The name of a node of the root run or one in `below`, or of another run that has something open there.
    #[must_use]
    pub fn name_of(&self, run: RunId, node: NodeIx) -> &str {
        if let Some(known) = self.names.iter().find(|known| known.run == run && known.node == node) {
            return &known.name;
        }
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
        let shown = self.active.is_empty() && run.entry <= 1 && !ended;
        let opening = machine.opening.text.as_deref().filter(|_| shown);
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
    /// that events are for; `None` if they are for none, if several runs are active, and at the end.
    #[must_use]
    pub fn reply_token(&self) -> Option<ReplyToken> {
        if self.session.status.ended() || !self.active.is_empty() {
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
    let Data { values: data, provenance } =
        if erased { Data::default() } else { data_of(rows, tenant, id, session.root)? };
    let items = items_of(rows, tenant, id, &session)?;
    let below = below(rows, tenant, id, session.root)?;
    let leaf = below.last().map_or(session.root, |below| below.id);
    let active = Active::of(rows, tenant, id, &session).shown(ACTIVE_RUNS_SHOWN_MAX)?;
    let unnamed = |below: &Below, run: RunId| below.id == run && below.run.frame.is_none();
    let known = |run: RunId| run == session.root || below.iter().any(|below| unnamed(below, run));
    let others = session.items.iter().filter(|listed| !known(listed.run));
    let names = names(rows, tenant, id, others)?;
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
        tokens,
        provenance,
        active,
        names,
    }))
}

/// The only child of a run, the only child of this one, and so on.
fn below(rows: &dyn ReadRows, tenant: TenantId, id: SessionId, root: RunId) -> Result<Vec<Below>, ViewError> {
    let mut below: Vec<Below> = Vec::new();
    let mut next = root;
    loop {
        let at = rows.run(tenant, id, next)?;
        let [child] = rows.children(tenant, id, next, &at, 2)?[..] else { return Ok(below) };
        let run = rows.run(tenant, id, child)?;
        let (machine, data) = (machine_of(rows, tenant, &run)?, data_of(rows, tenant, id, child)?.values);
        below.push(Below { id: child, run: Run::clone(&run), machine, data });
        next = child;
    }
}

/// The names of the nodes at which these items are open; of a run that is one of several children, its own name.
fn names<'i>(
    rows: &dyn ReadRows,
    tenant: TenantId,
    id: SessionId,
    items: impl Iterator<Item = &'i ListedItem>,
) -> Result<Vec<NodeName>, ViewError> {
    let mut names: Vec<NodeName> = Vec::new();
    for listed in items.take(OPEN_SHOWN_MAX) {
        let Some(item) = rows.item_at(&Key::item(tenant, id, listed.item))? else { continue };
        let (run, node) = (item.head().run, item.head().node);
        if names.last().is_some_and(|known| known.run == run && known.node == node) {
            continue;
        }
        let at = rows.run(tenant, id, run)?;
        let name = match &at.frame {
            Some(frame) => frame.label.clone(),
            None => {
                let machine = machine_of(rows, tenant, &at)?;
                machine.node(node).map(|node| node.name.clone()).unwrap_or_default()
            }
        };
        names.push(NodeName { run, node, name });
    }
    Ok(names)
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

fn data_of(rows: &dyn ReadRows, tenant: TenantId, id: SessionId, run: RunId) -> Result<Data, ViewError> {
    let provenance = rows.data_at(&Key::data(tenant, id, run))?.map(|data| data.provenance.clone());
    Ok(Data { values: read_by(rows, tenant, id, run)?, provenance: provenance.unwrap_or_default() })
}

fn items_of(
    rows: &dyn ReadRows,
    tenant: TenantId,
    id: SessionId,
    session: &Session,
) -> Result<Vec<(OpenId, OpenItem)>, ViewError> {
    let mut items = Vec::new();
    let listed = session.items.iter().filter(|listed| listed.kind != ItemKind::Gate);
    for listed in listed.take(OPEN_SHOWN_MAX) {
        let row = rows.item_at(&Key::item(tenant, id, listed.item))?;
        items.extend(row.map(|row| (listed.item, OpenItem::clone(&row))));
    }
    Ok(items)
}
