//! What the command line says to people: a file for each command.

pub mod client;
pub mod demo;
pub mod demo_cluster;
pub mod dev;
pub mod doctor;
