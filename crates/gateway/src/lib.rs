//! Everything that comes in: one port that speaks gRPC, gRPC-Web and JSON.
//!
//! A request passes, from outside to inside: the transport ([`serve`]), the choice of protocol ([`transcode`], which
//! turns JSON into gRPC), gRPC-Web, the guard (sizes, frames, deadlines), and a service, whose replies lose what their
//! caller may not read. A service refuses a call with a [`Refusal`]; every protocol shows the same reason. The pages,
//! [`webhooks`] among them, are served beside it.
//!
//! A process that lacks what a call needs passes the whole call on ([`proxy`]).
//!
//! This crate must never know: how state is stored or replicated, what is sent out.

mod admission;
mod api;
mod around;
pub mod auth;
mod beside;
mod bodies;
mod body;
mod by_name;
pub mod calls;
mod connections;
mod convert;
mod cpu_shares;
pub mod decision;
mod error;
mod guard;
mod heads;
mod hide;
mod known;
mod limiter_clock;
pub mod limits;
pub mod mail;
mod mask;
pub mod names;
pub mod one_port;
mod open_calls;
mod pages;
mod port;
pub mod proxy;
mod quotas;
mod readable;
mod refusals;
mod reply_tokens;
pub mod routes;
mod run_address;
mod scans;
pub mod sealing;
pub mod serve;
pub mod services;
mod session_request;
mod stale;
mod tallies;
mod trace;
pub mod transcode;
mod unread;
pub mod webhooks;

pub use admission::Admission;
pub use api::{Api, PageSettings};
pub use connections::ConnectionLimits;
pub use error::{DOMAIN, QUARANTINED_MAIL, Reason, Refusal};
pub use port::Port;
pub use quotas::QuotaDefaults;
