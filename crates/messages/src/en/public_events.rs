//! What readers of a history are shown of an event.

use std::borrow::Cow;
use switchward_state::PublicValue;

use super::deliveries::delivery_failure;
use super::evidence::reply_evidence;
use super::faults::{end_comment, fault, work_problem};
use super::session_warnings::session_warning;
use crate::text::subject;

/// A value of an event as a reader is shown it; maybe empty.
#[must_use]
pub fn public_value(value: &PublicValue) -> Cow<'_, str> {
    match value {
        PublicValue::Text(text) => text.as_str().into(),
        PublicValue::Subject(channel, text) => subject(*channel, text).unwrap_or_default(),
        PublicValue::Fault(of_run) => fault(of_run).into(),
        PublicValue::EndComment(comment) => end_comment(comment).into(),
        PublicValue::WorkProblem(problem) => work_problem(problem).into(),
        PublicValue::Warning(warning) => session_warning(warning).into(),
        PublicValue::ReplyEvidence(evidence) => reply_evidence(evidence).into(),
        PublicValue::DeliveryFailure(code, detail) => delivery_failure(code, detail.as_ref()).into(),
    }
}
