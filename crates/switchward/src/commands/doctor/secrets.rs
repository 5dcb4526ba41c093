//! Files with secrets: the server's files, and the contexts of the current user.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use switchward_messages::cli::doctor::secrets as texts;

use super::CheckResult;
use crate::config::Config;
use crate::context::Contexts;
use crate::key_ring::KeyRingLocation;
use crate::private::{self, Open};
use crate::whole_file;

const WHAT: &str = "secrets";
/// Incomplete files that a finding names, the first ones.
const INCOMPLETE_SHOWN_MAX: usize = 5;

/// The findings about these files and the user's contexts; empty if all are private.
pub(super) fn look(files: &[&Path]) -> Vec<CheckResult> {
    let contexts = Contexts::of_user().map(|contexts| contexts.files()).unwrap_or_default();
    let files = open(files.iter().map(|file| file.to_path_buf()));
    let (fixed, open_files): (Vec<_>, Vec<_>) = files.into_iter().partition(|(_, open)| open.fixed);
    let (contexts, _) =
        open(contexts.into_iter()).into_iter().partition::<Vec<_>, _>(|(_, open)| !open.fixed);
    let named = |open: &[(PathBuf, Open)]| -> Vec<String> {
        open.iter().map(|(file, open)| texts::open_file(file, open.mode)).collect()
    };
    let mut found = Vec::new();
    if !open_files.is_empty() {
        let said = texts::open_files(&named(&open_files));
        found.push(CheckResult::fail(WHAT, said, texts::CLOSE_FILE));
    }
    if !contexts.is_empty() {
        let said = texts::open_files(&named(&contexts));
        found.push(CheckResult::fail(WHAT, said, texts::CLOSE_CONTEXT));
    }
    if !fixed.is_empty() {
        let said = texts::open_mounted_files(&named(&fixed));
        found.push(CheckResult::warn(WHAT, said, texts::RESTRICT_FOLDER));
    }
    found
}

/// The finding about incomplete files beside the server's secrets and its key ring; `None` if there are none.
pub(super) fn incomplete(config: &Config) -> Option<CheckResult> {
    let location = KeyRingLocation::find(config.keys_file.as_deref(), &config.data_dir);
    incomplete_beside(private::secret_files(config).into_iter().chain(location.file()))
}

fn incomplete_beside<'a>(secrets: impl Iterator<Item = &'a Path>) -> Option<CheckResult> {
    let mut folders = BTreeSet::new();
    for file in secrets {
        folders.extend(whole_file::folder_of(file).canonicalize());
        // A file that is a symbolic link is written where it leads to.
        folders.extend(file.canonicalize().map(|file| whole_file::folder_of(&file).to_path_buf()));
    }
    let files: Vec<PathBuf> = folders.iter().flat_map(|folder| whole_file::incomplete_in(folder)).collect();
    let shown = files.iter().take(INCOMPLETE_SHOWN_MAX);
    let shown: Vec<String> = shown.map(|file| file.display().to_string()).collect();
    let said = texts::incomplete_files(&shown, files.len() - shown.len());
    (!shown.is_empty()).then(|| CheckResult::warn(WHAT, said, texts::DELETE_INCOMPLETE))
}

/// The key ring.
pub(super) fn ring(config: &Config) -> CheckResult {
    let what = "keys";
    let location = KeyRingLocation::find(config.keys_file.as_deref(), &config.data_dir);
    let keys = match location.read() {
        Ok(keys) => keys,
        Err(error) => return CheckResult::fail(what, format!("{error:#}"), texts::CREATE_KEY_RING),
    };
    let Some(current) = keys.first() else {
        return CheckResult::warn(what, texts::NO_KEY_RING, texts::CREATE_AND_SET_KEY_RING);
    };
    CheckResult::ok(what, texts::current_key(&current.id(), location.file(), keys.len() - 1))
}

fn open(files: impl Iterator<Item = PathBuf>) -> Vec<(PathBuf, Open)> {
    files.filter_map(|file| private::open_file(&file).map(|open| (file, open))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::CheckStatus;
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn incomplete_files_are_named_where_secrets_are_and_where_links_lead() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let [here, there] = ["here", "there"].map(|name| root.join(name));
        for folder in [&here, &there] {
            fs::create_dir(folder).unwrap();
        }
        let (ring, link) = (there.join("ring"), here.join("link"));
        fs::write(&ring, "").unwrap();
        symlink(&ring, &link).unwrap();
        let look = || incomplete_beside([link.as_path(), Path::new("/no/such/file")].into_iter());
        assert_eq!(look(), None);
        for file in [here.join(".new-a1b2c3"), there.join(".new-d4e5f6")] {
            fs::write(file, "").unwrap();
        }
        let found = look().unwrap();
        assert_eq!((found.what, found.status), ("secrets", CheckStatus::Warn));
        let named = |folder: &Path, name: &str| found.said.contains(&folder.join(name).display().to_string());
        assert!(named(&here, ".new-a1b2c3") && named(&there, ".new-d4e5f6"), "{found:?}");
        for at in 0..INCOMPLETE_SHOWN_MAX {
            fs::write(here.join(format!(".new-00000{at}")), "").unwrap();
        }
        let found = look().unwrap();
        assert!(found.said.ends_with(" and 2 more"), "{found:?}");
        assert!(ring.exists() && here.join(".new-a1b2c3").exists(), "nothing is deleted");
    }
}
