//! Snapshots: a state as a file, on its way from one server to another.

use std::io;
use std::sync::Arc;
use switchward_store::{SnapshotFile, StoreError};

use crate::codec::{Applied, decode_json};
use crate::shared::{Shared, broken};
use crate::types::{Snapshot, SnapshotMeta};

/// Where a snapshot's rows come from: the state itself, until somebody needs them as a file.
#[derive(Clone)]
pub enum SnapshotSource {
    /// The rows of this state, as they are when they are asked for.
    State(Arc<SnapshotExport>),
    /// A file, as it came from another server.
    File(SnapshotFile),
}

/// A state that can be written to a file.
pub struct SnapshotExport(Arc<Shared>);

impl SnapshotSource {
    /// The rows as a file, with the position that they are at: it may be a later one than the snapshot was asked
    /// for at, so whoever receives the file makes the snapshot anew with [`received`]. Blocks.
    ///
    /// # Errors
    /// The state cannot be read, or the file not be written.
    pub fn file(&self) -> io::Result<SnapshotFile> {
        match self {
            Self::File(file) => Ok(file.clone()),
            Self::State(export) => export.0.state.export(&export.0.snapshots).map_err(broken),
        }
    }
}

/// The snapshot of a file that came from another server: the file says itself which position it is at.
///
/// # Errors
/// The file names no position.
pub fn received(file: SnapshotFile) -> io::Result<Snapshot> {
    let applied: Option<Applied> = file.applied().map(|bytes| decode_json(bytes)).transpose()?;
    let nowhere = || StoreError::Damaged { what: "snapshot", detail: "it names no position".into() };
    let applied = applied.ok_or_else(|| broken(nowhere()))?;
    Ok(Snapshot { meta: meta(applied), snapshot: SnapshotSource::File(file) })
}

/// The snapshot that a state is: nothing is copied before somebody asks for it.
pub(crate) fn of_state(shared: &Arc<Shared>, applied: Applied) -> Snapshot {
    let source = SnapshotSource::State(Arc::new(SnapshotExport(Arc::clone(shared))));
    Snapshot { meta: meta(applied), snapshot: source }
}

fn meta(applied: Applied) -> SnapshotMeta {
    SnapshotMeta { last_log_id: applied.last, last_membership: applied.membership }
}
