//! The file of this program, to start it again.

use anyhow::Context as _;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The program that this process runs, also under Linux after its file was deleted or replaced.
const RUNNING: &str = "/proc/self/exe";

/// A path at which this very program can be started. It is that of its file, as process lists show it, unless another program
/// has been put there since.
///
/// # Errors
/// The system does not say which program this is.
pub(crate) fn this_program() -> anyhow::Result<PathBuf> {
    let path = std::env::current_exe().context("failed to find this program")?;
    Ok(startable(path, Path::new(RUNNING)))
}

/// `path`, or `running` if that is the program and `path` is another one by now, or none.
fn startable(path: PathBuf, running: &Path) -> PathBuf {
    let identity = |path: &Path| fs::metadata(path).ok().map(|file| (file.dev(), file.ino()));
    match identity(running) {
        Some(runs) if identity(&path) != Some(runs) => running.to_owned(),
        // There is no such link on other systems.
        Some(_) | None => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_whose_file_was_replaced_is_started_from_the_running_one() {
        let folder = tempfile::tempdir().unwrap();
        let [path, running] = ["program", "running"].map(|name| folder.path().join(name));
        let at = || startable(path.clone(), &running);
        fs::write(&path, "the first build").unwrap();
        assert_eq!(at(), path, "the system has no such link");
        fs::hard_link(&path, &running).unwrap();
        assert_eq!(at(), path, "it is the same program");
        fs::remove_file(&path).unwrap();
        assert_eq!(at(), running, "its file was deleted");
        fs::write(&path, "the next build").unwrap();
        assert_eq!(at(), running, "another program is there");
    }

    #[test]
    fn this_program_is_found() {
        assert!(this_program().unwrap().is_file());
    }
}
