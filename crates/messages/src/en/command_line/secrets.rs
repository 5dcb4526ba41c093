//! What the commands say about the key ring of a server, and about its use.

use std::fmt::Display;
use std::path::Path;

/// The first line of a key ring.
pub const KEY_RING_COMMENT: &str = "the current key first; see `switchward secrets --help`";
/// What to do with a new key ring.
pub const KEEP_COPY_AND_SET: &str =
    "keep a copy of the file apart from the backups, and set keys_file in the server's configuration";
/// When the server encrypts with a new key.
pub const USED_AFTER_START: &str =
    "the server uses the new key after a start, or after SIGHUP if it reads this file";
/// Instead of an empty table of keys.
pub const NO_KEYS: &str = "no keys";

/// A key ring was created, with its first key.
#[must_use]
pub fn created(file: &Path, key: &impl Display) -> String {
    format!("created {} with the key {key}", file.display())
}

/// A key was added to a key ring.
#[must_use]
pub fn current_key(file: &Path, key: &impl Display) -> String {
    format!("the current key of {} is {key}", file.display())
}

/// A key was taken out of a key ring.
#[must_use]
pub fn removed(file: &Path, key: &impl Display) -> String {
    format!("removed the key {key} from {}", file.display())
}

/// Below the use of keys: backups, given as their count with a noun, that could not be looked at.
#[must_use]
pub fn missing_backups(backups: &str) -> String {
    format!("{backups} missing from where they were written; name moved ones with --backup DIR")
}

/// What to do with a key ring that was created with the first tenant.
#[must_use]
pub fn keep_copy(file: &Path) -> String {
    format!(
        "keep a copy of the new key ring {} apart from the backups; if the server has a keys_file, it must be this \
         file",
        file.display()
    )
}
