use super::{Backup, BackupFile};
use crate::{DataDir, Id, SnapshotFile, StateStore, StoreError, files::failed};
use std::fs;

impl Backup {
    pub(super) fn snapshot(&self, file: &BackupFile) -> Result<SnapshotFile, StoreError> {
        SnapshotFile::open(&self.folder.join(&file.name))
    }

    /// Restores the rows whose keys `keeps` accepts, and all other files, into a data folder that [`DataDir::begin_restore`] has made. Call [`Backup::check`] for
    /// every file before.
    ///
    /// # Errors
    /// If a file cannot be read or the data folder cannot be written; the restore must then be repeated.
    pub fn restore(&self, dir: &DataDir, keeps: &dyn Fn(&[u8]) -> bool) -> Result<(), StoreError> {
        if let Some(cluster) = self.manifest.cluster.as_deref() {
            let unknown = || StoreError::damaged("backup", format!("{cluster:?} is not the id of a cluster"));
            dir.note_origin(Id::parse(cluster).ok_or_else(unknown)?)?;
        }
        dir.shards(self.manifest.shards)?;
        let groups = self.manifest.files.iter().filter(|file| file.group.is_some());
        StateStore::restore(dir, groups.map(|file| self.snapshot(file)), keeps)?;
        for file in self.manifest.files.iter().filter(|file| file.group.is_none()) {
            let (from, to) = (self.folder.join(&file.name), dir.path().join(&file.name));
            let folder = to.parent().unwrap_or(dir.path());
            crate::files::make_dir(folder)?;
            fs::copy(&from, &to)
                .and_then(|_| fs::File::open(&to)?.sync_all())
                .map_err(failed("copy", &from))?;
            crate::files::sync_dir(folder)?;
        }
        crate::files::sync_dir(dir.path())
    }
}
