//! The contexts of a development server: one for each of its keys.

use std::fs::File;
use std::path::Path;

use super::Keys;
use crate::context::{Context, Contexts};

/// What the names of the contexts begin with.
const PREFIX: &str = "dev";
/// The roles that have a context each, in the order in which they are shown.
const ROLES: [&str; 3] = ["agent", "person", "worker"];

/// The contexts of a running server.
pub(super) struct Written {
    contexts: Contexts,
    prefix: String,
    written: Vec<(String, Context)>,
    /// Whether commands use the agent's context without naming it.
    agent_in_use: bool,
    /// Held while the server runs, so that a second one takes other names.
    _lock: Option<File>,
}

impl Written {
    /// Writes a context for each key. While another server has the usual names, the port is a part of them. The agent's
    /// context comes into use if none is: what the user has chosen stays.
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

    /// Returns true if another server has the usual names.
    pub(super) fn beside_another(&self) -> bool {
        self.prefix != PREFIX
    }

    /// Returns a command of the agent's.
    pub(super) fn of_agent(&self, command: &str) -> String {
        if self.agent_in_use { command.to_owned() } else { self.with(command, ROLES[0]) }
    }

    /// Returns a command of the person's.
    pub(super) fn of_person(&self, command: &str) -> String {
        self.with(command, ROLES[1])
    }

    fn with(&self, command: &str, role: &str) -> String {
        format!("{command} --context {}-{role}", self.prefix)
    }
}

/// Names with a port are of no use after the server; the usual ones wait for its next start.
impl Drop for Written {
    fn drop(&mut self) {
        for (name, context) in self.written.iter().filter(|_| self.beside_another()) {
            if self.contexts.load(name).ok().flatten().as_ref() == Some(context) {
                // A context that stays leads to no server, and says so.
                let _stays = self.contexts.delete(name);
            }
        }
    }
}
