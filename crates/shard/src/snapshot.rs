//! Snapshots: a state as a file that is sent from one server to another.

use std::io;
use std::sync::Arc;
use switchward_store::{SnapshotFile, StoreError};

use crate::codec::{Applied, decode_json};
use crate::shared::{Shared, broken};
use crate::types::{Snapshot, SnapshotMeta};

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
}

/// The snapshot of a file from another server: the file itself names its position.
///
/// # Errors
/// The file names no position.
pub fn received(file: SnapshotFile) -> io::Result<Snapshot> {
    let applied: Option<Applied> = file.applied().map(|bytes| decode_json(bytes)).transpose()?;
    let nowhere = || StoreError::Damaged { what: "snapshot", detail: "it has no log position".into() };
    let applied = applied.ok_or_else(|| broken(nowhere()))?;
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
