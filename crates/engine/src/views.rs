//! What a caller is shown of a session and of a gate.

use std::sync::Arc;
use switchward_machine::{Machine, OpenId, SessionId, Status, TenantId};

use crate::state::{Closed, Open, Run, Session};
use crate::working::Working;
use crate::{View, ViewError};

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
    pub fn shows(&self) -> (Option<&str>, Option<&str>) {
        let ended = self.session.status.ended();
        let opening = self.machine.opening.text.as_deref().filter(|_| self.run.entry <= 1 && !ended);
        let node = self.machine.node(self.run.node).filter(|node| !ended || node.exits.is_empty());
        (opening, node.and_then(|node| node.text.as_deref()))
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
    Ok(Some(SessionView { id, session: Session::clone(&session), run: Run::clone(&run), machine }))
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
