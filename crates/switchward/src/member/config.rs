//! The configuration of a process of a cluster: `[cluster]`.

use anyhow::{Context as _, ensure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The number of a cluster's first server: that of a server alone, which is its only voter.
pub(crate) const FIRST: u64 = 1;

/// What a process of a cluster does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ProcessRole {
    /// It answers clients: from its own data, or by passing their calls on.
    Gateway,
    /// It holds data and decides.
    Engine,
    /// It carries out what sessions send.
    Delivery,
}

/// A process of a cluster, by its roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessKind {
    /// It holds data: the role engine, and any others.
    Server,
    /// It holds no data, and passes all calls on: the role gateway alone.
    Gateway,
    /// It holds no data, and carries out what sessions send: the role delivery alone.
    Delivery,
}

impl ProcessRole {
    /// Those of a server.
    pub(crate) fn all() -> Vec<Self> {
        vec![Self::Gateway, Self::Engine, Self::Delivery]
    }
}

/// A process of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClusterConfig {
    /// What this process does.
    #[serde(default = "ProcessRole::all")]
    pub(crate) roles: Vec<ProcessRole>,
    /// This server's number, from 1. It is never given to another server. 0 for a process without data.
    #[serde(default)]
    pub(crate) server: u64,
    /// Where this server listens for the others; absent for a process without data.
    #[serde(default)]
    pub(crate) listen: Option<SocketAddr>,
    /// The address by which the others reach it, `HOST:PORT`; absent: the one that it listens on.
    #[serde(default)]
    pub(crate) address: Option<String>,
    /// The authority that signs the certificates of all servers, PEM.
    pub(crate) ca_file: PathBuf,
    /// The certificate of this process, PEM. It names the cluster and whose it is.
    pub(crate) cert_file: PathBuf,
    /// The private key of the certificate, PEM.
    pub(crate) key_file: PathBuf,
    /// The addresses of other servers, each `NUMBER=HOST:PORT`. The others are learned from the cluster.
    #[serde(default)]
    pub(crate) peers: Vec<String>,
    /// How often the cluster compares the replicas of all groups, in minutes; absent: once a week.
    #[serde(default)]
    pub(crate) verify_minutes: Option<u32>,
    /// Voters of each group of a cluster that this server founds: 3 or 5. The cluster keeps the number; it makes no
    /// difference later, and on other servers.
    #[serde(default = "voters")]
    pub(crate) voters: u32,
    /// Whether the servers of `peers` are reached there also if the cluster names other addresses of them. A development
    /// cluster sets it, because its servers reach each other by links; no configuration can.
    #[serde(skip)]
    pub(crate) fixed_peers: bool,
    /// Whether the clocks of the servers are compared; no configuration can change it.
    #[serde(skip)]
    pub(crate) clocks: ServerClocks,
}

/// What the clocks of a cluster's servers are to each other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ServerClocks {
    /// Each runs by itself, and they are compared.
    #[default]
    Compared,
    /// A command moves them one after the other, so they are not compared. Those of a development cluster can be so.
    MovedByHand,
}

/// Voters of each group, if the configuration does not say it.
pub(crate) const VOTERS: u32 = 3;

fn voters() -> u32 {
    VOTERS
}

impl ClusterConfig {
    /// The address by which other servers reach this one; empty for a process without data.
    pub(crate) fn address(&self) -> String {
        let listen = || self.listen.map(|listen| listen.to_string()).unwrap_or_default();
        self.address.clone().unwrap_or_else(listen)
    }

    /// What kind of process it is. Roles without engine that [`check`](Self::check) refuses count as a server.
    pub(crate) fn kind(&self) -> ProcessKind {
        match self.roles[..] {
            [ProcessRole::Gateway] => ProcessKind::Gateway,
            [ProcessRole::Delivery] => ProcessKind::Delivery,
            _ => ProcessKind::Server,
        }
    }

    /// Returns true if the process has a role.
    pub(crate) fn has(&self, role: ProcessRole) -> bool {
        self.roles.contains(&role)
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
        match self.kind() {
            ProcessKind::Gateway => return self.check_without_data("a gateway"),
            ProcessKind::Delivery => return self.check_without_data("a delivery process"),
            ProcessKind::Server => {}
        }
        ensure!(
            self.has(ProcessRole::Engine),
            "cluster.roles: must name engine, or be [\"gateway\"] or [\"delivery\"]: without data each is a process of its own, \
             with a certificate of its own"
        );
        ensure!(self.verify_minutes != Some(0), "cluster.verify_minutes: must be 1 or more");
        ensure!([3, 5].contains(&self.voters), "cluster.voters: must be 3 or 5");
        ensure!(self.server > 0, "cluster.server: set the number of this server, from 1");
        let listen = self.listen.context("cluster.listen: set where this server listens for the others")?;
        ensure!(
            self.address.is_some() || !listen.ip().is_unspecified(),
            "cluster.address: set the address by which other servers reach this one, because cluster.listen is {listen}"
        );
        self.peers().map(drop)
    }

    fn check_without_data(&self, what: &str) -> anyhow::Result<()> {
        let absent = self.server == 0 && self.listen.is_none() && self.address.is_none();
        ensure!(absent, "cluster: {what} has no cluster.server, cluster.listen and cluster.address");
        ensure!(!self.peers()?.is_empty(), "cluster.peers: {what} needs the address of at least one server");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(peers: &[&str]) -> ClusterConfig {
        ClusterConfig {
            roles: ProcessRole::all(),
            server: 2,
            listen: Some("127.0.0.1:7401".parse().unwrap()),
            address: None,
            ca_file: "ca.crt".into(),
            cert_file: "server-2.crt".into(),
            key_file: "server-2.key".into(),
            peers: peers.iter().map(|&peer| peer.to_owned()).collect(),
            verify_minutes: None,
            voters: VOTERS,
            fixed_peers: false,
            clocks: ServerClocks::Compared,
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
        let everywhere = ClusterConfig { listen: Some("0.0.0.0:7401".parse().unwrap()), ..config(&[]) };
        assert!(everywhere.check().unwrap_err().to_string().starts_with("cluster.address"));
        let named = ClusterConfig { address: Some("node-2:7401".into()), ..everywhere };
        named.check().unwrap();
        assert_eq!(named.address(), "node-2:7401");
        assert_eq!(config(&[]).address(), "127.0.0.1:7401");
        assert!(ClusterConfig { server: 0, ..config(&[]) }.check().is_err());
        assert!(ClusterConfig { voters: 4, ..config(&[]) }.check().is_err());
        assert!(ClusterConfig { listen: None, ..config(&[]) }.check().is_err());
    }

    #[test]
    fn a_process_without_data_is_no_server() {
        let roles = vec![ProcessRole::Gateway];
        let gateway = ClusterConfig { roles: roles.clone(), server: 0, listen: None, ..config(&["1=a:1"]) };
        gateway.check().unwrap();
        assert_eq!((gateway.kind(), config(&[]).kind()), (ProcessKind::Gateway, ProcessKind::Server));
        let delivery = ClusterConfig { roles: vec![ProcessRole::Delivery], ..gateway.clone() };
        delivery.check().unwrap();
        assert_eq!(delivery.kind(), ProcessKind::Delivery);
        let both = ClusterConfig { server: 2, ..gateway.clone() };
        assert!(both.check().unwrap_err().to_string().contains("a gateway has no cluster.server"));
        let alone = ClusterConfig { peers: Vec::new(), ..gateway };
        assert!(alone.check().unwrap_err().to_string().starts_with("cluster.peers"));
        for part in [vec![ProcessRole::Gateway, ProcessRole::Delivery], Vec::new()] {
            let part = ClusterConfig { roles: part, ..config(&[]) };
            assert!(part.check().unwrap_err().to_string().starts_with("cluster.roles"));
        }
        for part in [vec![ProcessRole::Engine], vec![ProcessRole::Gateway, ProcessRole::Engine]] {
            let part = ClusterConfig { roles: part, ..config(&[]) };
            assert_eq!((part.check().is_ok(), part.kind()), (true, ProcessKind::Server));
        }
    }
}
