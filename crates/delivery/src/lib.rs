//! Performs everything that goes out, and reports the outcomes.
//!
//! - [`channels`] perform jobs: HTTP requests, questions to models, mails and webhooks.
//! - [`guard`] decides which addresses may be requested.
//! - [`http`] is the one HTTP client of this repository: its connections go to addresses that passed the guard.
//! - [`model`] queries a language model and accepts only answers of the requested schema.
//! - [`mail`] writes mails and hands them to a mail server.
//! - [`openid`] signs people in with an OpenID provider.
//! - [`worker`] takes delivery jobs from the bus, performs them, and hands over the outcomes.
//!
//! It must never know how a session is decided or stored, or how an answer gets back to it: it is given a [`bus`] to
//! take from and [`worker::Answers`] to hand outcomes to. Of the crate `state` it uses only the facts of failures, which
//! `messages` renders.
//!
//! Chosen: connections pinned to the addresses that were checked. Rejected: a pool of connections for all tenants, which
//! would carry what one tenant's rules allowed into another tenant's request.
//!
//! [`bus`]: switchward_bus

pub mod channels;
mod failed;
pub mod guard;
pub mod http;
pub mod limits;
pub mod mail;
pub mod model;
pub mod openid;
pub mod reason_code;
mod secret;
pub mod worker;

pub use failed::Failed;
pub use secret::Secret;
pub use switchward_machine::DeliveryReason;
pub use switchward_state::delivery::DeliveryDetail;
