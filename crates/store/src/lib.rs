//! Files: the write-ahead log of all Raft groups of a server, their key-value state, and snapshots.
//!
//! - [`DataDir`] owns the folder: its lock, its format number, its [`FolderIdentity`], the peers that it has seen.
//! - [`GroupLog`] is the log. An entry is durable when its callback has said so, and never before.
//! - [`State`] is an ordered table per group, written behind: an entry touches memory, a [`Flush`] writes what
//!   changed together with the applied blob that it covers, in one atomic batch.
//! - [`Snapshots`] keeps one verified, immutable copy of a group's table as a file.
//! - [`Cut`] is the table of several groups at one moment, and [`Backup`] a folder with them.
//! - [`Disk`] reports the free space, and holds a reserve for when there is none.
//! - [`write_secret`] is for the small files of others that must be there whole.
//!
//! All calls block; the crate has threads of its own and no async runtime. It must never know what a row, an
//! entry or an applied blob means: they are bytes, or a [`Record`].
//!
//! Chosen: fjall 3 for the table, behind [`State`]; its behaviour on a crash is described in `database.rs`. Segment
//! files of our own for the log, behind [`GroupLog`]: a database writes each entry twice, and its syncs wait for its
//! tables and its next journal. Rejected: rocksdb (a C++ build), redb (one fsync per transaction), raft-engine
//! (libraries with advisories).

mod backup;
mod checked;
mod data_dir;
mod database;
mod disk;
mod error;
mod files;
mod forms;
mod ids;
mod journal;
pub mod limits;
mod log;
mod mark;
#[cfg(feature = "planted")]
pub mod planted;
mod removed;
mod scrub;
mod snapshot;
mod state;
mod workers;
mod writeback;

pub use backup::{Backup, BackupFile, BackupFolder, BackupManifest, BackupOf, BackupSink, write_backup};
pub use data_dir::{DataDir, ForeignPeer, SeenPeer};
pub use disk::{Disk, DiskLevel, DiskOptions, Space};
pub use error::StoreError;
pub use files::write_secret;
pub use ids::{ClusterIdentity, FolderIdentity, Id};
pub use log::{
    Done, GroupId, GroupLog, LogOptions, LogRecord, LogStats, Meta, OnFatal, SegmentLog, SyncFault,
};
pub use snapshot::{SnapshotFile, SnapshotReceiver, Snapshots};
pub use state::{Cut, Flush, Moment, Record, RowKey, State, StateExport, StateOptions, StateStore};
