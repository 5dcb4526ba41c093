//! The command line from outside: the built program, its exit codes, its two outputs.

mod bad_inputs;
mod check;
mod compose;
mod conversation;
mod deploy;
mod dev;
mod doors;
mod drain;
mod errands;
mod gallery;
mod graph;
mod journey;
mod mail;
mod metrics;
mod redis;
mod server;
mod simulate;
mod support;
mod tenants;
mod timers;
mod tokens;
mod traces;
mod usage;
mod verbs;
mod webhooks;
mod work;
