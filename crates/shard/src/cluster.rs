//! All shards of this server, and the operations that need several of them.

use switchward_state::catalogue::CatalogueCommand;
use switchward_state::policy::PolicyCommand;
use switchward_state::session::SessionCommand;
#[cfg(feature = "assembled")]
mod assembled;
mod files;
mod open;
mod quotas;
mod records;
mod sealed;
mod servers;
mod shutdown;
mod tenancy;

pub use sealed::{KeysMissing, SealedUnder, check_keys, sealed_in_backup};

use futures::future::BoxFuture;
use std::io;
use std::sync::Arc;
use switchward_engine::policy::{Ledgers, Plan, plan};
use switchward_machine::{Bucket, Digest, Micros, Time};
use switchward_state::catalogue::InstallMachine;
use switchward_state::policy::{LimitCheck, LimitOutcome, Reserve, Settle, by_ledger, check_limits};
use switchward_state::seal::KeyRing;
use switchward_state::{Body, Command, Key, Reason, Rejection, Reply, Row, Scope, View, ViewError};
use switchward_store::{DataDir, Disk, LogStats, SegmentLog};
use tokio::time::Instant;

use crate::clock::{AgreedClock, Clock, ClockAgreement, Comparison};
use crate::failure::Failure;
use crate::group::Group;
use crate::halt::{Halt, OnFatal};
use crate::limits::{FIRE_WAIT, LIMITS_ASKED_MAX};
use crate::members::{self, MemberOptions};
use crate::shard::Shard;
use crate::shards::{Opened, Shards};
use crate::timers::{Fired, TimerBatch, TimerTransport};
use crate::{
    clock_watch, contact_watch, leader_tasks, leading, maintenance, removals, scrub, timers, verify,
};

/// The parts of a server's shards.
pub struct ClusterOptions {
    /// The data folder, locked for this process.
    pub data: DataDir,
    /// The number of shards of a new data folder, 1 to 64; an existing one keeps its number.
    pub shards: u32,
    /// Clean rows that all shards together keep in memory, bytes.
    pub cache_bytes: usize,
    /// The source of time.
    pub clock: Arc<dyn Clock>,
    /// Opens the secrets in the rows.
    pub ring: KeyRing,
    /// Called when the log or the state is lost.
    pub on_fatal: OnFatal,
    /// What makes the server a member of a cluster; `None` for a server alone.
    pub member: Option<MemberOptions>,
}

/// This server's shards; cheap to clone.
#[derive(Clone)]
pub struct Cluster(Arc<Shards>);

impl Cluster {
    /// Opens all groups of a data folder and waits until they can be read: a server alone leads them then, a member of a
    /// cluster knows their leaders. A shard whose replica fails while its log is replayed is opened all the same; see
    /// [`Group::failed`]. A member that starts again and finds no leaders within
    /// [`RESUME_READY_WAIT`](crate::limits::RESUME_READY_WAIT) opens without them.
    ///
    /// # Errors
    /// The folder cannot be read, or holds what this build does not know, or secrets that the ring cannot open
    /// ([`KeysMissing`]); or the cluster refuses the server.
    pub async fn open(options: ClusterOptions) -> io::Result<Self> {
        open::open(options).await
    }

    /// The shards as their callers hold them.
    pub(crate) fn of_shards(shards: Arc<Shards>) -> Self {
        Self(shards)
    }

    /// Starts the loops of these groups, the first of which is the catalogue's.
    fn over(
        groups: Vec<Group>,
        clock: Arc<dyn Clock>,
        halt: Halt,
        log: Arc<SegmentLog>,
        opened: Opened,
    ) -> Self {
        let disk = log.disk();
        let compared = groups.first().map_or(Comparison::ALONE, clock_watch::first);
        let clock = Arc::new(AgreedClock::over(clock, compared));
        let start = |group| Shard::start(group, Arc::clone(&clock) as _, Arc::clone(&halt), Arc::clone(disk));
        let shards: Vec<Shard> = groups.into_iter().map(start).collect();
        Self(Arc::new(Shards::of(shards, clock, halt, log, opened)))
    }

    /// Begins to compare clocks, to ask for leaders, and to publish which groups this server leads: nothing is decided
    /// before. A server that leads may have to wait for others: so the maintenance of its files begins too, and what
    /// gives the groups their members and their leaders.
    fn begin_leading(&self) {
        tokio::spawn(clock_watch::work(Arc::downgrade(&self.0)));
        for shard in self.all() {
            shard.group().look();
            tokio::spawn(leading::work(shard.clone(), Arc::downgrade(&self.0)));
            tokio::spawn(contact_watch::work(shard.clone(), Arc::downgrade(&self.0)));
            tokio::spawn(maintenance::work(shard.clone(), Arc::downgrade(&self.0)));
            if self.0.member().is_some() {
                tokio::spawn(members::work(shard.clone(), Arc::downgrade(&self.0)));
            }
        }
        if self.0.member().is_some() {
            tokio::spawn(members::balance(Arc::downgrade(&self.0)));
            tokio::spawn(verify::work(Arc::downgrade(&self.0)));
        }
    }

    /// Begins to answer the other servers, and to name the transport those that the cluster has.
    fn begin_answering(&self, member: &MemberOptions) {
        member.handler.open(members::Served::of(&self.0));
        let (transport, own) = (Arc::clone(&member.transport), member.number);
        tokio::spawn(members::publish_peers(Arc::downgrade(&self.0), transport, own));
    }

    fn begin_leader_tasks(&self) {
        tokio::spawn(scrub::work(Arc::downgrade(&self.0)));
        for shard in self.all() {
            tokio::spawn(leader_tasks::work(shard.clone(), Arc::downgrade(&self.0)));
            tokio::spawn(timers::work(shard.clone(), Arc::downgrade(&self.0)));
            tokio::spawn(removals::work(shard.clone(), Arc::downgrade(&self.0)));
        }
        for shard in self.shards() {
            tokio::spawn(tenancy::work(shard.clone(), Arc::downgrade(&self.0)));
        }
    }

    /// Every shard, the catalogue's first.
    pub fn all(&self) -> impl Iterator<Item = &Shard> {
        self.0.all()
    }

    /// The shards that own buckets.
    #[must_use]
    pub fn shards(&self) -> &[Shard] {
        self.0.owners()
    }

    /// The catalogue's shard.
    #[must_use]
    pub fn catalogue(&self) -> &Shard {
        self.0.catalogue()
    }

    /// The shard that owns a bucket.
    #[must_use]
    pub fn shard_of(&self, bucket: Bucket) -> &Shard {
        self.0.shard_of(bucket)
    }

    /// The number of shards whose replica on this server has failed.
    #[must_use]
    pub fn failed(&self) -> usize {
        self.all().filter(|shard| shard.group().failed().is_some()).count()
    }

    /// The time, milliseconds since 1970.
    #[must_use]
    pub fn now(&self) -> Time {
        self.0.now()
    }

    /// The latest time that has certainly come, for what expires or is stamped outside of a shard: the time, or the median of
    /// the servers' clocks if a majority says that this server's clock is behind.
    #[must_use]
    pub fn now_or_median(&self) -> Time {
        self.0.agreed().now_or_median()
    }

    /// What this server knows of its clock.
    #[must_use]
    pub fn clock_agreement(&self) -> ClockAgreement {
        self.0.agreed().agreement()
    }

    /// The key ring that opens the secrets in the rows and seals new ones.
    #[must_use]
    pub fn ring(&self) -> KeyRing {
        self.catalogue().group().shared.ring.read().clone()
    }

    /// Replaces the key ring of all groups on this server.
    pub fn replace_ring(&self, ring: &KeyRing) {
        self.all().for_each(|shard| *shard.group().shared.ring.write() = ring.clone());
    }

    /// The disk that holds all files.
    #[must_use]
    pub fn disk(&self) -> &Arc<Disk> {
        self.0.log().disk()
    }

    /// The statistics of the shared log.
    #[must_use]
    pub fn log_stats(&self) -> &LogStats {
        self.0.log().stats()
    }

    /// Executes a command, with all that it needs from other shards: limits that span sessions are checked in their
    /// ledger first, and a machine that the session's shard lacks is installed.
    ///
    /// # Errors
    /// As [`Failure`] says.
    pub fn execute(&self, command: Command) -> BoxFuture<'_, Result<Reply, Failure>> {
        // A command is large, and each future that is given one by value has room for it twice.
        Box::pin(self.executed(Arc::new(command)))
    }

    async fn executed(&self, mut command: Arc<Command>) -> Result<Reply, Failure> {
        // Before anything is reserved or installed for it elsewhere.
        let home = self.0.home(&command);
        home.check_disk(&command)?;
        self.keep_quotas(Arc::make_mut(&mut command)).await?;
        if command.body.decides_gate() && !home.tenancies().are_confirmed() {
            Box::pin(self.0.try_confirm(home)).await;
        }
        let limited = command.body.may_need_ledger();
        let starts = matches!(command.body, Body::Session(SessionCommand::Start(_)));
        // Boxed, because most commands go straight to their shard, and each caller's future holds the longest way.
        if let Some(tenant) = command.body.changes_tenancy(command.tenant) {
            return Box::pin(self.change_tenancy(command, tenant)).await;
        }
        match (starts, limited) {
            (true, _) => Box::pin(self.start(command)).await,
            (false, true) => Box::pin(self.limited(command)).await,
            (false, false) => self.0.submit(command).await,
        }
    }

    async fn start(&self, command: Arc<Command>) -> Result<Reply, Failure> {
        let first = self.0.submit(Arc::clone(&command)).await;
        let missing = |failure: &Failure| matches!(failure, Failure::Rejected(no) if no.reason == Reason::MachineMissing);
        if !first.as_ref().is_err_and(missing) {
            return first;
        }
        let Body::Session(SessionCommand::Start(start)) = &command.body else { return first };
        for machine in start.machines() {
            self.install(&command, machine).await.map_err(Failure::before)?;
        }
        self.0.submit(command).await
    }

    async fn install(&self, command: &Command, machine: Digest) -> Result<(), Failure> {
        let key = Key::machine(command.tenant, machine);
        let found = self.catalogue().read().await?.row(&key).map_err(|error| self.0.unreadable(&error))?;
        let Some(Row::Machine(machine)) = found.as_deref() else {
            return Err(Rejection::new(Reason::NotFound, "the version does not exist").into());
        };
        let install = Command {
            scope: Scope::Shard,
            request: None,
            expected_sequence: None,
            body: Body::Catalogue(CatalogueCommand::InstallMachine(InstallMachine {
                machine: Arc::clone(machine),
            })),
            ..command.clone()
        };
        self.0.home(command).submit(install).await.map(|_| ())
    }

    async fn limited(&self, mut command: Arc<Command>) -> Result<Reply, Failure> {
        let mut last = Failure::Overloaded;
        for _ in 0..LIMITS_ASKED_MAX {
            let plan = {
                let home = self.0.home(&command);
                let view = home.read().await?;
                plan(&view, &command, self.now_or_median()).map_err(|error| self.0.unreadable(&error))?
            };
            // The age of what the ledgers answer is counted from before they are asked, by one clock that only counts.
            let began = Instant::now();
            let limits = match self.ask(&command, plan).await {
                // A twin of this command, sent again while the first was still on its way, may have been decided
                // and counted between the plan and the question: the next plan finds its reply.
                Err(Failure::Rejected(no)) if no.reason == Reason::RequestIdReused => {
                    last = Failure::Rejected(no);
                    continue;
                }
                asked => asked.map_err(Failure::before)?,
            };
            let passed_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
            Arc::make_mut(&mut command).take_along(limits.map(|check| check.aged(passed_ms)));
            match self.0.submit(Arc::clone(&command)).await {
                // The rules or the session have changed since they were asked about.
                Err(Failure::Rejected(no)) if no.reason == Reason::LimitsStale => last = Failure::Overloaded,
                other => return other,
            }
        }
        Err(last)
    }

    async fn ask(&self, command: &Command, plan: Plan) -> Result<Option<LimitCheck>, Failure> {
        match plan {
            Plan::Direct => Ok(None),
            Plan::Look(Ledgers { rules, estimate, .. }) => {
                let mut parts = Vec::new();
                for (process, rules) in by_ledger(&rules) {
                    let view = match Scope::Ledger(process).bucket(command.tenant) {
                        Some(bucket) => self.read_of(bucket).await?,
                        None => self.catalogue().read().await?,
                    };
                    // By the clock of a server that is behind, a limit may be full that no longer is.
                    let now = self.now_or_median();
                    let check = check_limits(&view, command.tenant, &rules, estimate, now);
                    parts.push(check.map_err(|error| self.0.unreadable(&error))?);
                }
                Ok(Some(LimitCheck::joined(&rules, estimate, &parts)))
            }
            Plan::Reserve(ledgers) => self.reserve(command, ledgers).await.map(Some),
        }
    }

    /// Reserves in every ledger, or in none: if one has no capacity left, the earlier reservations are given back. A
    /// reservation that cannot be given back lapses.
    async fn reserve(&self, command: &Command, ledgers: Ledgers) -> Result<LimitCheck, Failure> {
        let Ledgers { call, rules, estimate } = ledgers;
        let inner = |process: String, body| {
            Arc::new(Command {
                scope: Scope::Ledger(process),
                request: None,
                expected_sequence: None,
                body,
                ..command.clone()
            })
        };
        let (mut parts, mut held) = (Vec::new(), Vec::new());
        for (process, rules) in by_ledger(&rules) {
            let body = Body::Policy(PolicyCommand::Reserve(Reserve { call, rules: rules.clone(), estimate }));
            let reply = self.0.submit(inner(process.clone(), body)).await;
            let full = match &reply {
                Ok(Reply::Limits(check)) => matches!(check.outcome, LimitOutcome::Full { .. }),
                Ok(_) | Err(_) => true,
            };
            if full {
                for (process, rules) in held.drain(..) {
                    let (cost, at) = (Micros(0), self.now());
                    let body = Settle { call: Some(call), rules, cost, at, release: true };
                    if let Err(error) =
                        self.0.submit(inner(process, Body::Policy(PolicyCommand::Settle(body)))).await
                    {
                        tracing::debug!(%error, "failed to release a reservation in a ledger; it expires by itself");
                    }
                }
            }
            let reply = reply?;
            let Reply::Limits(check) = reply else {
                let error = ViewError(format!("unexpected answer of a ledger: {reply:?}"));
                return Err(self.0.unreadable(&error));
            };
            parts.push(check);
            if full {
                break;
            }
            held.push((process, rules));
        }
        Ok(LimitCheck::joined(&rules, estimate, &parts))
    }

    /// Sets the transport for batches of timers; without one, leaders fire all timers themselves.
    pub fn set_timer_transport(&self, transport: Option<Arc<dyn TimerTransport>>) {
        self.0.set_transport(transport);
    }

    /// Sets how many effects of each shard may wait, instead of [`OUTBOX_MAX`](crate::limits::OUTBOX_MAX).
    pub fn set_outbox_max(&self, max: usize) {
        self.all().for_each(|shard| shard.set_outbox_max(max));
    }

    /// Fires a batch that the transport has brought back, if its leader still waits for it.
    ///
    /// Not cancel safe: what a dropped future leaves undone is fired by the leader after
    /// [`FIRE_WAIT`](crate::limits::FIRE_WAIT).
    ///
    /// # Errors
    /// Another server leads the shard, or it has stopped. Timers that could not be fired for any other reason are
    /// fired again by their leader.
    pub async fn fire(&self, batch: &TimerBatch) -> Result<Fired, Failure> {
        let Some(shard) = self.all().find(|shard| shard.number() == batch.shard) else {
            return Ok(Fired::Stale);
        };
        match &shard.group().remote {
            Some(remote) if !shard.leads() => remote.fire(batch).await,
            Some(_) | None => self.fire_here(shard, batch).await,
        }
    }

    /// The same, only if this server leads the shard.
    ///
    /// # Errors
    /// As of [`Cluster::fire`].
    pub(crate) async fn fire_here(&self, shard: &Shard, batch: &TimerBatch) -> Result<Fired, Failure> {
        if !shard.leads() {
            return Err(Failure::Electing);
        }
        let Some(left) = shard.timers().came(batch, Instant::now() + FIRE_WAIT) else {
            return Ok(Fired::Stale);
        };
        let count = left.len();
        timers::fire(shard, batch.number, left).await.map(|()| Fired::Timers(count))
    }
}
