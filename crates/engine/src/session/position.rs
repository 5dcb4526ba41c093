//! Where a session stands after a command, for the answer to its caller; see [`Position`].

use minicbor::{Decode, Encode};
use std::sync::Arc;
use switchward_machine::{
    BudgetUnit, Content, Machine, Node, OpenId, RunId, SessionId, Status, TenantId, Text,
};
use switchward_state::approval::{ApprovalEvent, MailKey, OpenGate};
use switchward_state::run::Run;
use switchward_state::session::{
    GatePosition, ItemPosition, Listening, Loaded, Position, ReplyToken, ReplyTokens, RunPosition, Session,
    SessionEvent, SessionWarning,
};
use switchward_state::{
    Event, ItemKind, OpenItem, ReadRows, Reply, Scope as About, SharedMachine, SharedRow, View, ViewError,
    machine_bytes,
};

use crate::approval::reach::Reach;
use crate::policy::in_force::in_force;
use crate::policy::machine_of;
use crate::run::scope::Scope;
use crate::turn::{Stop, Turn};

/// A run on the way to the active leaf.
struct Active {
    id: RunId,
    run: SharedRow<Run>,
    machine: Arc<Machine>,
}

impl Active {
    fn node(&self) -> Option<&Node> {
        self.machine.node(self.run.node)
    }

    fn position(&self, session: &Session) -> RunPosition {
        let machine = (self.run.machine != session.machine).then_some(self.run.machine);
        RunPosition { machine, node: self.run.node }
    }
}

/// Where the turn's session stands now; `None` if there is no such session any more.
pub(crate) fn of(turn: &Turn<'_, '_>) -> Result<Option<Position>, Stop> {
    let (tenant, id) = (turn.tenant(), turn.session_id()?);
    let Some(session) = turn.rows.session(tenant, id)? else { return Ok(None) };
    if session.removal.is_some() {
        return Ok(None);
    }
    let active = active(turn.rows, tenant, id, session.root)?;
    let (Some(root), Some(leaf)) = (active.first(), active.last()) else { return Ok(None) };
    let ended = session.status.ended();
    let caps = in_force(turn.rows, tenant, id, &session, leaf.id)?.caps;
    let cap = |unit| caps.iter().filter(|cap| cap.budget.unit == unit).map(|cap| cap.value).min();
    let listening = |one: &&Active| !ended && session.reply_tenant.is_some() && listens(one);
    Ok(Some(Position {
        sequence: session.sequence,
        status: session.status,
        reason: session.reason.clone(),
        updated: turn.now(),
        ended: session.ended,
        root: root.position(&session),
        leaf: (active.len() > 1).then(|| leaf.position(&session)),
        opening: leaf.run.entry <= 1 && !ended,
        text: text(turn, leaf, ended)?,
        takes_answers: session.status == Status::Waiting && leaf.run.held.is_none(),
        gates: gates(turn, &session, &active)?,
        items: items(turn, &session, &active)?,
        voided: turn.events.iter().flat_map(voided).copied().collect(),
        warnings: turn.events.iter().filter_map(warning).collect(),
        meters: session.meters,
        usd_cap: cap(BudgetUnit::UsdMicros),
        mail_cap: cap(BudgetUnit::Mails),
        listens: active
            .iter()
            .rev()
            .find(listening)
            .map(|one| Listening { run: one.id, entry: one.run.entry }),
        loaded: Loaded::default(),
    }))
}

fn listens(one: &Active) -> bool {
    one.node().is_some_and(Node::listens_to_events)
}

/// The root run, the child that it waits for, and so on.
fn active(
    rows: &dyn ReadRows,
    tenant: TenantId,
    id: SessionId,
    root: RunId,
) -> Result<Vec<Active>, ViewError> {
    let (mut active, mut next) = (Vec::new(), Some(root));
    while let Some(run) = next {
        let row = rows.run(tenant, id, run)?;
        let machine = machine_of(rows, tenant, &row)?;
        active.push(Active { id: run, run: row, machine });
        next = rows.child(tenant, id, run)?;
    }
    Ok(active)
}

/// The text of the leaf's node with the data in it, if that is another one than its source.
fn text(turn: &Turn<'_, '_>, leaf: &Active, ended: bool) -> Result<Option<String>, Stop> {
    let Some(node) = leaf.node().filter(|node| !ended || node.exits.is_empty()) else { return Ok(None) };
    let Some(source) = node.text.as_ref().filter(|source| source.contains('{')) else { return Ok(None) };
    let text = Text { source: source.clone(), dialect: node.dialect };
    // A text that cannot be rendered is shown as it was written.
    let shown = Scope::of_run(turn, leaf.id)?.text(&text, Content::Text).ok();
    Ok(shown.filter(|shown| shown != source))
}

fn gates(turn: &Turn<'_, '_>, session: &Session, active: &[Active]) -> Result<Vec<GatePosition>, Stop> {
    let mut gates = Vec::new();
    for id in session.gates() {
        let Some(open) = turn.rows.gate_at(&turn.item_key(id)?)? else { continue };
        let reach = Reach::of(turn.rows, turn.tenant(), turn.session_id()?, &open)?;
        gates.push(GatePosition { unnotified: reach.unnotified, ..gate(id, &open, active) });
    }
    Ok(gates)
}

/// What is open of these runs beside gates.
fn items(turn: &Turn<'_, '_>, session: &Session, active: &[Active]) -> Result<Vec<ItemPosition>, Stop> {
    let mut items = Vec::new();
    for listed in session.items.iter().filter(|listed| listed.kind != ItemKind::Gate) {
        let Some(of) = active.iter().find(|one| one.id == listed.run) else { continue };
        let row = turn.rows.item_at(&turn.item_key(listed.item)?)?;
        items.extend(row.map(|item| self::item(&item, &of.machine)));
    }
    Ok(items)
}

fn item(item: &OpenItem, machine: &Machine) -> ItemPosition {
    let (kind, of, head) = (item.kind().word().to_owned(), item.type_word().to_owned(), item.head());
    let state = machine.node(head.node).map(|node| node.name.clone()).unwrap_or_default();
    ItemPosition { kind, of, state, at: head.at, due: item.due() }
}

fn gate(id: OpenId, open: &OpenGate, active: &[Active]) -> GatePosition {
    let of = active.iter().find(|one| one.id == open.head.run);
    let node = of.and_then(|one| one.machine.node(open.head.node));
    let asked = open.body.asked.as_ref();
    let voting = asked.and_then(|asked| asked.voting.as_ref());
    GatePosition {
        gate: id,
        kind: open.body.kind,
        state: node.map(|node| node.name.clone()).unwrap_or_default(),
        capability: open.body.call.as_ref().map(|call| call.capability.clone()),
        shown: open.body.shown(),
        at: open.head.at,
        to: asked.map(|asked| asked.to.clone()).unwrap_or_default(),
        open: asked.is_some_and(|asked| asked.open),
        needed: voting.map_or(0, |voting| voting.need),
        approvals: voting.map_or(0, |voting| u32::try_from(voting.votes.len()).unwrap_or(u32::MAX)),
        unnotified: false,
    }
}

/// The gates that an event closes without a decision.
fn voided(event: &Event) -> &[OpenId] {
    if let Event::Approval(ApprovalEvent::Voided { gates, .. }) = event { gates } else { &[] }
}

/// What an event warns of that the caller of a start chose.
fn warning(event: &Event) -> Option<SessionWarning> {
    match event {
        Event::Session(SessionEvent::Warned { warning }) if !warning.is_of_definition() => {
            Some(warning.clone())
        }
        Event::Session(_)
        | Event::Run(_)
        | Event::Approval(_)
        | Event::Work(_)
        | Event::Delivery(_)
        | Event::Policy(_)
        | Event::Catalogue(_) => None,
    }
}

/// Puts what is at hand into a reply that holds a position, so that its caller need not read it.
pub(crate) fn load(
    rows: &dyn ReadRows,
    tenant: TenantId,
    scope: &About,
    reply: &mut Reply,
) -> Result<(), ViewError> {
    let (About::Session(id), Some(position)) = (scope, reply.position_mut()) else { return Ok(()) };
    let loaded = loaded(rows, tenant, *id, position)?;
    position.loaded = Loaded(loaded.map(|rows| Arc::new(rows) as Arc<_>));
    Ok(())
}

/// The rows that complete a position.
#[derive(Clone)]
struct LoadedRows {
    session: SharedRow<Session>,
    /// The root run's machine.
    root: Arc<Machine>,
    /// The leaf's machine, if it is not the root run.
    leaf: Option<Arc<Machine>>,
    /// What reply tokens are made with, if a node listens.
    key: Option<MailKey>,
}

fn loaded(
    rows: &dyn ReadRows,
    tenant: TenantId,
    id: SessionId,
    position: &Position,
) -> Result<Option<LoadedRows>, ViewError> {
    let Some(session) = rows.session(tenant, id)? else { return Ok(None) };
    if session.is_hidden() {
        return Ok(None);
    }
    let machine = |of: RunPosition| rows.machine(tenant, of.machine.unwrap_or(session.machine));
    let Some(root) = machine(position.root)? else { return Ok(None) };
    let leaf = position.leaf.map(machine).transpose()?.flatten();
    let key = if position.listens.is_some() { rows.mail_keys(tenant)?.into_iter().next() } else { None };
    Ok(Some(LoadedRows { session, root, leaf, key }))
}

/// A position, with all that is needed to show it.
#[derive(Clone, Encode, Decode)]
pub struct PositionView {
    /// The session that is shown.
    #[n(0)]
    pub id: SessionId,
    /// Its row, for what never changes of it.
    #[n(1)]
    pub session: SharedRow<Session>,
    /// The root run's machine.
    #[cbor(n(2), with = "machine_bytes")]
    pub machine: Arc<Machine>,
    /// Where the session stood, from the command's reply.
    #[n(3)]
    pub position: Position,
    /// The leaf's machine, if it is not the root run.
    #[n(4)]
    pub leaf: Option<SharedMachine>,
    /// The text of the leaf's node with the session's reply tokens, if it has some.
    #[n(5)]
    pub text: Option<String>,
    /// What somebody outside needs to send an event to the session.
    #[n(6)]
    pub reply_token: Option<ReplyToken>,
}

/// Completes a position that came without rows. `None` if the session is gone by now.
///
/// # Errors
/// A row cannot be read.
pub fn position_view(
    view: &dyn View,
    tenant: TenantId,
    id: SessionId,
    position: Position,
) -> Result<Option<PositionView>, ViewError> {
    let loaded = loaded(view, tenant, id, &position)?;
    Ok(loaded.map(|rows| PositionView::with(id, position, rows)))
}

impl PositionView {
    /// Completes a position with the rows that it came with.
    ///
    /// # Errors
    /// It came without rows; it is given back.
    pub fn at_hand(id: SessionId, mut position: Position) -> Result<Self, Box<Position>> {
        match position.loaded.0.take().and_then(|rows| rows.downcast::<LoadedRows>().ok()) {
            Some(rows) => Ok(Self::with(id, position, Arc::unwrap_or_clone(rows))),
            None => Err(Box::new(position)),
        }
    }

    fn with(id: SessionId, position: Position, rows: LoadedRows) -> Self {
        let LoadedRows { session, root, leaf, key } = rows;
        let (name, leaf) = (session.reply_tenant.clone(), leaf.map(SharedMachine));
        let (text, reply_token) = (None, None);
        let view = Self { id, session, machine: root, position, leaf, text, reply_token };
        let Some((name, key)) = name.zip(key) else { return view };
        let reply_token = view.position.listens.map(|at| key.reply_token(&name, id, at.run, at.entry));
        let tokens = ReplyTokens::of_session_with(name, id, vec![key]);
        let text = view.source().and_then(|text| tokens.put_into(text));
        Self { text, reply_token, ..view }
    }

    /// The text of the leaf's node, in which reply tokens may stand as marks.
    fn source(&self) -> Option<&str> {
        let ended = self.position.status.ended();
        let node = self.node().filter(|node| !ended || node.exits.is_empty());
        self.position.text.as_deref().or(node.and_then(|node| node.text.as_deref()))
    }

    fn leaf(&self) -> (&Machine, RunPosition) {
        match (&self.leaf, self.position.leaf) {
            (Some(machine), Some(at)) => (machine, at),
            (Some(_) | None, _) => (&self.machine, self.position.root),
        }
    }

    /// The node that the active leaf stands at, or ended in.
    #[must_use]
    pub fn node(&self) -> Option<&Node> {
        let (machine, at) = self.leaf();
        machine.node(at.node)
    }

    /// The name of the node that the root run stands at, or ended in.
    #[must_use]
    pub fn at(&self) -> &str {
        self.machine.node(self.position.root.node).map_or("", |node| node.name.as_str())
    }

    /// The format's own word for its status.
    #[must_use]
    pub fn word(&self) -> &str {
        let words = &self.machine.words;
        if self.position.gates.is_empty() {
            words.word(self.position.status)
        } else {
            words.word_at_gate(self.position.status)
        }
    }

    /// What the agent is shown: the text put before the first turn, and the question or the instructions.
    #[must_use]
    pub fn shows(&self) -> (Option<&str>, Option<String>) {
        let (machine, _) = self.leaf();
        let opening = machine.opening.text.as_deref().filter(|_| self.position.opening);
        (opening, self.text.clone().or_else(|| self.source().map(str::to_owned)))
    }

    /// The answers that it takes now.
    pub fn answers(&self) -> impl Iterator<Item = &str> {
        let node = self.node().filter(|_| self.position.takes_answers);
        node.into_iter().flat_map(|node| node.answers())
    }

    /// What somebody outside needs to send an event to its state; `None` if it takes none.
    #[must_use]
    pub fn reply_token(&self) -> Option<&ReplyToken> {
        self.reply_token.as_ref()
    }
}
