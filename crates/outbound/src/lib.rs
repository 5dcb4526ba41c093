//! The delivery role: relays the effects and the work of sessions to the bus, and turns the outcomes of the delivery
//! worker into commands.
//!
//! - [`Role`] runs the relays of all shards, and a delivery worker in the same process if it is to have one.
//! - [`Worker`] runs a delivery worker in a process of its own. It asks and reports by [`FromServers`], and servers answer it by
//!   [`DeliveryServer`].
//! - [`TenantRules`] are the egress rules of tenants.
//! - The modules below `render` write what mails and webhooks say.
//!
//! It must never know the configuration's files: it is given settings and an open bus.

mod answers;
mod backoff;
mod capacity;
mod caps;
mod effects;
mod health;
mod leading;
mod ping;
mod reach;
mod ready;
mod relay;
mod remote;
mod render;
mod role;
mod rules;
mod timers;

pub use reach::BusReach;
pub use remote::{AskServers, DeliveryServer, FromServers};
pub use role::{RelaySettings, Role, WORK, WORK_OF_MODELS, Worker, WorkerSettings};
pub use rules::{Names, TenantRules};
