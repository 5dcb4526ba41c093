//! Follows a journal while it grows, and syncs it.
//!
//! The kernel reports a failed write once to each handle of a file. fjall has one handle for its own thread and for
//! its callers: if the thread's sync fails, the next one succeeds, also one that has waited for it. So a follower
//! syncs through a handle of its own.

use super::{Batch, Journal, Synced, number};
use crate::{
    StoreError,
    files::{entries, failed},
};
use std::{
    fs::File,
    io::{Seek as _, SeekFrom},
    path::{Path, PathBuf},
};
use xxhash_rust::xxh3::Xxh3;

/// Follows the newest journal of a database while it grows.
pub(crate) struct Follower {
    folder: PathBuf,
    journal: Option<Followed>,
    /// The length of the batches that were read, and their digest.
    position: u64,
    digest: Xxh3,
    /// True once a sync has failed.
    lost: bool,
}

/// The newest journal as of the last look.
struct Followed {
    number: u64,
    path: PathBuf,
    /// Stays open: a new handle would not show that an earlier write has failed.
    file: File,
}

impl Follower {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder, journal: None, position: 0, digest: Xxh3::new(), lost: false }
    }

    /// Reads the batches that were written since the last look. Returns what a sync after it makes durable; `None`
    /// if that is nothing, or the journal cannot be read.
    pub(crate) fn look(&mut self) -> Option<Synced> {
        let (number, path) = newest(&self.folder)?;
        if self.journal.as_ref().is_none_or(|journal| journal.number != number) {
            let file = File::open(&path).ok()?;
            let (journal, lost) = (Some(Followed { number, path, file }), self.lost);
            *self = Self { journal, lost, ..Self::new(std::mem::take(&mut self.folder)) };
        }
        let mut file = &self.journal.as_ref()?.file;
        file.seek(SeekFrom::Start(self.position)).ok()?;
        let mut journal = Journal::new(file, self.position, self.digest.clone());
        while let Ok(Batch::Sound) = journal.batch() {
            (self.position, self.digest) = (journal.position, journal.digest.clone());
        }
        let read = Synced { journal: number, bytes: self.position, digest: self.digest.digest() };
        Some(read).filter(|read| read.bytes > 0)
    }

    /// Syncs the journal of the last look.
    ///
    /// # Errors
    /// If the sync fails, or one has failed before: what was not synced then is lost.
    pub(crate) fn sync(&mut self) -> Result<(), StoreError> {
        if self.lost {
            return Err(StoreError::database("sync the journal")(fjall::Error::Poisoned));
        }
        let Some(Followed { path, file, .. }) = &self.journal else { return Ok(()) };
        let synced = file.sync_all();
        self.lost = synced.is_err();
        synced.map_err(failed("sync", path))
    }

    /// Lets the next sync fail.
    #[cfg(test)]
    pub(crate) fn break_handle(&mut self) -> std::io::Result<()> {
        if let Some(journal) = &mut self.journal {
            // A device that cannot be synced.
            journal.file = File::open("/dev/null")?;
        }
        Ok(())
    }
}

/// The newest journal in a folder, and its number.
fn newest(folder: &Path) -> Option<(u64, PathBuf)> {
    entries(folder).ok()?.into_iter().filter_map(|path| Some((number(&path)?, path))).max()
}
