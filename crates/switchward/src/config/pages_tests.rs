//! What `docs/`, the README and `deploy/` say of the configuration is what the server reads.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{PREFIX, read, unread};

/// The files of some folders of the repository, and what they hold.
fn files(folders: &[&str]) -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let entries = folders.iter().flat_map(|folder| std::fs::read_dir(root.join(folder)).unwrap());
    let paths = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let paths = paths.chain([root.join("README.md")]);
    paths.map(|path| (path.clone(), std::fs::read_to_string(&path).unwrap())).collect()
}

#[test]
fn the_configurations_of_the_pages_are_valid() {
    let (folder, mut count) = (tempfile::tempdir().unwrap(), 0);
    for (page, text) in files(&["docs"]) {
        for block in text.split("\n```toml ").skip(1) {
            let (name, rest) = block.split_once('\n').unwrap();
            let (config, _) = rest.split_once("\n```").unwrap();
            if name == "fragment" {
                continue;
            }
            let file = folder.path().join(name);
            std::fs::write(&file, config).unwrap();
            let read = read(Some(&file), &[]);
            assert!(read.is_ok(), "{}, {name}: {:#}", page.display(), read.unwrap_err());
            count += 1;
        }
    }
    assert!(count >= 7, "{count}");
}

#[test]
fn the_variables_of_the_pages_and_of_what_is_installed_are_read() {
    let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let mut named = BTreeSet::new();
    for (_, text) in files(&["docs", "deploy", "deploy/switchward.service.d"]) {
        for rest in text.split(PREFIX).skip(1) {
            let name = &rest[..rest.find(|c: char| !is_part(c)).unwrap_or(rest.len())];
            // The prefix alone stands for all of them.
            if !name.is_empty() {
                named.insert(format!("{PREFIX}{name}"));
            }
        }
    }
    assert!(named.len() >= 70, "{named:?}");
    assert_eq!(unread(named.into_iter()), Vec::<String>::new());
}
