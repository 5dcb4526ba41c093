//! A system of rows in maps: only the engine.

mod assistants;
mod care;
mod explained;
mod hops;
mod leases;
mod lost;
mod results;
mod server_tasks;
mod shard;

use shard::Shard;
use switchward_engine::policy::Ledgers;
use switchward_machine::{TenantId, Time};
use switchward_state::{Command, Reason, Scope, View, ViewError};

use crate::system::{Answer, Broken, System};

/// The layout of the shards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// One, for the catalogue too.
    Together,
    /// One for the catalogue and three that share the buckets, so that a session and its ledger can be in different
    /// shards.
    Apart,
}

/// What is checked besides playing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Care {
    /// Nothing.
    Plain,
    /// After every command all rows are encoded and decoded again, the indices are rebuilt from them, rows that must
    /// agree are compared, and the command is sent again: under its request id it must get the same answer, and for a
    /// past sequence it must be refused; neither may change anything. A ledger is asked twice, its answer is first
    /// given in wrong forms, and a reservation is made in it for a call that is lost. Every call is explained before
    /// it is decided, and the two must agree. A relayed effect must change something, and an early or repeated sweep
    /// must change nothing. A lease of no length is refused, and a given one is extended; an assistant has a valid
    /// name, and is created once; a result is accepted if it fits the schema that its worker was given.
    Restart,
}

/// A system in memory. It begins at the time 0.
#[derive(Debug, Clone)]
pub struct Memory {
    shards: Vec<Shard>,
    now: Time,
    care: Care,
    /// The last question to a ledger.
    asked: Option<(TenantId, Ledgers)>,
}

/// The index of a shard in [`Memory::shards`].
type ShardIx = usize;
const CATALOGUE: ShardIx = 0;
const SHARDS_APART: usize = 4;

impl Memory {
    /// Creates an empty system.
    #[must_use]
    pub fn new(layout: Layout, care: Care) -> Self {
        let count = match layout {
            Layout::Together => 1,
            Layout::Apart => SHARDS_APART,
        };
        Self { shards: (0..count).map(|_| Shard::default()).collect(), now: Time(0), care, asked: None }
    }

    /// The shard that owns the rows of a scope. A scope that names a shard as a whole is sent there directly.
    fn home(&self, tenant: TenantId, scope: &Scope) -> ShardIx {
        match scope.bucket(tenant) {
            Some(bucket) if self.shards.len() > 1 => {
                1 + usize::from(bucket.number()) % (self.shards.len() - 1)
            }
            Some(_) | None => CATALOGUE,
        }
    }

    /// One decision of one shard.
    fn decide(&mut self, at: ShardIx, command: &Command) -> Result<Answer, Broken> {
        let shard = self.shards.get_mut(at).ok_or_else(|| Broken(format!("there is no shard {at}")))?;
        shard.decide(command, self.now)
    }

    /// Decides a caller's command in its home, after installing a machine that the shard lacks.
    fn decide_at_home(&mut self, command: &Command) -> Result<Answer, Broken> {
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

impl System for Memory {
    fn now(&self) -> Time {
        self.now
    }

    fn submit(&mut self, command: Command) -> Result<Answer, Broken> {
        self.look_before(&command)?;
        self.lease_of_nothing(&command)?;
        self.names_of_assistants(&command)?;
        let (handed, before) = (self.handed(&command)?, self.decisions());
        let answer = self.hop(command.clone())?;
        if let Some(tenant) = command.body.changes_tenancy(command.tenant) {
            self.spread(tenant)?;
        }
        Self::taken(handed, &command, &answer)?;
        let changed = self.decisions() != before;
        self.carry()?;
        self.look_after(&command, &answer, changed)?;
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
        self.lose(to)?;
        self.sweep(to)?;
        self.now = to;
        self.restart()
    }
}
