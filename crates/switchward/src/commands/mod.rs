//! The commands: one file for each, and `client` for those that call a server.

pub(crate) mod backup;
pub(crate) mod check;
pub(crate) mod client;
pub(crate) mod cluster;
pub(crate) mod completion;
pub(crate) mod context;
pub(crate) mod demo;
pub(crate) mod dev;
pub(crate) mod docs;
pub(crate) mod doctor;
pub(crate) mod graph;
pub(crate) mod man;
mod notes;
mod offline;
pub(crate) mod schema;
pub(crate) mod secrets;
pub(crate) mod server;
pub(crate) mod simulate;
pub(crate) mod test;
