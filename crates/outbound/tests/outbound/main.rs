//! The delivery role on several servers that share one bus.

mod leaders;
mod network;
mod servers;
