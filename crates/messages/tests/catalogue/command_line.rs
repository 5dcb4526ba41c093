//! What the command line says, compared with `expected/`: a file for each command.

mod client;
mod demo;
mod dev;
mod doctor;
mod doctor_cluster;
mod others;
mod refused;
