//! Where a scenario is played.

use std::sync::LazyLock;
use switchward_engine::{Command, KeyRing, Rejection, Reply, RingKey, Scope, View, ViewError};
use switchward_machine::{TenantId, Time};

/// What a command came to.
pub type Answer = Result<Reply, Rejection>;

/// Something that runs the engine, on a clock that only its player moves.
///
/// The player sends what a caller would send and reads what a caller could read; how many shards there are, how
/// they are replicated and what they send each other is the world's own business.
pub trait World {
    /// The time that commands are decided at.
    fn now(&self) -> Time;

    /// Brings a caller's command to its answer.
    ///
    /// On the way the world does what a server does: it asks the ledger where a limit has a say, installs a machine
    /// that a shard has not got, and carries inner effects until none is left, so that the next command finds
    /// everything settled.
    ///
    /// # Errors
    /// An invariant of the world is broken; a refusal is no error.
    fn submit(&mut self, command: Command) -> Result<Answer, Broken>;

    /// Shows the rows of the place that owns this scope, with every answered command in them.
    ///
    /// # Errors
    /// A row cannot be read.
    fn read(
        &self,
        tenant: TenantId,
        scope: &Scope,
        look: &mut dyn FnMut(&dyn View) -> Result<(), ViewError>,
    ) -> Result<(), Broken>;

    /// Moves the clock forward to this time. What falls due on the way is swept in order, each at its own time.
    ///
    /// # Errors
    /// An invariant of the world is broken.
    fn advance(&mut self, to: Time) -> Result<(), Broken>;
}

/// What secrets are sealed under in every world: nothing is secret there.
#[must_use]
pub fn ring() -> &'static KeyRing {
    static RING: LazyLock<KeyRing> = LazyLock::new(|| KeyRing::of(vec![RingKey::of([1; 32])]));
    &RING
}

/// The world broke one of its own invariants; no scenario can make that happen, so it is a defect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the world is broken: {0}")]
pub struct Broken(pub String);

impl From<ViewError> for Broken {
    fn from(error: ViewError) -> Self {
        Self(error.0)
    }
}

/// Reads one value out of a world.
pub(crate) fn read<T>(
    world: &dyn World,
    tenant: TenantId,
    scope: &Scope,
    look: impl FnOnce(&dyn View) -> Result<T, ViewError>,
) -> Result<T, Broken> {
    let (mut look, mut found) = (Some(look), None);
    world.read(tenant, scope, &mut |view| {
        if let Some(look) = look.take() {
            found = Some(look(view)?);
        }
        Ok(())
    })?;
    found.ok_or_else(|| Broken("the world showed no rows".into()))
}
