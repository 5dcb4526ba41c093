//! The size of results.

use serde_json::Value;

use crate::limits::RESULT_BYTES_MAX;
use crate::{DeliveryReason, Failed};

/// Refuses a result that is too large.
pub(super) fn bounded(result: &Value) -> Result<(), Failed> {
    let bytes = result.to_string().len();
    if bytes <= RESULT_BYTES_MAX {
        return Ok(());
    }
    let message = format!("the result has {bytes} bytes as JSON, at most {RESULT_BYTES_MAX} are allowed");
    Err(Failed::new(DeliveryReason::AnswerTooLarge, message))
}
