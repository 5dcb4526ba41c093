use super::{SnapshotFile, format::Header, writer::SnapshotWriter};
use crate::{
    DataDir, Disk, GroupId, StoreError,
    files::{self, entries, failed},
};
use bytes::Bytes;
use std::{
    fs::{self, File},
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

/// The snapshot files of a data folder: `snapshots/<group>-<number>.snap`. The highest number of a group counts and
/// the others are deleted.
#[derive(Clone, Debug)]
pub struct Snapshots {
    dir: DataDir,
    next: Arc<AtomicU64>,
}

impl Snapshots {
    /// Opens the folder and removes what was left unfinished. Open it once, and clone it.
    ///
    /// # Errors
    /// If the folder cannot be read or cleared.
    pub fn open(dir: &DataDir) -> Result<Self, StoreError> {
        let mut last = 0;
        for path in entries(&dir.snapshots())? {
            match parse(&path) {
                Some((_, number)) => last = last.max(number),
                None => fs::remove_file(&path).map_err(failed("remove", &path))?,
            }
        }
        Ok(Snapshots { dir: dir.clone(), next: Arc::new(AtomicU64::new(last + 1)) })
    }

    /// The disk that holds them.
    #[must_use]
    pub fn disk(&self) -> &Disk {
        self.dir.disk()
    }

    /// Removes all snapshots; they are made again when needed.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub fn clear(&self) -> Result<(), StoreError> {
        let all = entries(&self.dir.snapshots())?;
        all.iter().filter(|path| parse(path).is_some()).try_for_each(|path| remove(path))
    }

    /// Removes the snapshots of a group. Handles to them can still be read.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub fn remove(&self, group: GroupId) -> Result<(), StoreError> {
        self.of(group)?.iter().try_for_each(|(_, path)| remove(path))
    }

    /// Begins to receive a snapshot of a group from another server.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn receive(&self, group: GroupId) -> Result<SnapshotReceiver, StoreError> {
        Ok(SnapshotReceiver { draft: self.draft(group)? })
    }

    pub(crate) fn write(
        &self,
        group: GroupId,
        applied: Option<Bytes>,
    ) -> Result<SnapshotWriter<Draft>, StoreError> {
        let draft = self.draft(group)?;
        let path = draft.temporary.clone();
        SnapshotWriter::new(draft, &path, &Header { group, applied })
    }

    fn draft(&self, group: GroupId) -> Result<Draft, StoreError> {
        let number = self.next.fetch_add(1, Relaxed);
        let path = self.dir.snapshots().join(format!("{:016x}-{number:016x}.snap", group.0));
        let temporary = path.with_extension("tmp");
        let file = File::create(&temporary).map_err(failed("create", &temporary))?;
        Ok(Draft { folder: self.clone(), group, file: BufWriter::new(file), temporary, path })
    }

    fn of(&self, group: GroupId) -> Result<Vec<(u64, PathBuf)>, StoreError> {
        let all = entries(&self.dir.snapshots())?.into_iter();
        Ok(all
            .filter_map(|path| parse(&path).map(|(of, number)| (of, number, path)))
            .filter(|(of, ..)| *of == group.0)
            .map(|(_, number, path)| (number, path))
            .collect())
    }

    fn keep_newest(&self, group: GroupId) -> Result<(), StoreError> {
        let mut all = self.of(group)?;
        all.sort();
        all.pop();
        all.iter().try_for_each(|(_, path)| remove(path))
    }
}

/// Removes a file, unless another task has removed it.
fn remove(path: &Path) -> Result<(), StoreError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", path)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn parse(path: &Path) -> Option<(u64, u64)> {
    let (group, number) = path.file_name()?.to_str()?.strip_suffix(".snap")?.split_once('-')?;
    Some((u64::from_str_radix(group, 16).ok()?, u64::from_str_radix(number, 16).ok()?))
}

/// A snapshot that arrives in pieces. Dropped before [`SnapshotReceiver::finish`], it leaves nothing.
pub struct SnapshotReceiver {
    draft: Draft,
}

impl SnapshotReceiver {
    /// Adds the next piece of the file.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&mut self, piece: &[u8]) -> Result<(), StoreError> {
        self.draft.write_all(piece).map_err(failed("write", &self.draft.temporary))
    }

    /// Makes the file durable, verifies it, and makes it the newest of its group.
    ///
    /// # Errors
    /// As [`SnapshotFile::open`]; and [`StoreError::WrongGroup`].
    pub fn finish(self) -> Result<SnapshotFile, StoreError> {
        self.draft.publish()
    }
}

/// A file that gets its name when it is complete.
pub(crate) struct Draft {
    folder: Snapshots,
    group: GroupId,
    file: BufWriter<File>,
    temporary: PathBuf,
    path: PathBuf,
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Draft {
    pub(crate) fn publish(mut self) -> Result<SnapshotFile, StoreError> {
        let synced = self.file.flush().and_then(|()| self.file.get_ref().sync_all());
        synced.map_err(failed("sync", &self.temporary))?;
        let finished = SnapshotFile::open(&self.temporary)?;
        let found = finished.group();
        if found != self.group {
            return Err(StoreError::WrongGroup { expected: self.group, found });
        }
        files::publish(&self.temporary, &self.path)?;
        self.folder.keep_newest(self.group)?;
        Ok(finished.renamed(self.path.clone()))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // After a rename there is nothing to remove, and leftovers are removed when the folder is opened.
        let _ignored = fs::remove_file(&self.temporary);
    }
}
