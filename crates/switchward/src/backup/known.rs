//! The backups that were taken of a data folder: where each was written.

use anyhow::Context as _;
use std::collections::HashSet;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::{Path, PathBuf};

/// The list in the data folder, one path a line.
const LIST: &str = "BACKUPS";

/// Notes that a backup was written here.
///
/// # Errors
/// The list cannot be written, or its path cannot be a line of it.
pub(crate) fn note(data: &Path, backup: &Path) -> anyhow::Result<()> {
    let (backup, list) = (std::path::absolute(backup)?, data.join(LIST));
    let line = backup.to_str().filter(|path| !path.contains(['\n', '\r']));
    let line = line.with_context(|| format!("{} has no line for the path {backup:?}", list.display()))?;
    let file = std::fs::File::options().create(true).append(true).open(&list);
    let written = file.and_then(|mut file| {
        let (own, theirs) = (file.metadata()?, std::fs::metadata(data)?);
        // Made by root, it could be neither read nor continued by the server's user.
        if own.uid() != theirs.uid() {
            fchown(&file, Some(theirs.uid()), Some(theirs.gid()))?;
        }
        // At once: after half a line the next one would be no path.
        file.write_all(format!("{line}\n").as_bytes())?;
        file.sync_all()
    });
    written.with_context(|| format!("failed to write {}", list.display()))
}

/// Where backups of a data folder were written, the newest first. All of them count: the oldest may be the only one that
/// needs a key.
///
/// # Errors
/// The list cannot be read.
pub(crate) fn backups(data: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let list = data.join(LIST);
    let text = match std::fs::read_to_string(&list) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.with_context(|| format!("failed to read {}", list.display()))?,
    };
    let mut known = HashSet::new();
    let paths = text.lines().rev().filter(|line| !line.is_empty() && known.insert(*line));
    Ok(paths.map(PathBuf::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    #[test]
    fn every_backup_is_known_however_old_it_is() {
        let data = tempfile::tempdir().unwrap();
        assert!(backups(data.path()).unwrap().is_empty());
        let path = |at: usize| PathBuf::from(format!("/backups/{at}"));
        for at in (0..1_200).chain([0]) {
            note(data.path(), &path(at)).unwrap();
        }
        let expected: Vec<PathBuf> = [0].into_iter().chain((1..1_200).rev()).map(path).collect();
        assert_eq!(backups(data.path()).unwrap(), expected);
    }

    #[test]
    fn a_list_that_cannot_be_read_is_not_taken_for_an_empty_one() {
        let data = tempfile::tempdir().unwrap();
        std::fs::write(data.path().join(LIST), b"/backups/\xff\n").unwrap();
        assert!(backups(data.path()).is_err());
    }

    #[test]
    fn a_backup_that_the_list_cannot_name_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        for odd in [&b"/backups/\xff"[..], b"/backups/a\nb", b"/backups/a\r"] {
            let refused = note(folder.path(), Path::new(OsStr::from_bytes(odd))).unwrap_err();
            assert!(refused.to_string().contains("BACKUPS has no line for the path"), "{refused}");
        }
        assert!(backups(folder.path()).unwrap().is_empty());
        for path in ["/backups/a b", "/backups/\u{e4}", "/backups/a b"] {
            note(folder.path(), Path::new(path)).unwrap();
        }
        let expected = ["/backups/a b", "/backups/\u{e4}"].map(PathBuf::from);
        assert_eq!(backups(folder.path()).unwrap(), expected);
    }
}
