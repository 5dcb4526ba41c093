//! Files with secrets: the server's files, and the contexts of the current user.

use std::path::{Path, PathBuf};

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
    let said = |open: &[(PathBuf, Open)]| {
        let one = |(file, open): &(PathBuf, Open)| format!("{} ({:03o})", file.display(), open.mode);
        format!("all users of this machine can read {}", open.iter().map(one).collect::<Vec<_>>().join(", "))
    };
    let mut found = Vec::new();
    if !open_files.is_empty() {
        let advice = "chmod 600 as the server's user; the server does not start";
        found.push(CheckResult::fail(WHAT, said(&open_files), advice));
    }
    if !contexts.is_empty() {
        let advice = "chmod 600 as the contexts' user; commands refuse the contexts";
        found.push(CheckResult::fail(WHAT, said(&contexts), advice));
    }
    if !fixed.is_empty() {
        let said = format!("{} (read-only mount)", said(&fixed));
        found.push(CheckResult::warn(
            WHAT,
            said,
            "restrict the folder to the server's user, or mount it for that user",
        ));
    }
    found
}

/// The key ring.
pub(super) fn ring(config: &Config) -> CheckResult {
    let what = "keys";
    let location = KeyRingLocation::find(config.keys_file.as_deref(), &config.data_dir);
    let keys = match location.read() {
        Ok(keys) => keys,
        Err(error) => {
            let advice = "the server does not start; `switchward secrets create FILE` creates a new key ring";
            return CheckResult::fail(what, format!("{error:#}"), advice);
        }
    };
    let Some(current) = keys.first() else {
        let said = "no key ring: webhook secrets are refused, and mails have no reply address";
        return CheckResult::warn(
            what,
            said,
            "run `switchward secrets create FILE`, and set keys_file = FILE",
        );
    };
    let from = location.file().map_or("the environment".to_owned(), |file| file.display().to_string());
    let older = keys.len() - 1;
    CheckResult::ok(
        what,
        format!("secrets are encrypted with the key {} of {from}; {older} older", current.id()),
    )
}

fn open(files: impl Iterator<Item = PathBuf>) -> Vec<(PathBuf, Open)> {
    files.filter_map(|file| private::open_file(&file).map(|open| (file, open))).collect()
}
