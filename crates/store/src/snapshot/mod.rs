//! Snapshot files: an immutable copy of one group's table with the applied blob that it agrees with.
//!
//! ```text
//! header    magic "SWSN", version, group u64, applied: flag u8, length u32, bytes; checksum u64
//! chunk*    tag 1, length u32, checksum u64 of the payload; payload: rows in key order,
//!           each: key length u16, key, row length u32, row (a stored form)
//! trailer   tag 2, rows u64, SHA-256 over all rows, checksum u64; the file ends here
//! ```
//! Numbers are big-endian; checksums are xxh3. The SHA-256 is the one of [`crate::State::digest`].

mod file;
mod folder;
mod format;
mod writer;

pub use file::SnapshotFile;
pub use folder::{SnapshotReceiver, Snapshots};
pub(crate) use format::{Header, RowsDigest};
pub(crate) use writer::SnapshotWriter;
