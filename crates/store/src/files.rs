//! The few file operations that the rest needs, with errors that name the file.

use crate::StoreError;
use rustix::{
    fs::{SeekFrom, seek},
    io::Errno,
};
use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Seek as _, Write},
    os::unix::fs::DirBuilderExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

/// For `map_err` of a file operation: `action` completes "failed to ... PATH".
pub(crate) fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    move |source| StoreError::Io { action, path: path.to_path_buf(), source: Arc::new(source) }
}

/// Makes the entries of a folder durable: a new or renamed file may vanish without it.
pub(crate) fn sync_dir(path: &Path) -> Result<(), StoreError> {
    File::open(path).and_then(|dir| dir.sync_all()).map_err(failed("sync the folder", path))
}

/// Creates a folder for its owner alone unless it exists. The caller syncs the parent.
pub(crate) fn make_dir(path: &Path) -> Result<(), StoreError> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(failed("create", path)(error)),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Writes a small file so that it is there whole or not at all, also after a power cut.
pub(crate) fn write_whole(path: &Path, content: &str) -> Result<(), StoreError> {
    write_at_once(path, content.as_bytes(), File::options().create(true).truncate(true))
}

/// Writes a small file that only its owner can read, so that it is there whole or not at all, also after a power cut.
/// Replaces an existing one. The temporary file has the same name with the ending `tmp`.
///
/// # Errors
/// If it cannot be written.
pub fn write_secret(path: &Path, content: &[u8]) -> Result<(), StoreError> {
    let temporary = path.with_extension("tmp");
    // Left by a process that was killed, or created by someone else: its owner and its mode would stay.
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(failed("remove", &temporary)(error));
        }
        Ok(()) | Err(_) => {}
    }
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    write_at_once(path, content, options.create_new(true))
}

fn write_at_once(path: &Path, content: &[u8], options: &mut OpenOptions) -> Result<(), StoreError> {
    let temporary = path.with_extension("tmp");
    let file = options.write(true).open(&temporary);
    file.and_then(|mut file| file.write_all(content).and_then(|()| file.sync_all()))
        .map_err(failed("write", &temporary))?;
    publish(&temporary, path)
}

/// Renames a synced file to its final name, durably.
pub(crate) fn publish(temporary: &Path, path: &Path) -> Result<(), StoreError> {
    fs::rename(temporary, path).map_err(failed("rename", temporary))?;
    sync_dir(path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")))
}

/// Reads a small text file; `None` if it is not there.
pub(crate) fn read_text(path: &Path) -> Result<Option<String>, StoreError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text.trim().to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("read", path)(error)),
    }
}

/// The entries of a folder, in no order.
pub(crate) fn entries(path: &Path) -> Result<Vec<PathBuf>, StoreError> {
    fs::read_dir(path)
        .and_then(|all| all.map(|entry| entry.map(|entry| entry.path())).collect())
        .map_err(failed("list", path))
}

/// Moves to the next data of a file, over a hole, which reads as zeros. Returns false if nothing but a hole follows. On a
/// file system without holes all is data.
pub(crate) fn skip_hole(mut file: &File) -> io::Result<bool> {
    let at = file.stream_position()?;
    match seek(file, SeekFrom::Data(at)) {
        Ok(_) => Ok(true),
        Err(Errno::NXIO) => Ok(false),
        // What cannot be skipped is read.
        Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(true),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn data_after_a_hole_is_found() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("sparse");
        let mut file = File::options().read(true).write(true).create_new(true).open(path).unwrap();
        assert!(!skip_hole(&file).unwrap(), "an empty file has no data");
        file.set_len(4 << 20).unwrap();
        file.seek(io::SeekFrom::Start(2 << 20)).unwrap();
        file.write_all(b"data").unwrap();
        file.rewind().unwrap();
        assert!(skip_hole(&file).unwrap());
        let mut rest = Vec::new();
        file.read_to_end(&mut rest).unwrap();
        let found = rest.iter().position(|byte| *byte != 0).unwrap();
        assert_eq!(&rest[found..found + 4], b"data");
    }
}
