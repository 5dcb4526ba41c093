//! A thread that frees the tables that a database removes.
//!
//! fjall (3.1.13) removes the file of a table while it holds a lock that every read and write needs. Freeing a large
//! file takes the file system many milliseconds, some ten for 64 MB, and everything waits for that long. A file with
//! two names is not freed when one of them is removed: so each table gets a second name, in a folder beside the
//! databases, and is freed when that one is removed, which nobody waits for. If a second name cannot be given, fjall
//! frees the table as usual.

use crate::{
    StoreError,
    files::{entries, failed, make_dir},
    limits::{FOLDER_SETTLED, REMOVED_FAILURES_MAX, REMOVED_LOOK, REMOVED_LOOK_PART},
};
use parking_lot::Mutex;
use std::{
    collections::{HashMap, HashSet},
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc, Weak,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    thread,
    time::{Instant, SystemTime},
};

/// The second names of the tables of some databases.
#[derive(Debug)]
pub(crate) struct Removed {
    /// The folder of the second names.
    names: PathBuf,
    /// The folders of the databases.
    databases: Vec<PathBuf>,
    known: Mutex<HashMap<PathBuf, Known>>,
    /// Checks in a row that could not free a table.
    failures: AtomicU32,
}

/// What is known of one folder of tables.
#[derive(Debug, Default)]
struct Known {
    /// The prefix of its second names.
    prefix: String,
    /// When it last changed, if that was long enough ago that another change has another time.
    changed: Option<SystemTime>,
    /// Tables that had a second name at the last check.
    tables: HashSet<OsString>,
}

impl Removed {
    /// Gives second names from now on, as long as the result is held. Frees what an earlier process has left.
    ///
    /// # Errors
    /// If the folder cannot be created, or no thread can be started.
    pub(crate) fn watched(names: PathBuf, databases: Vec<PathBuf>) -> Result<Arc<Self>, StoreError> {
        make_dir(&names)?;
        for left in entries(&names)? {
            fs::remove_file(&left).map_err(failed("remove", &left))?;
        }
        let removed =
            Arc::new(Self { names, databases, known: Mutex::default(), failures: AtomicU32::new(0) });
        let watched = Arc::downgrade(&removed);
        let thread = thread::Builder::new().name("table-remover".to_owned()).spawn(move || watch(&watched));
        thread.map_err(failed("start the thread that frees tables in", &removed.names))?;
        Ok(removed)
    }

    /// Gives second names to new tables, and frees those that are gone. Returns false if one could not be freed,
    /// which the next check tries again. The [`REMOVED_FAILURES_MAX`]th failure in a row is reported: the log reports
    /// a disk that accepts nothing any more.
    pub(crate) fn look(&self) -> bool {
        let freed = self.free_gone();
        if freed.is_ok() {
            self.failures.store(0, Relaxed);
        }
        if let Err(error) = &freed
            && self.failures.fetch_add(1, Relaxed) + 1 == REMOVED_FAILURES_MAX
        {
            tracing::warn!(%error, "failed to free removed tables; they still use space");
        }
        freed.is_ok()
    }

    /// The same.
    ///
    /// # Errors
    /// A table could not be freed; all others have been.
    fn free_gone(&self) -> io::Result<()> {
        let mut all = Ok(());
        let mut known = self.known.lock();
        let mut gone: HashSet<PathBuf> = known.keys().cloned().collect();
        for database in &self.databases {
            for folder in folders_of_tables(database) {
                gone.remove(&folder);
                let of = known.entry(folder.clone()).or_insert_with(|| Known::of(&folder));
                all = all.and(of.look(&folder, &self.names));
            }
        }
        for folder in gone {
            if let Some(of) = known.get_mut(&folder) {
                let tables = std::mem::take(&mut of.tables);
                all = all.and(of.free_all(tables, &self.names));
                if of.tables.is_empty() {
                    known.remove(&folder);
                }
            }
        }
        all
    }
}

impl Drop for Removed {
    fn drop(&mut self) {
        for of in self.known.get_mut().values_mut() {
            let tables = std::mem::take(&mut of.tables);
            if let Err(error) = of.free_all(tables, &self.names) {
                tracing::debug!(%error, "failed to free removed tables; the next start frees them");
            }
        }
    }
}

impl Known {
    fn of(folder: &Path) -> Self {
        let parts = folder.iter().rev().skip(1).filter(|part| *part != "keyspaces").take(2);
        let parts: Vec<_> = parts.map(|part| part.to_string_lossy()).collect();
        Self { prefix: parts.into_iter().rev().collect::<Vec<_>>().join("-"), ..Self::default() }
    }

    fn second(&self, table: &OsString, names: &Path) -> PathBuf {
        let mut name = OsString::from(format!("{}-", self.prefix));
        name.push(table);
        names.join(name)
    }

    fn look(&mut self, folder: &Path, names: &Path) -> io::Result<()> {
        let changed = fs::metadata(folder)?.modified()?;
        if self.changed == Some(changed) {
            return Ok(());
        }
        let settled = changed.elapsed().is_ok_and(|ago| ago > FOLDER_SETTLED);
        let mut there = HashSet::new();
        for entry in fs::read_dir(folder)? {
            there.insert(entry?.file_name());
        }
        for table in there.difference(&self.tables) {
            // The table may be gone by now, or the file system may have no second names.
            let _without = fs::hard_link(folder.join(table), self.second(table, names));
        }
        let gone = self.tables.difference(&there).cloned().collect();
        self.tables = there;
        let freed = self.free_all(gone, names);
        self.changed = (settled && freed.is_ok()).then_some(changed);
        freed
    }

    /// Removes the second names of these tables, and remembers those that cannot be removed.
    fn free_all(&mut self, tables: HashSet<OsString>, names: &Path) -> io::Result<()> {
        let mut all = Ok(());
        for table in tables {
            match fs::remove_file(self.second(&table, names)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    all = all.and(Err(error));
                    self.tables.insert(table);
                }
                Ok(()) | Err(_) => {}
            }
        }
        all
    }
}

/// The folders of the tables of a database; empty before it is created.
pub(crate) fn folders_of_tables(database: &Path) -> Vec<PathBuf> {
    let keyspaces = entries(&database.join("keyspaces")).unwrap_or_default();
    keyspaces.into_iter().map(|keyspace| keyspace.join("tables")).filter(|folder| folder.is_dir()).collect()
}

fn watch(removed: &Weak<Removed>) {
    loop {
        let Some(removed) = removed.upgrade() else { return };
        let begun = Instant::now();
        removed.look();
        drop(removed);
        thread::sleep(REMOVED_LOOK.max(begun.elapsed() * REMOVED_LOOK_PART));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DataDir, DiskOptions, database, journal::Synced};
    use fjall::KeyspaceCreateOptions;
    use std::{collections::BTreeSet, os::unix::fs::MetadataExt as _};

    fn inodes(folder: &Path) -> BTreeSet<u64> {
        entries(folder).unwrap().iter().map(|file| fs::metadata(file).unwrap().ino()).collect()
    }

    #[test]
    fn each_table_has_a_second_name_until_it_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        let dir = DataDir::open(&path).unwrap().watched(DiskOptions::default()).unwrap();
        let synced = Synced::default();
        let settings = database::Settings { cache_bytes: 1 << 20, journal_bytes_max: 64 << 20, synced };
        let database = database::open(&dir.state(), &settings).unwrap();
        let rows = database.keyspace("rows", KeyspaceCreateOptions::default).unwrap();
        let names = path.join("removed");
        let tables = |of: &Path| folders_of_tables(of).iter().flat_map(|folder| inodes(folder)).collect();
        let mut seen = BTreeSet::new();
        for number in 0..12_u8 {
            rows.insert([number], vec![number; 10_000]).unwrap();
            rows.rotate_memtable_and_wait().unwrap();
            dir.free_removed();
            seen.extend(inodes(&names));
        }
        rows.major_compact().unwrap();
        rows.insert("last", "one").unwrap();
        rows.rotate_memtable_and_wait().unwrap();
        // Tables may still be merged.
        let same = (0..100_000).any(|_| {
            dir.free_removed();
            inodes(&names) == tables(&dir.state())
        });
        assert!(same, "removed tables were not freed, or a table has no second name");
        assert!(seen.len() > 12, "the test removed too few tables");
        drop((rows, database, dir));
        // The thread may be in the middle of a check.
        let none = (0..100_000).any(|_| {
            thread::yield_now();
            inodes(&names).is_empty()
        });
        assert!(none, "a table still has a second name");
    }

    #[test]
    fn a_table_that_could_not_be_freed_is_tried_again() {
        let folder = tempfile::tempdir().unwrap();
        let (names, tables) = (folder.path().join("removed"), folder.path().join("state/keyspaces/1/tables"));
        fs::create_dir_all(&tables).unwrap();
        fs::write(tables.join("5"), "a table").unwrap();
        let removed = Removed::watched(names.clone(), vec![folder.path().join("state")]).unwrap();
        assert!(removed.look());
        // A folder in place of the second name cannot be removed as a file.
        let second = names.join("state-1-5");
        fs::remove_file(&second).unwrap();
        fs::create_dir(&second).unwrap();
        fs::remove_file(tables.join("5")).unwrap();
        assert!(!removed.look() && !removed.look());
        fs::remove_dir(&second).unwrap();
        assert!(removed.look());
    }

    #[test]
    fn what_an_earlier_process_has_left_is_freed() {
        let folder = tempfile::tempdir().unwrap();
        let names = folder.path().join("removed");
        make_dir(&names).unwrap();
        fs::write(names.join("state-2-7"), "a table").unwrap();
        let removed = Removed::watched(names.clone(), Vec::new()).unwrap();
        assert_eq!(entries(&names).unwrap(), Vec::<PathBuf>::new());
        drop(removed);
    }
}
