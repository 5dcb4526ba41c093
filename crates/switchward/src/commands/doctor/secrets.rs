//! Files with secrets: the server's files, and the contexts of the current user.

use std::path::{Path, PathBuf};
use switchward_messages::cli::doctor::secrets as texts;

use super::CheckResult;
use crate::config::Config;
use crate::context::Contexts;
use crate::key_ring::KeyRingLocation;
use crate::private::{self, Open};

const WHAT: &str = "secrets";

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
