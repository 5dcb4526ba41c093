//! The folders, addresses and certificates of a development cluster.

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use switchward_store::write_secret;

use super::opening::is_used;
use super::ports::{FreePorts, is_free};
use crate::args::ClusterCerts;
use crate::commands::cluster::{AUTHORITY_FILES, make_certificates};
use crate::exit::Exit;
use crate::member::{ClusterConfig, ProcessRole, ServerClocks, VOTERS};

/// The file that says that all servers of the folder have formed a cluster.
const FORMED: &str = "dev-cluster.json";
/// The folder of the certificates.
const CERTS: &str = "certs";
/// For how many days the certificates are valid.
const DAYS: u32 = 730;

/// What [`FORMED`] holds.
#[derive(Debug, Serialize, Deserialize)]
struct Formed {
    servers: u64,
}

/// One server of the cluster.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    /// Its number, from 1.
    pub(super) number: u64,
    /// Where it listens for clients.
    pub(super) public: SocketAddr,
    /// Where it listens for the links to it.
    pub(super) peers: SocketAddr,
}

impl Slot {
    /// `http://127.0.0.1:7400`.
    pub(super) fn url(&self) -> String {
        format!("http://{}", self.public)
    }
}

/// The servers of a cluster.
#[derive(Debug)]
pub(super) struct Plan {
    /// The data folder of the cluster.
    pub(super) folder: PathBuf,
    /// By number.
    pub(super) servers: Vec<Slot>,
}

impl Plan {
    /// Plans this many servers, the first on `port` and the others on the ports after it, or all on free ones if it is 0.
    /// Creates the folder, and the certificates that are missing.
    ///
    /// # Errors
    /// The folder belongs to a server alone or to a larger cluster, a port is in use, or a file cannot be written.
    pub(super) fn make(folder: PathBuf, servers: u64, port: u16) -> Result<Self, Exit> {
        if is_used(&folder) {
            let message = format!("{} is the data folder of a server alone", folder.display());
            return Err(
                Exit::conflict(message).next("set --data-dir to a new folder, or leave out --servers")
            );
        }
        if let Some(formed) = formed(&folder)?.filter(|formed| formed.servers > servers) {
            return Err(other_size(&folder, formed.servers));
        }
        let mut ports = FreePorts::default();
        let mut slots = Vec::new();
        for number in 1..=servers {
            let public = if port == 0 { ports.draw()? } else { public(port, number)? };
            slots.push(Slot { number, public, peers: ports.draw()? });
        }
        fs::create_dir_all(&folder).with_context(|| format!("failed to create {}", folder.display()))?;
        let folder = std::path::absolute(folder)?;
        let plan = Self { folder, servers: slots };
        plan.make_certificates()?;
        Ok(plan)
    }

    fn make_certificates(&self) -> Result<(), Exit> {
        let dir = self.folder.join(CERTS);
        self.clear_unfinished(&dir)?;
        let missing = self.servers.iter().filter(|slot| !dir.join(crt(slot.number)).exists());
        missing.into_iter().try_for_each(|slot| {
            let (dir, first) = (dir.clone(), slot.number);
            let hosts = Vec::new();
            make_certificates(&ClusterCerts {
                dir,
                servers: Some(1),
                first,
                gateways: Vec::new(),
                deliveries: Vec::new(),
                hosts,
                cluster: None,
                days: DAYS,
            })
        })
    }

    /// Removes what a start has left that was interrupted while it made certificates. They are written last: a key without
    /// one, and a part of an authority that has made none, were never used.
    fn clear_unfinished(&self, dir: &Path) -> anyhow::Result<()> {
        let numbers = self.servers.iter().map(|slot| slot.number);
        let without: Vec<u64> = numbers.filter(|number| !dir.join(crt(*number)).exists()).collect();
        let mut left: Vec<PathBuf> = without.iter().map(|number| dir.join(key(*number))).collect();
        let authority = AUTHORITY_FILES.map(|name| dir.join(name));
        if without.len() == self.servers.len() && !authority.iter().all(|file| file.exists()) {
            left.extend(authority);
        }
        for file in left {
            match fs::remove_file(&file) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(error).with_context(|| format!("failed to remove {}", file.display()));
                }
                Ok(()) | Err(_) => {}
            }
        }
        Ok(())
    }

    /// Where the servers listen for each other, by number.
    pub(super) fn peers(&self) -> BTreeMap<u64, SocketAddr> {
        self.servers.iter().map(|slot| (slot.number, slot.peers)).collect()
    }

    /// The server of this number, or a message that there is none.
    pub(super) fn server(&self, number: u64) -> Result<Slot, String> {
        let slot = self.servers.iter().find(|slot| slot.number == number);
        let message = || format!("there is no server {number}; there are {}", self.servers.len());
        slot.copied().ok_or_else(message)
    }

    /// The data folder of a server.
    pub(super) fn data(&self, server: u64) -> PathBuf {
        self.folder.join(format!("server-{server}"))
    }

    /// The file that configures the process of a server.
    pub(super) fn file(&self, server: u64) -> PathBuf {
        member_file(&self.folder, server)
    }

    /// How a server finds the others, which it reaches by these addresses.
    pub(super) fn cluster(&self, slot: Slot, peers: Vec<String>) -> ClusterConfig {
        let dir = self.folder.join(CERTS);
        ClusterConfig {
            roles: ProcessRole::all(),
            server: slot.number,
            listen: Some(slot.peers),
            address: None,
            ca_file: dir.join("ca.crt"),
            cert_file: dir.join(crt(slot.number)),
            key_file: dir.join(key(slot.number)),
            peers,
            verify_minutes: None,
            voters: VOTERS,
            fixed_peers: true,
            clocks: ServerClocks::Compared,
        }
    }

    /// Records that all servers have joined.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn set_formed(&self) -> anyhow::Result<()> {
        let file = self.folder.join(FORMED);
        let servers = u64::try_from(self.servers.len())?;
        Ok(write_secret(&file, &serde_json::to_vec(&Formed { servers })?)?)
    }
}

/// The file that configures the process of a server of the cluster in this folder.
pub(super) fn member_file(folder: &Path, server: u64) -> PathBuf {
    folder.join(format!("server-{server}.json"))
}

fn crt(server: u64) -> String {
    format!("server-{server}.crt")
}

fn key(server: u64) -> String {
    format!("server-{server}.key")
}

/// The address of a server whose first one has this port.
fn public(port: u16, number: u64) -> Result<SocketAddr, Exit> {
    let after = u16::try_from(number - 1).ok().and_then(|after| port.checked_add(after));
    let address = after.map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
    match address {
        Some(address) if is_free(address) => Ok(address),
        Some(address) => Err(Exit::failed(anyhow::anyhow!(
            "failed to listen on {address} for server {number}; set --port 0 for any free ports, or --port N for others"
        ))),
        None => Err(Exit::usage(format!("--port {port} leaves no port for server {number}"))),
    }
}

fn formed(folder: &Path) -> anyhow::Result<Option<Formed>> {
    let file = folder.join(FORMED);
    if !file.exists() {
        return Ok(None);
    }
    let bytes = fs::read(&file).with_context(|| format!("failed to read {}", file.display()))?;
    serde_json::from_slice(&bytes).map(Some).with_context(|| format!("{} is damaged", file.display()))
}

fn other_size(folder: &Path, servers: u64) -> Exit {
    let message = format!("{} is the folder of a cluster of {servers} servers", folder.display());
    Exit::conflict(message).next(format!("set --servers {servers}, or --data-dir to a new folder"))
}

/// Refuses the folder of a development cluster for a server alone.
///
/// # Errors
/// It is one.
pub(super) fn refuse_cluster(folder: &Path) -> Result<(), Exit> {
    match formed(folder)? {
        Some(formed) => Err(other_size(folder, formed.servers)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(folder: &Path, servers: u64) -> Result<Plan, String> {
        Plan::make(folder.to_owned(), servers, 0).map_err(|exit| exit.message().to_owned())
    }

    #[test]
    fn a_folder_gets_a_certificate_for_each_server_and_keeps_its_authority() {
        let folder = tempfile::tempdir().unwrap();
        let plan = made(&folder.path().join("data"), 3).unwrap();
        let ca = fs::read_to_string(plan.folder.join("certs/ca.crt")).unwrap();
        assert_eq!(plan.peers().into_keys().collect::<Vec<_>>(), [1, 2, 3]);
        let plan = made(&plan.folder, 5).unwrap();
        assert_eq!(fs::read_to_string(plan.folder.join("certs/ca.crt")).unwrap(), ca);
        for slot in &plan.servers {
            let cluster = plan.cluster(*slot, vec!["9=127.0.0.1:1".to_owned()]);
            assert!(cluster.cert_file.is_file() && cluster.key_file.is_file() && cluster.fixed_peers);
            crate::member::identity(&cluster).unwrap();
        }
        assert!(plan.server(5).is_ok());
        assert_eq!(plan.server(6).unwrap_err(), "there is no server 6; there are 5");
    }

    #[test]
    fn a_start_that_was_killed_while_it_made_certificates_can_be_repeated() {
        let folder = tempfile::tempdir().unwrap();
        let plan = made(folder.path(), 3).unwrap();
        let at = |name: &str| plan.folder.join(CERTS).join(name);
        let ca = fs::read(at("ca.crt")).unwrap();
        let before = fs::read(at("server-2.key")).unwrap();
        fs::remove_file(at("server-2.crt")).unwrap();
        made(folder.path(), 3).unwrap();
        assert_ne!(fs::read(at("server-2.key")).unwrap(), before);
        assert_eq!(fs::read(at("ca.crt")).unwrap(), ca, "the others have certificates of it");
        for number in 1..=3 {
            fs::remove_file(at(&crt(number))).unwrap();
        }
        fs::remove_file(at("cluster-id")).unwrap();
        made(folder.path(), 3).unwrap();
        assert_ne!(fs::read(at("ca.crt")).unwrap(), ca);
        // This is no interruption: the others have certificates of the authority that is gone.
        fs::remove_file(at("ca.key")).unwrap();
        fs::remove_file(at("server-3.crt")).unwrap();
        assert!(made(folder.path(), 3).unwrap_err().contains("has only some of"));
        assert!(at("ca.crt").exists() && at("server-1.key").exists());
    }

    #[test]
    fn a_folder_is_that_of_a_server_alone_or_of_a_cluster_of_one_size() {
        let folder = tempfile::tempdir().unwrap();
        assert!(refuse_cluster(folder.path()).is_ok());
        let plan = made(folder.path(), 5).unwrap();
        plan.set_formed().unwrap();
        assert!(made(folder.path(), 3).unwrap_err().contains("a cluster of 5 servers"));
        assert!(made(folder.path(), 5).is_ok());
        let refused = refuse_cluster(folder.path()).unwrap_err();
        assert!(refused.message().contains("a cluster of 5 servers"));
        let alone = tempfile::tempdir().unwrap();
        fs::write(alone.path().join("FORMAT"), "").unwrap();
        assert!(made(alone.path(), 3).unwrap_err().contains("a server alone"));
    }

    #[test]
    fn ports_follow_the_first_one_and_must_be_free() {
        assert_eq!(public(u16::MAX, 2).unwrap_err().message(), "--port 65535 leaves no port for server 2");
        let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        let refused = public(port, 1).unwrap_err();
        assert!(refused.message().contains("for server 1; set --port 0"), "{}", refused.message());
    }
}
