//! Gates as messages.

use switchward_api::v1;
use switchward_engine::{Comment, GateView, SessionView};
use switchward_machine::{Decision, GateKind, OpenId, SessionId, Time};
use switchward_messages::{GateMatter, gate_message, request};
use switchward_state::approval::{GateEnd, GateEnding, GateSummary, Resolution, Vote, VoteSummary};

use super::{json, timestamp};
use crate::auth::Caller;
use crate::names;

/// A gate, open or closed. Its recipients are its approvers only if nobody else may decide.
pub(crate) fn gate(caller: &Caller, view: &SessionView, id: OpenId, row: &GateView) -> v1::Gate {
    let open = row.open();
    let (status, resolution, end) = outcome(row);
    let (call, all) = (open.body.call.as_ref(), open.body.asked.as_ref());
    // If others may decide as well, the people who are notified of the gate are not its approvers.
    let (asked, notified) = (all.filter(|asked| !asked.open), all.filter(|asked| asked.open));
    let voting = all.and_then(|asked| asked.voting.as_ref());
    let remind = all.and_then(|asked| asked.remind).filter(|_| end.is_none());
    let round = asked.and_then(|asked| asked.due).filter(|_| end.is_none());
    v1::Gate {
        name: names::of_gate(caller, view.id, id),
        session: names::of_session(caller, view.id),
        kind: kind(open.body.kind).into(),
        status: status.into(),
        state: row.node().map(|node| node.name.clone()).unwrap_or_default(),
        message: message(view, row),
        capability: call.map(|call| call.capability.clone()).unwrap_or_default(),
        args: call.map(|call| call.args.clone().into()).unwrap_or_default(),
        args_digest: open.body.shown().map(|digest| digest.to_string()).unwrap_or_default(),
        answer: answer(row).unwrap_or_default(),
        definition: names::of_definition(caller, &view.session.definition),
        version: view.session.version,
        requested_by: open.body.requester.clone(),
        create_time: Some(timestamp(open.head.at)),
        resolution,
        end_time: end.map(timestamp),
        approvers: asked.map(|asked| asked.to.clone()).unwrap_or_default(),
        subject: asked.map(|asked| request(&asked.subject).into_owned()).unwrap_or_default(),
        text: asked.map(|asked| asked.body.clone()).unwrap_or_default(),
        round_end_time: round.map(timestamp),
        notified: notified.map(|notified| notified.to.clone()).unwrap_or_default(),
        approvals_needed: voting.map(|voting| voting.need).unwrap_or_default(),
        undeliverable: row.unreached().to_vec(),
        unnotified: row.unnotified(),
        warnings: warnings(row),
        remind_time: remind.map(|remind| timestamp(remind.next)),
        reminders_left: remind.map(|remind| remind.left).unwrap_or_default(),
        votes: voting.iter().flat_map(|voting| &voting.votes).map(vote).collect(),
        comments: Vec::new(),
        caller_decisions: caller_decisions(caller, row),
        held_inputs: row.held(),
    }
}

/// What a person has said beside a decision.
pub(crate) struct DecisionDetails {
    pub(crate) comment: String,
    pub(crate) answer: Option<prost_types::Value>,
}

/// A gate after a command of the person who has `said` this.
pub(crate) fn summary(
    caller: &Caller,
    session: SessionId,
    id: OpenId,
    of: GateSummary,
    said: DecisionDetails,
) -> v1::Gate {
    let decides = may_decide(caller, &of);
    let (status, resolution) = ended(of.ending.as_ref(), said);
    let asked = of.subject.as_ref().map(|subject| request(subject).into_owned());
    let about = of.capability.as_deref();
    let message = question(&of.definition, about, of.answer.as_deref(), asked.as_deref());
    let to = of.to.unwrap_or_default();
    let (approvers, notified) = if of.open { (Vec::new(), to) } else { (to, Vec::new()) };
    v1::Gate {
        name: names::of_gate(caller, session, id),
        session: names::of_session(caller, session),
        kind: kind(of.kind).into(),
        status: status.into(),
        state: of.state,
        message,
        capability: of.capability.unwrap_or_default(),
        args_digest: of.shown.map(|digest| digest.to_string()).unwrap_or_default(),
        answer: of.answer.unwrap_or_default(),
        definition: names::of_definition(caller, &of.definition),
        version: of.version,
        requested_by: of.requester,
        create_time: Some(timestamp(of.at)),
        resolution,
        end_time: of.ending.map(|ending| timestamp(ending.at)),
        approvers,
        subject: asked.unwrap_or_default(),
        round_end_time: of.due.map(timestamp),
        notified,
        approvals_needed: of.needed,
        votes: of.votes.into_iter().map(approval).collect(),
        caller_decisions: decides,
        ..v1::Gate::default()
    }
}

/// Returns the status of a gate after a command, and what was decided.
fn ended(ending: Option<&GateEnding>, said: DecisionDetails) -> (v1::GateStatus, Option<v1::GateResolution>) {
    let Some(GateEnding { at, how }) = ending else { return (v1::GateStatus::Open, None) };
    match how {
        GateEnd::Voided => (v1::GateStatus::Void, None),
        GateEnd::Lapsed => (v1::GateStatus::Lapsed, None),
        GateEnd::Decided { decision, by, via } => {
            let resolution = v1::GateResolution {
                decision: self::decision(*decision).into(),
                by: by.clone(),
                time: Some(timestamp(*at)),
                comment: said.comment,
                via: via.word().into(),
                vouched_by: via.vouched_by(by).to_owned(),
                answer: said.answer,
            };
            (v1::GateStatus::Decided, Some(resolution))
        }
    }
}

fn approval(vote: VoteSummary) -> v1::GateVote {
    v1::GateVote {
        vouched_by: vote.via.vouched_by(&vote.by).to_owned(),
        by: vote.by,
        time: Some(timestamp(vote.at)),
        comment: String::new(),
        via: vote.via.word().into(),
    }
}

/// Returns what the caller may decide at a gate after a command; see [`caller_decisions`].
fn may_decide(caller: &Caller, of: &GateSummary) -> Vec<i32> {
    let person = &caller.actor.subject;
    let own = of.kind.needs_another() && *person == of.requester;
    if of.ending.is_some() || !caller.actor.role.decides() || own || !of.addresses(person) {
        return Vec::new();
    }
    decisions(of.kind, of.votes.iter().any(|vote| vote.by == *person))
}

/// What a person may decide at a gate of this kind who has approved it, or has not.
fn decisions(kind: GateKind, approved: bool) -> Vec<i32> {
    if kind == GateKind::Task {
        return vec![v1::GateDecision::Answer.into()];
    }
    let approve = (!approved).then_some(v1::GateDecision::Approve.into());
    approve.into_iter().chain([v1::GateDecision::Reject.into()]).collect()
}

/// What a reader of a gate should know, in sentences.
pub(crate) fn warnings(row: &GateView) -> Vec<String> {
    row.warnings().iter().map(switchward_messages::warning).collect()
}

pub(crate) fn kind(kind: GateKind) -> v1::GateKind {
    match kind {
        GateKind::Notify => v1::GateKind::Notify,
        GateKind::ToolAsk => v1::GateKind::ToolAsk,
        GateKind::Approval => v1::GateKind::Approval,
        GateKind::Task => v1::GateKind::Task,
    }
}

/// Returns a gate's status, what was decided and when it closed.
fn outcome(row: &GateView) -> (v1::GateStatus, Option<v1::GateResolution>, Option<Time>) {
    match row {
        GateView::Open(..) => (v1::GateStatus::Open, None, None),
        GateView::Closed(closed, _) => match &closed.resolution {
            Resolution::Voided => (v1::GateStatus::Void, None, Some(closed.at)),
            Resolution::Lapsed => (v1::GateStatus::Lapsed, None, Some(closed.at)),
            Resolution::Decided { decision, by, comment, via } => {
                let resolution = v1::GateResolution {
                    decision: self::decision(*decision).into(),
                    by: by.clone(),
                    time: Some(timestamp(closed.at)),
                    comment: comment.clone(),
                    via: via.word().into(),
                    vouched_by: via.vouched_by(by).to_owned(),
                    answer: None,
                };
                (v1::GateStatus::Decided, Some(resolution), Some(closed.at))
            }
            Resolution::Answered { by, answer, comment, via } => {
                let resolution = v1::GateResolution {
                    decision: v1::GateDecision::Answer.into(),
                    by: by.clone(),
                    time: Some(timestamp(closed.at)),
                    comment: comment.clone(),
                    via: via.word().into(),
                    vouched_by: via.vouched_by(by).to_owned(),
                    answer: Some(json::to_value(&answer.0)),
                };
                (v1::GateStatus::Decided, Some(resolution), Some(closed.at))
            }
        },
    }
}

/// Returns what the caller may decide at a gate, by the role of their key and by who is asked. Names that only the
/// directory knows as theirs are left out.
pub(crate) fn caller_decisions(caller: &Caller, row: &GateView) -> Vec<i32> {
    let GateView::Open(open, ..) = row else { return Vec::new() };
    let (person, gate) = (&caller.actor.subject, &open.body);
    let own = gate.kind.needs_another() && *person == gate.requester;
    if !caller.actor.role.decides() || own || !gate.addresses(person) || row.has_lost(person) {
        return Vec::new();
    }
    decisions(gate.kind, gate.votes().any(|vote| vote.by == *person))
}

pub(crate) fn comment(said: Comment) -> v1::GateComment {
    v1::GateComment { by: said.by, time: Some(timestamp(said.at)), comment: said.comment }
}

fn vote(vote: &Vote) -> v1::GateVote {
    v1::GateVote {
        by: vote.by.clone(),
        time: Some(timestamp(vote.at)),
        comment: vote.comment.clone(),
        via: vote.via.word().into(),
        vouched_by: vote.via.vouched_by(&vote.by).to_owned(),
    }
}

fn decision(decision: Decision) -> v1::GateDecision {
    match decision {
        Decision::Approve => v1::GateDecision::Approve,
        Decision::Refuse => v1::GateDecision::Reject,
        Decision::Discuss => v1::GateDecision::Discuss,
        Decision::Answer => v1::GateDecision::Answer,
    }
}

/// The answer that a review holds.
fn answer(row: &GateView) -> Option<String> {
    let exit = row.node()?.exits.get(usize::from(row.open().body.exit?.0))?;
    exit.answer().map(str::to_owned)
}

fn message(view: &SessionView, row: &GateView) -> String {
    let (process, open) = (&view.session.definition, row.open());
    let asked = open.body.asked.as_ref().filter(|asked| !asked.open);
    let subject = asked.map(|asked| request(&asked.subject));
    let call = open.body.call.as_ref().map(|call| call.capability.as_str());
    question(process, call, answer(row).as_deref(), subject.as_deref())
}

/// The question of a gate, for people: about a call, an answer of the agent, or a request with a subject.
fn question(process: &str, call: Option<&str>, answer: Option<&str>, subject: Option<&str>) -> String {
    let matter = match (call, answer, subject) {
        (Some(capability), _, _) => GateMatter::Call { capability },
        (None, Some(answer), _) => GateMatter::Review { answer },
        (None, None, Some(subject)) => GateMatter::Request { subject },
        (None, None, None) => GateMatter::Decision,
    };
    gate_message(process, matter)
}
