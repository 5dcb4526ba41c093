//! A reason as its code, for fields of sent forms: `#[serde(with = "switchward_delivery::reason_code")]`.

use serde::de::Error as _;
use serde::{Deserialize as _, Deserializer, Serializer};
use switchward_machine::DeliveryReason;

/// Writes the code.
///
/// # Errors
/// As the format's.
pub fn serialize<S: Serializer>(reason: &DeliveryReason, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(reason.code())
}

/// Reads the code.
///
/// # Errors
/// There is no such code, or as the format's.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<DeliveryReason, D::Error> {
    let code = String::deserialize(from)?;
    DeliveryReason::from_code(&code)
        .ok_or_else(|| D::Error::custom(format!("there is no reason with the code {code:?}")))
}
