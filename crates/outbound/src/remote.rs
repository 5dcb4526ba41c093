//! Processes that only deliver: what they ask the servers whose jobs they take from the bus, and what the servers answer.
//!
//! A delivery process has no data and no key of a tenant. It asks before each job whether it is still wanted, and reports
//! what became of it. A server believes it that: a process that has its certificate, or writes to the bus, can claim that a
//! mail was sent or what a receiver answered. It is believed nothing else: a report counts only for an effect or a work item that a
//! server has put on the bus, on the channel that it is for, so it cannot settle a cost or complete the work of a worker.
//!
//! Chosen: questions to the servers, over the same connections as those of gateways. Rejected: outcomes over the bus, which
//! could not say whether a job is still wanted without a second stream of answers. Only the answer to a single message to an
//! endpoint goes over the bus: nothing is recorded, and it is for the one server that waits.

mod ask;
mod form;
mod server;

pub use ask::{AskServers, FromServers};
pub use server::DeliveryServer;
