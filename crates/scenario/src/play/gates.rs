//! Which gate a decision is about.

use std::ops::ControlFlow;
use switchward_engine::{
    Actor, Body, DecideGate, DiscussGate, GateView, Key, Kind as RowKind, Role, Row, Scope, ViewError,
    gate_view,
};
use switchward_machine::{Digest, OpenId, SessionId, Time};

use super::moves::no_session;
use super::{Moved, Player};
use crate::script::{Decide, Kind, Said};
use crate::world::{Broken, read};

impl Player<'_> {
    /// A person decides the oldest open gate that fits; with none open, it is about the newest closed one.
    pub(super) fn decide(&mut self, decide: &Decide) -> Moved {
        let Some(id) = self.session else { return Ok(Err(no_session())) };
        let gate = match self.oldest_open(id, decide)? {
            Some(open) => Some(open),
            None => self.newest_closed(id, decide)?.map(|gate| (gate, None)),
        };
        let Some((gate, shown)) = gate else { return Ok(Err(self.nothing_takes(id, "decide")?)) };
        let person = Actor { subject: decide.by.clone(), role: Role::Approver };
        let comment = decide.comment.clone();
        let body = match decide.decision {
            Said::Decided(decision) => {
                Body::DecideGate(DecideGate { gate, decision, comment, shown, limits: None })
            }
            Said::Discuss => Body::DiscussGate(DiscussGate { gate, comment, shown }),
        };
        Ok(self.about_session(person, body)?.map(|_| ()))
    }

    /// The gate, and what a person who looks at it is shown.
    fn oldest_open(
        &self,
        id: SessionId,
        decide: &Decide,
    ) -> Result<Option<(OpenId, Option<Digest>)>, Broken> {
        let Some(view) = self.session_view(id)? else { return Ok(None) };
        for gate in &view.session.opens {
            let found = self.gate(id, *gate)?.filter(|found| fits(found, decide));
            if let Some(found) = found {
                return Ok(Some((*gate, found.open().gate.shown())));
            }
        }
        Ok(None)
    }

    fn newest_closed(&self, id: SessionId, decide: &Decide) -> Result<Option<OpenId>, Broken> {
        let prefix = Key::prefix_of_session(self.tenant, id, RowKind::Closed);
        let closed = read(self.world, self.tenant, &Scope::Session(id), |view| {
            let mut found: Vec<(Time, OpenId)> = Vec::new();
            view.scan(&prefix, None, &mut |key, row| {
                if let (Some(gate), Row::Closed(closed)) = (gate_of(key), &**row) {
                    found.push((closed.at, gate));
                }
                ControlFlow::Continue(())
            })?;
            Ok::<_, ViewError>(found)
        })?;
        let mut newest: Option<(Time, OpenId)> = None;
        for (at, gate) in closed {
            let fitting = self.gate(id, gate)?.is_some_and(|found| fits(&found, decide));
            newest = newest.max(fitting.then_some((at, gate)));
        }
        Ok(newest.map(|(_, gate)| gate))
    }

    fn gate(&self, id: SessionId, gate: OpenId) -> Result<Option<GateView>, Broken> {
        read(self.world, self.tenant, &Scope::Session(id), |view| gate_view(view, self.tenant, id, gate))
    }
}

fn gate_of(key: &Key) -> Option<OpenId> {
    Some(OpenId(u64::from_be_bytes(key.rest().get(16..24)?.try_into().ok()?)))
}

fn fits(found: &GateView, decide: &Decide) -> bool {
    let node = found.node().map_or("", |node| node.name.as_str());
    let node_fits = decide.node.as_ref().is_none_or(|wanted| wanted == node);
    let kind_fits = match decide.kind {
        None => true,
        Some(Kind::Known(kind)) => kind == found.open().gate.kind,
        Some(Kind::Elsewhere) => false,
    };
    node_fits && kind_fits
}
