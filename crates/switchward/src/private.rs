//! What only the server's user may read.

use rustix::fs::Mode;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Bits of a mode that let others than the owner in.
const NOT_OWNER: u32 = 0o077;
/// Bits of a mode that let others in than the owner and its group.
const OTHERS: u32 = 0o007;

/// Makes every file and folder that this process creates from now on its own user's alone.
pub(crate) fn begin() {
    rustix::process::umask(Mode::from_raw_mode(NOT_OWNER));
}

/// The mode of a folder that others than its owner may enter or read.
pub(crate) fn open_folder(path: &Path) -> Option<u32> {
    exceeding(path, NOT_OWNER)
}

/// The mode of a file that others than its owner and its group may read.
pub(crate) fn open_file(path: &Path) -> Option<u32> {
    exceeding(path, OTHERS)
}

fn exceeding(path: &Path, bits: u32) -> Option<u32> {
    let mode = std::fs::metadata(path).ok()?.mode();
    (mode & bits != 0).then_some(mode & 0o777)
}

/// The user whom a folder belongs to, if that is somebody else than this process's user.
pub(crate) fn foreign_owner(path: &Path) -> Option<u32> {
    let owner = std::fs::metadata(path).ok()?.uid();
    (owner != rustix::process::geteuid().as_raw()).then_some(owner)
}
