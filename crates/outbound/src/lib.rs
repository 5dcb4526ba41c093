//! The delivery role: relays the effects and the work of sessions to the bus, and turns the outcomes of the delivery
//! worker into commands.
//!
//! - [`Role`] runs the relays of all shards and one delivery worker.
//! - [`TenantRules`] are the egress rules of tenants.
//! - [`FailureCode`] says why an effect was deferred or given up.
//! - The modules below `render` write what mails and webhooks say.
//!
//! It must never know the configuration's files: it is given [`Settings`] and an open bus.

mod answers;
mod backoff;
mod capacity;
mod caps;
mod destinations;
mod effects;
mod failure_code;
mod health;
mod leading;
mod ping;
mod ready;
mod relay;
mod render;
mod role;
mod rules;
mod timers;

pub use failure_code::FailureCode;
pub use role::{Role, Settings, WORK, WORK_OF_MODELS};
pub use rules::{Names, TenantRules};
