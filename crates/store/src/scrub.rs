//! Removed data leaves the files of a database.
//!
//! A removed row stays in fjall's tables until they are merged, and in its journals until those are deleted. What its
//! sources (3.1.13) say of them: another journal is begun at the first flush of a write buffer after the one that is
//! written has grown over 64 MB, and a journal is deleted once all that it holds is in tables. A merged table stays until
//! the version of its keyspace before the merge is let go, which the next flush of any write buffer does, if something was
//! written since. So the journal is filled up with zeros, all write buffers are made into tables, then all tables into new
//! ones, and another buffer is flushed.

use crate::{StoreError, files};
use fjall::{Database, Keyspace, PersistMode};
use std::{collections::BTreeSet, path::PathBuf, time::Duration};

/// The journal is filled up with this many writes of this many bytes.
const FILL_WRITES: usize = 17;
const FILL_BYTES: usize = 4 * 1024 * 1024;
/// How often the journals are checked, each time after another flush.
const LOOKS: usize = 16;

/// How long a flush is waited for before it is checked again.
const FLUSH_LOOK: Duration = Duration::from_millis(10);
/// Flushes after a merge, until the tables from before it are gone: each releases what no reader holds by then.
const RELEASES: usize = 16;

/// An operation on tables.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    /// All write buffers become tables.
    Flush,
    /// All tables become new ones.
    Merge,
}

/// The state of the files after a step.
pub(crate) struct Stepped {
    /// True if the database has one journal.
    one_journal: bool,
    /// The files of the tables. Each has a unique number in its keyspace, so none replaces another.
    tables: BTreeSet<PathBuf>,
}

/// Runs the scrub: `fill` writes this many zeros, `tables` does a step with all keyspaces, see [`step`]. Returns true
/// if no journal and no table is left that was written before.
pub(crate) fn run(
    fill: &mut dyn FnMut(usize) -> Result<(), StoreError>,
    tables: &mut dyn FnMut(Step) -> Result<Stepped, StoreError>,
) -> Result<bool, StoreError> {
    for _ in 0..FILL_WRITES {
        fill(FILL_BYTES)?;
    }
    let mut flushed = tables(Step::Flush)?;
    for _ in 0..LOOKS {
        fill(1)?;
        flushed = tables(Step::Flush)?;
        if flushed.one_journal {
            break;
        }
    }
    tables(Step::Merge)?;
    for _ in 0..RELEASES {
        fill(1)?;
        if tables(Step::Flush)?.tables.is_disjoint(&flushed.tables) {
            return Ok(flushed.one_journal);
        }
    }
    Ok(false)
}

/// Does a step with these keyspaces, which are all keyspaces of the database that hold rows.
pub(crate) fn step(step: Step, database: &Database, keyspaces: &[Keyspace]) -> Result<Stepped, StoreError> {
    let mut tables = BTreeSet::new();
    for keyspace in keyspaces {
        match step {
            Step::Flush => flush(database, keyspace).map_err(StoreError::database("flush tables"))?,
            Step::Merge => keyspace.major_compact().map_err(StoreError::database("merge tables"))?,
        }
        let folder = keyspace.path().join("tables");
        if folder.is_dir() {
            tables.extend(files::entries(&folder)?);
        }
    }
    Ok(Stepped { one_journal: database.journal_count() <= 1, tables })
}

/// Makes a table of a keyspace's write buffer, and waits for it. Fails if the database has failed meanwhile: fjall's own
/// wait would never end, because the thread that makes the table is gone then.
fn flush(database: &Database, keyspace: &Keyspace) -> fjall::Result<()> {
    if !keyspace.rotate_memtable()? {
        return Ok(());
    }
    while keyspace.sealed_memtable_count() > 0 {
        database.persist(PersistMode::Buffer)?;
        std::thread::sleep(FLUSH_LOOK);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fjall::KeyspaceCreateOptions;
    use std::{fs, sync::mpsc, thread};

    #[test]
    fn a_flush_that_cannot_be_written_ends_with_an_error() {
        let root = tempfile::tempdir().unwrap();
        let database = Database::builder(root.path()).open().unwrap();
        let keyspace = database.keyspace("rows", KeyspaceCreateOptions::default).unwrap();
        keyspace.insert("a", "1").unwrap();
        fs::remove_dir_all(keyspace.path().join("tables")).unwrap();
        let (ended, end) = mpsc::channel();
        thread::spawn(move || ended.send(flush(&database, &keyspace).is_err()));
        assert_eq!(end.recv_timeout(Duration::from_secs(60)), Ok(true), "it ends, and says so");
    }
}
