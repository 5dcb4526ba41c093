//! Ports for processes that start again on the same one.

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpListener};
use std::ops::Range;

/// Ports that the system gives to no connection by itself: Linux and macOS begin above them. One that the system had given
/// could be in use when the process starts again.
const PORTS: Range<u16> = 10_000..32_000;
/// Ports that are tried.
const TRIES: usize = 200;

/// Draws free ports of this machine, each once.
#[derive(Default)]
pub(super) struct FreePorts(BTreeSet<u16>);

impl FreePorts {
    /// An address of this machine with a port that is free now.
    ///
    /// # Errors
    /// None was found.
    pub(super) fn draw(&mut self) -> anyhow::Result<SocketAddr> {
        for _ in 0..TRIES {
            let address = SocketAddr::from(([127, 0, 0, 1], rand::random_range(PORTS)));
            if is_free(address) && self.0.insert(address.port()) {
                return Ok(address);
            }
        }
        anyhow::bail!("this machine has no free port from {} to {}", PORTS.start, PORTS.end - 1)
    }
}

/// Returns true if a process can listen there now.
pub(super) fn is_free(address: SocketAddr) -> bool {
    TcpListener::bind(address).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_drawn_once_and_can_be_listened_on() {
        let mut ports = FreePorts::default();
        let drawn: BTreeSet<SocketAddr> = (0..20).map(|_| ports.draw().unwrap()).collect();
        assert_eq!(drawn.len(), 20);
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        assert!(!is_free(listener.local_addr().unwrap()));
    }
}
