//! What the command line says to people: a file for each command.

pub mod backup;
pub mod check;
pub mod client;
pub mod cluster;
pub mod demo;
pub mod demo_cluster;
pub mod dev;
pub mod docs;
pub mod doctor;
pub mod refused;
pub mod secrets;
pub mod test;
