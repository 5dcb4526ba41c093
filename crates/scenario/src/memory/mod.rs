//! A system of rows in maps: only the engine.

mod hops;
mod observer;
mod server_tasks;
mod shard;

pub use hops::LimitAnswer;
pub use observer::{Asking, Moment, Observer};
pub use shard::Shard;
use switchward_machine::{TenantId, Time};
use switchward_state::{Command, Reason, Scope, View, ViewError};

use crate::system::{Answer, Broken, System};

/// A system in memory. It begins at the time 0.
#[derive(Debug, Clone)]
pub struct Memory<O: Observer = ()> {
    shards: Vec<Shard>,
    now: Time,
    observer: O,
}

/// The index of a shard in [`Memory::shards`].
pub type ShardIx = usize;
/// The shard of the catalogue, which comes before those that hold sessions.
const CATALOGUE: ShardIx = 0;

impl Memory {
    /// Creates an empty system with one shard for everything.
    #[must_use]
    pub fn new() -> Self {
        Self::observed((), 0)
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

impl<O: Observer> Memory<O> {
    /// Creates an empty system with the catalogue's shard and `beside` more. These share the buckets, so that a session
    /// and its ledger can be in different shards; if there are none, the catalogue's shard holds everything.
    #[must_use]
    pub fn observed(observer: O, beside: usize) -> Self {
        Self { shards: (0..=beside).map(|_| Shard::default()).collect(), now: Time(0), observer }
    }

    /// The shards; the first is the catalogue's.
    #[must_use]
    pub fn shards(&self) -> &[Shard] {
        &self.shards
    }

    /// The shards, to replace their rows.
    pub fn shards_mut(&mut self) -> &mut [Shard] {
        &mut self.shards
    }

    /// The observer, with what it has seen so far.
    #[must_use]
    pub fn observer(&self) -> &O {
        &self.observer
    }

    /// The observer, to keep what it has seen.
    pub fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }

    /// Moves the clock without sweeping what falls due.
    pub fn set_now(&mut self, now: Time) {
        self.now = now;
    }

    /// The number of decisions in all shards.
    #[must_use]
    pub fn decisions(&self) -> u64 {
        self.shards.iter().map(Shard::decisions).sum()
    }

    /// The shard that owns the rows of a scope. A scope that names a shard as a whole is sent there directly.
    #[must_use]
    pub fn home(&self, tenant: TenantId, scope: &Scope) -> ShardIx {
        match scope.bucket(tenant) {
            Some(bucket) if self.shards.len() > 1 => {
                1 + usize::from(bucket.number()) % (self.shards.len() - 1)
            }
            Some(_) | None => CATALOGUE,
        }
    }

    /// One decision of one shard.
    ///
    /// # Errors
    /// An invariant of the system is broken; a refusal is not an error.
    pub fn decide(&mut self, at: ShardIx, command: &Command) -> Result<Answer, Broken> {
        let shard = self.shards.get_mut(at).ok_or_else(|| Broken(format!("there is no shard {at}")))?;
        let (answer, entry) = shard.decide(command, self.now)?;
        if let Some(entry) = entry {
            O::observe(self, Moment::Logged(at, &entry))?;
        }
        Ok(answer)
    }

    /// Decides a caller's command in its home, after installing a machine that the shard lacks.
    ///
    /// # Errors
    /// As [`Memory::decide`].
    pub fn decide_at_home(&mut self, command: &Command) -> Result<Answer, Broken> {
        let home = self.home(command.tenant, &command.scope);
        let answer = self.decide(home, command)?;
        match answer {
            Err(rejection) if rejection.reason == Reason::MachineMissing => {
                self.install(home, command)?;
                self.decide(home, command)
            }
            Ok(_) | Err(_) => Ok(answer),
        }
    }
}

impl<O: Observer> System for Memory<O> {
    fn now(&self) -> Time {
        self.now
    }

    fn submit(&mut self, command: Command) -> Result<Answer, Broken> {
        O::observe(self, Moment::Submitting(&command))?;
        let answer = self.execute(command.clone())?;
        if let Some(tenant) = command.body.changes_tenancy(command.tenant) {
            self.spread(tenant)?;
        }
        self.carry()?;
        O::observe(self, Moment::Submitted(&command, &answer))?;
        Ok(answer)
    }

    fn read(
        &self,
        tenant: TenantId,
        scope: &Scope,
        look: &mut dyn FnMut(&dyn View) -> Result<(), ViewError>,
    ) -> Result<(), Broken> {
        let home = self.home(tenant, scope);
        let shard = self.shards.get(home).ok_or_else(|| Broken(format!("there is no shard {home}")))?;
        Ok(look(shard)?)
    }

    fn advance(&mut self, to: Time) -> Result<(), Broken> {
        if to < self.now {
            return Err(Broken(format!("the clock is at {:?} and cannot go back to {to:?}", self.now)));
        }
        O::observe(self, Moment::Advancing(to))?;
        self.sweep(to)?;
        self.now = to;
        O::observe(self, Moment::Advanced)
    }
}
