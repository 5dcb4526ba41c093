//! Contexts: an address and an API key each. Every context is a separate file, so that a program that gets one context
//! has no other key.

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use switchward_store::write_secret;

use crate::private;

/// The longest name of a context, characters.
const NAME_MAX: usize = 63;
/// The extension of the files.
const ENDING: &str = "json";
/// The file that names the context in use.
const CURRENT: &str = "current";

/// The address of a server and an API key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Context {
    /// `http://127.0.0.1:7400`.
    pub(crate) address: String,
    /// The secret that calls are made with; the file is for its owner alone.
    pub(crate) api_key: String,
    /// The role of the key, for display; the server decides what the key may do.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) role: String,
    /// The certificate authority of the server (PEM); `None` for the authorities that this machine trusts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ca: Option<PathBuf>,
}

/// The contexts of a user, one file each.
#[derive(Debug, Clone)]
pub(crate) struct Contexts {
    folder: PathBuf,
}

impl Contexts {
    /// The contexts in `SWITCHWARD_CONTEXTS`, or else in `switchward/contexts` of the user's configuration.
    ///
    /// # Errors
    /// The user has no home folder.
    pub(crate) fn of_user() -> anyhow::Result<Self> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(folder) = set("SWITCHWARD_CONTEXTS") {
            return Ok(Self { folder });
        }
        let config = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")));
        let config = config.context("neither SWITCHWARD_CONTEXTS nor XDG_CONFIG_HOME nor HOME is set")?;
        Ok(Self { folder: config.join("switchward").join("contexts") })
    }

    /// The folder with the files of all contexts.
    pub(crate) fn folder(&self) -> &std::path::Path {
        &self.folder
    }

    /// The path of a context's file, which may not exist.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.{ENDING}"))
    }

    /// Writes a context, readable only by its owner.
    ///
    /// # Errors
    /// The name is not allowed, or the file cannot be written.
    pub(crate) fn save(&self, name: &str, context: &Context) -> anyhow::Result<()> {
        anyhow::ensure!(
            is_name(name),
            "{name:?} is not a name for a context; use 1 to {NAME_MAX} characters of a-z, 0-9, - and _"
        );
        self.make_folder()?;
        Ok(write_secret(&self.file(name), &serde_json::to_vec_pretty(context)?)?)
    }

    /// The files of all contexts, in any order.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        self.names().unwrap_or_default().iter().map(|name| self.file(name)).collect()
    }

    /// Returns a context, or `None` if there is none of this name.
    ///
    /// # Errors
    /// The file cannot be read, everybody can read it, or it is not a context.
    pub(crate) fn load(&self, name: &str) -> anyhow::Result<Option<Context>> {
        if !is_name(name) {
            return Ok(None);
        }
        let file = self.file(name);
        private::refuse_open_file(&file)?;
        match fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes)
                .with_context(|| format!("{} is not a context", file.display()))
                .map(Some),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("failed to read {}", file.display())),
        }
    }

    /// Deletes a context, and ends its use. Returns false if there was none.
    ///
    /// # Errors
    /// The file cannot be deleted.
    pub(crate) fn delete(&self, name: &str) -> anyhow::Result<bool> {
        if !is_name(name) || !self.file(name).try_exists()? {
            return Ok(false);
        }
        fs::remove_file(self.file(name))?;
        if self.current()?.as_deref() == Some(name) {
            fs::remove_file(self.folder.join(CURRENT))?;
        }
        Ok(true)
    }

    /// Returns the names, sorted.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(crate) fn names(&self) -> anyhow::Result<Vec<String>> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.with_context(|| format!("failed to read {}", self.folder.display()))?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry?.file_name().to_string_lossy().into_owned();
            names.extend(name.strip_suffix(&format!(".{ENDING}")).map(str::to_owned));
        }
        names.retain(|name| is_name(name));
        names.sort_unstable();
        Ok(names)
    }

    /// Returns the name of the context in use, or `None` if none is.
    ///
    /// # Errors
    /// The file that names it cannot be read.
    pub(crate) fn current(&self) -> anyhow::Result<Option<String>> {
        let file = self.folder.join(CURRENT);
        match fs::read_to_string(&file) {
            Ok(name) => Ok(Some(name.trim().to_owned()).filter(|name| !name.is_empty())),
            // A path that is no folder gives the same error when a context is read.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(error).with_context(|| format!("failed to read {}", file.display())),
        }
    }

    /// Makes a context the one in use.
    ///
    /// # Errors
    /// The file that names it cannot be written.
    pub(crate) fn select(&self, name: &str) -> anyhow::Result<()> {
        self.make_folder()?;
        Ok(write_secret(&self.folder.join(CURRENT), format!("{name}\n").as_bytes())?)
    }

    /// Takes a lock that ends with the process; returns `None` if another process has it.
    ///
    /// # Errors
    /// The file cannot be created or locked.
    pub(crate) fn lock(&self, name: &str) -> anyhow::Result<Option<File>> {
        self.make_folder()?;
        let path = self.folder.join(format!("{name}.lock"));
        let file = File::options().create(true).append(true).open(&path);
        let file = file.with_context(|| format!("failed to write {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => {
                Err(error).with_context(|| format!("failed to lock {}", path.display()))
            }
        }
    }

    /// Makes the folder, unless it is there.
    ///
    /// # Errors
    /// It cannot be made; the error says which variable names another one.
    pub(crate) fn make_folder(&self) -> anyhow::Result<()> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.folder);
        made.with_context(|| {
            format!("failed to create {}; set SWITCHWARD_CONTEXTS to another folder", self.folder.display())
        })
    }
}

/// Returns true if a context can have this name, which becomes part of a file's name.
fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    (1..=NAME_MAX).contains(&name.len()) && name.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn context(key: &str) -> Context {
        let (address, role) = ("http://127.0.0.1:7400".to_owned(), String::new());
        Context { address, api_key: key.to_owned(), role, ca: None }
    }

    #[test]
    fn each_context_is_a_file_of_its_own_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let contexts = Contexts { folder: folder.path().join("contexts") };
        assert_eq!((contexts.names().unwrap(), contexts.current().unwrap()), (Vec::new(), None));
        contexts.save("b-agent", &context("agents")).unwrap();
        contexts.save("a-person", &context("persons")).unwrap();
        contexts.select("b-agent").unwrap();
        let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(contexts.file("b-agent")), mode(contexts.folder.clone())), (0o600, 0o700));
        assert!(!fs::read_to_string(contexts.file("b-agent")).unwrap().contains("persons"));
        assert_eq!(contexts.names().unwrap(), ["a-person", "b-agent"]);
        assert_eq!(contexts.load("a-person").unwrap(), Some(context("persons")));
        fs::set_permissions(contexts.file("b-agent"), fs::Permissions::from_mode(0o644)).unwrap();
        assert!(contexts.load("b-agent").unwrap_err().to_string().contains("mode 644"));
        assert!(contexts.delete("b-agent").unwrap() && !contexts.delete("b-agent").unwrap());
        assert_eq!(contexts.current().unwrap(), None, "what is gone is not in use");
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_no_dead_end() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("home");
        fs::write(&file, "").unwrap();
        let contexts = Contexts { folder: file.join("contexts") };
        let error = contexts.save("dev-agent", &context("k")).unwrap_err().to_string();
        assert!(error.ends_with("; set SWITCHWARD_CONTEXTS to another folder"), "{error}");
    }

    #[test]
    fn a_name_leads_to_no_other_folder() {
        let folder = tempfile::tempdir().unwrap();
        let contexts = Contexts { folder: folder.path().join("contexts") };
        for name in ["", "../a", "a/b", "A", ".", "a.json", "ü"] {
            assert!(contexts.save(name, &context("k")).is_err(), "{name:?}");
            assert_eq!(contexts.load(name).unwrap(), None, "{name:?}");
        }
    }

    #[test]
    fn one_process_has_a_lock() {
        let folder = tempfile::tempdir().unwrap();
        let contexts = Contexts { folder: folder.path().to_owned() };
        let first = contexts.lock("dev").unwrap();
        assert!(first.is_some() && contexts.lock("dev").unwrap().is_none());
        drop(first);
        assert!(contexts.lock("dev").unwrap().is_some());
    }
}
