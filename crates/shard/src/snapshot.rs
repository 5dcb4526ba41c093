//! Snapshots: a state as a file that is sent from one server to another.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use switchward_store::{SnapshotFile, StateExport, StoreError};

use crate::codec::{Applied, decode_json};
use crate::limits::SNAPSHOT_PIECE_BYTES;
use crate::shared::{Shared, broken};
use crate::types::{LogId, Snapshot, SnapshotMeta};

/// The source of a snapshot's rows: the state itself, until they are needed as a file.
#[derive(Clone)]
pub enum SnapshotSource {
    /// The rows of this state at the time of the export.
    State(Arc<SnapshotExport>),
    /// A file from another server.
    File(SnapshotFile),
}

/// A state that can be written to a file.
pub struct SnapshotExport(Arc<Shared>);

impl SnapshotSource {
    /// The rows as a file, with their position. It may be later than the snapshot's, so the receiver makes the
    /// snapshot again with [`received`]. Blocks.
    ///
    /// # Errors
    /// The state cannot be read, or the file cannot be written.
    pub fn file(&self) -> io::Result<SnapshotFile> {
        match self {
            Self::File(file) => Ok(file.clone()),
            Self::State(export) => export.0.state.export(&export.0.snapshots).map_err(broken),
        }
    }

    /// Takes the rows as they are now, to send them. Blocks.
    ///
    /// # Errors
    /// The state cannot be read.
    pub(crate) fn rows(&self) -> io::Result<SnapshotRows> {
        match self {
            Self::File(file) => Ok(SnapshotRows::File(file.clone())),
            Self::State(export) => export.0.state.begin_export().map(SnapshotRows::State).map_err(broken),
        }
    }
}

/// The rows of a snapshot at one moment.
pub(crate) enum SnapshotRows {
    /// Rows that are read from the state store.
    State(StateExport),
    /// Rows of a file.
    File(SnapshotFile),
}

impl SnapshotRows {
    /// The last entry that the rows hold.
    ///
    /// # Errors
    /// The rows name no position.
    pub(crate) fn position(&self) -> io::Result<LogId> {
        let applied = match self {
            Self::State(export) => export.applied(),
            Self::File(file) => file.applied(),
        };
        position(applied.map(|bytes| &bytes[..]))?.last.ok_or_else(|| broken(nowhere()))
    }

    /// Returns true if the server must not read these rows any longer.
    pub(crate) fn must_end(&self) -> bool {
        match self {
            Self::State(export) => export.must_end(),
            Self::File(_) => false,
        }
    }

    /// Writes the rows in the form of a snapshot file. Blocks.
    ///
    /// # Errors
    /// The rows cannot be read, or `to` cannot be written.
    pub(crate) fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::State(export) => {
                export.write(Path::new("a stream to another server"), to).map(|_| ()).map_err(broken)
            }
            Self::File(file) => {
                file.chunks(SNAPSHOT_PIECE_BYTES).try_for_each(|piece| to.write_all(&piece.map_err(broken)?))
            }
        }
    }
}

fn nowhere() -> StoreError {
    StoreError::Damaged { what: "snapshot", detail: "it has no log position".into() }
}

fn position(applied: Option<&[u8]>) -> io::Result<Applied> {
    applied.map(decode_json).transpose()?.ok_or_else(|| broken(nowhere()))
}

/// The snapshot of a file from another server: the file itself names its position.
///
/// # Errors
/// The file names no position.
pub fn received(file: SnapshotFile) -> io::Result<Snapshot> {
    let applied = position(file.applied().map(|bytes| &bytes[..]))?;
    Ok(Snapshot { meta: meta(applied), snapshot: SnapshotSource::File(file) })
}

/// The snapshot of a state; nothing is copied before the rows are needed.
pub(crate) fn of_state(shared: &Arc<Shared>, applied: Applied) -> Snapshot {
    let source = SnapshotSource::State(Arc::new(SnapshotExport(Arc::clone(shared))));
    Snapshot { meta: meta(applied), snapshot: source }
}

fn meta(applied: Applied) -> SnapshotMeta {
    SnapshotMeta { last_log_id: applied.last, last_membership: applied.membership }
}
