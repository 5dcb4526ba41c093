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
        Ok(Self { contexts, prefix, written, agent_in_use: current == agent, _lock: lock })
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

/// Deletes contexts with a port in their names, which are useless after the server; the usual ones stay for its next
/// start.
impl Drop for Written {
    fn drop(&mut self) {
        for (name, context) in self.written.iter().filter(|_| self.beside_another()) {
            if self.contexts.load(name).ok().flatten().as_ref() == Some(context) {
                // A context that stays causes a clear error when it is used.
                let _stays = self.contexts.delete(name);
            }
        }
    }
}
