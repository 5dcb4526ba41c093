//! The systems that scenarios are played on.

use std::sync::LazyLock;
use switchward_machine::{TenantId, Time};
use switchward_state::seal::{KeyRing, RingKey};
use switchward_state::{Command, Rejection, Reply, Scope, View, ViewError};

/// The outcome of a command.
pub type Answer = Result<Reply, Rejection>;

/// A system that runs the engine, on a clock that only its player moves.
///
/// The player sends what a caller would send and reads what a caller could read; the number of shards, their
/// replication and their messages to each other are the system's own business.
pub trait System {
    /// The time that commands are decided at.
    fn now(&self) -> Time;

    /// Executes a caller's command.
    ///
    /// The system does what a server does: it asks the ledger if a limit applies, installs a machine that a shard
    /// lacks, and relays inner effects until none is left, so that the next command finds everything settled.
    ///
    /// # Errors
    /// An invariant of the system is broken; a refusal is not an error.
    fn submit(&mut self, command: Command) -> Result<Answer, Broken>;

    /// Shows the rows of the shard that owns this scope, including every answered command.
    ///
    /// # Errors
    /// A row cannot be read.
    fn read(
        &self,
        tenant: TenantId,
        scope: &Scope,
        look: &mut dyn FnMut(&dyn View) -> Result<(), ViewError>,
    ) -> Result<(), Broken>;

    /// Moves the clock forward to this time. Rows that fall due on the way are swept in order, each at its own time.
    ///
    /// # Errors
    /// An invariant of the system is broken.
    fn advance(&mut self, to: Time) -> Result<(), Broken>;
}

/// The key ring of every test system: nothing is secret there.
#[must_use]
pub fn ring() -> &'static KeyRing {
    static RING: LazyLock<KeyRing> = LazyLock::new(|| KeyRing::of(vec![RingKey::of([1; 32])]));
    &RING
}

/// The system broke one of its own invariants; no scenario can cause that, so it is a defect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the system broke an invariant: {0}")]
pub struct Broken(pub String);

impl From<ViewError> for Broken {
    fn from(error: ViewError) -> Self {
        Self(error.0)
    }
}

/// Reads one value from a system.
pub(crate) fn read<T>(
    system: &dyn System,
    tenant: TenantId,
    scope: &Scope,
    look: impl FnOnce(&dyn View) -> Result<T, ViewError>,
) -> Result<T, Broken> {
    let (mut look, mut found) = (Some(look), None);
    system.read(tenant, scope, &mut |view| {
        if let Some(look) = look.take() {
            found = Some(look(view)?);
        }
        Ok(())
    })?;
    found.ok_or_else(|| Broken("the system showed no rows".into()))
}
