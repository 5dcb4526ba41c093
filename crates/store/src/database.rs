//! Opening a fjall database, with what its sources (3.1.13) say about crashes.
//!
//! - A batch is atomic: its journal entry carries a count and a checksum, and recovery drops an unfinished one
//!   at the end. It stays atomic when a write buffer is rotated, since both hold the journal's lock. Batches
//!   are kept in order, so what a crash leaves is a prefix of them.
//! - A torn batch may nevertheless keep the database from opening: `journal.rs` cuts it off, if that takes
//!   nothing with it that was synced.
//! - A new journal is synced with its folder before it is used. A table is synced with its folder before the
//!   journal that holds the same rows is deleted. An ingestion is synced and becomes visible as a whole.
//! - A crash inside the very first creation leaves a folder that fjall can neither open nor create: it is
//!   emptied here, which is safe because nothing was ever stored in it.
//! - A table is synced before the version that names it, and a version before it is named the current one. What no
//!   version names, and any version but the current one, is removed at the next opening. So no file is read whose
//!   sync has failed, except for a journal: `journal.rs` writes it again.
//! - The folder of a new keyspace is synced, and not its entry in the one above: that is done here.
//! - After a failed write or sync every later write fails (`Poisoned`). What failed is returned if a caller did it, and
//!   logged if a thread of the database did.
//! - Damage in the middle of a journal that hits an entry's tag, and not its content, cuts off silently all
//!   that follows in this journal: `journal.rs` finds it.

use crate::{
    StoreError,
    files::{entries, failed, make_dir, sync_dir},
    journal::{self, Synced},
    limits::DATABASE_FILES_MAX,
    workers,
};
use fjall::{CompressionType, Database};
use std::{fs, path::Path};

/// Sizes of one database.
pub(crate) struct Settings {
    pub(crate) cache_bytes: u64,
    pub(crate) journal_bytes_max: u64,
    /// How much of the newest journal was synced.
    pub(crate) synced: Synced,
}

/// Opens or creates the database in `folder`.
pub(crate) fn open(folder: &Path, settings: &Settings) -> Result<Database, StoreError> {
    make_dir(folder)?;
    clear_unfinished(folder)?;
    let as_configured = || {
        Database::builder(folder)
            .cache_size(settings.cache_bytes)
            .max_journaling_size(settings.journal_bytes_max)
            .max_cached_files(Some(DATABASE_FILES_MAX))
            .journal_compression(CompressionType::None)
            .worker_threads(1)
            .open()
    };
    let open = || workers::giving_way(as_configured);
    // fjall would continue with the next journal if one has lost its end.
    journal::repair(folder, settings.synced)?;
    let database = open().map_err(StoreError::database("open a database"))?;
    // An earlier process may have ended before it had done so.
    sync_keyspaces(folder)?;
    Ok(database)
}

/// Makes the entries of the keyspaces' folders durable: one without it may vanish with its rows.
pub(crate) fn sync_keyspaces(folder: &Path) -> Result<(), StoreError> {
    sync_dir(&folder.join("keyspaces"))
}

/// Empties the folder if no keyspace was ever created in it (the first one comes with the database).
fn clear_unfinished(folder: &Path) -> Result<(), StoreError> {
    let keyspaces = folder.join("keyspaces");
    if (keyspaces.is_dir() && !entries(&keyspaces)?.is_empty()) || !journal::all_blank(folder)? {
        return Ok(());
    }
    for entry in entries(folder)? {
        let removed = if entry.is_dir() { fs::remove_dir(&entry) } else { fs::remove_file(&entry) };
        removed.map_err(failed("remove", &entry))?;
    }
    Ok(())
}
