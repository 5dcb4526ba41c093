//! A few numbers in a file that is overwritten in place.
//!
//! Such a file is the mark beside a log or a journal: how much of it was synced.
//!
//! A log that ends in a broken batch was either cut off by a power cut, while the batch was written, or has been damaged
//! since. The mark tells the two apart. It is overwritten after each sync, and is not synced itself: after a power cut it
//! may be older than the log, and never newer.
//!
//! Another such file says where the log begins. It is synced before older segments are removed, so that a log which lacks
//! more than those is refused.

use crate::{
    StoreError, checked,
    files::{failed, write_whole},
};
use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};

/// A file of `N` numbers. Its length is fixed and less than a sector, so it is never written in part.
#[derive(Debug)]
pub(crate) struct Mark<const N: usize> {
    file: File,
    path: PathBuf,
}

impl<const N: usize> Mark<N> {
    /// Creates the file, with zeros, durably.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(crate) fn create(path: &Path) -> Result<(), StoreError> {
        write_whole(path, &encode([0; N]))
    }

    /// Opens the file, and reads it.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if it is missing, or not as it was written; if it cannot be read.
    pub(crate) fn open(path: PathBuf) -> Result<(Self, [u64; N]), StoreError> {
        let stored = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(checked::missing(&path)),
            stored => stored.map_err(failed("read", &path))?,
        };
        let lines = checked::decode(&path, &stored)?;
        let numbers: Option<Vec<u64>> =
            lines.split_whitespace().map(|number| u64::from_str_radix(number, 16).ok()).collect();
        let numbers = numbers.and_then(|numbers| numbers.try_into().ok());
        let numbers = numbers.ok_or_else(|| checked::unknown(&path))?;
        let file = File::options().write(true).open(&path).map_err(failed("open", &path))?;
        Ok((Self { file, path }, numbers))
    }

    /// Overwrites the numbers, durably. Needs no space on the disk.
    ///
    /// # Errors
    /// If they cannot be written.
    pub(crate) fn write(&self, numbers: [u64; N]) -> Result<(), StoreError> {
        let written = self.file.write_all_at(encode(numbers).as_bytes(), 0);
        written.and_then(|()| self.file.sync_all()).map_err(failed("write", &self.path))
    }

    /// Overwrites the numbers, without a sync. A mark that cannot be written stays as it was: less damage is found.
    pub(crate) fn put(&self, numbers: [u64; N]) {
        if let Err(error) = self.file.write_all_at(encode(numbers).as_bytes(), 0) {
            tracing::debug!(path = %self.path.display(), %error, "failed to record what was synced");
        }
    }

    /// Makes the numbers durable.
    pub(crate) fn sync(&self) {
        if let Err(error) = self.file.sync_data() {
            tracing::debug!(path = %self.path.display(), %error, "failed to sync the record of what was synced");
        }
    }
}

fn encode<const N: usize>(numbers: [u64; N]) -> String {
    let numbers = numbers.map(|number| format!("{number:016x}"));
    checked::encode(&format!("{}\n", numbers.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_it_was_last_put() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("LOG_SYNCED");
        Mark::<2>::create(&path).unwrap();
        let (mark, numbers) = Mark::<2>::open(path.clone()).unwrap();
        assert_eq!(numbers, [0, 0]);
        mark.put([7, u64::MAX]);
        assert_eq!(fs::read_to_string(&path).unwrap(), encode([7, u64::MAX]));
        assert_eq!(Mark::<2>::open(path.clone()).unwrap().1, [7, u64::MAX]);
        assert!(Mark::<1>::open(path.clone()).is_err(), "another number of numbers");
        fs::remove_file(&path).unwrap();
        let error = Mark::<2>::open(path).unwrap_err().to_string();
        assert!(error.contains("LOG_SYNCED is missing"), "{error}");
    }
}
