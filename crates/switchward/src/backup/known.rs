//! The backups that were taken of a data folder: where each was written.

use anyhow::Context as _;
use rustix::fs::OFlags;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, fchown};
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
    let written = open(data, &list).and_then(|mut file| {
        // At once: after half a line the next one would be no path.
        file.write_all(format!("{line}\n").as_bytes())?;
        file.sync_all()?;
        // It may be new.
        File::open(data)?.sync_all()
    });
    written.with_context(|| format!("failed to write {}", list.display()))
}

/// Opens the list to continue it, or makes it. It belongs to the data folder's owner then: made by root, it could be neither
/// read nor continued by the server's user.
///
/// That user could have put a link there, to be given a file of root: it is not followed, nor is a file given away that has
/// another name, too.
fn open(data: &Path, list: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.create(true).append(true).custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    let file = options.open(list)?;
    let (own, theirs) = (file.metadata()?, std::fs::metadata(data)?);
    if own.uid() != theirs.uid() {
        if own.nlink() != 1 {
            return Err(io::Error::other("it has another name, and another owner than the folder"));
        }
        fchown(&file, Some(theirs.uid()), Some(theirs.gid()))?;
    }
    Ok(file)
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
    use std::os::unix::fs::{chown, symlink};

    #[test]
    fn every_backup_is_known_however_old_it_is() {
        let data = tempfile::tempdir().unwrap();
        assert!(backups(data.path()).unwrap().is_empty());
        let path = |at: usize| PathBuf::from(format!("/backups/{at}"));
        let lines: Vec<String> = (0..1_199).map(|at| format!("/backups/{at}\n")).collect();
        std::fs::write(data.path().join(LIST), lines.concat()).unwrap();
        for at in [1_199, 0] {
            note(data.path(), &path(at)).unwrap();
        }
        let expected: Vec<PathBuf> = [0].into_iter().chain((1..1_200).rev()).map(path).collect();
        assert_eq!(backups(data.path()).unwrap(), expected);
    }

    #[test]
    fn a_list_that_is_a_link_is_not_followed() {
        let data = tempfile::tempdir().unwrap();
        let (theirs, list) = (data.path().join("theirs"), data.path().join(LIST));
        std::fs::write(&theirs, "theirs").unwrap();
        symlink(&theirs, &list).unwrap();
        assert!(note(data.path(), Path::new("/backups/a")).is_err());
        assert_eq!(std::fs::read(&theirs).unwrap(), b"theirs");
    }

    #[test]
    fn the_list_that_root_makes_belongs_to_the_owner_of_the_folder_and_no_other_file_does() {
        let data = tempfile::tempdir().unwrap();
        let (theirs, list) = (data.path().join("theirs"), data.path().join(LIST));
        let ours = data.path().metadata().unwrap().uid();
        let backup = Path::new("/backups/a");
        // Only root can give a folder away.
        if chown(data.path(), Some(ours + 1), None).is_err() {
            return;
        }
        std::fs::write(&theirs, "theirs").unwrap();
        std::fs::hard_link(&theirs, &list).unwrap();
        assert!(note(data.path(), backup).is_err());
        assert_eq!(std::fs::read(&theirs).unwrap(), b"theirs");
        assert_eq!(theirs.metadata().unwrap().uid(), ours);
        std::fs::remove_file(&list).unwrap();
        note(data.path(), backup).unwrap();
        assert_eq!(list.metadata().unwrap().uid(), ours + 1);
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
