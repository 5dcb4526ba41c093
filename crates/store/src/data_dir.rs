mod identity;

use crate::{
    Disk, DiskOptions, GroupId, StoreError,
    files::{self, entries, failed, make_dir, sync_dir},
    limits::{FORMAT_VERSION, LOCK_PAUSE, LOCK_TRIES_MAX},
    mark::Mark,
    removed::Removed,
    writeback::Writeback,
};
use identity::Identity;
pub use identity::{ForeignPeer, SeenPeer};
use std::{
    fs::{self, File, Permissions, TryLockError},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};

const LOCK: &str = "LOCK";
const FORMAT: &str = "FORMAT";
const ID: &str = "ID";
const SHARDS: &str = "SHARDS";
const RESTORING: &str = "RESTORING";
const LOG_BEGIN: &str = "LOG_BEGIN";
const LOG_SYNCED: &str = "LOG_SYNCED";
const STATE_SYNCED: &str = "STATE_SYNCED";
const INITIALIZED: &str = "INITIALIZED";
/// What a creation may have left when it was interrupted, besides its folders and temporary files.
const CREATED: [&str; 7] = [LOCK, ID, LOG_BEGIN, LOG_SYNCED, STATE_SYNCED, "BOOTS", "lost+found"];
/// Its temporary files.
const CREATED_TEMPORARY: [&str; 7] = [
    "ID.tmp",
    "LOG_BEGIN.tmp",
    "LOG_SYNCED.tmp",
    "STATE_SYNCED.tmp",
    "BOOTS.tmp",
    "FORMAT.tmp",
    "RESTORING.tmp",
];
/// Numbers in the files that say where the log begins, and how much of the log and of the state was synced.
pub(crate) const LOG_BEGIN_MARKS: usize = 1;
pub(crate) const LOG_MARKS: usize = 1;
pub(crate) const STATE_MARKS: usize = 3;
/// The mode bits that give access to others than the owner.
const OTHERS: u32 = 0o077;
const FOLDERS: [&str; 3] = ["log", "state", "snapshots"];

/// A server's data folder, locked for this process.
///
/// ```text
/// LOCK        locked as long as a clone of the `DataDir` lives
/// ID          32 hexadecimal digits, drawn once at creation
/// BOOTS       the boot counter: raised at each opening before anything else is read
/// CLUSTER     the cluster and the server's number in it; written once, absent if the server stands alone
/// RESTORED_FROM    the cluster whose backup was restored into the folder, which can never be bound to it
/// PEERS       the folders of other servers, each with the highest boot counter seen and its boot id
/// LOG_BEGIN   the first batch that the log must have: older ones were removed
/// LOG_SYNCED, STATE_SYNCED    how much of the log and of the state's journal was synced, see `mark.rs`
/// INITIALIZED there once all groups of a server that stands alone have been initialised
/// RESERVE     allocated ahead, for what must be written on a full disk
/// SHARDS      how many shards the buckets are spread over; said once
/// FORMAT      the format's number; written last, so a folder with it is complete
/// SCRUB       there while bytes of what was erased may be in the files
/// RESTORING   there from the beginning of a restore to its end; a server does not open such a folder
/// log/ state/ snapshots/
/// removed/    second names of the tables of state/, see `removed.rs`
/// ```
#[derive(Clone, Debug)]
pub struct DataDir {
    path: PathBuf,
    id: Arc<str>,
    identity: Arc<Identity>,
    disk: Arc<Disk>,
    removed: Option<Arc<Removed>>,
    _writeback: Option<Arc<Writeback>>,
    _lock: Arc<File>,
}

impl DataDir {
    /// Opens the folder, creating it (and its parents) if there is none.
    ///
    /// # Errors
    /// [`StoreError::InUse`] if another process (or another `DataDir`) has it, [`StoreError::Format`] if another
    /// format wrote it, [`StoreError::Foreign`] if it holds anything else, [`StoreError::Exposed`] if it was made before
    /// and others than its owner may enter it. An empty folder is closed to others.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let (path, lock) = locked(path.as_ref())?;
        if path.join(RESTORING).exists() {
            return Err(StoreError::RestoreUnfinished { path });
        }
        Self::of(path, lock)
    }

    /// Creates the folder for a restore, if there is none, and marks it as unfinished until [`DataDir::end_restore`].
    /// What an interrupted restore has left is removed.
    ///
    /// # Errors
    /// [`StoreError::FolderExists`] if it is a data folder already; else as [`DataDir::open`].
    pub fn begin_restore(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        let (path, lock) = locked(path.as_ref())?;
        if path.join(RESTORING).exists() {
            clear(&path)?;
        } else if path.join(FORMAT).exists() {
            return Err(StoreError::FolderExists { path });
        } else {
            files::write_whole(&path.join(RESTORING), "a backup is being restored into this folder\n")?;
        }
        Self::of(path, lock)
    }

    /// Ends the restore: from now on the folder is an ordinary data folder.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn end_restore(&self) -> Result<(), StoreError> {
        let marker = self.path.join(RESTORING);
        fs::remove_file(&marker).map_err(failed("remove", &marker))?;
        sync_dir(&self.path)
    }

    fn of(path: PathBuf, lock: File) -> Result<Self, StoreError> {
        // A file that an earlier process has renamed may not be durable under its name yet, and is relied on from
        // now on: a peer that is noted already is not noted again.
        sync_dir(&path)?;
        let id = match files::read_text(&path.join(FORMAT))? {
            Some(found) if found == FORMAT_VERSION.to_string() => read_id(&path)?,
            Some(found) => return Err(StoreError::Format { path, found, expected: FORMAT_VERSION }),
            None => create(&path)?,
        };
        let identity = Arc::new(Identity::open(&path, &id)?);
        let disk = Disk::unwatched(&path);
        Ok(DataDir {
            path,
            id: id.into(),
            identity,
            disk,
            removed: None,
            _writeback: None,
            _lock: Arc::new(lock),
        })
    }

    /// The same folder, whose disk is monitored from now on, and whose databases do not wait for the removal of
    /// tables.
    ///
    /// # Errors
    /// If no thread can be started, or the folder that this needs cannot be created.
    pub fn watched(self, options: DiskOptions) -> Result<Self, StoreError> {
        let disk = Disk::watched(&self.path, options).map_err(failed("watch the disk of", &self.path))?;
        let removed = Removed::watched(self.path.join("removed"), vec![self.state()])?;
        let writeback = Writeback::started(vec![self.state()])?;
        Ok(DataDir { disk, removed: Some(removed), _writeback: Some(writeback), ..self })
    }

    /// The disk that holds it.
    pub fn disk(&self) -> &Arc<Disk> {
        &self.disk
    }

    /// Its absolute path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if another process has the folder, or another `DataDir` of this one. Creates nothing and keeps no
    /// lock; returns false if the folder cannot be read. An opening meanwhile waits for the end of this call.
    #[must_use]
    pub fn in_use(path: &Path) -> bool {
        let file = File::open(path.join(LOCK));
        // Shared, so that it is told apart from a `DataDir`, and does not disturb another call of this function.
        file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// Drawn at creation and never changed: distinguishes a replaced disk from the old one.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The number of shards that the folder's buckets are spread over: `wanted` if none is recorded yet, and that
    /// number from then on.
    ///
    /// # Errors
    /// If the number cannot be read or written.
    pub fn shards(&self, wanted: u32) -> Result<u32, StoreError> {
        if let Some(known) = self.shards_known()? {
            return Ok(known);
        }
        files::write_whole(&self.path.join(SHARDS), &wanted.to_string())?;
        Ok(wanted)
    }

    /// The recorded number of shards; `None` if none is recorded yet.
    ///
    /// # Errors
    /// If the number cannot be read.
    pub fn shards_known(&self) -> Result<Option<u32>, StoreError> {
        let file = self.path.join(SHARDS);
        let Some(text) = files::read_text(&file)? else { return Ok(None) };
        text.parse().map(Some).map_err(|_| StoreError::Foreign { path: file })
    }

    /// Returns true if all groups of the folder have been initialised: from then on none may be initialised again, as
    /// it would forget its votes and entries.
    #[must_use]
    pub fn is_initialized(&self) -> bool {
        self.path.join(INITIALIZED).exists()
    }

    /// Records durably that all groups of the folder have been initialised.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn set_initialized(&self) -> Result<(), StoreError> {
        if self.is_initialized() {
            return Ok(());
        }
        files::write_whole(&self.path.join(INITIALIZED), "the groups of this folder were initialised once\n")
    }

    /// The first batch that the log must have.
    pub(crate) fn log_begin(&self) -> PathBuf {
        self.path.join(LOG_BEGIN)
    }

    /// How much of the log was synced.
    pub(crate) fn log_synced(&self) -> PathBuf {
        self.path.join(LOG_SYNCED)
    }

    /// How much of the state's journal was synced.
    pub(crate) fn state_synced(&self) -> PathBuf {
        self.path.join(STATE_SYNCED)
    }

    /// Exists while removed data is still in the files.
    pub(crate) fn owed(&self) -> PathBuf {
        self.path.join("SCRUB")
    }

    /// Exists if the rows of a group were found to be wrong; says why.
    pub(crate) fn wrong(&self, group: GroupId) -> PathBuf {
        self.path.join(format!("WRONG-{:016x}", group.0))
    }

    /// Frees the removed tables now. Returns false if one of them could not be freed.
    pub(crate) fn free_removed(&self) -> bool {
        self.removed.as_ref().is_none_or(|removed| removed.look())
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.path.join("log")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.path.join("state")
    }

    pub(crate) fn snapshots(&self) -> PathBuf {
        self.path.join("snapshots")
    }
}

/// Creates the folder if there is none, and locks it if it is a data folder or can become one.
fn locked(path: &Path) -> Result<(PathBuf, File), StoreError> {
    make_dirs(path)?;
    let path = path.canonicalize().map_err(failed("find", path))?;
    let made = path.join(FORMAT).exists() || path.join(RESTORING).exists();
    if !made {
        check_creatable(&path)?;
        close_to_others(&path)?;
    }
    check_closed(&path)?;
    let lock = lock(&path)?;
    Ok((path, lock))
}

/// Removes what an interrupted restore has left, except for its mark and the lock.
fn clear(path: &Path) -> Result<(), StoreError> {
    for entry in entries(path)? {
        let name = entry.file_name().unwrap_or_default();
        if [LOCK, RESTORING, "lost+found"].iter().any(|kept| name == *kept) {
            continue;
        }
        let removed = if entry.is_dir() { fs::remove_dir_all(&entry) } else { fs::remove_file(&entry) };
        removed.map_err(failed("remove", &entry))?;
    }
    Ok(())
}

/// Creates the folder and the parents that are missing, each with a durable entry in the one above.
fn make_dirs(path: &Path) -> Result<(), StoreError> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    let parent = path.parent().unwrap_or(Path::new(""));
    make_dirs(parent)?;
    make_dir(path)?;
    sync_dir(if parent.as_os_str().is_empty() { Path::new(".") } else { parent })
}

/// Restricts an empty folder that is to become a data folder to its owner.
fn close_to_others(path: &Path) -> Result<(), StoreError> {
    let mode = mode(path)?;
    if mode & OTHERS == 0 {
        return Ok(());
    }
    let closed = fs::set_permissions(path, Permissions::from_mode(mode & 0o700));
    closed.map_err(failed("restrict the mode of", path))
}

/// Refuses a data folder that others may enter, whatever the modes of its files.
fn check_closed(path: &Path) -> Result<(), StoreError> {
    let mode = mode(path)? & 0o777;
    if mode & OTHERS == 0 { Ok(()) } else { Err(StoreError::Exposed { path: path.to_path_buf(), mode }) }
}

fn mode(path: &Path) -> Result<u32, StoreError> {
    let of = fs::metadata(path).map_err(failed("read the mode of", path))?;
    Ok(of.permissions().mode())
}

fn lock(path: &Path) -> Result<File, StoreError> {
    lock_with(path, || thread::sleep(LOCK_PAUSE))
}

/// Locks the folder. Calls `pause` before each further try, while the lock is held only by calls of [`DataDir::in_use`].
fn lock_with(path: &Path, mut pause: impl FnMut()) -> Result<File, StoreError> {
    let name = path.join(LOCK);
    // NFS locks a file exclusively only if it can be written, and shared only if it can be read.
    let file = File::options().create(true).truncate(false).read(true).write(true).open(&name);
    let file = file.map_err(failed("open", &name))?;
    for _ in 0..LOCK_TRIES_MAX {
        if succeeded(file.try_lock(), &name)? {
            return Ok(file);
        }
        // A shared lock is refused only if somebody has the folder.
        if !succeeded(file.try_lock_shared(), &name)? {
            break;
        }
        file.unlock().map_err(failed("unlock", &name))?;
        pause();
    }
    Err(StoreError::InUse { path: path.to_path_buf() })
}

/// Returns false if another lock on the file prevented this one.
fn succeeded(locked: Result<(), TryLockError>, name: &Path) -> Result<bool, StoreError> {
    match locked {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(failed("lock", name)(error)),
    }
}

/// A folder without `FORMAT` may only hold what an interrupted creation leaves: anything else is not ours to
/// write into, and a data folder that lost its `FORMAT` must not be taken for a new one.
fn check_creatable(path: &Path) -> Result<(), StoreError> {
    for entry in entries(path)? {
        let name = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let ours = if FOLDERS.contains(&name.as_str()) {
            entry.is_dir() && entries(&entry)?.is_empty()
        } else {
            CREATED.contains(&name.as_str()) || CREATED_TEMPORARY.contains(&name.as_str())
        };
        if !ours {
            return Err(StoreError::Foreign { path: path.to_path_buf() });
        }
    }
    Ok(())
}

fn create(path: &Path) -> Result<String, StoreError> {
    for folder in FOLDERS {
        make_dir(&path.join(folder))?;
    }
    let id = format!("{:032x}", rand::random::<u128>());
    files::write_whole(&path.join(ID), &format!("{id}\n"))?;
    Mark::<LOG_BEGIN_MARKS>::create(&path.join(LOG_BEGIN))?;
    Mark::<LOG_MARKS>::create(&path.join(LOG_SYNCED))?;
    Mark::<STATE_MARKS>::create(&path.join(STATE_SYNCED))?;
    Identity::create(path)?;
    files::write_whole(&path.join(FORMAT), &format!("{FORMAT_VERSION}\n"))?;
    Ok(id)
}

fn read_id(path: &Path) -> Result<String, StoreError> {
    let id = files::read_text(&path.join(ID))?;
    id.ok_or_else(|| StoreError::damaged("data folder", "its ID file is missing"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A new folder with its lock's file, and that file as a call of `in_use` holds it.
    fn looked_at() -> (tempfile::TempDir, File) {
        let folder = tempfile::tempdir().unwrap();
        drop(lock(folder.path()).unwrap());
        let file = File::open(folder.path().join(LOCK)).unwrap();
        file.try_lock_shared().unwrap();
        (folder, file)
    }

    #[test]
    fn an_opening_waits_for_those_who_only_look() {
        let (folder, file) = looked_at();
        let (mut looking, mut pauses) = (Some(file), 0);
        let opened = lock_with(folder.path(), || {
            pauses += 1;
            if pauses == 3 {
                drop(looking.take());
            }
        });
        let opened = opened.unwrap();
        assert_eq!(pauses, 3);
        assert!(DataDir::in_use(folder.path()));
        let refused = lock_with(folder.path(), || panic!("it does not wait for a server"));
        assert!(matches!(refused, Err(StoreError::InUse { .. })), "{refused:?}");
        drop(opened);
        assert!(!DataDir::in_use(folder.path()));
    }

    #[test]
    fn a_folder_at_which_others_look_is_not_in_use_but_an_opening_does_not_wait_for_ever() {
        let (folder, _file) = looked_at();
        assert!(!DataDir::in_use(folder.path()));
        let mut pauses = 0;
        let refused = lock_with(folder.path(), || pauses += 1);
        assert!(matches!(refused, Err(StoreError::InUse { .. })), "{refused:?}");
        assert_eq!(pauses, LOCK_TRIES_MAX);
    }
}
