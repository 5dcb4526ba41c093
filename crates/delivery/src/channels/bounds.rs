//! The size of results.

use serde_json::Value;
use switchward_state::delivery::SizedPart;

use crate::failed::length;
use crate::limits::RESULT_BYTES_MAX;
use crate::{DeliveryDetail, DeliveryReason, Failed};

/// Refuses a result that is too large.
pub(super) fn bounded(result: &Value) -> Result<(), Failed> {
    let bytes = result.to_string().len();
    if bytes <= RESULT_BYTES_MAX {
        return Ok(());
    }
    let (part, bytes, max) = (SizedPart::Result, length(bytes), length(RESULT_BYTES_MAX));
    Err(Failed::new(DeliveryReason::AnswerTooLarge, DeliveryDetail::TooLarge { part, bytes, max }))
}
