//! Which gate a decision is about.

use std::ops::ControlFlow;
use switchward_engine::{
    Actor, AnswerGate, Body, Closed, DecideGate, DiscussGate, Key, Kind as RowKind, Open, Role, Row, Scope,
    ViewError,
};
use switchward_machine::{Digest, GateKind, Machine, OpenId, SessionId};

use super::moves::no_session;
use super::{Moved, Player};
use crate::script::{Decide, Form, Kind, Said};
use crate::world::{Broken, read};

/// Whether a gate of a run of this machine is one that is meant.
type Fits<'f> = &'f dyn Fn(&Open, &Machine) -> bool;

impl Player<'_> {
    /// A person decides the oldest open gate that fits; with none open, it is about the newest closed one.
    pub(super) fn decide(&mut self, decide: &Decide) -> Moved {
        let Some(id) = self.session else { return Ok(Err(no_session())) };
        let gate = self.gate(id, &|open, machine| fits(open, decide, machine))?;
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

    /// A person fills in the part of a task that is hers; where none is, it is about the oldest part of somebody else.
    pub(super) fn form(&mut self, form: &Form) -> Moved {
        let Some(id) = self.session else { return Ok(Err(no_session())) };
        let task = |open: &Open, machine: &Machine| {
            open.gate.kind == GateKind::Task && at_node(open, form.node.as_deref(), machine)
        };
        let own = |open: &Open, machine: &Machine| task(open, machine) && open.gate.addresses(&form.by);
        let gate = match self.gate(id, &own)? {
            Some(gate) => Some(gate),
            None => self.gate(id, &task)?,
        };
        let Some((gate, shown)) = gate else { return Ok(Err(self.nothing_takes(id, "form")?)) };
        let person = Actor { subject: form.by.clone(), role: Role::Approver };
        let (answer, comment) = (form.values.clone(), String::new());
        let body = Body::AnswerGate(AnswerGate { gate, answer, comment, shown });
        Ok(self.about_session(person, body)?.map(|_| ()))
    }

    /// The oldest open gate that fits, and what a person who looks at it is shown; with none open, the newest closed one.
    fn gate(&self, id: SessionId, fits: Fits<'_>) -> Result<Option<(OpenId, Option<Digest>)>, Broken> {
        Ok(match self.oldest_open(id, fits)? {
            Some(open) => Some(open),
            None => self.newest_closed(id, fits)?.map(|gate| (gate, None)),
        })
    }

    fn oldest_open(&self, id: SessionId, fits: Fits<'_>) -> Result<Option<(OpenId, Option<Digest>)>, Broken> {
        let Some(view) = self.session_view(id)? else { return Ok(None) };
        for gate in &view.session.opens {
            let key = Key::open(self.tenant, id, *gate);
            let row = read(self.world, self.tenant, &Scope::Session(id), |view| view.row(&key))?;
            match row.as_deref() {
                Some(Row::Open(open)) if fits(open, &view.machine) => {
                    return Ok(Some((*gate, open.gate.shown())));
                }
                Some(_) | None => {}
            }
        }
        Ok(None)
    }

    fn newest_closed(&self, id: SessionId, fits: Fits<'_>) -> Result<Option<OpenId>, Broken> {
        let Some(session) = self.session_view(id)? else { return Ok(None) };
        let prefix = Key::prefix_of_session(self.tenant, id, RowKind::Closed);
        let closed = read(self.world, self.tenant, &Scope::Session(id), |view| {
            let mut found: Vec<(OpenId, Closed)> = Vec::new();
            view.scan(&prefix, None, &mut |key, row| {
                if let (Some(gate), Row::Closed(closed)) = (gate_of(key), &**row) {
                    found.push((gate, closed.clone()));
                }
                ControlFlow::Continue(())
            })?;
            Ok::<_, ViewError>(found)
        })?;
        let fitting = closed.into_iter().filter(|(_, closed)| fits(&closed.open, &session.machine));
        Ok(fitting.max_by_key(|(gate, closed)| (closed.at, *gate)).map(|(gate, _)| gate))
    }
}

fn gate_of(key: &Key) -> Option<OpenId> {
    Some(OpenId(u64::from_be_bytes(key.rest().get(16..24)?.try_into().ok()?)))
}

fn fits(open: &Open, decide: &Decide, machine: &Machine) -> bool {
    let kind_fits = match decide.kind {
        None => true,
        Some(Kind::Known(kind)) => kind == open.gate.kind,
        Some(Kind::Elsewhere) => false,
    };
    at_node(open, decide.node.as_deref(), machine) && kind_fits
}

fn at_node(open: &Open, wanted: Option<&str>, machine: &Machine) -> bool {
    let node = machine.node(open.node).map_or("", |node| node.name.as_str());
    wanted.is_none_or(|wanted| wanted == node)
}
