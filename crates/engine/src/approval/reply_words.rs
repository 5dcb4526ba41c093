//! What a reply says: the decision in the first line of its writer's own words, and the comment below it.

use switchward_expr::{ReplyDecision, decision_line};
use switchward_machine::{Decision, GateSpec};
use switchward_state::limits::NOTE_BYTES_MAX;

/// What a reply's first line decides at a gate; `None` if it decides nothing.
pub(crate) fn decision_of(spec: &GateSpec, own: &str) -> Option<Decision> {
    let phrases =
        |decision| spec.inquiry.as_ref().map(|inquiry| inquiry.phrases_of(decision)).unwrap_or_default();
    let (approve, refuse) = (phrases(Decision::Approve), phrases(Decision::Refuse));
    match decision_line(own, approve, refuse, phrases(Decision::Discuss)) {
        ReplyDecision::Approve => Some(Decision::Approve),
        ReplyDecision::Reject => Some(Decision::Refuse),
        ReplyDecision::Undecided => None,
    }
}

/// What stands below the line that decides.
pub(crate) fn comment(own: &str) -> String {
    let mut lines = own.lines().skip_while(|line| line.trim().is_empty());
    lines.next();
    cut(lines.collect::<Vec<_>>().join("\n").trim(), NOTE_BYTES_MAX)
}

/// The beginning of a text, at most this many bytes of it.
pub(crate) fn cut(text: &str, bytes_max: usize) -> String {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}
