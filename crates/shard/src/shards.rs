//! All shards of this server, as the tasks that work across them use them.

mod held_bytes;
mod tenancy;

use parking_lot::{Mutex, RwLock};
use std::sync::Arc;
use std::time::Duration;
use switchward_machine::{Bucket, Time};
use switchward_state::{Command, Reply, ViewError};
use switchward_store::SegmentLog;
use tokio::sync::Mutex as AsyncMutex;

use crate::clock::{AgreedClock, Clock as _};
use crate::failure::Failure;
use crate::group::Group;
use crate::halt::Halt;
use crate::limits::{MAP_TRIES_MAX, VERIFY_INTERVAL, VERIFY_INTERVAL_MIN};
use crate::members::MemberOptions;
use crate::own_runtime::OwnRuntime;
use crate::routes::Routes;
use crate::shard::Shard;
use crate::timers::TimerTransport;
use crate::view::StateView;
use held_bytes::HeldBytes;

/// The group of the catalogue; the shards' groups follow it.
pub(crate) const CATALOGUE: u64 = 0;

/// This server's shards.
pub(crate) struct Shards {
    catalogue: Shard,
    /// The shards that own buckets.
    owners: Vec<Shard>,
    /// Which of them owns which bucket.
    routes: Arc<Routes>,
    clock: Arc<AgreedClock>,
    halt: Halt,
    log: Arc<SegmentLog>,
    transport: RwLock<Option<Arc<dyn TimerTransport>>>,
    opened: Opened,
    /// How often all groups are verified.
    verify_interval: RwLock<Duration>,
    /// What tenants held a moment ago.
    pub(crate) held_bytes: HeldBytes,
    /// Held while a group is verified: reading all rows of one takes enough of a disk.
    pub(crate) verifying: AsyncMutex<()>,
}

/// What belongs to groups that were opened here.
#[derive(Default)]
pub(crate) struct Opened {
    /// Their runtime, if they have one of their own.
    pub(crate) raft: Mutex<Option<OwnRuntime>>,
    /// What makes this server a member of a cluster.
    pub(crate) member: Option<MemberOptions>,
}

impl Shards {
    /// These shards, the first of which is the catalogue's.
    pub(crate) fn of(
        mut shards: Vec<Shard>,
        clock: Arc<AgreedClock>,
        halt: Halt,
        log: Arc<SegmentLog>,
        opened: Opened,
    ) -> Self {
        let catalogue = shards.remove(0);
        let (transport, verify_interval) = (RwLock::default(), RwLock::new(VERIFY_INTERVAL));
        let routes = routes(&catalogue, &shards);
        Self {
            catalogue,
            owners: shards,
            routes,
            clock,
            halt,
            log,
            transport,
            opened,
            verify_interval,
            held_bytes: HeldBytes::default(),
            verifying: AsyncMutex::default(),
        }
    }

    /// What makes this server a member of a cluster; `None` for a server alone.
    pub(crate) fn member(&self) -> Option<&MemberOptions> {
        self.opened.member.as_ref()
    }

    /// Every shard, the catalogue's first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Shard> {
        std::iter::once(&self.catalogue).chain(&self.owners)
    }

    /// The shards that own buckets.
    pub(crate) fn owners(&self) -> &[Shard] {
        &self.owners
    }

    /// The catalogue's shard.
    pub(crate) fn catalogue(&self) -> &Shard {
        &self.catalogue
    }

    /// The shard that owns a bucket.
    pub(crate) fn shard_of(&self, bucket: Bucket) -> &Shard {
        &self.owners[self.routes.position(bucket)]
    }

    /// Which shard owns which bucket.
    pub(crate) fn routes(&self) -> &Arc<Routes> {
        &self.routes
    }

    /// Returns the shard that a command is for: the catalogue if its scope has no bucket.
    pub(crate) fn home(&self, command: &Command) -> &Shard {
        command.scope.bucket(command.tenant).map_or(&self.catalogue, |bucket| self.shard_of(bucket))
    }

    /// Executes a command at the shard that it is for. A command that is refused because its bucket has moved goes to the
    /// new owner, at most [`MAP_TRIES_MAX`] times in all.
    pub(crate) async fn submit(&self, command: Arc<Command>) -> Result<Reply, Failure> {
        let mut tries = 1;
        loop {
            let home = self.home(&command);
            let outcome = home.submit(Arc::clone(&command)).await;
            let moved = matches!(outcome, Err(Failure::OtherMap { .. }))
                && self.home(&command).number() != home.number();
            if !moved || tries == MAP_TRIES_MAX {
                return outcome;
            }
            tries += 1;
        }
    }

    /// The rows of the shard that owns a bucket, not older than anything that was answered before this call.
    ///
    /// # Errors
    /// As of [`Shard::read`]; [`Failure::OtherMap`] if the bucket moves each of [`MAP_TRIES_MAX`] times.
    pub(crate) async fn read_of(&self, bucket: Bucket) -> Result<StateView, Failure> {
        for _ in 0..MAP_TRIES_MAX {
            let shard = self.shard_of(bucket);
            let rows = shard.read().await;
            // What was confirmed by a later map says nothing about the bucket's rows here.
            if self.shard_of(bucket).number() == shard.number() {
                return rows;
            }
        }
        Err(self.routes.other_map())
    }

    /// Ends Raft's runtime, if it is the cluster's own. What its tasks hold is free afterwards; on another one, when that has
    /// ended.
    pub(crate) async fn end_raft(&self) {
        let Some(raft) = self.opened.raft.lock().take() else { return };
        if let Err(error) = tokio::task::spawn_blocking(move || raft.end()).await {
            tracing::warn!(%error, "failed to wait for the end of Raft's tasks");
        }
    }

    /// All groups of this server, the catalogue's first.
    pub(crate) fn groups(&self) -> Vec<Group> {
        self.all().map(|shard| shard.group().clone()).collect()
    }

    /// The number of groups, the catalogue's included.
    pub(crate) fn parts(&self) -> u32 {
        u32::try_from(self.owners.len()).unwrap_or(u32::MAX).saturating_add(1)
    }

    /// The log that all groups share.
    pub(crate) fn log(&self) -> &Arc<SegmentLog> {
        &self.log
    }

    /// The time, milliseconds since 1970.
    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    /// The clock, as far as the servers agree.
    pub(crate) fn agreed(&self) -> &AgreedClock {
        &self.clock
    }

    /// The transport for batches of timers, if there is one.
    pub(crate) fn transport(&self) -> Option<Arc<dyn TimerTransport>> {
        self.transport.read().clone()
    }

    /// Sets the transport for batches of timers.
    pub(crate) fn set_transport(&self, transport: Option<Arc<dyn TimerTransport>>) {
        *self.transport.write() = transport;
    }

    /// How often all groups are verified.
    pub(crate) fn verify_interval(&self) -> Duration {
        *self.verify_interval.read()
    }

    /// Sets how often all groups are verified; at least [`VERIFY_INTERVAL_MIN`].
    pub(crate) fn set_verify_interval(&self, interval: Duration) {
        *self.verify_interval.write() = interval.max(VERIFY_INTERVAL_MIN);
    }

    pub(crate) fn halt(&self, why: &str) {
        (self.halt)(why);
    }

    /// A shard's Raft node has stopped by itself. Ends the server, unless only the shard's replica has failed.
    pub(crate) fn stopped(&self, shard: &Shard, why: &str) {
        if shard.group().failed().is_none() {
            self.halt(why);
        }
    }

    /// The failure of who reads rows and finds others than there must be. Ends the server if the state store failed.
    pub(crate) fn unreadable(&self, error: &ViewError) -> Failure {
        if self.all().any(|shard| shard.group().shared.is_unreadable()) {
            self.halt(&error.to_string());
            return Failure::Stopped;
        }
        tracing::error!(%error, "the rows of a shard are not as they must be");
        Failure::Internal
    }
}

/// Has all groups of this server route by the map that the catalogue's rows hold, now and whenever it changes.
fn routes(catalogue: &Shard, owners: &[Shard]) -> Arc<Routes> {
    let routes = Arc::new(Routes::of_groups(owners.iter().map(Shard::number).collect()));
    for shard in owners.iter().chain([catalogue]) {
        let _set_once = shard.group().shared.routes.set(Arc::clone(&routes));
    }
    // After that, so that no change is missed between the two.
    if let Err(error) = catalogue.group().shared.follow_map() {
        tracing::error!(%error, "failed to read the map of the cluster");
    }
    routes
}

impl Drop for Shards {
    fn drop(&mut self) {
        // Tasks that sleep find that the shard is draining.
        for shard in self.all() {
            shard.group().shared.wake();
        }
    }
}
