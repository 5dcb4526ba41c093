//! A process of a cluster: its configuration, and its connections to the servers.

mod certificates;
mod config;
mod connections;
mod facts;
mod inbound;
mod transport;

pub(crate) use config::{ClusterConfig, FIRST, ProcessKind, ProcessRole, ServerClocks, VOTERS};
pub(crate) use connections::{Connections, keys_digest, pass_on};
pub(crate) use facts::{keys_text, redis as redis_facts};

pub(crate) use certificates::{
    follow as follow_certificates, identity, read as read_certificates, without_data,
};
pub(crate) use transport::ToServers;
