//! How many connections the port takes, and the files that the process may open for them.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use switchward_gateway::ConnectionLimits;

/// Files that the process opens beside its connections: the log, the state, snapshots, Redis, mail, requests.
const OTHER_FILES: usize = 1_024;
/// The fewest connections that a server starts with, whatever files it may open.
const CONNECTIONS_MIN: usize = 16;

/// How many connections there may be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ConnectionsConfig {
    /// At one time.
    pub(crate) max: usize,
    /// Of one address at one time; of IPv6, of one network of 64 bits.
    pub(crate) max_of_peer: usize,
    /// Of one tenant at one time.
    pub(crate) max_of_tenant: usize,
    /// Addresses of proxies in front, which bring the connections of many and have no limit of their own.
    pub(crate) proxies: Vec<IpAddr>,
}

impl Default for ConnectionsConfig {
    fn default() -> Self {
        let ConnectionLimits { all, of_peer, of_tenant, proxies } = ConnectionLimits::default();
        Self { max: all, max_of_peer: of_peer, max_of_tenant: of_tenant, proxies }
    }
}

impl ConnectionsConfig {
    /// Looks at what is configured.
    ///
    /// # Errors
    /// A limit is 0.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let limits =
            [("max", self.max), ("max_of_peer", self.max_of_peer), ("max_of_tenant", self.max_of_tenant)];
        for (name, limit) in limits {
            anyhow::ensure!(limit > 0, "connections.{name}: must be at least 1");
        }
        Ok(())
    }

    /// The limits of the port. Raises the process's soft limit of open files as far as its hard limit allows. If that is too
    /// little for `max` connections, it takes fewer, and logs a warning.
    pub(crate) fn limits(&self) -> ConnectionLimits {
        let files = raised(self.max.saturating_add(OTHER_FILES));
        let all = self.max.min(fitting(files));
        if all < self.max {
            tracing::warn!(
                "the process may open only {files} files, so the server accepts {all} connections instead of \
                 connections.max = {}; raise LimitNOFILE or ulimit -n",
                self.max
            );
        }
        let [of_peer, of_tenant] = [self.max_of_peer, self.max_of_tenant].map(|most| most.min(all));
        ConnectionLimits { all, of_peer, of_tenant, proxies: self.proxies.clone() }
    }
}

/// Connections that leave descriptors for the other files.
fn fitting(files: usize) -> usize {
    files.saturating_sub(OTHER_FILES).max(files / 2).max(CONNECTIONS_MIN)
}

/// Raises the soft limit of open files to this many, as far as the hard limit lets; returns the limit that holds.
fn raised(wanted: usize) -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let size =
        |limit: Option<u64>| limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    let goal = wanted.min(size(maximum));
    if size(current) >= goal {
        return size(current);
    }
    let limit = Rlimit { current: u64::try_from(goal).ok(), maximum };
    match setrlimit(Resource::Nofile, limit) {
        Ok(()) => goal,
        Err(error) => {
            tracing::warn!(%error, "failed to raise the limit of open files");
            size(current)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_other_files() {
        for (files, connections) in
            [(usize::MAX, usize::MAX - 1_024), (65_536, 64_512), (1_024, 512), (8, 16)]
        {
            assert_eq!(fitting(files), connections, "{files}");
        }
    }

    #[test]
    fn a_limit_of_none_is_refused_and_names_its_key() {
        for (name, config) in [
            ("connections.max:", ConnectionsConfig { max: 0, ..ConnectionsConfig::default() }),
            (
                "connections.max_of_peer:",
                ConnectionsConfig { max_of_peer: 0, ..ConnectionsConfig::default() },
            ),
            (
                "connections.max_of_tenant:",
                ConnectionsConfig { max_of_tenant: 0, ..ConnectionsConfig::default() },
            ),
        ] {
            let error = config.check().expect_err("a limit of 0 is refused").to_string();
            assert!(error.starts_with(name), "{error}");
        }
    }

    #[test]
    fn one_address_and_one_tenant_have_no_more_than_all_have() {
        let proxies = vec![IpAddr::from([10, 0, 0, 1])];
        let config =
            ConnectionsConfig { max: 20, max_of_peer: 30, max_of_tenant: 40, proxies: proxies.clone() };
        assert_eq!(config.limits(), ConnectionLimits { all: 20, of_peer: 20, of_tenant: 20, proxies });
    }
}
