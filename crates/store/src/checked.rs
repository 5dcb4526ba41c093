//! Small text files that are read only if they are as they were written: the last line is the checksum of the lines
//! before it, in hexadecimal.

use crate::{
    StoreError,
    files::{failed, write_whole},
};
use std::{fs, io, path::Path};
use xxhash_rust::xxh3::xxh3_64;

/// Length of the last line, bytes.
const CHECKSUM_BYTES: usize = 17;

/// The content of a file with these lines, each of which ends with a line feed.
pub(crate) fn encode(lines: &str) -> String {
    format!("{lines}{:016x}\n", xxh3_64(lines.as_bytes()))
}

/// The lines of a file.
///
/// # Errors
/// [`StoreError::Damaged`], with the name of the file, unless it is as it was written.
pub(crate) fn decode(path: &Path, stored: &[u8]) -> Result<String, StoreError> {
    let lines = stored.len().checked_sub(CHECKSUM_BYTES).map(|end| &stored[..end]);
    match lines.map(str::from_utf8) {
        Some(Ok(lines)) if encode(lines).as_bytes() == stored => Ok(lines.to_owned()),
        Some(_) | None => {
            let (bytes, path) = (stored.len(), path.display());
            Err(StoreError::damaged(
                "file",
                format!("bytes 0 to {bytes} of {path} do not match their checksum"),
            ))
        }
    }
}

/// Reads a file; `None` if there is none.
///
/// # Errors
/// As of [`decode`]; if the file cannot be read.
pub(crate) fn read(path: &Path) -> Result<Option<String>, StoreError> {
    match fs::read(path) {
        Ok(stored) => decode(path, &stored).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed("read", path)(error)),
    }
}

/// Writes a file so that it is there whole or not at all, also after a power cut.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn write(path: &Path, lines: &str) -> Result<(), StoreError> {
    write_whole(path, &encode(lines))
}

/// The error for a file that each data folder has, and that is not there.
pub(crate) fn missing(path: &Path) -> StoreError {
    StoreError::damaged("data folder", format!("{} is missing", path.display()))
}

/// The error for a file with lines that this program does not write.
pub(crate) fn unknown(path: &Path) -> StoreError {
    StoreError::damaged("file", format!("{} holds something that is unknown", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_changed_byte_and_no_shorter_file_is_read() {
        let path = Path::new("BOOTS");
        let whole = encode("17\n").into_bytes();
        assert_eq!(decode(path, &whole).unwrap(), "17\n");
        for at in 0..whole.len() {
            for flip in [1, 0x10, 0x80, 0xff] {
                let mut changed = whole.clone();
                changed[at] ^= flip;
                let error = decode(path, &changed).unwrap_err().to_string();
                assert!(error.contains("of BOOTS do not match"), "byte {at}: {error}");
            }
            assert!(decode(path, &whole[..at]).is_err(), "{at} bytes");
        }
    }
}
