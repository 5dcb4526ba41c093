//! The checks of files with secrets, and of the key ring.

use std::fmt::Display;
use std::path::Path;

/// The remedy if others can read a file of the server.
pub const CLOSE_FILE: &str = "chmod 600 as the server's user; the server does not start";
/// The remedy if others can read a context.
pub const CLOSE_CONTEXT: &str = "chmod 600 as the contexts' user; commands refuse the contexts";
/// The remedy if others can read a file on a disk that is mounted read-only.
pub const RESTRICT_FOLDER: &str = "restrict the folder to the server's user, or mount it for that user";
/// The remedy if incomplete files are beside secrets.
pub const DELETE_INCOMPLETE: &str =
    "they may contain keys; delete them if no command of switchward is writing files there";
/// The remedy if the key ring cannot be read.
pub const CREATE_KEY_RING: &str =
    "the server does not start; `switchward secrets create FILE` creates a new key ring";
/// The server has no key to encrypt with.
pub const NO_KEY_RING: &str = "no key ring: webhook secrets are refused, and mails have no reply address";
/// The remedy if the server has no key ring.
pub const CREATE_AND_SET_KEY_RING: &str = "run `switchward secrets create FILE`, and set keys_file = FILE";

/// A file that others can read, with its mode.
#[must_use]
pub fn open_file(file: &Path, mode: u32) -> String {
    format!("{} ({mode:03o})", file.display())
}

/// Files are open to others, each given with its mode.
#[must_use]
pub fn open_files(files: &[String]) -> String {
    format!("all users of this machine can read {}", files.join(", "))
}

/// Files on a disk that is mounted read-only are open to others, each given with its mode.
#[must_use]
pub fn open_mounted_files(files: &[String]) -> String {
    format!("{} (read-only mount)", open_files(files))
}

/// Beside secrets are files as a command leaves them that was killed while it wrote; `more` of them are not named.
#[must_use]
pub fn incomplete_files(files: &[String], more: usize) -> String {
    let rest = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("a killed command may have left {}{rest}", files.join(", "))
}

/// The current key, and how many older ones the key ring holds; no file if it is in the environment.
#[must_use]
pub fn current_key(key: &impl Display, file: Option<&Path>, older: usize) -> String {
    let from = file.map_or("the environment".to_owned(), |file| file.display().to_string());
    format!("secrets are encrypted with the key {key} of {from}; {older} older")
}
