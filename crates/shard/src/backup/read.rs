//! Backups that are read: checked, and put into a new data folder.

use switchward_state::{Key, Kind, Row};
use switchward_store::{Backup, BackupFile, DataDir, StoreError};

/// Reads a file of a backup and each row in it.
///
/// # Errors
/// It is damaged, or holds what this build does not know.
pub fn check_backup(backup: &Backup, file: &BackupFile) -> Result<(), StoreError> {
    each_row(backup, file, &mut |_| {})
}

/// Puts a backup into a new data folder, without the servers of its cluster: it is restored into a server alone, or into a
/// new cluster.
///
/// # Errors
/// As of [`Backup::restore`].
pub fn restore_backup(backup: &Backup, data: &DataDir) -> Result<(), StoreError> {
    let keeps = |key: &[u8]| {
        Key::from_bytes(key).is_none_or(|key| !key.is(Kind::Server) && !key.is(Kind::ClusterMap))
    };
    backup.restore(data, &keeps)
}

/// Visits each row in a file of a backup. Fails if the file is damaged or its contents cannot be decoded.
pub(crate) fn each_row(
    backup: &Backup,
    file: &BackupFile,
    visit: &mut dyn FnMut(&Row),
) -> Result<(), StoreError> {
    backup.check(file, |key, row| {
        Key::from_bytes(key).ok_or_else(|| "a key is too short".to_owned())?;
        visit(&Row::decode(row).map_err(|error| error.to_string())?);
        Ok(())
    })
}
