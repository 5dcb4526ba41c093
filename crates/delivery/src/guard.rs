//! Which addresses may be asked. Nothing here connects to anything.
//!
//! An address passes twice: [`Target::read`] reads it and checks what can be seen in it, and [`check_address`] looks at
//! every IP address that its name leads to, or that stands in it.

mod egress;
mod ranges;
mod target;

pub use egress::{Egress, HostRule, HostRuleError, Policies, RulesUnknown};
pub use ranges::{check_address, special_range};
pub use target::{Place, Target};

/// Why an address may not be asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{told}")]
pub struct Refused {
    /// Its stable word.
    pub reason: crate::Reason,
    /// What is wrong, in words for the author of the address. It never holds an address that a name leads to.
    pub told: String,
}

impl Refused {
    fn new(reason: crate::Reason, told: impl Into<String>) -> Self {
        Self { reason, told: told.into() }
    }
}
