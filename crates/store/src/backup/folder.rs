use super::{BackupFile, BackupManifest, BackupSink, MANIFEST, QUARANTINE, is_ours, write_manifest};
use crate::{
    StoreError,
    files::{self, entries, failed, make_dir, sync_dir},
};
use std::{
    fs::{self, File, TryLockError},
    io::{self, BufWriter, Write},
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

/// A folder that a backup is written into. Until the backup is complete it is called `<name>.incomplete`; if dropped
/// before, it leaves nothing.
pub struct BackupFolder {
    path: PathBuf,
    temporary: PathBuf,
    file: Option<BufWriter<File>>,
    written: Vec<BackupFile>,
    /// The temporary folder, locked so that no other backup takes it for one that was killed.
    _lock: File,
}

impl BackupFolder {
    /// Begins a backup that gets this path.
    ///
    /// # Errors
    /// [`StoreError::FolderExists`] if something is there already, or another backup is being written there; if the folder
    /// cannot be created.
    pub fn create(path: &Path) -> Result<Self, StoreError> {
        let taken = path.symlink_metadata().is_ok() && !(path.is_dir() && entries(path)?.is_empty());
        if taken {
            return Err(StoreError::FolderExists { path: path.to_path_buf() });
        }
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".incomplete");
        let temporary = path.with_file_name(name);
        remove_leftover(&temporary)?;
        fs::DirBuilder::new().mode(0o700).create(&temporary).map_err(failed("create", &temporary))?;
        // Another backup may have taken it for a leftover in between.
        let Some(lock) = locked(&temporary)? else {
            return Err(StoreError::FolderExists { path: temporary });
        };
        make_dir(&temporary.join(QUARANTINE))?;
        Ok(Self { path: path.to_path_buf(), temporary, file: None, written: Vec::new(), _lock: lock })
    }

    /// Completes the backup; afterwards, also after a power cut, it is there completely or not at all.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if the files written differ from the manifest; if it cannot be synced.
    pub fn finish(mut self, manifest: &BackupManifest) -> Result<(), StoreError> {
        if self.written != manifest.files {
            return Err(StoreError::damaged("backup", "the received files do not match the manifest"));
        }
        sync_dir(&self.temporary.join(QUARANTINE))?;
        write_manifest(&self.temporary, manifest)?;
        files::publish(&self.temporary, &self.path)?;
        self.temporary = PathBuf::new();
        Ok(())
    }
}

/// Removes what a killed backup has left.
///
/// # Errors
/// [`StoreError::FolderExists`] if something else is there, or the backup goes on; if it cannot be removed.
fn remove_leftover(folder: &Path) -> Result<(), StoreError> {
    if folder.symlink_metadata().is_err() {
        return Ok(());
    }
    let ours = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name == QUARANTINE || name.starts_with(MANIFEST) || is_ours(name))
    };
    if !folder.is_dir() || !entries(folder)?.iter().all(ours) {
        return Err(StoreError::FolderExists { path: folder.to_path_buf() });
    }
    if locked(folder)?.is_none() {
        return Err(StoreError::FolderExists { path: folder.to_path_buf() });
    }
    fs::remove_dir_all(folder).map_err(failed("remove", folder))
}

/// Locks a folder; `None` if another backup has it.
fn locked(folder: &Path) -> Result<Option<File>, StoreError> {
    match File::open(folder) {
        Ok(opened) => lock(opened, folder),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("open", folder)(error)),
    }
}

/// Locks a folder that was opened; `None` if another backup holds its lock, or has removed it since it was opened: what is at
/// its path then belongs to that one.
fn lock(opened: File, folder: &Path) -> Result<Option<File>, StoreError> {
    // Some file systems have no locks.
    if matches!(opened.try_lock(), Err(TryLockError::WouldBlock)) {
        return Ok(None);
    }
    let ours = opened.metadata().map_err(failed("open", folder))?;
    match folder.symlink_metadata() {
        Ok(there) if (there.dev(), there.ino()) == (ours.dev(), ours.ino()) => Ok(Some(opened)),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("open", folder)(error)),
    }
}

impl BackupSink for BackupFolder {
    fn begin(&mut self, name: &str) -> io::Result<()> {
        if !is_ours(name) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("{name:?} is not a file of a backup"),
            ));
        }
        let path = self.temporary.join(name);
        let file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
        self.file = Some(BufWriter::new(file));
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.as_mut().ok_or(io::ErrorKind::NotFound)?.write_all(bytes)
    }

    fn end(&mut self, file: &BackupFile) -> io::Result<()> {
        let written = self.file.take().ok_or(io::ErrorKind::NotFound)?;
        written.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
        self.written.push(file.clone());
        Ok(())
    }
}

impl Drop for BackupFolder {
    fn drop(&mut self) {
        if !self.temporary.as_os_str().is_empty() {
            // A later backup removes what cannot be removed now.
            let _ignored = fs::remove_dir_all(&self.temporary);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_locked_by_one_backup_and_only_as_long_as_it_is_there() {
        let at = tempfile::tempdir().unwrap();
        let folder = at.path().join("b.incomplete");
        assert!(locked(&folder).unwrap().is_none(), "another one has removed it");
        fs::create_dir(&folder).unwrap();
        let other = locked(&folder).unwrap().unwrap();
        assert!(locked(&folder).unwrap().is_none(), "another one holds it");
        let opened = File::open(&folder).unwrap();
        // The other one takes it for a leftover, removes it, and begins its own backup.
        fs::remove_dir(&folder).unwrap();
        drop(other);
        fs::create_dir(&folder).unwrap();
        let running = locked(&folder).unwrap().unwrap();
        assert!(lock(opened, &folder).unwrap().is_none(), "the folder there is not the one that was opened");
        drop(running);
        assert!(locked(&folder).unwrap().is_some());
    }
}
