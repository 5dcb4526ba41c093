//! Approvals: the state of that type, and the gate that any state may have. See `docs/formats-conversation.md#approval`
//! and `docs/formats-conversation.md#approval-gates`.

use switchward_machine::{
    Channel, Content, Decision, GateKind, GateSpec, Inquiry, Message, Port, Recipient, Resolve, Rounds,
    reserved_keys::APPROVAL,
};

use super::hints::{hinted, hints};
use super::messages;
use super::read;
use super::reader::Reader;
use crate::document::Node;
use crate::limits::{ESCALATIONS_MAX, LINE_BYTES_MAX, TEMPLATE_BYTES_MAX};
use crate::shape::{self, Fields, Shape};

const REQUEST: Shape = Shape {
    what: "`request_template`",
    keys: &["subject_template", "body_template"],
    ignored: &[],
    hints: &[],
};
const ESCALATION: Shape = Shape {
    what: "`escalation`",
    keys: &["timeout_hours", "escalation_contacts", "max_escalations"],
    ignored: &[],
    hints: &[],
};

/// The ports of an approval.
pub(super) const PORTS: [&str; 4] = [APPROVED, "rejected", DISCUSSION, TIMEOUT];
/// The port of an approval that nobody has decided in time.
const TIMEOUT: &str = "timeout";
/// The port of an approval that was given.
pub(super) const APPROVED: &str = "approved";
/// The port of a reply without a decision; without a transition the request stays open.
pub(super) const DISCUSSION: &str = "discussion";
/// Default rounds of an escalation (`tests/corpus/conversation/sentences.tsv#7c-8`).
const ESCALATIONS: u32 = 1;

/// See `docs/formats-conversation.md#approval`.
pub(super) fn state<'a>(fields: &Fields<'a>, cx: &mut Reader<'a, '_>) -> GateSpec {
    let to = fields.required("approvers", cx.report);
    let to = to.map(|node| messages::approvers(node, cx)).unwrap_or_default();
    let mut message = request(to);
    if let Some(node) = fields.optional("request_template")
        && let Some(request) = Fields::open(node, &REQUEST, cx.report)
    {
        let subject = request.optional("subject_template");
        message.subject =
            subject.and_then(|node| read::template(node, "`subject_template`", LINE_BYTES_MAX, cx));
        let body = request.optional("body_template");
        message.body = body.and_then(|node| read::template(node, "`body_template`", TEMPLATE_BYTES_MAX, cx));
    }
    let phrases = fields.optional("classification_hints").map(|node| {
        cx.idle(node, TIMEOUT, "no reply fires this port; it fires if nobody has decided in time");
        hints(node, &PORTS, cx)
    });
    let mut phrases = phrases.unwrap_or_default();
    phrases.retain(|(port, _)| port != TIMEOUT);
    if let Some(node) = fields.optional("channel") {
        shape::word(node, "`channel`", &["email"], cx.report);
    }
    let rounds = fields.optional("escalation").and_then(|node| escalation(node, cx));
    let settle = |port: &str| Resolve::Settle(Port::Named(port.to_owned()));
    let decisions = [Decision::Approve, Decision::Refuse, Decision::Discuss];
    let hinted = hinted(&phrases);
    let meant = |port: &str| PORTS.iter().position(|known| *known == port);
    let phrases = phrases.into_iter().filter_map(|(port, phrases)| {
        let decision = decisions.get(meant(&port)?)?;
        Some((*decision, phrases))
    });
    let inquiry = Inquiry { message, phrases: phrases.collect(), hinted, rounds };
    let outcomes = decisions.into_iter().zip(PORTS.map(settle)).collect();
    recorded(outcomes, inquiry)
}

/// A gate of which the data keep what was shown and who refused.
fn recorded(outcomes: Vec<(Decision, Resolve)>, inquiry: Inquiry) -> GateSpec {
    let record = Some(APPROVAL.to_owned());
    GateSpec { kind: GateKind::Approval, outcomes, inquiry: Some(inquiry), record }
}

/// Wires a gate whose discussion no transition takes: the comment is passed on and the gate stays open.
pub(super) fn pass_discussions_on(spec: &mut GateSpec) {
    for (decision, resolve) in &mut spec.outcomes {
        if *decision == Decision::Discuss {
            *resolve = Resolve::PassOn;
        }
    }
}

/// The escalation while nobody decides: of an approval, and of each part of a task.
pub(super) fn escalation<'a>(node: &'a Node, cx: &mut Reader<'a, '_>) -> Option<Rounds> {
    let fields = Fields::open(node, &ESCALATION, cx.report)?;
    let hours = fields.required("timeout_hours", cx.report);
    let every_ms = hours.and_then(|node| read::hours(node, "`timeout_hours`", cx));
    let to = fields.optional("escalation_contacts");
    let to = to.map(|node| messages::approvers(node, cx)).unwrap_or_default();
    let max = fields.optional("max_escalations");
    let max = max.and_then(|node| shape::integer(node, "`max_escalations`", 0..=ESCALATIONS_MAX, cx.report));
    let max = max.and_then(|max| u32::try_from(max).ok()).unwrap_or(ESCALATIONS);
    let lapse = Resolve::Settle(Port::Named(TIMEOUT.into()));
    Some(Rounds { every_ms: every_ms?, to, max, lapse })
}

/// `None` if no approval is required.
pub(super) fn gate<'a>(node: &'a Node, fields: &Fields<'a>, cx: &mut Reader<'a, '_>) -> Option<GateSpec> {
    let at = fields.optional("require_human_approval");
    let required = at.and_then(|node| read::flag(node, "`require_human_approval`", cx)) == Some(true);
    let to = fields.optional("approval_contacts");
    let to = to.map(|node| messages::approvers(node, cx)).unwrap_or_default();
    if !required {
        cx.idle(node, "approval_contacts", "it is used only with `require_human_approval: true`");
        return None;
    }
    fields.required("approval_contacts", cx.report);
    let (message, phrases) = (request(to), Vec::new());
    let inquiry = Inquiry { message, phrases, hinted: false, rounds: None };
    let outcomes = vec![(Decision::Approve, Resolve::TakeHeld), (Decision::Refuse, Resolve::Stay)];
    Some(recorded(outcomes, inquiry))
}

/// A request of which the author has written nothing yet.
fn request(to: Vec<Recipient>) -> Message {
    Message { channel: Channel::Email, to, subject: None, body: None, content: Content::Text }
}
