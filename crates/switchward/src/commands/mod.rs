//! What the command line does: one file for each command, and one for those that talk to a server.

pub(crate) mod backup;
pub(crate) mod check;
pub(crate) mod client;
pub(crate) mod completion;
pub(crate) mod context;
pub(crate) mod demo;
pub(crate) mod dev;
pub(crate) mod doctor;
pub(crate) mod graph;
mod offline;
pub(crate) mod schema;
pub(crate) mod secrets;
pub(crate) mod server;
pub(crate) mod simulate;
pub(crate) mod test;
