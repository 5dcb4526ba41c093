//! Decides which addresses may be requested. Nothing here connects to anything.
//!
//! An address is checked twice: [`Target::read`] parses it and checks its parts, and [`check_address`] checks every IP
//! address that its name resolves to, or that it holds.

mod egress;
mod ranges;
mod target;

pub use egress::{Egress, HostRule, HostRuleError, Policies, RulesUnknown};
pub use ranges::{check_address, special_range};
pub use target::{Target, TargetHost};

/// Why an address may not be requested.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    /// The stable reason code.
    pub reason: crate::DeliveryReason,
    /// What is wrong, for the author of the address. Never contains an address that a name resolves to.
    pub message: String,
}

impl Refused {
    fn new(reason: crate::DeliveryReason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}
