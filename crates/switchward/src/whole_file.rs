//! Files that commands write: each is there whole or not at all, also after a kill and after a power cut.

use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// The mode of a file for its owner alone.
pub(crate) const PRIVATE: u32 = 0o600;
/// The bits of a mode that are about the owner and the group, and about the group.
const OWNER_AND_GROUP: u32 = 0o770;
const GROUP: u32 = 0o070;
/// The name of a file that is not complete: this, and random letters and digits.
const INCOMPLETE: &str = ".new-";
const INCOMPLETE_RANDOM_CHARS: usize = 6;

/// Creates a file of this mode, less what the umask takes away.
///
/// # Errors
/// Something has this name already, or the file cannot be written.
pub(crate) fn create(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let file = written(path, content, mode)?;
    file.persist_noclobber(path).map_err(|error| error.error)?;
    sync_folder_of(path)
}

/// Writes a file for its owner alone. Replaces one of this name, also a symbolic link, and never follows it.
///
/// # Errors
/// It cannot be written.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let file = written(path, content, PRIVATE)?;
    file.persist(path).map_err(|error| error.error)?;
    sync_folder_of(path)
}

/// Replaces what a private file holds. Who may read it stays the same: its owner, its group if that may do something, and
/// their bits of its mode. So does a symbolic link to it.
///
/// # Errors
/// There is no such file, it cannot be written, or this process cannot give it to its owner.
pub(crate) fn rewrite(path: &Path, content: &[u8]) -> io::Result<()> {
    let path = path.canonicalize()?;
    let old = path.metadata()?;
    let file = written(&path, content, PRIVATE)?;
    let new = file.as_file().metadata()?;
    let [owner, group] = given_to([new.uid(), new.gid()], [old.uid(), old.gid()], old.mode());
    if owner.is_some() || group.is_some() {
        fchown(file.as_file(), owner, group).map_err(|error| {
            let (owner, group) = (old.uid(), old.gid());
            io::Error::new(
                error.kind(),
                format!("this user cannot give it to user {owner} and group {group}: {error}"),
            )
        })?;
    }
    file.as_file().set_permissions(Permissions::from_mode(old.mode() & OWNER_AND_GROUP))?;
    file.as_file().sync_all()?;
    file.persist(&path).map_err(|error| error.error)?;
    sync_folder_of(&path)
}

/// The owner and the group, unless they are right, to which a new file is given that replaces an old one of this mode. Only
/// root can give a file to a group that it is not in, so a group that may do nothing is not asked for.
fn given_to(new: [u32; 2], old: [u32; 2], mode: u32) -> [Option<u32>; 2] {
    let owner = Some(old[0]).filter(|owner| *owner != new[0]);
    let matters = owner.is_some() || mode & GROUP != 0;
    let group = Some(old[1]).filter(|group| matters && *group != new[1]);
    [owner, group]
}

/// A synced file beside this path, which is deleted when it is dropped.
fn written(path: &Path, content: &[u8], mode: u32) -> io::Result<NamedTempFile> {
    let mut making = tempfile::Builder::new();
    let making = making.prefix(INCOMPLETE).rand_bytes(INCOMPLETE_RANDOM_CHARS);
    let making = making.permissions(Permissions::from_mode(mode));
    let mut file = making.tempfile_in(folder_of(path))?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    Ok(file)
}

/// Returns the files of a folder that have the name of an incomplete one, in their order; none if it cannot be read. Such a
/// file is what a killed command has left, or a command is writing it now, or it is a file of somebody else: the name does not
/// say which, so nothing here deletes it.
pub(crate) fn incomplete_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let incomplete = entries.flatten().filter(|entry| {
        // The kind of the entry itself: what a symbolic link leads to does not count.
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        is_file && entry.file_name().to_str().is_some_and(is_incomplete)
    });
    let mut files: Vec<PathBuf> = incomplete.map(|entry| entry.path()).collect();
    files.sort_unstable();
    files
}

fn is_incomplete(name: &str) -> bool {
    name.strip_prefix(INCOMPLETE).is_some_and(|random| {
        random.len() == INCOMPLETE_RANDOM_CHARS && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

fn sync_folder_of(path: &Path) -> io::Result<()> {
    File::open(folder_of(path))?.sync_all()
}

/// The folder of a file: the current one if its path is a name alone.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    /// A folder with a file of somebody, and a symbolic link to it.
    fn linked() -> (tempfile::TempDir, [PathBuf; 2]) {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["theirs", "link"].map(|name| folder.path().join(name));
        fs::write(&paths[0], "theirs").unwrap();
        symlink(&paths[0], &paths[1]).unwrap();
        (folder, paths)
    }

    #[test]
    fn what_is_there_is_not_created_again() {
        let (folder, [theirs, link]) = linked();
        for path in [&theirs, &link] {
            assert_eq!(create(path, b"ours", 0o644).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        }
        assert_eq!(fs::read(&theirs).unwrap(), b"theirs");
        let new = folder.path().join("new");
        create(&new, b"ours", PRIVATE).unwrap();
        assert_eq!((fs::read(&new).unwrap(), mode(&new)), (b"ours".to_vec(), PRIVATE));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3, "nothing else is left");
    }

    #[test]
    fn a_link_is_replaced_and_not_followed() {
        let (_folder, [theirs, link]) = linked();
        replace(&link, b"ours").unwrap();
        assert_eq!(fs::read(&theirs).unwrap(), b"theirs");
        assert_eq!((fs::read(&link).unwrap(), mode(&link)), (b"ours".to_vec(), PRIVATE));
        assert!(!link.symlink_metadata().unwrap().is_symlink());
    }

    #[test]
    fn a_file_that_is_rewritten_stays_where_it_is_and_open_to_whom_it_was() {
        let (_folder, [theirs, link]) = linked();
        fs::set_permissions(&theirs, Permissions::from_mode(0o640)).unwrap();
        rewrite(&link, b"ours").unwrap();
        assert_eq!((fs::read(&theirs).unwrap(), mode(&theirs)), (b"ours".to_vec(), 0o640));
        assert!(link.symlink_metadata().unwrap().is_symlink());
        fs::remove_file(&theirs).unwrap();
        assert!(rewrite(&link, b"ours").is_err() && !theirs.exists());
    }

    #[test]
    fn what_a_killed_command_has_left_is_known_by_its_name() {
        let (folder, [theirs, _]) = linked();
        let killed = || written(&theirs, b"ours", PRIVATE).unwrap().keep().unwrap().1;
        let mut left = [killed(), killed()];
        left.sort();
        for other in [".new-", ".new-12345", ".new-1234567", ".new-12345_", "new-123456"] {
            fs::write(folder.path().join(other), "").unwrap();
        }
        symlink(&theirs, folder.path().join(".new-linked")).unwrap();
        fs::create_dir(folder.path().join(".new-folder")).unwrap();
        assert_eq!(incomplete_in(folder.path()), left);
        assert!(incomplete_in(&theirs).is_empty());
    }

    #[test]
    fn a_file_is_given_to_the_owner_and_to_a_group_that_may_do_something() {
        for (new, old, mode, expected) in [
            ([7, 7], [7, 7], 0o640, [None, None]),
            ([7, 7], [7, 0], 0o600, [None, None]),
            ([7, 7], [7, 9], 0o640, [None, Some(9)]),
            ([0, 0], [7, 9], 0o600, [Some(7), Some(9)]),
            ([0, 9], [7, 9], 0o640, [Some(7), None]),
        ] {
            assert_eq!(given_to(new, old, mode), expected, "{new:?} {old:?} {mode:o}");
        }
    }
}
