//! What goes out, seen from outside: against the table of addresses, and against servers that behave as they are told.

mod desk;
mod doors;
mod guard;
mod http;
mod kept;
mod mail;
mod model;
mod openid;
mod server;
