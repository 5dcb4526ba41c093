//! The local profile: where a development server is, and with which keys. `dev` writes it, the other commands read
//! it.

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::PathBuf;
use switchward_store::write_secret;

/// Where a server is, and the keys to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Profile {
    /// `http://127.0.0.1:7400`.
    pub(crate) address: String,
    /// The key of the agent.
    pub(crate) agent_key: String,
    /// The key of the person, who may do everything else.
    pub(crate) person_key: String,
    /// The key of a worker; none in a profile of a server from before there were any.
    #[serde(default)]
    pub(crate) worker_key: Option<String>,
}

impl Profile {
    /// Where the profile is kept: `SWITCHWARD_PROFILE`, else `switchward/profile.json` in the user's configuration.
    ///
    /// # Errors
    /// The user has no home.
    pub(crate) fn path() -> anyhow::Result<PathBuf> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        if let Some(path) = set("SWITCHWARD_PROFILE") {
            return Ok(path);
        }
        let config = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")));
        let config = config.context("neither SWITCHWARD_PROFILE nor XDG_CONFIG_HOME nor HOME is set")?;
        Ok(config.join("switchward").join("profile.json"))
    }

    /// Writes the profile, readable by its owner alone.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn save(&self) -> anyhow::Result<PathBuf> {
        let path = Self::path()?;
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("failed to create {}", folder.display()))?;
        }
        write_secret(&path, &serde_json::to_vec_pretty(self)?)?;
        Ok(path)
    }

    /// The saved profile; nothing where there is none.
    ///
    /// # Errors
    /// The file cannot be read, or is no profile.
    pub(crate) fn load() -> anyhow::Result<Option<Self>> {
        let path = Self::path()?;
        match fs::read(&path) {
            Ok(bytes) => {
                let read = serde_json::from_slice(&bytes);
                read.with_context(|| {
                    format!("{} is no profile; `switchward dev` writes a new one", path.display())
                })
                .map(Some)
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("failed to read {}", path.display())),
        }
    }
}
