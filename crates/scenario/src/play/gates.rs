//! The verbs about gates: how they are written, which gate they are about, and what they do there.

use serde_json::Value;
use std::ops::ControlFlow;
use switchward_engine::{GateView, gate_view};
use switchward_formats::{
    Report,
    document::Node,
    shape::{self, Fields, Shape},
};
use switchward_machine::{Decision, Digest, GateKind, OpenId, SessionId, Time};
use switchward_state::approval::{AnswerGate, ApprovalCommand, DecideGate, DiscussGate};
use switchward_state::catalogue::Role;
use switchward_state::{Actor, Body, Key, Kind as RowKind, Row, Scope, ViewError};

use super::moves::no_session;
use super::{Moved, Player};
use crate::parse::fields::{json, keys, needed_text, some_text};
use crate::system::{Broken, read};

/// The decider if the scenario names none.
const SOMEBODY: &str = "person";

const FORM: Shape = keys("`form`", &["node", "values", "by"]);
const DECIDE: Shape = keys("`decide`", &["node", "kind", "decision", "by", "comment"]);
const ASSIGN: Shape = keys("`assign`", &["node", "from", "to", "by"]);

const DECISIONS: [&str; 6] = ["approve", "reject", "discuss", "resume", "refuse", "decline"];
const GATES: [&str; 7] =
    ["notify", "tool_ask", "write_approval", "task", "advance", "approval", "escalation"];

/// What a person does at a gate.
#[derive(Debug, Clone, PartialEq)]
pub enum GateVerb {
    /// A person decides.
    Decide(Decide),
    /// A participant fills in a form.
    Form(Form),
    /// A gate is handed to somebody else.
    Assign(Assign),
}

impl GateVerb {
    /// The words of these verbs.
    pub(crate) const WORDS: [&str; 3] = ["form", "decide", "assign"];

    /// The verb's word.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Decide(_) => "decide",
            Self::Form(_) => "form",
            Self::Assign(_) => "assign",
        }
    }

    /// Reads the verb of one of [`WORDS`](Self::WORDS); `None` after a finding.
    pub(crate) fn read(word: &str, value: &Node, report: &mut Report) -> Option<Self> {
        match word {
            "decide" => decide(value, report).map(Self::Decide),
            "form" => form(value, report).map(Self::Form),
            "assign" => assign(value, report).map(Self::Assign),
            _ => None,
        }
    }
}

/// A person decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decide {
    /// The node of the gate.
    pub node: Option<String>,
    /// The kind of the gate.
    pub kind: Option<Kind>,
    /// Approval, rejection, or a comment that leaves the gate open.
    pub decision: PlayedAnswer,
    /// The decider.
    pub by: String,
    /// Words beside the decision; may be empty.
    pub comment: String,
}

/// A participant fills in a form.
#[derive(Debug, Clone, PartialEq)]
pub struct Form {
    /// The node of the gate.
    pub node: Option<String>,
    /// What the participant fills in.
    pub values: Value,
    /// The participant.
    pub by: String,
}

/// A gate, or somebody's part of it, is handed to somebody else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assign {
    /// The node of the gate.
    pub node: Option<String>,
    /// Whose part is handed over; `None` if it is the whole gate, or `by`'s own part.
    pub from: Option<String>,
    /// Who gets it.
    pub to: String,
    /// Who hands over their own part; `None` if an operator hands over the gate.
    pub by: Option<String>,
}

/// The kinds of gate that a scenario can name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A kind that this build opens.
    Known(GateKind),
    /// A kind of another format; no gate here has it.
    Elsewhere,
}

/// What a person answers at a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlayedAnswer {
    /// One of the two decisions.
    Decided(Decision),
    /// Neither: the person comments, and the gate stays open.
    Discuss,
}

fn decide(value: &Node, report: &mut Report) -> Option<Decide> {
    let fields = Fields::open(value, &DECIDE, report)?;
    let node = some_text(&fields, "node", report);
    let kind = fields.optional("kind").and_then(|node| shape::word(node, "`kind`", &GATES, report));
    let kind = kind.map(|word| {
        let known = GateKind::ALL.into_iter().find(|kind| kind.word() == word);
        known.map_or(Kind::Elsewhere, Kind::Known)
    });
    let decision = fields.required("decision", report);
    let decision = decision.and_then(|node| shape::word(node, "`decision`", &DECISIONS, report));
    let by = some_text(&fields, "by", report).unwrap_or_else(|| SOMEBODY.into());
    let comment = some_text(&fields, "comment", report).unwrap_or_default();
    // One outcome has two words at every gate: approve and resume, reject and refuse.
    let decision = match decision? {
        "approve" | "resume" => PlayedAnswer::Decided(Decision::Approve),
        "reject" | "refuse" | "decline" => PlayedAnswer::Decided(Decision::Refuse),
        _ => PlayedAnswer::Discuss,
    };
    Some(Decide { node, kind, decision, by, comment })
}

fn form(value: &Node, report: &mut Report) -> Option<Form> {
    let fields = Fields::open(value, &FORM, report)?;
    let node = some_text(&fields, "node", report);
    let by = some_text(&fields, "by", report).unwrap_or_else(|| SOMEBODY.into());
    let values = fields.required("values", report).map(json)?;
    Some(Form { node, values, by })
}

/// Returns true if a gate is one that is meant.
type Fits<'f> = &'f dyn Fn(&GateView) -> bool;

fn assign(value: &Node, report: &mut Report) -> Option<Assign> {
    let fields = Fields::open(value, &ASSIGN, report)?;
    let mut text = |key| some_text(&fields, key, report);
    let (node, from, by) = (text("node"), text("from"), text("by"));
    Some(Assign { node, from, to: needed_text(&fields, "to", report)?, by })
}

impl Player<'_> {
    /// Plays a verb about a gate.
    pub(super) fn at_gate(&mut self, verb: &GateVerb) -> Moved {
        match verb {
            GateVerb::Decide(decide) => self.decide(decide),
            GateVerb::Form(form) => self.form(form),
            GateVerb::Assign(assign) => self.assign(assign),
        }
    }

    /// A person decides the oldest open gate that fits; with none open, it is about the newest closed one.
    fn decide(&mut self, decide: &Decide) -> Moved {
        let Some(id) = self.session else { return Ok(Err(no_session())) };
        let gate = self.meant(id, &|found| fits(found, decide))?;
        let Some((gate, shown)) = gate else { return Ok(Err(self.nothing_takes(id, "decide")?)) };
        let person = Actor { subject: decide.by.clone(), role: Role::Approver };
        let comment = decide.comment.clone();
        let body = match decide.decision {
            PlayedAnswer::Decided(decision) => Body::Approval(ApprovalCommand::DecideGate(DecideGate {
                gate,
                decision,
                comment,
                shown,
                limits: None,
                proof: None,
            })),
            PlayedAnswer::Discuss => Body::Approval(ApprovalCommand::DiscussGate(DiscussGate {
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
    fn form(&mut self, form: &Form) -> Moved {
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

    /// The oldest open gate that fits is handed to somebody else: by an operator, or by a person who is asked there, who
    /// hands over their own part.
    fn assign(&mut self, assign: &Assign) -> Moved {
        let Some(id) = self.session else { return Ok(Err(no_session())) };
        let there = |found: &GateView| at_node(found, assign.node.as_deref());
        let own = |found: &GateView| {
            there(found) && assign.by.as_ref().is_some_and(|by| found.open().body.wrote_to(by))
        };
        let gate = match self.oldest_open(id, &own)? {
            Some(gate) => Some(gate),
            None => self.meant(id, &there)?,
        };
        let Some((gate, shown)) = gate else { return Ok(Err(self.nothing_takes(id, "assign")?)) };
        let person = match &assign.by {
            Some(by) => Actor { subject: by.clone(), role: Role::Approver },
            None => Actor { subject: "operator".into(), role: Role::Operator },
        };
        let body = Body::Approval(ApprovalCommand::AssignGate {
            gate,
            from: assign.from.clone(),
            to: assign.to.clone(),
            comment: String::new(),
            shown,
            proof: None,
        });
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
