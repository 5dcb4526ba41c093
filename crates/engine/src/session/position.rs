//! Where a session stands after a command, for the answer to its caller; see [`Position`].

use std::sync::Arc;
use switchward_machine::{
    BudgetUnit, Content, Machine, Node, NodeIx, OpenId, RunId, SessionId, Status, TenantId, Text,
};
use switchward_state::approval::{ApprovalEvent, MailKey, OpenGate};
use switchward_state::limits::{ACTIVE_RUNS_SHOWN_MAX, OPEN_SHOWN_MAX};
use switchward_state::run::{ActiveRuns, Run};
use switchward_state::session::{
    GatePosition, ItemPosition, Listening, Position, ReplyToken, ReplyTokens, RunPosition, Session,
    SessionEvent, SessionWarning,
};
use switchward_state::{Event, ItemKind, Loaded, ReadRows, Reply, Scope as About, SharedRow, ViewError};

use crate::approval::reach::Reach;
use crate::loaded::{InstalledMachine, LoadedRows, PositionRows};
use crate::policy::in_force::{documents, least_caps};
use crate::policy::machine_of;
use crate::run::scope::Scope;
use crate::session::shown::{AnsweredSession, ShownSession};
use crate::turn::{Stop, Turn};

/// A run on the way to the only active leaf, or to the run that waits for several children.
struct Link {
    id: RunId,
    run: SharedRow<Run>,
    machine: Arc<Machine>,
}

impl Link {
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
    let chain = chain(turn.rows, tenant, id, session.root)?;
    let (Some(root), Some(leaf)) = (chain.first(), chain.last()) else { return Ok(None) };
    let one = turn.rows.children(tenant, id, leaf.id, &leaf.run, 1)?.is_empty();
    let active =
        if one { ActiveRuns::default() } else { turn.active(&session)?.shown(ACTIVE_RUNS_SHOWN_MAX)? };
    let ended = session.status.ended();
    let units = [BudgetUnit::UsdMicros, BudgetUnit::Mails];
    let documents = documents(turn.rows, tenant, id, &session, &leaf.run)?;
    let [usd_cap, mail_cap] = least_caps(&root.run, &root.machine, &documents, units);
    let listening = |link: &&Link| one && !ended && session.reply_tenant.is_some() && listens(link);
    Ok(Some(Position {
        sequence: session.sequence,
        status: session.status,
        reason: session.reason,
        updated: turn.now(),
        ended: session.ended,
        root: root.position(&session),
        leaf: (one && chain.len() > 1).then(|| leaf.position(&session)),
        opening: one && leaf.run.entry <= 1 && !ended,
        text: if one { text(turn, leaf, ended)? } else { None },
        takes_answers: one && session.status == Status::Waiting && leaf.run.held.is_none(),
        gates: gates(turn, &session, &chain)?,
        items: items(turn, &session, &chain)?,
        voided: turn.events.iter().flat_map(voided).copied().collect(),
        warnings: turn.events.iter().filter_map(warning).collect(),
        meters: session.meters,
        usd_cap,
        mail_cap,
        listens: chain
            .iter()
            .rev()
            .find(listening)
            .map(|link| Listening { run: link.id, entry: link.run.entry }),
        active,
        loaded: Loaded::default(),
    }))
}

fn listens(link: &Link) -> bool {
    link.node().is_some_and(Node::listens_to_events)
}

/// The root run, its only child, and so on.
fn chain(rows: &dyn ReadRows, tenant: TenantId, id: SessionId, root: RunId) -> Result<Vec<Link>, ViewError> {
    let (mut chain, mut next) = (Vec::new(), Some(root));
    while let Some(run) = next {
        let row = rows.run(tenant, id, run)?;
        let machine = machine_of(rows, tenant, &row)?;
        let children = rows.children(tenant, id, run, &row, 2)?;
        next = if let [only] = children[..] { Some(only) } else { None };
        chain.push(Link { id: run, run: row, machine });
    }
    Ok(chain)
}

/// The name of a node of a run, or the run's own name if it is one of several children; empty if it has none.
fn state_of(turn: &Turn<'_, '_>, chain: &[Link], run: RunId, node: NodeIx) -> Result<String, Stop> {
    let unnamed = |link: &&Link| link.id == run && link.run.frame.is_none();
    let machine = match chain.iter().find(unnamed) {
        Some(link) => Arc::clone(&link.machine),
        None => {
            let at = turn.run(run)?;
            if let Some(frame) = &at.frame {
                return Ok(frame.label.clone());
            }
            turn.machine(&at)?
        }
    };
    Ok(machine.node(node).map(|node| node.name.clone()).unwrap_or_default())
}

/// The text of the leaf's node with the data in it, if that is another one than its source.
fn text(turn: &Turn<'_, '_>, leaf: &Link, ended: bool) -> Result<Option<String>, Stop> {
    let Some(node) = leaf.node().filter(|node| !ended || node.exits.is_empty()) else { return Ok(None) };
    let Some(source) = node.text.as_ref().filter(|source| source.contains('{')) else { return Ok(None) };
    let text = Text { source: source.clone(), dialect: node.dialect };
    // A text that cannot be rendered is shown as it was written.
    let shown = Scope::of_run(turn, leaf.id)?.text(&text, Content::Text).ok();
    Ok(shown.filter(|shown| shown != source))
}

fn gates(turn: &Turn<'_, '_>, session: &Session, chain: &[Link]) -> Result<Vec<GatePosition>, Stop> {
    let mut gates = Vec::new();
    for id in session.gates() {
        let Some(open) = turn.rows.gate_at(&turn.item_key(id)?)? else { continue };
        let reach = Reach::of(turn.rows, turn.tenant(), turn.session_id()?, &open)?;
        let run = Some(open.head.run).filter(|run| *run != session.root);
        let state = state_of(turn, chain, open.head.run, open.head.node)?;
        gates.push(GatePosition { unnotified: reach.unnotified, run, ..gate(id, &open, state) });
    }
    Ok(gates)
}

/// What is open beside gates.
fn items(turn: &Turn<'_, '_>, session: &Session, chain: &[Link]) -> Result<Vec<ItemPosition>, Stop> {
    let mut items = Vec::new();
    let listed = session.items.iter().filter(|listed| listed.kind != ItemKind::Gate);
    for listed in listed.take(OPEN_SHOWN_MAX) {
        let Some(item) = turn.rows.item_at(&turn.item_key(listed.item)?)? else { continue };
        let head = item.head();
        let state = state_of(turn, chain, head.run, head.node)?;
        let run = Some(head.run).filter(|run| *run != session.root);
        items.push(ItemPosition { item: item.item_type(), state, at: head.at, due: item.due(), run });
    }
    Ok(items)
}

fn gate(id: OpenId, open: &OpenGate, state: String) -> GatePosition {
    let asked = open.body.asked.as_ref();
    let voting = asked.and_then(|asked| asked.voting.as_ref());
    GatePosition {
        gate: id,
        kind: open.body.kind,
        state,
        capability: open.body.call.as_ref().map(|call| call.capability.clone()),
        shown: open.body.shown(),
        at: open.head.at,
        to: asked.map(|asked| asked.to.clone()).unwrap_or_default(),
        open: asked.is_some_and(|asked| asked.open),
        needed: voting.map_or(0, |voting| voting.need),
        approvals: voting.map_or(0, |voting| u32::try_from(voting.votes.len()).unwrap_or(u32::MAX)),
        unnotified: false,
        run: None,
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

/// Attaches rows to a reply that holds a position, so that its caller need not read them.
pub(crate) fn load(
    rows: &dyn ReadRows,
    tenant: TenantId,
    scope: &About,
    reply: &mut Reply,
) -> Result<(), ViewError> {
    let (About::Session(id), Some(position)) = (scope, reply.position_mut()) else { return Ok(()) };
    if let Some(found) = loaded(rows, tenant, *id, position)? {
        LoadedRows::Position(found).attach(reply);
    }
    Ok(())
}

fn loaded(
    rows: &dyn ReadRows,
    tenant: TenantId,
    id: SessionId,
    position: &Position,
) -> Result<Option<PositionRows>, ViewError> {
    let Some(session) = rows.session(tenant, id)? else { return Ok(None) };
    if session.is_hidden() {
        return Ok(None);
    }
    let machine = |of: RunPosition| InstalledMachine::of(rows, tenant, of.machine.unwrap_or(session.machine));
    let Some(root) = machine(position.root)? else { return Ok(None) };
    let leaf = position.leaf.map(machine).transpose()?.flatten();
    let key = if position.listens.is_some() { rows.mail_keys(tenant)?.into_iter().next() } else { None };
    let tokens_of = key.and_then(|key| Some((session.reply_tenant.clone()?, key)));
    let session = AnsweredSession::Row(session);
    let found = PositionRows { session, root, leaf, text: None, reply_token: None };
    Ok(Some(match tokens_of {
        Some((name, key)) => with_tokens(id, position, found, name, key),
        None => found,
    }))
}

/// The rows with the session's reply tokens, made with this key of the tenant of this name.
fn with_tokens(
    id: SessionId,
    position: &Position,
    rows: PositionRows,
    name: String,
    key: MailKey,
) -> PositionRows {
    let reply_token = position.listens.map(|at| key.reply_token(&name, id, at.run, at.entry));
    let tokens = ReplyTokens::of_session_with(name, id, vec![key]);
    let text = source(position, &rows).and_then(|text| tokens.put_into(text));
    PositionRows { text, reply_token, ..rows }
}

/// The text of the leaf's node, in which reply tokens may stand as marks.
fn source<'p>(position: &'p Position, rows: &'p PositionRows) -> Option<&'p str> {
    let ended = position.status.ended();
    let node = node(position, rows).filter(|node| !ended || node.exits.is_empty());
    position.text.as_deref().or(node.and_then(|node| node.text.as_deref()))
}

/// The active leaf's machine, and where it stands.
fn leaf<'p>(position: &Position, rows: &'p PositionRows) -> (&'p Machine, RunPosition) {
    match (&rows.leaf, position.leaf) {
        (Some(leaf), Some(at)) => (&leaf.machine, at),
        (Some(_) | None, _) => (&rows.root.machine, position.root),
    }
}

/// The node that the only active leaf stands at, or ended in; `None` if several runs are active.
fn node<'p>(position: &Position, rows: &'p PositionRows) -> Option<&'p Node> {
    if !position.active.is_empty() {
        return None;
    }
    let (machine, at) = leaf(position, rows);
    machine.node(at.node)
}

/// A position, with all that is needed to show it.
#[derive(Debug, Clone)]
pub struct PositionView {
    /// The session that is shown.
    pub id: SessionId,
    /// Where the session stood, from the command's reply.
    pub position: Position,
    rows: PositionRows,
}

impl PositionView {
    /// Completes a position with the rows that are attached to it; `None` if there are none.
    #[must_use]
    pub fn of(id: SessionId, mut position: Position) -> Option<Self> {
        match LoadedRows::taken(std::mem::take(&mut position.loaded))? {
            LoadedRows::Position(rows) => Some(Self { id, rows, position }),
            LoadedRows::Work(_) => None,
        }
    }

    /// What is shown of the session beside where it stands: what never changes of it.
    #[must_use]
    pub fn session(&self) -> ShownSession<'_> {
        self.rows.session.shown()
    }

    /// The node that the only active leaf stands at, or ended in; `None` if several runs are active.
    #[must_use]
    pub fn node(&self) -> Option<&Node> {
        node(&self.position, &self.rows)
    }

    /// The name of the node that the root run stands at, or ended in.
    #[must_use]
    pub fn at(&self) -> &str {
        self.rows.root.machine.node(self.position.root.node).map_or("", |node| node.name.as_str())
    }

    /// The format's own word for its status.
    #[must_use]
    pub fn word(&self) -> &str {
        let words = &self.rows.root.machine.words;
        if self.position.gates.is_empty() {
            words.word(self.position.status)
        } else {
            words.word_at_gate(self.position.status)
        }
    }

    /// What the agent is shown: the text put before the first turn, and the question or the instructions.
    #[must_use]
    pub fn shows(&self) -> (Option<&str>, Option<&str>) {
        let (machine, _) = leaf(&self.position, &self.rows);
        let opening = machine.opening.text.as_deref().filter(|_| self.position.opening);
        let source = || source(&self.position, &self.rows);
        (opening, self.rows.text.as_deref().or_else(source))
    }

    /// The answers that it takes now.
    pub fn answers(&self) -> impl Iterator<Item = &str> {
        let node = self.node().filter(|_| self.position.takes_answers);
        node.into_iter().flat_map(|node| node.answers())
    }

    /// What somebody outside needs to send an event to its state; `None` if it takes none.
    #[must_use]
    pub fn reply_token(&self) -> Option<&ReplyToken> {
        self.rows.reply_token.as_ref()
    }
}
