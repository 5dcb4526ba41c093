//! Selection of the gate that a decision is about.

use std::ops::ControlFlow;
use switchward_engine::{GateView, gate_view};
use switchward_machine::{Digest, GateKind, OpenId, SessionId, Time};
use switchward_state::approval::{AnswerGate, ApprovalCommand, DecideGate, DiscussGate};
use switchward_state::catalogue::Role;
use switchward_state::{Actor, Body, Key, Kind as RowKind, Row, Scope, ViewError};

use super::moves::no_session;
use super::{Moved, Player};
use crate::script::{Decide, Form, Kind, Said};
use crate::system::{Broken, read};

/// Returns true if a gate is one that is meant.
type Fits<'f> = &'f dyn Fn(&GateView) -> bool;

impl Player<'_> {
    /// A person decides the oldest open gate that fits; with none open, it is about the newest closed one.
    pub(super) fn decide(&mut self, decide: &Decide) -> Moved {
        let Some(id) = self.session else { return Ok(Err(no_session())) };
        let gate = self.meant(id, &|found| fits(found, decide))?;
        let Some((gate, shown)) = gate else { return Ok(Err(self.nothing_takes(id, "decide")?)) };
        let person = Actor { subject: decide.by.clone(), role: Role::Approver };
        let comment = decide.comment.clone();
        let body = match decide.decision {
            Said::Decided(decision) => Body::Approval(ApprovalCommand::DecideGate(DecideGate {
                gate,
                decision,
                comment,
                shown,
                limits: None,
                proof: None,
            })),
            Said::Discuss => Body::Approval(ApprovalCommand::DiscussGate(DiscussGate {
                gate,
                comment,
                shown,
                proof: None,
            })),
        };
        Ok(self.about_session(person, body)?.map(|_| ()))
    }

    /// A participant fills in their part of a task; without an open part of theirs, it is about the oldest part of
    /// another participant.
    pub(super) fn form(&mut self, form: &Form) -> Moved {
        let Some(id) = self.session else { return Ok(Err(no_session())) };
        let task = |found: &GateView| {
            found.open().body.kind == GateKind::Task && at_node(found, form.node.as_deref())
        };
        let own = |found: &GateView| task(found) && found.open().body.addresses(&form.by);
        let gate = match self.meant(id, &own)? {
            Some(gate) => Some(gate),
            None => self.meant(id, &task)?,
        };
        let Some((gate, shown)) = gate else { return Ok(Err(self.nothing_takes(id, "form")?)) };
        let person = Actor { subject: form.by.clone(), role: Role::Approver };
        let (answer, comment) = (form.values.clone(), String::new());
        let body = Body::Approval(ApprovalCommand::AnswerGate(AnswerGate {
            gate,
            answer,
            comment,
            shown,
            proof: None,
        }));
        Ok(self.about_session(person, body)?.map(|_| ()))
    }

    /// The oldest open gate that fits, and the digest of what it shows; with none open, the newest closed one.
    fn meant(&self, id: SessionId, fits: Fits<'_>) -> Result<Option<(OpenId, Option<Digest>)>, Broken> {
        Ok(match self.oldest_open(id, fits)? {
            Some(open) => Some(open),
            None => self.newest_closed(id, fits)?.map(|gate| (gate, None)),
        })
    }

    fn oldest_open(&self, id: SessionId, fits: Fits<'_>) -> Result<Option<(OpenId, Option<Digest>)>, Broken> {
        let Some(view) = self.session_view(id)? else { return Ok(None) };
        for gate in view.session.gates() {
            if let Some(found) = self.gate(id, gate)?.filter(|found| fits(found)) {
                return Ok(Some((gate, found.open().body.shown())));
            }
        }
        Ok(None)
    }

    fn newest_closed(&self, id: SessionId, fits: Fits<'_>) -> Result<Option<OpenId>, Broken> {
        let prefix = Key::prefix_of_session(self.tenant, id, RowKind::Closed);
        let closed = read(self.system, self.tenant, &Scope::Session(id), |view| {
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
            let fitting = self.gate(id, gate)?.is_some_and(|found| fits(&found));
            newest = newest.max(fitting.then_some((at, gate)));
        }
        Ok(newest.map(|(_, gate)| gate))
    }

    fn gate(&self, id: SessionId, gate: OpenId) -> Result<Option<GateView>, Broken> {
        read(self.system, self.tenant, &Scope::Session(id), |view| gate_view(view, self.tenant, id, gate))
    }
}

fn gate_of(key: &Key) -> Option<OpenId> {
    Some(OpenId(u64::from_be_bytes(key.rest().get(16..24)?.try_into().ok()?)))
}

fn fits(found: &GateView, decide: &Decide) -> bool {
    let kind_fits = match decide.kind {
        None => true,
        Some(Kind::Known(kind)) => kind == found.open().body.kind,
        Some(Kind::Elsewhere) => false,
    };
    at_node(found, decide.node.as_deref()) && kind_fits
}

fn at_node(found: &GateView, wanted: Option<&str>) -> bool {
    let node = found.node().map_or("", |node| node.name.as_str());
    wanted.is_none_or(|wanted| wanted == node)
}
