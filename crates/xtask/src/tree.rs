//! The files that are checked: every file that git tracks or would add, with its text.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::finding::Finding;
use crate::source::Source;

/// A repository as input of the checks. Paths are relative to its root and written with `/`.
pub(crate) struct Tree {
    files: BTreeMap<String, String>,
    /// Every Rust file that could be parsed.
    pub(crate) sources: Vec<Source>,
    /// The Rust files that could not be parsed.
    pub(crate) unreadable: Vec<Finding>,
}

impl Tree {
    /// Reads the working tree around `inside`. Fails without git, and outside a repository.
    pub(crate) fn of_repository(inside: &Path) -> anyhow::Result<Self> {
        let root = PathBuf::from(git(inside, &["rev-parse", "--show-toplevel"])?.trim_end());
        let listed = git(&root, &["ls-files", "-z", "--cached", "--others", "--exclude-standard"])?;
        let mut files = BTreeMap::new();
        for path in listed.split('\0').filter(|path| !path.is_empty()) {
            let full = root.join(path);
            // A tracked file may be deleted and not yet staged, and a link may lead to a folder.
            if full.is_file() {
                let bytes = std::fs::read(&full).with_context(|| format!("failed to read {path}"))?;
                files.insert(path.to_owned(), String::from_utf8_lossy(&bytes).into_owned());
            }
        }
        Ok(Self::of_files(files))
    }

    /// A tree made of these files: `(path, text)`.
    #[cfg(test)]
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        Self::of_files(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect())
    }

    fn of_files(files: BTreeMap<String, String>) -> Self {
        let mut sources = Vec::new();
        let mut unreadable = Vec::new();
        for (path, text) in files.iter().filter(|(path, _)| path.ends_with(".rs")) {
            match Source::parse(path, text) {
                Ok(source) => sources.push(source),
                Err(finding) => unreadable.push(finding),
            }
        }
        Self { files, sources, unreadable }
    }

    /// The text of one file.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Every file, in order of path.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Every file below a folder; `folder` has no trailing slash.
    pub(crate) fn below<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = &'a str> {
        self.files.keys().map(String::as_str).filter(move |path| inner_path(path, folder).is_some())
    }

    /// The names of the folders right below a folder that hold at least one file.
    pub(crate) fn folders_in(&self, folder: &str) -> BTreeSet<&str> {
        let inner = self.files.keys().filter_map(|path| inner_path(path, folder));
        inner.filter_map(|path| path.split_once('/')).map(|(name, _)| name).collect()
    }
}

/// The rest of `path` below `folder`, if it is below it.
pub(crate) fn inner_path<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    path.strip_prefix(folder)?.strip_prefix('/')
}

/// The first line (from 1) that `holds`, or 1, so that a finding always has a line.
pub(crate) fn line_where(text: &str, holds: impl Fn(&str) -> bool) -> usize {
    text.lines().position(holds).map_or(1, |index| index + 1)
}

fn git(folder: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("git")
        .current_dir(folder)
        .args(arguments)
        .output()
        .context("failed to run git, which lists the files to check")?;
    if !output.status.success() {
        bail!("git {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_named_once_and_files_beside_them_are_not() {
        let tree = Tree::of(&[
            ("a/b/one", ""),
            ("a/b/two", ""),
            ("a/c/d/three", ""),
            ("a/four", ""),
            ("ab/x/y", ""),
        ]);
        assert_eq!(tree.folders_in("a").into_iter().collect::<Vec<_>>(), ["b", "c"]);
        assert_eq!(tree.below("a/b").collect::<Vec<_>>(), ["a/b/one", "a/b/two"]);
    }

    #[test]
    fn a_file_that_is_not_rust_is_reported_where_it_breaks() {
        let tree = Tree::of(&[("crates/x/src/lib.rs", "fn a() {}\nfn b( {}\n")]);
        assert_eq!(tree.unreadable.len(), 1);
        assert_eq!(tree.unreadable[0].line, 2);
    }
}
