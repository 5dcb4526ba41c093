//! What goes out, seen from outside: against the table of addresses, and against scripted servers.

mod addresses;
mod connections;
mod guard;
mod http;
mod mail;
mod model;
mod openid;
mod pings;
mod server;
mod worker;
