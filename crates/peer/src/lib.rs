//! The transport between the servers of a cluster: frames over TCP and mutual TLS.
//!
//! - [`Peers`] is a server's end of it: calls and streams to other servers, and a listener for theirs.
//! - [`Handler`] answers what comes in.
//! - [`Hello`] is what two servers know of each other before the first request.
//! - [`CallDialer`] dials servers for calls of clients that a process passes on, which speak HTTP/2.
//! - [`certs`] makes the certificates.
//!
//! It must never know what a body holds: requests have a kind and a group, both numbers of the caller.
//!
//! Chosen: each server dials each other one, with one connection for each class of [`Traffic`], so that a long body never delays a
//! heartbeat. A stream has its own connection, and TCP controls its flow. Rejected: gRPC, whose streams share one
//! connection and one buffer, and whose errors do not say whether a request was sent.

mod calls;
pub mod certs;
mod contact;
mod counts;
mod dialer;
mod endpoint;
mod error;
mod frame;
mod handler;
mod handshake;
mod hello;
mod inbound;
pub mod limits;
mod link;
mod name;
mod options;
mod peers;
mod pings;
mod queue;
mod reach;
mod reports;
mod request;
mod serve;
#[cfg(feature = "simulation")]
pub mod simulation;
mod stream;
mod tls;
mod verifier;
mod wire;

pub use calls::{CallDialer, CallStream, certificate_name};
pub use contact::Contact;
pub use error::PeerError;
pub use handler::Handler;
pub use hello::{Hello, PROTOCOL};
pub use name::{PeerName, cluster_id, cluster_text, is_reserved_host, server_name};
pub use options::{PeerLimits, PeerOptions, WallClock};
pub use peers::Peers;
pub use request::{Request, Traffic};
pub use stream::PeerStream;
pub use tls::{TlsError, TlsPem};
