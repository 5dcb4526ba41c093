//! Faults of results that workers send.

use switchward_state::limits::RESULT_SHOWN_BYTES_MAX;
use switchward_state::run::{Fault, ResultProblem};

/// The beginning of a text that a worker has sent, for a fault: at least [`RESULT_SHOWN_BYTES_MAX`] bytes, if it has as
/// many, so that a reader can see that it is cut.
pub(crate) fn excerpt(text: &impl ToString) -> String {
    let mut text = text.to_string();
    text.truncate(text.ceil_char_boundary(RESULT_SHOWN_BYTES_MAX));
    text
}

/// The fault of a result that must be an object.
pub(crate) fn no_object() -> Fault {
    ResultProblem::NoObject.into()
}
