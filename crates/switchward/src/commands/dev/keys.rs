//! The keys of a development server or cluster, in its data folder.

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use switchward_gateway::auth::NewKey;
use switchward_state::catalogue::Role;
use switchward_store::write_secret;

use super::{PERSON, TENANT};
use crate::node::Node;
use crate::{private, ready};

/// The file of a data folder that holds the development keys.
const KEYS_FILE: &str = "dev-keys.json";

/// The secrets of a development server.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Keys {
    pub(super) agent: String,
    pub(super) person: String,
    pub(super) worker: String,
}

/// The secrets in a data folder; older folders have no worker key.
#[derive(Deserialize)]
struct StoredKeys {
    agent: String,
    person: String,
    worker: Option<String>,
}

impl Keys {
    /// The keys of a data folder: the existing ones, and new ones for those that are missing.
    ///
    /// # Errors
    /// The file contains no keys, is open to others, or cannot be read or written.
    pub(super) fn of(folder: &Path) -> anyhow::Result<Self> {
        let file = folder.join(KEYS_FILE);
        let message = || {
            format!("{} contains no keys; if you delete it, the next start creates new keys", file.display())
        };
        let drawn = || NewKey::draw().secret;
        private::refuse_open_file(&file)?;
        let keys = match fs::read(&file) {
            Ok(bytes) => match serde_json::from_slice(&bytes).with_context(message)? {
                StoredKeys { agent, person, worker: Some(worker) } => {
                    return Ok(Self { agent, person, worker });
                }
                StoredKeys { agent, person, worker: None } => Self { agent, person, worker: drawn() },
            },
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Self { agent: drawn(), person: drawn(), worker: drawn() }
            }
            Err(error) => return Err(error).with_context(|| format!("failed to read {}", file.display())),
        };
        write_secret(&file, &serde_json::to_vec(&keys)?)?;
        Ok(keys)
    }

    /// Makes sure that the tenant and its keys exist, and that gates notify the person.
    ///
    /// # Errors
    /// A key has another form, or the server cannot write.
    pub(super) async fn ensure(&self, node: &Node) -> anyhow::Result<()> {
        for (secret, role, subject) in [
            (&self.agent, Role::Agent, "agent"),
            (&self.person, Role::Admin, "person"),
            (&self.worker, Role::Worker, "worker"),
        ] {
            let key = NewKey::given(secret).with_context(|| format!("{KEYS_FILE} contains no keys"))?;
            node.ensure(TENANT, &key, role, subject).await?;
        }
        node.ensure_audience(TENANT, PERSON).await
    }

    /// The keys as the line of a ready server shows them.
    pub(super) fn shown(&self) -> ready::Keys {
        ready::Keys {
            agent_key: self.agent.clone(),
            person_key: self.person.clone(),
            worker_key: self.worker.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    /// After a start that was killed while it wrote the keys, the file is whole or absent.
    #[test]
    fn keys_that_were_not_written_to_their_end_are_no_obstacle() {
        let folder = tempfile::tempdir().unwrap();
        let half = folder.path().join("dev-keys.tmp");
        fs::write(&half, "{\"agent\":\"sw").unwrap();
        let made = Keys::of(folder.path()).unwrap();
        assert_eq!(Keys::of(folder.path()).unwrap(), made, "the next start has the same");
        assert!(!half.exists(), "the keys were written elsewhere than to their final place, and renamed");
        let mode = fs::metadata(folder.path().join(KEYS_FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_folder_from_before_there_were_workers_keeps_its_keys_and_gets_one_for_them() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(KEYS_FILE);
        write_secret(&file, br#"{"agent":"swk_a","person":"swk_p"}"#).unwrap();
        let made = Keys::of(folder.path()).unwrap();
        assert_eq!((made.agent.as_str(), made.person.as_str()), ("swk_a", "swk_p"));
        assert!(NewKey::given(&made.worker).is_some(), "{made:?}");
        assert_eq!(Keys::of(folder.path()).unwrap(), made, "the next start has the same");
    }

    #[test]
    fn keys_that_cannot_be_read_are_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(KEYS_FILE);
        write_secret(&file, b"").unwrap();
        let error = Keys::of(folder.path()).unwrap_err().to_string();
        assert!(error.contains("dev-keys.json contains no keys; if you delete it"), "{error}");
        assert_eq!(fs::read(&file).unwrap(), b"");
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        assert!(Keys::of(folder.path()).unwrap_err().to_string().starts_with("failed to read"));
    }
}
