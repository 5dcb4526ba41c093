//! Ports for servers that are started by the port's number, and again on the same one.

use std::hash::{BuildHasher as _, RandomState};
use std::net::{TcpListener, UdpSocket};
use std::ops::Range;
use std::sync::Mutex;

/// Ports that Linux gives nobody by itself: `net.ipv4.ip_local_port_range` begins above them. A port that it had given
/// could go to any other connection before the server listens, or while the server is down.
const PORTS: Range<u16> = 10_000..32_000;

/// What marks the ports that this process was given as taken: sockets of another protocol with the same numbers, which no other
/// process can have before this one ends. Without them another test could draw a port before its server listens.
static GIVEN: Mutex<Vec<UdpSocket>> = Mutex::new(Vec::new());

/// Returns a random port of these that is free now, and that no other test is given while this process runs.
///
/// # Panics
/// If a test that holds the list has panicked.
#[must_use]
pub fn free_port() -> u16 {
    let drawn = || PORTS.start + (RandomState::new().hash_one(0) % PORTS.len() as u64) as u16;
    let mark = |port: u16| {
        let mark = UdpSocket::bind(("127.0.0.1", port)).ok()?;
        TcpListener::bind(("127.0.0.1", port)).is_ok().then_some((port, mark))
    };
    let (port, mark) = std::iter::repeat_with(drawn).find_map(mark).expect("a port is free");
    GIVEN.lock().expect("no test panics here").push(mark);
    port
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_given_once() {
        let port = free_port();
        assert!(TcpListener::bind(("127.0.0.1", port)).is_ok(), "its server can listen there");
        assert!(UdpSocket::bind(("127.0.0.1", port)).is_err(), "nobody else draws it");
    }
}
