//! What a data folder says about itself to other servers, and what it remembers of theirs.
//!
//! A server whose disk was wiped, or whose folder was copied or restored, has forgotten votes that it gave under its
//! number. Its peers recognise it: by the id of its folder, which is drawn at creation, and by the boot counter, which
//! is raised at each opening and never goes back. A copy that was opened as often as its original is recognised by the
//! boot id, which is drawn at each opening.

use super::DataDir;
use crate::{
    StoreError, checked,
    ids::{ClusterIdentity, FolderIdentity, Id},
    limits::PEERS_MAX,
    mark::Mark,
};
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

const BOOTS: &str = "BOOTS";
const CLUSTER: &str = "CLUSTER";
const PEERS: &str = "PEERS";
const RESTORED_FROM: &str = "RESTORED_FROM";

/// A peer's folder as it was last seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenPeer {
    /// The peer's number.
    pub server: u64,
    /// The id of the peer's data folder.
    pub folder: Id,
    /// The highest boot counter of the folder.
    pub boot: u64,
    /// The boot id that was drawn at that opening.
    pub boot_id: Id,
}

/// Why a peer is refused: it may have forgotten votes and entries that it acknowledged, so none of its messages may
/// be answered.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ForeignPeer {
    /// The number belongs to another folder: the disk was replaced or wiped.
    #[error(
        "server {server} has the data folder {found}, and had {known} before: its number cannot be used again"
    )]
    OtherFolder {
        /// The peer's number.
        server: u64,
        /// The folder that it had.
        known: Id,
        /// The folder that it has.
        found: Id,
    },
    /// The folder belongs to another number: it was copied.
    #[error("server {server} has the data folder {folder} of server {of}")]
    OtherServer {
        /// The peer's number.
        server: u64,
        /// The id of the peer's data folder.
        folder: Id,
        /// The number under which the folder is known.
        of: u64,
    },
    /// The folder was opened more often before: it was restored from an earlier copy.
    #[error(
        "the data folder of server {server} is an earlier copy: its boot counter is {found}, and was {known}"
    )]
    Older {
        /// The peer's number.
        server: u64,
        /// The highest boot counter seen.
        known: u64,
        /// The boot counter that it has.
        found: u64,
    },
    /// The folder was opened as often before, and with another boot id: there are two copies of it.
    #[error(
        "the data folder of server {server} is another copy: it was seen with the boot counter {boot} before, at another \
         start"
    )]
    OtherBoot {
        /// The peer's number.
        server: u64,
        /// The boot counter that both copies have.
        boot: u64,
    },
    /// More peers than [`PEERS_MAX`] were seen.
    #[error("server {server} is one more than the {PEERS_MAX} that a data folder remembers")]
    TooMany {
        /// The peer's number.
        server: u64,
    },
    /// What was seen could not be made durable.
    #[error("failed to record the peer")]
    NotRecorded(#[source] StoreError),
}

/// The identity of an opened folder.
#[derive(Debug)]
pub(super) struct Identity {
    path: PathBuf,
    folder: Id,
    boot: u64,
    boot_id: Id,
    cluster: Mutex<Option<ClusterIdentity>>,
    /// The cluster whose backup was restored into the folder.
    restored_from: Mutex<Option<Id>>,
    /// By the number of the server.
    peers: Mutex<BTreeMap<u64, Seen>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    folder: Id,
    boot: u64,
    boot_id: Id,
}

impl Identity {
    /// Creates the boot counter of a new folder.
    pub(super) fn create(path: &Path) -> Result<(), StoreError> {
        Mark::<1>::create(&path.join(BOOTS))
    }

    /// Raises the boot counter of a folder with this id, durably, before anything else is read of it.
    ///
    /// # Errors
    /// [`StoreError::BootsExhausted`] if it cannot be raised; if a file is damaged, or cannot be read or written.
    pub(super) fn open(path: &Path, id: &str) -> Result<Self, StoreError> {
        let boot = raise(path)?;
        let unknown_id = || checked::unknown(&path.join("ID"));
        let folder = Id::parse(id).ok_or_else(unknown_id)?;
        let cluster = Mutex::new(read_cluster(&path.join(CLUSTER))?);
        let peers = Mutex::new(read_peers(&path.join(PEERS))?);
        let restored_from = Mutex::new(read_origin(&path.join(RESTORED_FROM))?);
        let (path, boot_id) = (path.to_path_buf(), Id::draw());
        Ok(Self { path, folder, boot, boot_id, cluster, restored_from, peers })
    }

    fn note_origin(&self, cluster: Id) -> Result<(), StoreError> {
        checked::write(&self.path.join(RESTORED_FROM), &format!("{cluster}\n"))?;
        *self.restored_from.lock() = Some(cluster);
        Ok(())
    }

    fn claim(&self, claimed: ClusterIdentity) -> Result<(), StoreError> {
        let mut known = self.cluster.lock();
        match *known {
            Some(known) if known == claimed => Ok(()),
            Some(known) => Err(StoreError::OtherCluster { path: self.path.clone(), known, claimed }),
            None if *self.restored_from.lock() == Some(claimed.cluster) => {
                Err(StoreError::ClusterOfBackup { path: self.path.clone(), cluster: claimed.cluster })
            }
            None => {
                let line = format!("{} {}\n", claimed.cluster, claimed.server);
                checked::write(&self.path.join(CLUSTER), &line)?;
                *known = Some(claimed);
                Ok(())
            }
        }
    }

    fn note(&self, peer: SeenPeer) -> Result<(), ForeignPeer> {
        let SeenPeer { server, folder, boot, boot_id } = peer;
        if folder == self.folder {
            let of = self.cluster.lock().map_or(0, |known| known.server);
            return Err(ForeignPeer::OtherServer { server, folder, of });
        }
        let mut peers = self.peers.lock();
        if let Some((of, _)) = peers.iter().find(|(of, seen)| **of != server && seen.folder == folder) {
            return Err(ForeignPeer::OtherServer { server, folder, of: *of });
        }
        #[cfg(feature = "planted")]
        if peers.get(&server).is_some_and(|seen| planted(seen.folder == folder)) {
            return Ok(());
        }
        match peers.get(&server) {
            Some(seen) if seen.folder != folder => {
                return Err(ForeignPeer::OtherFolder { server, known: seen.folder, found: folder });
            }
            Some(seen) if seen.boot > boot => {
                return Err(ForeignPeer::Older { server, known: seen.boot, found: boot });
            }
            Some(seen) if seen.boot == boot && seen.boot_id != boot_id => {
                return Err(ForeignPeer::OtherBoot { server, boot });
            }
            Some(seen) if seen.boot == boot => return Ok(()),
            None if peers.len() >= PEERS_MAX => return Err(ForeignPeer::TooMany { server }),
            Some(_) | None => {}
        }
        let mut next = peers.clone();
        next.insert(server, Seen { folder, boot, boot_id });
        let line = |(server, seen): (&u64, &Seen)| {
            format!("{server} {} {} {}\n", seen.folder, seen.boot, seen.boot_id)
        };
        let lines: String = next.iter().map(line).collect();
        checked::write(&self.path.join(PEERS), &lines).map_err(ForeignPeer::NotRecorded)?;
        *peers = next;
        Ok(())
    }
}

impl DataDir {
    /// What the server says about this folder in a handshake.
    #[must_use]
    pub fn identity(&self) -> FolderIdentity {
        let of = &self.identity;
        let cluster = *of.cluster.lock();
        FolderIdentity { folder: of.folder, boot: of.boot, boot_id: of.boot_id, cluster }
    }

    /// Binds the folder to a server of a cluster, durably and once; does nothing if it is bound to that one already.
    ///
    /// # Errors
    /// [`StoreError::OtherCluster`] if it is bound to another one; [`StoreError::ClusterOfBackup`] if a backup of that
    /// cluster was restored into it; if that cannot be written.
    pub fn claim(&self, cluster: ClusterIdentity) -> Result<(), StoreError> {
        self.identity.claim(cluster)
    }

    /// The cluster that the folder is bound to, and the server's number in it; `None` if there is none, or no data folder.
    /// Opens nothing, so it can be asked while a server uses the folder.
    ///
    /// # Errors
    /// If the file is damaged or cannot be read.
    pub fn cluster_of(path: &Path) -> Result<Option<ClusterIdentity>, StoreError> {
        read_cluster(&path.join(CLUSTER))
    }

    /// Notes durably that a backup of this cluster was restored into the folder, which therefore can never be bound to it:
    /// servers of the old cluster may still run, and must not take this one for one of theirs.
    ///
    /// # Errors
    /// If that cannot be written.
    pub(crate) fn note_origin(&self, cluster: Id) -> Result<(), StoreError> {
        self.identity.note_origin(cluster)
    }

    /// Notes a peer's folder, boot counter and boot id, durably before the return. Only then may the peer be answered.
    ///
    /// # Errors
    /// As [`ForeignPeer`] says; nothing is noted then.
    pub fn note_peer(&self, peer: SeenPeer) -> Result<(), ForeignPeer> {
        self.identity.note(peer)
    }
}

/// Returns true if a bug is planted by which a peer is accepted, which has the folder that it had before, or another one.
#[cfg(feature = "planted")]
fn planted(same_folder: bool) -> bool {
    use crate::planted::{Bug, is};
    is(if same_folder { Bug::OlderFolderAccepted } else { Bug::OtherFolderAccepted })
}

/// In place: a server must be able to start on a full disk.
fn raise(path: &Path) -> Result<u64, StoreError> {
    let (file, [before]) = Mark::open(path.join(BOOTS))?;
    let boot = before.checked_add(1).ok_or(StoreError::BootsExhausted { path: path.to_path_buf() })?;
    file.write([boot])?;
    Ok(boot)
}

fn read_cluster(file: &Path) -> Result<Option<ClusterIdentity>, StoreError> {
    let Some(lines) = checked::read(file)? else { return Ok(None) };
    let cluster = lines.trim_end().split_once(' ').and_then(|(cluster, server)| {
        Some(ClusterIdentity { cluster: Id::parse(cluster)?, server: server.parse().ok()? })
    });
    cluster.map(Some).ok_or_else(|| checked::unknown(file))
}

fn read_origin(file: &Path) -> Result<Option<Id>, StoreError> {
    let Some(line) = checked::read(file)? else { return Ok(None) };
    Id::parse(line.trim_end()).map(Some).ok_or_else(|| checked::unknown(file))
}

fn read_peers(file: &Path) -> Result<BTreeMap<u64, Seen>, StoreError> {
    let Some(lines) = checked::read(file)? else { return Ok(BTreeMap::new()) };
    let peer = |line: &str| {
        let (server, rest) = line.split_once(' ')?;
        let (folder, rest) = rest.split_once(' ')?;
        let (boot, boot_id) = rest.split_once(' ')?;
        let (folder, boot_id) = (Id::parse(folder)?, Id::parse(boot_id)?);
        Some((server.parse().ok()?, Seen { folder, boot: boot.parse().ok()?, boot_id }))
    };
    lines.lines().map(peer).collect::<Option<_>>().ok_or_else(|| checked::unknown(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_counter_at_its_highest_value_is_not_raised() {
        let folder = tempfile::tempdir().unwrap();
        Identity::create(folder.path()).unwrap();
        let (file, _) = Mark::<1>::open(folder.path().join(BOOTS)).unwrap();
        file.write([u64::MAX - 1]).unwrap();
        assert_eq!(raise(folder.path()).unwrap(), u64::MAX);
        for _ in 0..2 {
            let error = raise(folder.path()).unwrap_err();
            assert!(matches!(error, StoreError::BootsExhausted { .. }), "{error}");
        }
    }
}
