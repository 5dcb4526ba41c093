//! A server of a cluster: its configuration, and its connections to the other servers.

mod certificates;
mod config;
mod connections;
mod transport;

pub(crate) use config::{ClusterConfig, FIRST};
pub(crate) use connections::Connections;

pub(crate) use certificates::identity;
