//! Decides which addresses may be requested. Nothing here connects to anything.
//!
//! An address is checked twice: [`Target::read`] parses it and checks its parts, and [`check_address`] checks every IP
//! address that its name resolves to, or that it holds.

mod egress;
mod ranges;
mod target;

use switchward_messages::delivery_detail;

use crate::{DeliveryDetail, DeliveryReason};

pub use egress::{Egress, HostRule, HostRuleError, Policies, RulesUnknown};
pub use ranges::{check_address, special_range};
pub use target::{Target, TargetHost};

/// Why an address may not be requested. Its text is in the words of the crate `messages`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", delivery_detail(.detail))]
pub struct Refused {
    /// The stable reason code.
    pub reason: DeliveryReason,
    /// What is wrong, for the author of the address. Never contains an address that a name resolves to.
    pub detail: DeliveryDetail,
}

impl Refused {
    fn new(reason: DeliveryReason, detail: impl Into<DeliveryDetail>) -> Self {
        Self { reason, detail: detail.into() }
    }
}
