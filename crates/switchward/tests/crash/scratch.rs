//! The folder of one test.

use std::path::Path;
use std::{fs, process};
use tempfile::TempDir;

use crate::rig::disk::unmount;

const ROOT: &str = env!("CARGO_TARGET_TMPDIR");
const PREFIX: &str = "crash-";

/// A new folder for one test; removed when it is dropped.
pub(crate) fn folder() -> anyhow::Result<TempDir> {
    sweep()?;
    Ok(tempfile::Builder::new().prefix(&format!("{PREFIX}{}-", process::id())).tempdir_in(ROOT)?)
}

/// Removes the folders of killed tests, which could not clean up. A folder's name has the id of its process.
fn sweep() -> anyhow::Result<()> {
    let mounts = fs::read_to_string("/proc/mounts")?;
    for entry in fs::read_dir(ROOT)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()?.strip_prefix(PREFIX)?.split('-').next());
        let Some(maker) = name.and_then(|pid| pid.parse::<u32>().ok()) else { continue };
        if Path::new("/proc").join(maker.to_string()).exists() {
            continue;
        }
        // What was mounted last lies on top.
        for mounted in mounts.lines().rev().filter_map(|line| line.split(' ').nth(1)) {
            if Path::new(mounted).starts_with(&path) {
                unmount(Path::new(mounted))?;
            }
        }
        match fs::remove_dir_all(&path) {
            Ok(()) => eprintln!("{} was left by a test that was stopped, and is removed", path.display()),
            // Another test may be about the same.
            Err(error) => eprintln!("{} is left over: {error}", path.display()),
        }
    }
    Ok(())
}
