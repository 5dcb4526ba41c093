//! What was removed leaves the files of a database.
//!
//! A removed row stays in fjall's tables until they are merged, and in its journals until those are deleted. What its
//! sources (3.1.13) say of them: another journal is begun at the first flush of a write buffer after the one that is
//! written has grown over 64 MB, and a journal is deleted once all that it holds is in tables. So the journal is filled up
//! with zeros, all write buffers are made into tables, and then all tables into new ones.

use crate::StoreError;
use fjall::{Database, Keyspace};

/// What fills a journal up: so many writes of so many bytes.
const FILL_WRITES: usize = 17;
const FILL_BYTES: usize = 4 * 1024 * 1024;
/// How often the journals are looked at, each time after another flush.
const LOOKS: usize = 16;

/// What is done with tables.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Step {
    /// All write buffers become tables.
    Flush,
    /// All tables become new ones.
    Merge,
}

/// Runs it: `fill` writes so many zeros, `tables` does a step with all keyspaces, see [`step`]. True where no journal is
/// left that was written before.
pub(crate) fn run(
    fill: &mut dyn FnMut(usize) -> Result<(), StoreError>,
    tables: &mut dyn FnMut(Step) -> Result<bool, StoreError>,
) -> Result<bool, StoreError> {
    for _ in 0..FILL_WRITES {
        fill(FILL_BYTES)?;
    }
    tables(Step::Flush)?;
    let mut whole = false;
    for _ in 0..LOOKS {
        fill(1)?;
        whole = tables(Step::Flush)?;
        if whole {
            break;
        }
    }
    tables(Step::Merge)?;
    Ok(whole)
}

/// Does a step with these keyspaces, which are all of the database; true where it has one journal.
pub(crate) fn step(step: Step, database: &Database, keyspaces: &[Keyspace]) -> Result<bool, StoreError> {
    for keyspace in keyspaces {
        match step {
            Step::Flush => {
                keyspace.rotate_memtable_and_wait().map_err(StoreError::database("make tables"))?
            }
            Step::Merge => keyspace.major_compact().map_err(StoreError::database("merge tables"))?,
        }
    }
    Ok(database.journal_count() <= 1)
}
