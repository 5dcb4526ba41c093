//! Calls that are passed on: a process that has no replica of what a call needs sends the whole call to a server that has
//! one, by the option `route` of each method.
//!
//! - A gateway has no replica at all: [`Proxy`] is its whole port ([`gateway_port`]).
//! - A server passes on only what its failed replicas would have answered ([`PassOn`]).
//! - A process that only delivers passes nothing on, and asks servers about its jobs ([`AnswersDelivery`]).
//! - [`CallServer`] answers calls that others pass on. They come over connections of the cluster's own transport, which
//!   only a certificate of the cluster opens, and never over the public port.
//!
//! The far server authenticates the caller's own credential, as always: who passes a call on adds nothing to its rights. A
//! gateway asks a server about the credential before it reads the body of a call, too ([`Holders`]). A call is passed on
//! once: the server that gets it refuses what it cannot answer.
//!
//! Each request names the epochs of the map by which it is routed. A server by whose map the buckets have other shards does not
//! begin it, and the request is routed again by the newer map ([`Maps::agree`]).
//!
//! Chosen: HTTP/2 over the transport between servers, with the bytes of the request as they came. Rejected: the public
//! port of the servers, whose certificates say nothing about the cluster, and which cannot tell a gateway from a client.

mod client_address;
mod credentials;
mod delivery;
mod facts;
mod far;
mod follow;
mod forward;
mod head;
mod holder;
mod links;
mod map;
mod need;
mod pages;
mod pass_on;
mod permits;
mod port;
mod relayed;
mod service;

pub use client_address::ClientAddress;
pub use delivery::AnswersDelivery;
pub use facts::{Facts, RedisFacts, ServerFacts, ask_facts};
pub use far::CallServer;
pub use forward::{LocalMaps, Maps, Proxy};
pub(crate) use holder::HoldersElsewhere;
pub use holder::{Holder, Holders};
pub use links::{CallIo, ServerDialer};
pub use map::{RouteGroup, RouteMap, RouteServer};
pub use pass_on::PassOn;
pub use port::gateway_port;

pub(crate) use head::strip_internal;
