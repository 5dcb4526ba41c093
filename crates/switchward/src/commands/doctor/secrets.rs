//! Files with secrets: the server's own, and the contexts of the current user.

use std::path::{Path, PathBuf};

use super::Found;
use crate::config::Config;
use crate::context::Contexts;
use crate::key_ring::KeyRingLocation;
use crate::private::{self, Open};

const WHAT: &str = "secrets";

/// What is wrong with these files and with the user's contexts; empty if nothing is.
pub(super) fn look(files: &[&Path]) -> Vec<Found> {
    let contexts = Contexts::of_user().map(|contexts| contexts.files()).unwrap_or_default();
    let files = open(files.iter().map(|file| file.to_path_buf()));
    let (fixed, open_files): (Vec<_>, Vec<_>) = files.into_iter().partition(|(_, open)| open.fixed);
    let (contexts, _) =
        open(contexts.into_iter()).into_iter().partition::<Vec<_>, _>(|(_, open)| !open.fixed);
    let said = |open: &[(PathBuf, Open)]| {
        let one = |(file, open): &(PathBuf, Open)| format!("{} ({:03o})", file.display(), open.mode);
        format!("everybody on this machine can read {}", open.iter().map(one).collect::<Vec<_>>().join(", "))
    };
    let mut found = Vec::new();
    if !open_files.is_empty() {
        let advice = "chmod 600, for the server's own user; no server starts with it";
        found.push(Found::fail(WHAT, said(&open_files), advice));
    }
    if !contexts.is_empty() {
        let advice = "chmod 600, for the user whose contexts they are; no command takes it";
        found.push(Found::fail(WHAT, said(&contexts), advice));
    }
    if !fixed.is_empty() {
        let said = format!("{}, on a mount that is read-only", said(&fixed));
        found.push(Found::warn(
            WHAT,
            said,
            "let nobody else into the folder, or mount it for the server's user",
        ));
    }
    found
}

/// The key ring.
pub(super) fn ring(config: &Config) -> Found {
    let what = "keys";
    let location = KeyRingLocation::find(config.keys_file.as_deref(), &config.data_dir);
    let keys = match location.read() {
        Ok(keys) => keys,
        Err(error) => {
            let advice =
                "no server starts with it; `switchward secrets create FILE` makes one where there was none";
            return Found::fail(what, format!("{error:#}"), advice);
        }
    };
    let Some(current) = keys.first() else {
        let said = "there is no key ring: secrets of webhooks are refused, and mails have no reply address";
        return Found::warn(what, said, "`switchward secrets create FILE`, and keys_file = FILE");
    };
    let from = location.file().map_or("the environment".to_owned(), |file| file.display().to_string());
    let older = keys.len() - 1;
    Found::ok(what, format!("secrets are encrypted under the key {} of {from}; {older} older", current.id()))
}

fn open(files: impl Iterator<Item = PathBuf>) -> Vec<(PathBuf, Open)> {
    files.filter_map(|file| private::open_file(&file).map(|open| (file, open))).collect()
}
