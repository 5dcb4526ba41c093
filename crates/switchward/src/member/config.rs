//! The configuration of a server of a cluster: `[cluster]`.

use anyhow::{Context as _, ensure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The number of a cluster's first server: that of a server alone, which is its only voter.
pub(crate) const FIRST: u64 = 1;

/// A server of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClusterConfig {
    /// This server's number, from 1. It is never given to another server.
    pub(crate) server: u64,
    /// Where this server listens for the others.
    pub(crate) listen: SocketAddr,
    /// The address by which the others reach it, `HOST:PORT`; absent: the one that it listens on.
    #[serde(default)]
    pub(crate) address: Option<String>,
    /// The authority that signs the certificates of all servers, PEM.
    pub(crate) ca_file: PathBuf,
    /// This server's certificate, PEM. It names the cluster and this server.
    pub(crate) cert_file: PathBuf,
    /// The private key of the certificate, PEM.
    pub(crate) key_file: PathBuf,
    /// The addresses of other servers, each `NUMBER=HOST:PORT`. The others are learned from the cluster.
    #[serde(default)]
    pub(crate) peers: Vec<String>,
    /// Whether the servers of `peers` are reached there also if the cluster names other addresses of them. A development
    /// cluster sets it, because its servers reach each other by links; no configuration can.
    #[serde(skip)]
    pub(crate) fixed_peers: bool,
}

impl ClusterConfig {
    /// The address by which other servers reach this one.
    pub(crate) fn address(&self) -> String {
        self.address.clone().unwrap_or_else(|| self.listen.to_string())
    }

    /// The addresses of the other servers, by their numbers.
    ///
    /// # Errors
    /// One has another form, or a number comes twice.
    pub(crate) fn peers(&self) -> anyhow::Result<BTreeMap<u64, String>> {
        let mut peers = BTreeMap::new();
        for peer in &self.peers {
            let form =
                || format!("cluster.peers: {peer:?} must be NUMBER=HOST:PORT, such as 2=10.0.0.5:7401");
            let (number, address) = peer.split_once('=').with_context(form)?;
            let number: u64 = number.trim().parse().with_context(form)?;
            ensure!(
                address.trim().rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()),
                form()
            );
            ensure!(
                peers.insert(number, address.trim().to_owned()).is_none(),
                "cluster.peers: server {number} comes twice"
            );
        }
        peers.remove(&self.server);
        Ok(peers)
    }

    /// Checks what can be checked without files.
    ///
    /// # Errors
    /// The line says which key is wrong.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        ensure!(self.server > 0, "cluster.server: numbers begin with 1");
        ensure!(
            self.address.is_some() || !self.listen.ip().is_unspecified(),
            "cluster.address: set the address by which other servers reach this one, because cluster.listen is {}",
            self.listen
        );
        self.peers().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(peers: &[&str]) -> ClusterConfig {
        ClusterConfig {
            server: 2,
            listen: "127.0.0.1:7401".parse().unwrap(),
            address: None,
            ca_file: "ca.crt".into(),
            cert_file: "server-2.crt".into(),
            key_file: "server-2.key".into(),
            peers: peers.iter().map(|&peer| peer.to_owned()).collect(),
            fixed_peers: false,
        }
    }

    #[test]
    fn peers_are_numbers_and_addresses() {
        let peers = config(&["1=10.0.0.1:7401", "2=10.0.0.2:7401", "3 = node-3:7401"]).peers().unwrap();
        let expected = [(1, "10.0.0.1:7401".to_owned()), (3, "node-3:7401".to_owned())];
        assert_eq!(peers, BTreeMap::from(expected), "the server itself is no peer");
        for wrong in ["10.0.0.1:7401", "x=10.0.0.1:7401", "1=10.0.0.1", "1=host:port"] {
            let error = config(&[wrong]).check().unwrap_err().to_string();
            assert!(error.contains("must be NUMBER=HOST:PORT"), "{error}");
        }
        assert!(config(&["1=a:1", "1=b:1"]).check().unwrap_err().to_string().contains("comes twice"));
    }

    #[test]
    fn an_address_is_needed_where_a_server_listens_everywhere() {
        let everywhere = ClusterConfig { listen: "0.0.0.0:7401".parse().unwrap(), ..config(&[]) };
        assert!(everywhere.check().unwrap_err().to_string().starts_with("cluster.address"));
        let named = ClusterConfig { address: Some("node-2:7401".into()), ..everywhere };
        named.check().unwrap();
        assert_eq!(named.address(), "node-2:7401");
        assert_eq!(config(&[]).address(), "127.0.0.1:7401");
        assert!(ClusterConfig { server: 0, ..config(&[]) }.check().is_err());
    }
}
