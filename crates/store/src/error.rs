use crate::{
    ids::{ClusterIdentity, Id},
    log::GroupId,
};
use std::{error::Error, io, path::PathBuf, sync::Arc};

/// Failures of the store's environment. Cheap to clone: one failed sync answers many callers.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another process holds the lock of the data folder.
    #[error("the data folder {} is in use by another process", path.display())]
    InUse {
        /// The data folder.
        path: PathBuf,
    },
    /// The data folder was written by a program with another format.
    #[error("the data folder {} has format {found}, this program reads format {expected}", path.display())]
    Format {
        /// The data folder.
        path: PathBuf,
        /// What its `FORMAT` file says.
        found: String,
        /// [`crate::limits::FORMAT_VERSION`].
        expected: u32,
    },
    /// The folder holds something, and it is not ours.
    #[error("the folder {} is not empty and has no FORMAT file, so it is not a data folder", path.display())]
    Foreign {
        /// The folder.
        path: PathBuf,
    },
    /// Others than its owner may enter the data folder.
    #[error(
        "other users may enter the data folder {} (mode {mode:03o}); run chmod 700 on it, and replace its secrets if \
         others may have read them",
        path.display()
    )]
    Exposed {
        /// The folder.
        path: PathBuf,
        /// The bits of its mode.
        mode: u32,
    },
    /// A folder is to be created, and something is there.
    #[error("{} already exists and is not empty", path.display())]
    FolderExists {
        /// The folder.
        path: PathBuf,
    },
    /// The folder holds no complete backup.
    #[error("{} holds no complete backup: it has no BACKUP file", path.display())]
    NoBackup {
        /// The folder.
        path: PathBuf,
    },
    /// A restore into the data folder was not completed.
    #[error("the restore of the data folder {} was interrupted: restore it again", path.display())]
    RestoreUnfinished {
        /// The data folder.
        path: PathBuf,
    },
    /// The data folder belongs to another server or cluster.
    #[error("the data folder {} belongs to {known}, not to {claimed}", path.display())]
    OtherCluster {
        /// The data folder.
        path: PathBuf,
        /// The server that it belongs to.
        known: ClusterIdentity,
        /// The server that claimed it.
        claimed: ClusterIdentity,
    },
    /// The data folder was restored from a backup of the cluster that it was to be bound to.
    #[error(
        "the data folder {} was restored from a backup of the cluster {cluster}, and a restored cluster needs a new id: make \
         certificates with `switchward cluster certs` in a new folder",
        path.display()
    )]
    ClusterOfBackup {
        /// The data folder.
        path: PathBuf,
        /// The cluster of the backup.
        cluster: Id,
    },
    /// The boot counter of the data folder has its highest value.
    #[error("the data folder {} was opened too often: its boot counter cannot be raised", path.display())]
    BootsExhausted {
        /// The data folder.
        path: PathBuf,
    },
    /// A file operation failed.
    #[error("failed to {action} {}", path.display())]
    Io {
        /// A verb.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: Arc<io::Error>,
    },
    /// The database below failed; after a failed write or sync it refuses all later ones.
    #[error("failed to {action}")]
    Database {
        /// A verb and its object.
        action: &'static str,
        /// What the system said, or fjall.
        #[source]
        source: Arc<dyn Error + Send + Sync>,
    },
    /// A callback or a bug brought down the thread that writes the log.
    #[error("the writer of the log panicked")]
    Panicked,
    /// Stored bytes are not what was written.
    #[error("a stored {what} is damaged: {detail}")]
    Damaged {
        /// The stored form.
        what: &'static str,
        /// What is wrong with it.
        detail: String,
    },
    /// Stored bytes are of a later (or no) version.
    #[error("a stored {what} has version {found}, this program reads version {expected}")]
    Version {
        /// The stored form.
        what: &'static str,
        /// The version byte found.
        found: u8,
        /// The version byte that this program writes.
        expected: u8,
    },
    /// Records must follow one another without a gap. Nothing was changed.
    #[error("log record {found} of group {} cannot follow record {last}", group.0)]
    OutOfOrder {
        /// The number of the group whose log it is.
        group: GroupId,
        /// The index before it.
        last: u64,
        /// The index that was given.
        found: u64,
    },
    /// Something is over its named limit.
    #[error("a {what} of {bytes} bytes is over the limit of {max}")]
    TooLarge {
        /// The name of the form or the record, for the message.
        what: &'static str,
        /// Its size.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// A group's state has one owner.
    #[error("the state of group {} is already open", .0.0)]
    AlreadyOpen(GroupId),
    /// A snapshot of another group.
    #[error("the snapshot is of group {}, not of group {}", found.0, expected.0)]
    WrongGroup {
        /// The group of the state.
        expected: GroupId,
        /// The group of the snapshot.
        found: GroupId,
    },
}

impl StoreError {
    pub(crate) fn damaged(what: &'static str, detail: impl Into<String>) -> Self {
        StoreError::Damaged { what, detail: detail.into() }
    }

    /// For `map_err` of a call into fjall: `action` completes "failed to ...".
    pub(crate) fn database(action: &'static str) -> impl FnOnce(fjall::Error) -> Self {
        move |error| StoreError::Database { action, source: cause(error) }
    }

    /// Fails if `bytes` is over `max`.
    pub(crate) fn check_size(what: &'static str, bytes: usize, max: usize) -> Result<(), Self> {
        if bytes > max { Err(StoreError::TooLarge { what, bytes, max }) } else { Ok(()) }
    }
}

/// The database has given up after a write or a sync that failed. If a thread of its own had made
/// it, no caller has got the error: fjall has logged it, under `fjall::worker_pool`.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error(
    "the database has taken no writes since one failed; an ERROR line before this one says why it failed"
)]
pub(crate) struct GaveUp;

/// The system's error, if there is one behind it: fjall's own words would only repeat it.
fn cause(error: fjall::Error) -> Arc<dyn Error + Send + Sync> {
    if matches!(error, fjall::Error::Poisoned) {
        return Arc::new(GaveUp);
    }
    if let fjall::Error::Io(error) | fjall::Error::Storage(fjall::LsmError::Io(error)) = error {
        return Arc::new(error);
    }
    Arc::new(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_that_gave_up_says_where_the_cause_is() {
        let error = StoreError::database("flush rows")(fjall::Error::Poisoned);
        let source = error.source().unwrap().to_string();
        assert!(source.contains("an ERROR line before this one") && !source.contains("Poisoned"), "{source}");
        let error = StoreError::database("flush rows")(fjall::Error::Io(io::Error::from_raw_os_error(5)));
        assert!(error.source().unwrap().to_string().contains("(os error 5)"));
    }
}
