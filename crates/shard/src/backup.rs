//! Backups: the rows of all groups at one moment, taken on one server, whichever servers lead.
//!
//! Groups depend on each other: a session's shard removes an effect when the ledger's shard has recorded it, a session
//! starts with a version that the catalogue has, and a tenant's number is given by the catalogue. So rows that were taken at
//! different moments could lack what both sides count as done. Replicas on one server do not help: each is behind its
//! leader by another time. A backup is therefore taken in three steps:
//!
//! 1. The leaders of all groups stop to decide. What they have proposed is in their logs.
//! 2. When all have stopped, each writes a mark into its log, in the term in which it has stopped, and goes on.
//! 3. The server that takes the backup takes the rows of each of its replicas when it applies that group's mark.
//!
//! Let T be the moment at which the last leader has stopped. Each group decides nothing from a moment before T until its
//! mark is proposed, so its rows at the mark are those of T: all that was acknowledged before T is in them, and nothing
//! that was decided after T. A cause is acknowledged before its consequence is decided, so no consequence is in the rows
//! without its cause. An effect whose arrival was recorded before T, and whose acknowledgement was not, is carried again
//! after a restore; it has a request id, so it counts once.
//!
//! If a leader is lost meanwhile, its mark is not written in that term, and everything begins again. A leader that is not
//! asked to write its mark within [`BACKUP_PAUSE_MAX`](crate::limits::BACKUP_PAUSE_MAX) goes on by itself.

mod leader;
mod paused;
mod read;
mod round;

pub(crate) use leader::{mark, pause, resume};
pub(crate) use paused::Pause;
pub(crate) use read::each_row;
pub use read::{check_backup, restore_backup};
pub(crate) use round::take;

use switchward_store::{BackupManifest, BackupOf, BackupSink, Cut, DataDir, StoreError, write_backup};

use crate::record::Stored;

/// The rows of all groups of this server at one moment.
pub struct BackupRows(Cut<Stored>);

impl BackupRows {
    /// Writes the files of a backup; the caller writes the manifest. Blocks.
    ///
    /// # Errors
    /// The rows cannot be read, or the sink cannot be written.
    pub fn write(
        &self,
        data: &DataDir,
        of: BackupOf,
        sink: &mut dyn BackupSink,
    ) -> Result<BackupManifest, StoreError> {
        write_backup(data, &self.0, of, sink)
    }
}
