//! A world of rows in maps: the engine and nothing else.

mod assistants;
mod care;
mod duties;
mod explained;
mod hops;
mod leases;
mod lost;
mod results;
mod shard;

use switchward_engine::policy::Ledgers;
use switchward_engine::{Command, Reason, Scope, View, ViewError};
use switchward_machine::{TenantId, Time};

use crate::world::{Answer, Broken, World};
use shard::Shard;

/// How many shards there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// One, for the catalogue too.
    Together,
    /// One for the catalogue and three that share the buckets, so that a session and its ledger can lie apart.
    Apart,
}

/// What is done beside playing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Care {
    /// Nothing.
    Plain,
    /// After every command all rows are written down and read back, the indices are rebuilt from them, what must
    /// agree in them is compared, and the command is sent again: under its request id it must be answered as before,
    /// and for a sequence that is past it must be refused; neither may change anything. A ledger is asked twice, its
    /// answer is first put in wrong ways, and a place in it is taken for a call that is lost. Every call is explained
    /// before it is decided, and the two must agree. What is carried must change something, and what is swept too
    /// early or twice must change nothing. A lease of no length is refused, and one that was given is extended;
    /// an assistant has a name that fits, and is made once; a result is taken where it fits what its worker was told.
    Restart,
}

/// A world in memory. It begins at the time 0.
#[derive(Debug, Clone)]
pub struct Memory {
    shards: Vec<Shard>,
    now: Time,
    care: Care,
    /// What a ledger was asked last.
    asked: Option<(TenantId, Ledgers)>,
}

/// The place of a shard in [`Memory::shards`].
type ShardIx = usize;
const CATALOGUE: ShardIx = 0;
const SHARDS_APART: usize = 4;

impl Memory {
    /// An empty world.
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

    /// Decides a caller's command in its home, with a machine that the shard has not got installed on the way.
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

impl World for Memory {
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
            return Err(Broken(format!("the clock stands at {:?} and was sent back to {to:?}", self.now)));
        }
        self.lose(to)?;
        self.sweep(to)?;
        self.now = to;
        self.restart()
    }
}
