//! The files and values that arguments name.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::Path;
use switchward_formats::limits::SOURCE_BYTES_MAX;

use crate::exit::Exit;

/// The path of the standard input.
pub(crate) const STDIN: &str = "-";

/// Reads a file or, for `-`, the standard input: at most one byte more than a source may have, so that the check can
/// report that it is too large.
///
/// # Errors
/// The file does not exist, is a folder, or cannot be read.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Exit> {
    read_within(path, SOURCE_BYTES_MAX)
}

/// Reads a file as [`read`] does, with another limit, bytes.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_within(path: &Path, limit: usize) -> Result<Vec<u8>, Exit> {
    let most = u64::try_from(limit).map_or(u64::MAX, |max| max + 1);
    let mut bytes = Vec::new();
    let read = if path == Path::new(STDIN) {
        std::io::stdin().lock().take(most).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes))
    };
    match read {
        Ok(_) => Ok(bytes),
        Err(error) => Err(unreadable(path, &error)),
    }
}

/// The error of a path that cannot be read.
pub(crate) fn unreadable(path: &Path, error: &std::io::Error) -> Exit {
    let (shown, kind) = (path.display(), error.kind());
    if matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory) {
        Exit::missing(format!("{shown} does not exist"))
    } else if kind == ErrorKind::IsADirectory {
        Exit::usage(format!("{shown} is a folder; name a file"))
    } else {
        Exit::failed(anyhow::anyhow!("failed to read {shown}: {error}"))
    }
}

/// Reads a value: `@FILE` is the content of the file, every other text is itself.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn value(text: &str) -> Result<Vec<u8>, Exit> {
    match text.strip_prefix('@') {
        Some(path) => read(Path::new(path)),
        None => Ok(text.as_bytes().to_vec()),
    }
}
