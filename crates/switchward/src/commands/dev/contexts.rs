//! The contexts of a development server: one for each key.

use std::fs::File;
use std::path::Path;

use super::Keys;
use crate::context::{Context, Contexts};

/// The prefix of the contexts' names.
const PREFIX: &str = "dev";
/// The roles, each with a context, in the order in which they are shown.
const ROLES: [&str; 3] = ["agent", "person", "worker"];

/// The contexts of a running server.
pub(super) struct Written {
    contexts: Contexts,
    prefix: String,
    written: Vec<(String, Context)>,
    /// Those of the further servers of a cluster.
    further: Vec<(String, Context)>,
    /// Whether the agent's context is in use.
    agent_in_use: bool,
    /// Held while the server runs, so that a second server uses other names.
    _lock: Option<File>,
}

impl Written {
    /// Writes a context for each key. While another server uses the usual names, the names contain the port. Makes the
    /// agent's context the one in use unless the user has chosen another.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn write(address: &str, port: u16, keys: &Keys) -> anyhow::Result<Self> {
        let contexts = Contexts::of_user()?;
        let lock = contexts.lock(PREFIX)?;
        let prefix = if lock.is_some() { PREFIX.to_owned() } else { format!("{PREFIX}-{port}") };
        let mut written = Vec::new();
        for (role, key) in ROLES.into_iter().zip([&keys.agent, &keys.person, &keys.worker]) {
            let (name, address) = (format!("{prefix}-{role}"), address.to_owned());
            let context = Context { address, api_key: key.clone(), role: role.to_owned(), ca: None };
            contexts.save(&name, &context)?;
            written.push((name, context));
        }
        let agent = format!("{prefix}-{}", ROLES[0]);
        let current = match contexts.current()? {
            Some(name) if contexts.load(&name)?.is_some() => name,
            Some(_) | None => {
                contexts.select(&agent)?;
                agent.clone()
            }
        };
        let (further, agent_in_use) = (Vec::new(), current == agent);
        Ok(Self { contexts, prefix, written, further, agent_in_use, _lock: lock })
    }

    /// Writes a context for each key and another server of the same cluster; the names contain its number.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn add(&mut self, server: u64, address: &str, keys: &Keys) -> anyhow::Result<()> {
        for (role, key) in ROLES.into_iter().zip([&keys.agent, &keys.person, &keys.worker]) {
            let name = format!("{}-{server}-{role}", self.prefix);
            let (address, api_key) = (address.to_owned(), key.clone());
            let context = Context { address, api_key, role: role.to_owned(), ca: None };
            self.contexts.save(&name, &context)?;
            self.further.push((name, context));
        }
        Ok(())
    }

    /// Returns the names, with the one in use marked.
    pub(super) fn names(&self) -> String {
        let name = |(at, (name, _)): (usize, &(String, Context))| {
            if at == 0 && self.agent_in_use { format!("{name} (in use)") } else { name.clone() }
        };
        self.written.iter().enumerate().map(name).collect::<Vec<_>>().join(", ")
    }

    /// Returns the folder of their files.
    pub(super) fn folder(&self) -> &Path {
        self.contexts.folder()
    }

    /// Returns true if another server uses the usual names.
    pub(super) fn beside_another(&self) -> bool {
        self.prefix != PREFIX
    }

    /// Returns the name of the person's context for a further server.
    pub(super) fn of_server(&self, server: u64) -> String {
        format!("{}-{server}-{}", self.prefix, ROLES[1])
    }

    /// Returns a command with the agent's key.
    pub(super) fn of_agent(&self, command: &str) -> String {
        if self.agent_in_use { command.to_owned() } else { self.with(command, ROLES[0]) }
    }

    /// Returns a command with the person's key.
    pub(super) fn of_person(&self, command: &str) -> String {
        self.with(command, ROLES[1])
    }

    fn with(&self, command: &str, role: &str) -> String {
        format!("{command} --context {}-{role}", self.prefix)
    }
}

/// Deletes contexts with a port or a number in their names, which are useless after the server; the usual ones stay for its
/// next start.
impl Drop for Written {
    fn drop(&mut self) {
        let with_port = self.written.iter().filter(|_| self.beside_another());
        for (name, context) in with_port.chain(&self.further) {
            if self.contexts.load(name).ok().flatten().as_ref() == Some(context) {
                // A context that stays causes a clear error when it is used.
                let _stays = self.contexts.delete(name);
            }
        }
    }
}
