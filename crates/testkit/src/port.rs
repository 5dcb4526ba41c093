//! Ports for servers that are started by the port's number, and again on the same one.

use std::hash::{BuildHasher as _, RandomState};
use std::net::TcpListener;
use std::ops::Range;

/// Ports that Linux gives nobody by itself: `net.ipv4.ip_local_port_range` begins above them. A port that it had given
/// could go to any other connection before the server listens, or while the server is down.
const PORTS: Range<u16> = 10_000..32_000;

/// Returns a random port of these that is free now.
#[must_use]
pub fn free_port() -> u16 {
    let drawn = || PORTS.start + (RandomState::new().hash_one(0) % PORTS.len() as u64) as u16;
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    std::iter::repeat_with(drawn).find(is_free).expect("a port is free")
}
