//! What the paths and values of the command line stand for.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::Path;
use switchward_formats::limits::SOURCE_BYTES_MAX;

use crate::exit::Exit;

/// The path that stands for the standard input.
pub(crate) const STDIN: &str = "-";

/// The bytes of a file or, for `-`, of the standard input. One byte more than a source may have is the most that is
/// read, so that the check can say that it is too large.
///
/// # Errors
/// It does not exist, is a folder, or cannot be read.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Exit> {
    read_within(path, SOURCE_BYTES_MAX)
}

/// The same, with this many bytes in the place of a source's.
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

/// Why a path cannot be read.
pub(crate) fn unreadable(path: &Path, error: &std::io::Error) -> Exit {
    let (shown, kind) = (path.display(), error.kind());
    if matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory) {
        Exit::missing(format!("{shown} does not exist"))
    } else if kind == ErrorKind::IsADirectory {
        Exit::usage(format!("{shown} is a folder, and a file is wanted"))
    } else {
        Exit::failed(anyhow::anyhow!("failed to read {shown}: {error}"))
    }
}

/// A value that may stand in a file: `@FILE` is what the file holds, everything else is itself.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn value(text: &str) -> Result<Vec<u8>, Exit> {
    match text.strip_prefix('@') {
        Some(path) => read(Path::new(path)),
        None => Ok(text.as_bytes().to_vec()),
    }
}
