//! What readers of a history see of gates and replies.

use switchward_machine::{GateKind, OpenId};
use switchward_state::PublicEvent;
use switchward_state::approval::{
    ApprovalEvent, Gate, PageCodeFact, PageCodeStep, ReplyFact, ReplyOutcome, SenderProof, Via,
};
use switchward_state::catalogue::LinkAuth;

/// Returns what a reader sees of an event; `None` if it is internal.
pub(crate) fn public(event: &ApprovalEvent) -> Option<PublicEvent> {
    Some(match event {
        ApprovalEvent::Opened { gate, body, .. } => opened(*gate, body),
        ApprovalEvent::Closed { gate, decision, by, comment, via } => PublicEvent::new("approval.decided")
            .with("gate", gate.0)
            .with("decision", decision.word())
            .with("by", by)
            .with("via", if matches!(via, Via::Mail | Via::Vouched) { via.word() } else { "" })
            .with("vouched_by", via.vouched_by(by))
            .with("link_auth", via.link_auth().map_or("", LinkAuth::word))
            .with("comment", comment),
        ApprovalEvent::Commented { gate, by, comment } => PublicEvent::new("approval.discussed")
            .with("gate", gate.0)
            .with("by", by)
            .with("comment", comment),
        ApprovalEvent::Voided { gates, .. } if !gates.is_empty() => {
            let list: Vec<String> = gates.iter().map(|gate| gate.0.to_string()).collect();
            PublicEvent::new("approval.voided").with("gates", list.join(" "))
        }
        ApprovalEvent::Answered { gate, by, answer, comment, via } => PublicEvent::new("task.completed")
            .with("gate", gate.0)
            .with("by", by)
            .with("via", via.word())
            .with("vouched_by", via.vouched_by(by))
            .with("answer", &answer.0)
            .with("comment", comment),
        ApprovalEvent::Escalated { gate, to, .. } => {
            PublicEvent::of_gate("approval.escalated", *gate).with("to", to.join(" "))
        }
        ApprovalEvent::Reminded { gate, to, .. } => {
            PublicEvent::of_gate("approval.reminded", *gate).with("to", to.join(" "))
        }
        ApprovalEvent::Lapsed { gate } => PublicEvent::of_gate("approval.timed_out", *gate),
        ApprovalEvent::ReplyRecorded(reply) => replied(reply),
        ApprovalEvent::ReplyAnswered { gate, to, run } => {
            let gate = if run.is_some() { String::new() } else { gate.0.to_string() };
            PublicEvent::new("reply.answered").with("gate", gate).with("to", to)
        }
        ApprovalEvent::Votes(fact) => return fact.public(),
        ApprovalEvent::PageCodes(fact) => page_code(fact),
        ApprovalEvent::Voided { .. }
        | ApprovalEvent::AudienceSet { .. }
        | ApprovalEvent::RemindersSet { .. } => return None,
    })
}

fn opened(gate: OpenId, body: &Gate) -> PublicEvent {
    let kind = match body.kind {
        GateKind::Notify | GateKind::ToolAsk | GateKind::Approval => "approval.requested",
        GateKind::Task => "task.created",
    };
    let public = PublicEvent::new(kind).with("gate", gate.0).with("kind", body.kind.word());
    let public = public.with("requester", &body.requester);
    let to = body.asked.as_ref().map(|asked| asked.to.join(" ")).unwrap_or_default();
    let public = public.with("to", to);
    match &body.call {
        Some(call) => public.with("capability", &call.capability).with("args_digest", call.digest),
        None => public.with("digest", body.shown().map(|digest| digest.to_string()).unwrap_or_default()),
    }
}

fn page_code(PageCodeFact { gate, to, step }: &PageCodeFact) -> PublicEvent {
    let kind = match step {
        PageCodeStep::Sent => "approval.code_sent",
        PageCodeStep::Refused => "approval.code_refused",
        PageCodeStep::Accepted => "approval.code_accepted",
    };
    PublicEvent::of_gate(kind, *gate).with("to", to)
}

/// A reply came by mail, or an operator brought it.
fn replied(reply: &ReplyFact) -> PublicEvent {
    let ReplyFact { from, text, proof, about, evidence, why, brought_by, .. } = reply;
    let public = PublicEvent::new("reply.recorded")
        .with("from", from)
        .with("text", text)
        .with("authenticated", *proof == SenderProof::Mail);
    let public = match evidence {
        Some(evidence) => public.with_facts("evidence", evidence),
        None => public,
    };
    public
        .with("vouched_by", proof.vouched_by())
        .with("brought_by", brought_by.as_deref().unwrap_or_default())
        .with("about", about.map(|gate| gate.0.to_string()).unwrap_or_default())
        .with("why", why.map(ReplyOutcome::word).unwrap_or_default())
}
