//! The links between the servers of a development cluster: one for each direction of dialing.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

use super::link::{Link, Mode};

/// The links, by the server that opens the connections and the one that accepts them.
pub(super) struct Links(BTreeMap<(u64, u64), Link>);

impl Links {
    /// Opens a link from each server to each other one. `peers` are the addresses where the servers listen for each
    /// other, by number.
    ///
    /// # Errors
    /// There is no free port.
    pub(super) async fn open(peers: &BTreeMap<u64, SocketAddr>) -> io::Result<Self> {
        let mut links = BTreeMap::new();
        for from in peers.keys() {
            for (to, address) in peers.iter().filter(|(to, _)| *to != from) {
                links.insert((*from, *to), Link::open(*address).await?);
            }
        }
        Ok(Self(links))
    }

    /// The addresses by which a server reaches the others, each `NUMBER=HOST:PORT`.
    pub(super) fn peers_of(&self, server: u64) -> Vec<String> {
        let own = self.0.iter().filter(|((from, _), _)| *from == server);
        own.map(|((_, to), link)| format!("{to}={}", link.address())).collect()
    }

    /// Cuts all links of a server.
    pub(super) fn partition(&self, server: u64) {
        self.of(server).for_each(|link| link.set(Mode::Cut));
    }

    /// Opens all links of a server.
    pub(super) fn heal(&self, server: u64) {
        self.of(server).for_each(|link| link.set(Mode::Open));
    }

    /// Opens all links.
    pub(super) fn heal_all(&self) {
        self.0.values().for_each(|link| link.set(Mode::Open));
    }

    /// Changes one link. Returns false if there is none between these servers.
    pub(super) fn set(&self, from: u64, to: u64, mode: Mode) -> bool {
        let link = self.0.get(&(from, to));
        link.inspect(|link| link.set(mode)).is_some()
    }

    /// The links of a server that are not open, such as `cut: 1, 3` or `to 2 reset`; `open` if all are.
    pub(super) fn in_words(&self, server: u64) -> String {
        let others: Vec<u64> =
            self.0.keys().filter(|(from, _)| *from == server).map(|(_, other)| *other).collect();
        let mode = |from, to| self.0.get(&(from, to)).map_or(Mode::Open, Link::mode);
        let words =
            others.into_iter().flat_map(|other| between(mode(server, other), mode(other, server), other));
        let words: Vec<String> = words.collect();
        if words.is_empty() { "open".to_owned() } else { words.join(", ") }
    }

    fn of(&self, server: u64) -> impl Iterator<Item = &Link> {
        self.0.iter().filter(move |((from, to), _)| *from == server || *to == server).map(|(_, link)| link)
    }
}

/// What is unusual about the two links to another server.
fn between(to: Mode, from: Mode, other: u64) -> Vec<String> {
    if to == from {
        return if to == Mode::Open { Vec::new() } else { vec![format!("{other} {to}")] };
    }
    let both = [("to", to), ("from", from)].into_iter().filter(|(_, mode)| *mode != Mode::Open);
    both.map(|(way, mode)| format!("{way} {other} {mode}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn links() -> Links {
        let peers = (1..=3).map(|number| (number, SocketAddr::from(([127, 0, 0, 1], 9))));
        Links::open(&peers.collect()).await.unwrap()
    }

    #[tokio::test]
    async fn a_partition_cuts_a_server_off_from_all_others_both_ways() {
        let links = links().await;
        let words = |links: &Links| [1, 2, 3].map(|server| links.in_words(server));
        assert_eq!(words(&links), ["open", "open", "open"]);
        links.partition(2);
        assert_eq!(words(&links), ["2 cut", "1 cut, 3 cut", "2 cut"]);
        links.partition(3);
        links.heal(2);
        assert_eq!(words(&links), ["3 cut", "open", "1 cut"]);
        links.heal_all();
        assert_eq!(words(&links), ["open", "open", "open"]);
    }

    #[tokio::test]
    async fn one_link_has_a_mode_of_its_own() {
        let links = links().await;
        assert!(links.set(1, 2, Mode::Reset) && links.set(3, 1, Mode::Cut));
        assert_eq!(links.in_words(1), "to 2 reset, from 3 cut");
        assert_eq!(links.in_words(2), "from 1 reset");
        for (from, to) in [(1, 1), (1, 4), (0, 2)] {
            assert!(!links.set(from, to, Mode::Cut));
        }
    }

    #[tokio::test]
    async fn each_server_reaches_the_others_by_links_of_its_own() {
        let links = links().await;
        let peers = [1, 2, 3].map(|server| links.peers_of(server));
        assert!(
            peers[0][0].starts_with("2=127.0.0.1:") && peers[0][1].starts_with("3=127.0.0.1:"),
            "{peers:?}"
        );
        let addresses: std::collections::BTreeSet<&str> = peers
            .iter()
            .flatten()
            .filter_map(|peer| peer.split_once('='))
            .map(|(_, address)| address)
            .collect();
        assert_eq!(addresses.len(), 6);
    }
}
