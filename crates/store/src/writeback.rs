//! What fjall writes goes to the disk while it is written.
//!
//! fjall (3.1.13) syncs a table when it is complete and the journal of the state when it is full: up to 64 MB in one
//! go. The file system writes them in that moment, and each sync of the log waits behind them. So a thread of its own
//! asks the file system, a megabyte at a time, to start writing the new data of such a file. Nothing waits for that,
//! and what must be durable is synced as before.

use crate::{
    StoreError,
    files::{entries, failed},
    limits::{
        FOLDER_SETTLED, REMOVED_LOOK, WRITEBACK_BYTES, WRITEBACK_LOOK, WRITEBACK_LOOK_MAX, WRITEBACK_QUIET,
    },
    removed::folders_of_tables,
};
use rustix::fs::{Advice, fadvise};
use std::{
    collections::HashMap,
    fs::{self, File},
    num::NonZeroU64,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
    thread,
    time::{Duration, Instant, SystemTime},
};

/// Writes back the files of some databases, as long as it is held.
#[derive(Debug)]
pub(crate) struct Writeback {
    databases: Vec<PathBuf>,
}

impl Writeback {
    /// Starts the thread.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(crate) fn started(databases: Vec<PathBuf>) -> Result<Arc<Self>, StoreError> {
        let writeback = Arc::new(Self { databases });
        let watched = Arc::downgrade(&writeback);
        let thread = thread::Builder::new().name("writeback".to_owned()).spawn(move || watch(&watched));
        let folder = writeback.databases.first().cloned().unwrap_or_default();
        thread.map_err(failed("write back the files of", &folder))?;
        Ok(writeback)
    }
}

/// The known files of some folders.
#[derive(Default)]
struct Growing {
    /// When each folder last changed.
    changed: HashMap<PathBuf, SystemTime>,
    files: HashMap<PathBuf, Growth>,
}

/// A file that grows.
struct Growth {
    file: File,
    /// How much of it the file system was asked to write, bytes.
    begun: u64,
    /// Its size at the last check, and since when.
    size: u64,
    since: Instant,
    /// How much it grew from the check before the last one, bytes.
    grew: u64,
}

impl Growing {
    /// Checks once, and requests writing of new data.
    fn look(&mut self, databases: &[PathBuf], now: Instant) {
        for database in databases {
            self.find(database, now);
            for folder in folders_of_tables(database) {
                self.find(&folder, now);
            }
        }
        self.files.retain(|_, growth| growth.go_on(now));
    }

    /// How long to wait for the next check after one that was `last` after the one before it. While no file grows by much from
    /// one check to the next, the checks become fewer.
    fn pause(&self, last: Duration) -> Duration {
        if self.files.is_empty() {
            return REMOVED_LOOK;
        }
        if self.files.values().any(|growth| growth.grew >= WRITEBACK_BYTES / 4) {
            return WRITEBACK_LOOK;
        }
        (last * 2).clamp(WRITEBACK_LOOK, WRITEBACK_LOOK_MAX)
    }

    /// Opens the files of a folder that are new since the last check.
    fn find(&mut self, folder: &Path, now: Instant) {
        let Ok(changed) = fs::metadata(folder).and_then(|folder| folder.modified()) else { return };
        let before = self.changed.insert(folder.to_owned(), changed);
        // Another change within the same tick of the clock does not show.
        let settled = changed.elapsed().is_ok_and(|ago| ago > FOLDER_SETTLED);
        if before == Some(changed) && settled {
            return;
        }
        for path in entries(folder).unwrap_or_default() {
            let is_new = |file: &fs::Metadata| {
                file.is_file() && before.is_none_or(|before| file.created().is_ok_and(|made| made >= before))
            };
            if self.files.contains_key(&path) || !fs::metadata(&path).is_ok_and(|file| is_new(&file)) {
                continue;
            }
            if let Ok(file) = File::open(&path) {
                // Data from before the first check is left as it is.
                let begun =
                    if before.is_none() { file.metadata().map_or(0, |file| written(&file)) } else { 0 };
                self.files.insert(path, Growth { file, begun, size: begun, since: now, grew: 0 });
            }
        }
    }
}

impl Growth {
    /// Requests writing of new data. Returns false once the file no longer grows.
    fn go_on(&mut self, now: Instant) -> bool {
        let Ok(metadata) = self.file.metadata() else { return false };
        let size = written(&metadata);
        self.grew = size.saturating_sub(self.size);
        if size != self.size {
            (self.size, self.since) = (size, now);
        } else if now.duration_since(self.since) > WRITEBACK_QUIET || metadata.nlink() == 0 {
            return false;
        }
        let new = size.saturating_sub(self.begun);
        if new >= WRITEBACK_BYTES {
            // Dirty pages are not dropped; their writing begins.
            let _anyway = fadvise(&self.file, self.begun, NonZeroU64::new(new), Advice::DontNeed);
            self.begun = size;
        }
        true
    }
}

/// How much of a file was written, bytes. A journal has its full length from the start, but blocks only for what was
/// written.
fn written(file: &fs::Metadata) -> u64 {
    file.blocks() * 512
}

fn watch(writeback: &Weak<Writeback>) {
    let (mut growing, mut pause) = (Growing::default(), WRITEBACK_LOOK);
    loop {
        let Some(writeback) = writeback.upgrade() else { return };
        growing.look(&writeback.databases, Instant::now());
        drop(writeback);
        pause = growing.pause(pause);
        thread::sleep(pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    /// How much writing was requested of each file, bytes.
    fn begun(growing: &Growing) -> Vec<u64> {
        let mut begun: Vec<u64> = growing.files.values().map(|growth| growth.begun).collect();
        begun.sort_unstable();
        begun
    }

    #[test]
    fn what_is_new_in_a_file_is_asked_for_a_megabyte_at_a_time_until_it_grows_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let (database, now) = (folder.path().to_owned(), Instant::now());
        let tables = database.join("keyspaces/1/tables");
        fs::create_dir_all(&tables).unwrap();
        let megabyte = vec![7; usize::try_from(WRITEBACK_BYTES).unwrap()];
        fs::write(tables.join("1"), &megabyte).unwrap();
        let there = written(&fs::metadata(tables.join("1")).unwrap());
        let mut growing = Growing::default();
        let look = |growing: &mut Growing, at: u64| {
            growing.look(std::slice::from_ref(&database), now + Duration::from_millis(at));
        };
        look(&mut growing, 0);
        assert_eq!(begun(&growing), [there], "existing content is left alone");

        let mut file = File::create(tables.join("2")).unwrap();
        file.write_all(&megabyte[..megabyte.len() / 2]).unwrap();
        look(&mut growing, 1);
        assert_eq!(begun(&growing), [0, there], "less than a megabyte is not written back");
        for count in 1..4 {
            file.write_all(&megabyte).unwrap();
            look(&mut growing, 1 + count);
            let size = written(&file.metadata().unwrap());
            assert_eq!(begun(&growing), [there, size], "{count}: all new content is written back");
        }
        let journal = File::create(database.join("0.jnl")).unwrap();
        journal.set_len(64 << 20).unwrap();
        look(&mut growing, 5);
        assert!(begun(&growing).contains(&0), "a hole needs no writeback");

        let quiet = u64::try_from(WRITEBACK_QUIET.as_millis()).unwrap();
        look(&mut growing, 10 + quiet);
        assert_eq!(growing.files.len(), 0, "files that no longer grow are forgotten");
    }

    #[test]
    fn files_that_grow_little_are_checked_less_often() {
        let folder = tempfile::tempdir().unwrap();
        let (mut growing, databases) = (Growing::default(), [folder.path().to_owned()]);
        let mut file = File::create(folder.path().join("0.jnl")).unwrap();
        assert_eq!(growing.pause(WRITEBACK_LOOK), REMOVED_LOOK, "nothing grows");
        let mut pauses = vec![WRITEBACK_LOOK];
        for bytes in [1, 1, 1, 1, 1, usize::try_from(WRITEBACK_BYTES / 2).unwrap(), 1] {
            file.write_all(&vec![7; bytes]).unwrap();
            growing.look(&databases, Instant::now());
            pauses.push(growing.pause(pauses[pauses.len() - 1]));
        }
        let times = [1, 2, 4, 8, 8, 8, 1, 2].map(|times| WRITEBACK_LOOK * times);
        assert_eq!(pauses, times);
    }

    #[test]
    fn a_file_that_was_removed_is_let_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0.jnl");
        fs::write(&path, "a").unwrap();
        let (mut growing, now) = (Growing::default(), Instant::now());
        let databases = [folder.path().to_owned()];
        growing.look(&databases, now);
        assert_eq!(growing.files.len(), 1);
        fs::remove_file(&path).unwrap();
        growing.look(&databases, now);
        assert_eq!(growing.files.len(), 0);
    }
}
