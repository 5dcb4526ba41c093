//! `evolve`: from a decision to changed rows. Nothing is judged here; values are copied out of events.

mod calls;
mod catalogue;
mod children;
mod effects;
mod endpoints;
mod flow;
mod gates;
mod ledger;
mod page_codes;
mod removals;
mod session;
mod usage;
mod work;

use std::collections::BTreeMap;
use std::sync::Arc;
use switchward_machine::{Digest, SessionId, TenantId, Time};

use crate::command::Scope;
use crate::decision::{Decision, Turn};
use crate::limits::REQUESTS_MAX;
use crate::state::{Answered, History, Remembered, Request};
use crate::working::Working;
use crate::{Event, Flow, Key, PolicyFact, Row, View, ViewError};

/// Changed rows: the row, or `None` if it is gone.
pub type Changes = BTreeMap<Key, Option<Arc<Row>>>;

/// The rows that a decision changes.
///
/// # Errors
/// A row cannot be read, or the decision does not fit the rows; the replica must stop.
pub fn evolve(decision: &Decision, view: &dyn View) -> Result<Changes, ViewError> {
    let mut rows = Working::new(view);
    for turn in &decision.turns {
        let site = Site { tenant: turn.tenant, scope: &turn.scope, at: decision.at };
        for event in &turn.events {
            apply(&mut rows, &site, event)?;
        }
        finish(&mut rows, &site, turn)?;
    }
    rows.put(Key::clock(), Row::Clock(decision.at));
    Ok(rows.into_changes())
}

/// Where and when an event holds.
pub(crate) struct Site<'a> {
    pub(crate) tenant: TenantId,
    pub(crate) scope: &'a Scope,
    pub(crate) at: Time,
}

impl Site<'_> {
    /// The session that the scope names.
    pub(crate) fn session(&self) -> Result<SessionId, ViewError> {
        match self.scope {
            Scope::Session(id) => Ok(*id),
            Scope::Ledger(_) | Scope::Catalogue | Scope::Shard => {
                Err(ViewError("the scope is no session".into()))
            }
        }
    }

    pub(crate) fn session_key(&self) -> Result<Key, ViewError> {
        Ok(Key::session(self.tenant, self.session()?))
    }
}

/// Applies one event.
pub(crate) fn apply(rows: &mut Working<'_>, site: &Site<'_>, event: &Event) -> Result<(), ViewError> {
    match event {
        Event::SessionStarted { .. }
        | Event::RunCreated { .. }
        | Event::Entered { .. }
        | Event::ActBegun { .. }
        | Event::Answered { .. }
        | Event::Left { .. }
        | Event::RunEnded { .. }
        | Event::Warned { .. }
        | Event::Deferred { .. }
        | Event::CapRaised { .. }
        | Event::Paused { .. }
        | Event::Unpaused { .. }
        | Event::RequestsForgotten => session::apply(rows, site, event)?,
        Event::Policies(PolicyFact::Pinned { policies }) => {
            rows.session_at_mut(&site.session_key()?)?.policies.clone_from(policies);
        }
        Event::Removals(fact) => {
            removals::apply(rows, site, fact)?;
            if !fact.counts() {
                return Ok(());
            }
        }
        Event::Flow(flow) => flow::apply(rows, site, flow)?,
        Event::GateOpened { .. }
        | Event::GateClosed { .. }
        | Event::GateDiscussed { .. }
        | Event::Voided { .. }
        | Event::EffectQueued { .. }
        | Event::EffectAcked { .. } => gates::apply(rows, site, event)?,
        Event::CallPermitted { .. }
        | Event::CallDenied { .. }
        | Event::CallAsked { .. }
        | Event::CallReported { .. }
        | Event::CallLapsed { .. }
        | Event::GrantMade { .. }
        | Event::GrantUsed { .. }
        | Event::GrantLapsed { .. }
        | Event::Metered { .. }
        | Event::BudgetExhausted { .. } => calls::apply(rows, site, event)?,
        Event::LedgerReserved { .. }
        | Event::LedgerConfirmed { .. }
        | Event::LedgerSettled { .. }
        | Event::Swept(_) => return ledger::apply(rows, site, event),
        Event::MachineInstalled { .. }
        | Event::TenantCreated(_)
        | Event::TenantChanged(..)
        | Event::KeyCreated(_)
        | Event::KeyRevoked(_)
        | Event::VersionDeployed { .. }
        | Event::Versions(_)
        | Event::Assistants(_)
        | Event::TenancyPut(_)
        | Event::Tenants(_)
        | Event::Endpoints(_)
        | Event::Policies(PolicyFact::Attached { .. })
        | Event::WebhookSources(_) => return catalogue::apply(rows, site, event),
    }
    let session = rows.session_at_mut(&site.session_key()?)?;
    session.stable_from =
        if on_its_way(event) { session.stable_from.or(Some(session.sequence)) } else { None };
    session.sequence += 1;
    Ok(())
}

/// Whether an event is only about the progress of an effect, or queues a message to an endpoint.
fn on_its_way(event: &Event) -> bool {
    let publishes = matches!(event, Event::EffectQueued { effect } if effect.body.published());
    let kept = matches!(event, Event::Flow(Flow::EffectDeferred { .. } | Flow::EffectHeld { .. }));
    publishes || kept || matches!(event, Event::EffectAcked { .. })
}

/// Writes down what a whole turn leaves: its history, and the reply under its request id.
pub(crate) fn finish(rows: &mut Working<'_>, site: &Site<'_>, turn: &Turn) -> Result<(), ViewError> {
    if let Scope::Session(id) = site.scope {
        let session = rows.session_at_mut(&site.session_key()?)?;
        session.updated = site.at;
        let count = u64::try_from(turn.events.len()).unwrap_or(u64::MAX);
        let first = session.sequence.saturating_sub(count);
        if let Some((request, _)) = &turn.request {
            if session.requests.len() == REQUESTS_MAX {
                session.requests.remove(0);
            }
            session.requests.push(Remembered { hash: hash(request), sequence: first });
        }
        let answer = |(_, body): &(String, Digest)| Answered { body: *body, reply: turn.reply.clone() };
        let history = History {
            at: site.at,
            by: turn.by.clone(),
            request: turn.request.as_ref().map(|(id, _)| id.clone()),
            events: turn.events.clone(),
            answered: turn.request.as_ref().map(answer),
        };
        let (head, bytes) = history.link_measured(session.head);
        session.head = head;
        session.bytes = session.bytes.saturating_add(bytes);
        usage::grew(rows, site.tenant, bytes)?;
        rows.put(Key::history(site.tenant, *id, first), Row::History(history));
    } else if let Some((id, body)) = &turn.request {
        let request = Request { body: *body, reply: turn.reply.clone(), at: site.at };
        rows.put(Key::request(site.tenant, site.scope, hash(id)), Row::Request(request));
    }
    Ok(())
}

fn hash(request: &str) -> [u8; 16] {
    let digest = Digest::of(request.as_bytes());
    let mut hash = [0u8; 16];
    hash.copy_from_slice(&digest.0[..16]);
    hash
}
