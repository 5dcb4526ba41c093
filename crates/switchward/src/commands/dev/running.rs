//! Which development cluster runs: a file beside the user's contexts names the one that was started last.

use anyhow::Context as _;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::context::Contexts;
use crate::exit::Exit;

/// The file beside the contexts. It is no context, because it has no extension.
const FILE: &str = "dev-cluster";

/// The note that a cluster runs. Dropping it removes the note, unless another cluster was started since.
pub(super) struct Running {
    file: PathBuf,
    folder: String,
}

impl Running {
    /// Notes that the cluster of this folder runs.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(super) fn note(folder: &Path) -> anyhow::Result<Self> {
        let contexts = Contexts::of_user()?;
        fs::create_dir_all(contexts.folder())
            .with_context(|| format!("failed to create {}", contexts.folder().display()))?;
        let (file, folder) = (contexts.folder().join(FILE), folder.to_string_lossy().into_owned());
        fs::write(&file, &folder).with_context(|| format!("failed to write {}", file.display()))?;
        Ok(Self { file, folder })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if fs::read_to_string(&self.file).is_ok_and(|folder| folder == self.folder) {
            // A note that stays names a folder where nobody listens.
            let _stays = fs::remove_file(&self.file);
        }
    }
}

/// The folder of the cluster that a command is about.
///
/// # Errors
/// None is named, and none was started.
pub(super) fn find(named: Option<&Path>) -> Result<PathBuf, Exit> {
    if let Some(folder) = named {
        return Ok(folder.to_owned());
    }
    let file = Contexts::of_user()?.folder().join(FILE);
    match fs::read_to_string(&file) {
        Ok(folder) => Ok(PathBuf::from(folder)),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(none_runs()),
        Err(error) => Err(error).with_context(|| format!("failed to read {}", file.display()))?,
    }
}

/// The error of a command that finds no cluster.
pub(super) fn none_runs() -> Exit {
    Exit::unreachable("no development cluster runs").next("switchward dev --servers 3    starts one")
}
