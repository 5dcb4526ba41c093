//! Files that a run writes its figures to, as JSON.

use anyhow::Context as _;
use serde::Serialize;
use std::fs::{self, File};
use std::path::Path;

/// Checks that the figures can be written, before hours are spent on measuring them. Creates the folder and an empty
/// file if they are missing. Older figures stay until there are new ones.
///
/// # Errors
/// The folder cannot be created, or the file cannot be opened for writing.
pub(crate) fn ensure_writable(file: &Path) -> anyhow::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let created = folder.map_or(Ok(()), fs::create_dir_all);
    let opened = created.and_then(|()| File::options().append(true).create(true).open(file));
    opened.map(drop).with_context(|| format!("cannot write figures to {}", file.display()))
}

/// Replaces the file's content, and prints its path.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write(file: &Path, figures: &impl Serialize) -> anyhow::Result<()> {
    let message = || format!("failed to write {}", file.display());
    let created = File::create(file).with_context(message)?;
    serde_json::to_writer_pretty(created, figures).with_context(message)?;
    println!("\nfigures: {}", file.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        for path in [folder.path().to_path_buf(), folder.path().join("file/bench.json")] {
            let error = format!("{:#}", ensure_writable(&path).unwrap_err());
            assert!(error.contains(&path.display().to_string()), "{error}");
        }
    }

    #[test]
    fn a_missing_folder_is_created_and_older_figures_stay_until_there_are_new_ones() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a/b/bench.json");
        ensure_writable(&file).unwrap();
        write(&file, &[1, 2]).unwrap();
        let older = fs::read_to_string(&file).unwrap();
        ensure_writable(&file).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), older);
        write(&file, &[3]).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "[\n  3\n]");
    }
}
