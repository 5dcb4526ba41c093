//! One shard: the handle that commands and reads go through.

use openraft::async_runtime::WatchReceiver as _;
use std::collections::BTreeSet;
use std::sync::{Arc, atomic::Ordering};
use std::time::Duration;
use switchward_engine::is_remembered;
use switchward_machine::{SessionId, TenantId, Time};
use switchward_state::{Command, Reply};
use switchward_store::Disk;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use tracing::{Instrument as _, Span, debug_span};

use crate::clock::{Clock, instant};
use crate::contact::ContactWatch;
use crate::decide_loop::DecideLoop;
use crate::failure::Failure;
use crate::group::Group;
use crate::halt::Halt;
use crate::hand_over::{NotHandedOver, hand_over};
use crate::leadership::Leadership;
use crate::metrics::ShardMetrics;
use crate::queue::{Entrance, Job, Refused, queue};
use crate::remote::{LeaderWait, ReadRounds};
use crate::tenancies::Tenancies;
use crate::timers::{TimerCounts, Timers};
use crate::traces::TRACES;
use crate::view::StateView;
use crate::watch::{LeadershipChanges, Watched};

/// A handle to one shard; cheap to clone.
#[derive(Clone)]
pub struct Shard {
    group: Group,
    clock: Arc<dyn Clock>,
    queue: Arc<Entrance>,
    leadership: Arc<Leadership>,
    disk: Arc<Disk>,
    /// True once the shard drains. Its receiver lives as long as the loop.
    drain: Arc<watch::Sender<bool>>,
    /// Confirms reads on a server that has others.
    reads: Option<Arc<ReadRounds>>,
}

impl Shard {
    /// Starts the loop of an opened group. It ends when every handle is gone, or when it was drained.
    #[must_use]
    pub(crate) fn start(group: Group, clock: Arc<dyn Clock>, halt: Halt, disk: Arc<Disk>) -> Self {
        let (queue, jobs) = queue();
        let (drain, draining) = watch::channel(false);
        let leadership = Arc::new(Leadership::of(&group));
        let space = Arc::clone(&disk);
        let work = DecideLoop::new(group.clone(), clock.clone(), leadership.clone(), halt, space, draining);
        let (work, owner) = (tokio::spawn(work.run(jobs)), group.clone());
        tokio::spawn(async move {
            // A panic would otherwise leave a shard that looks alive and answers nobody.
            if work.await.is_err_and(|error| error.is_panic()) {
                owner.fail("its loop panicked");
            }
        });
        let rounds = |remote| Arc::new(ReadRounds::start(Arc::clone(&leadership), remote));
        let reads = group.remote.clone().map(rounds);
        Self { group, clock, queue, leadership, disk, drain: Arc::new(drain), reads }
    }

    /// The group behind the shard.
    #[must_use]
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// The shard's time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// The shard's source of time.
    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// The number of its group.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.group.shared.state.group().0
    }

    /// What this server knows of the tenants' records in the shard.
    pub(crate) fn tenancies(&self) -> &Tenancies {
        &self.group.shared.tenancies
    }

    pub(crate) fn timers(&self) -> &Timers {
        &self.group.shared.timers
    }

    /// The timers that this server knows of as the shard's leader.
    #[must_use]
    pub fn timer_counts(&self) -> TimerCounts {
        self.timers().counts()
    }

    /// The term that this server leads in, with everything of earlier terms applied.
    ///
    /// # Errors
    /// It does not lead, or the shard has stopped.
    pub(crate) async fn term(&self) -> Result<u64, Failure> {
        self.leadership.term().await
    }

    /// Returns true if this server leads the shard, as of its last look a moment ago: it is a voter, and a majority has
    /// acknowledged it within [`LEADER_LEASES`](crate::limits::LEADER_LEASES). For what may be late and must not be wrong
    /// for ever; [`Shard::read`] is never wrong.
    #[must_use]
    pub fn leads(&self) -> bool {
        *self.group.shared.leads.borrow()
    }

    /// The term that this server leads in, as far as it knows; `None` if it does not lead.
    #[must_use]
    pub fn term_led(&self) -> Option<u64> {
        self.leadership.current()
    }

    /// The number of the server that leads the shard, as far as this replica knows; `None` if it knows none.
    #[must_use]
    pub fn leader(&self) -> Option<u64> {
        if self.group.failed().is_some() {
            return None;
        }
        self.group.raft().metrics().borrow_watched().current_leader
    }

    /// Notifies when this server begins or ceases to lead the shard.
    #[must_use]
    pub fn watch_leadership(&self) -> LeadershipChanges {
        LeadershipChanges::of(self.group.shared.leads.subscribe())
    }

    /// Returns true if the shard takes no more commands.
    pub(crate) fn draining(&self) -> bool {
        *self.drain.borrow()
    }

    /// Hands the leadership to another server: `to`, or else the voter that has most entries. Commands and reads wait
    /// meanwhile, and none fails. Returns the new leader. It does not ask whether the other server may lead;
    /// [`Cluster::hand_over`](crate::Cluster::hand_over) does.
    ///
    /// # Errors
    /// As [`NotHandedOver`] says; all but one of them mean that this server goes on as before.
    pub async fn hand_over(&self, to: Option<u64>) -> Result<u64, NotHandedOver> {
        self.hand_over_but(to, &BTreeSet::new()).await
    }

    /// The same, to none of the servers that are `barred` from leading.
    ///
    /// # Errors
    /// As of [`Shard::hand_over`].
    pub(crate) async fn hand_over_but(
        &self,
        to: Option<u64>,
        barred: &BTreeSet<u64>,
    ) -> Result<u64, NotHandedOver> {
        hand_over(&self.group, to, barred).await
    }

    /// Takes no more commands from now on.
    pub(crate) fn begin_drain(&self) {
        self.drain.send_replace(true);
        // After that: who sees that the Raft node has ended because of this sees that the shard drains, too.
        self.group.shared.drains.store(true, Ordering::SeqCst);
        self.group.shared.wake();
    }

    /// Takes no more commands, and waits until the queued ones are answered.
    pub(crate) async fn drain(&self) {
        self.begin_drain();
        self.drain.closed().await;
    }

    /// Executes one command, here or at the shard's leader. The reply comes after its decision is on disk and applied
    /// at the leader. This server's rows may lack it: a caller that needs them reads with
    /// [`Shard::read`]. Where no leader is known, the command waits for one, at most
    /// [`LEADER_WAIT`](crate::limits::LEADER_WAIT).
    ///
    /// Not cancel safe: a dropped future may leave the command executed; the same request id finds its reply.
    ///
    /// # Errors
    /// As [`Failure`] says.
    pub fn submit(
        &self,
        command: impl Into<Arc<Command>>,
    ) -> impl Future<Output = Result<Reply, Failure>> + Send + '_ {
        // A command is large: neither this future nor the queue moves it.
        self.submitted(command.into())
    }

    async fn submitted(&self, command: Arc<Command>) -> Result<Reply, Failure> {
        let Some(remote) = &self.group.remote else { return self.submit_here(command).await };
        if self.draining() {
            return Err(Failure::Draining);
        }
        let mut wait = None;
        loop {
            let seen = remote.seen();
            // A server that drains leads nothing any more: what it took before goes to the new leader.
            let outcome = if self.leads() && !self.draining() {
                self.submit_here(Arc::clone(&command)).await
            } else {
                remote.submit(Arc::clone(&command)).await
            };
            let again = matches!(outcome, Err(Failure::Electing | Failure::Draining));
            let wait = wait.get_or_insert_with(LeaderWait::begin);
            if !again || !remote.wait_for_leader(wait, seen).await {
                return outcome;
            }
        }
    }

    /// As [`submit`](Self::submit), but only if this server leads: the command is never passed on. What it decides is in the
    /// log that a later leader applies before it leads, or nowhere.
    ///
    /// # Errors
    /// As [`Failure`] says; [`Failure::Electing`] if another server leads.
    pub async fn submit_here(&self, command: Arc<Command>) -> Result<Reply, Failure> {
        if self.draining() {
            return Err(Failure::Draining);
        }
        // A repeated request begins nothing: it gets its first reply.
        if let Some(no) = self.group.shared.outbox.refusal(&command)
            && !is_remembered(&self.read_stale(), &command).unwrap_or(false)
        {
            return Err(Failure::Rejected(no));
        }
        self.check_disk(&command)?;
        let (answer, wait) = oneshot::channel();
        let span = debug_span!(target: TRACES, "shard.command", shard = self.group.shared.state.group().0);
        // What is logged about the command has the id of its request.
        let of_job = if span.is_disabled() { Span::current() } else { span.clone() };
        let put = self.queue.put(Job { command, answer, span: of_job, since: instant() });
        let outcome = match put {
            Ok(()) => wait.instrument(span).await.unwrap_or_else(|_| Err(self.gone())),
            Err(Refused::Full) => Err(Failure::Overloaded),
            Err(Refused::Closed) => Err(self.gone()),
        };
        if outcome == Err(Failure::Overloaded) {
            ShardMetrics::add(&self.group.metrics().overloads, 1);
        }
        outcome
    }

    /// Refuses a command that the disk has no space for, unless it was executed before and changes nothing.
    ///
    /// # Errors
    /// [`Failure::DiskLow`].
    pub(crate) fn check_disk(&self, command: &Command) -> Result<(), Failure> {
        let grows = command.body.grows();
        let admitted = if grows { self.disk.admits_growth() } else { self.disk.admits_ends() };
        if admitted || is_remembered(&self.read_stale(), command).unwrap_or(false) {
            return Ok(());
        }
        ShardMetrics::add(&self.group.metrics().disk_refusals, 1);
        let options = self.disk.options();
        let needed_bytes = if grows { options.min_free_bytes } else { self.disk.floor_bytes() };
        Err(Failure::DiskLow { free_bytes: self.disk.free_bytes(), needed_bytes })
    }

    /// The disk that holds its rows and its log.
    pub(crate) fn disk(&self) -> &Disk {
        &self.disk
    }

    fn gone(&self) -> Failure {
        if self.draining() { Failure::Draining } else { Failure::Stopped }
    }

    /// The rows, not older than anything that was answered before this call.
    ///
    /// # Errors
    /// The shard has no leader here, or has stopped.
    pub async fn read(&self) -> Result<StateView, Failure> {
        let Some(remote) = &self.group.remote else {
            self.confirm_here().await?;
            return Ok(self.read_stale());
        };
        let mut wait = None;
        loop {
            let seen = remote.seen();
            let confirmed = self.confirm().await;
            let wait = wait.get_or_insert_with(LeaderWait::begin);
            if confirmed == Err(Failure::Electing) && remote.wait_for_leader(wait, seen).await {
                continue;
            }
            return confirmed.map(|()| self.read_stale());
        }
    }

    /// Returns when the rows hold everything that was acknowledged before the call; does not wait for a leader.
    /// This server has then been in contact with the leader.
    pub(crate) async fn confirm(&self) -> Result<(), Failure> {
        let asked = Instant::now();
        match &self.reads {
            // Its rows never reach what the leader has.
            Some(_) if self.group.failed().is_some() => return Err(Failure::Stopped),
            Some(reads) if !self.leads() => reads.confirm_elsewhere().await?,
            Some(_) | None => self.confirm_here().await?,
        }
        self.group.shared.contact.confirm(asked);
        Ok(())
    }

    /// Returns true if the rows hold everything that was acknowledged longer ago than this: the server leads, or is alone,
    /// or has asked the leader meanwhile, for any reader. Asked for the catalogue every [`CONTACT_INTERVAL`].
    ///
    /// [`CONTACT_INTERVAL`]: crate::limits::CONTACT_INTERVAL
    #[must_use]
    pub fn confirmed_within(&self, age: Duration) -> bool {
        self.group.remote.is_none()
            || self.group.members.is_alone()
            || (self.leads() && self.leadership.is_settled())
            || self.group.shared.contact.within(age)
    }

    /// Notifies when no leader has confirmed for [`CONTACT_LOST`](crate::limits::CONTACT_LOST) that this server has
    /// everything. A server that is alone never loses contact.
    #[must_use]
    pub fn watch_contact(&self) -> ContactWatch {
        self.group.shared.contact.watch()
    }

    /// Returns when the rows hold everything that was acknowledged before the call, if this server leads.
    async fn confirm_here(&self) -> Result<(), Failure> {
        if self.group.members.is_alone() {
            self.leadership.term().await?;
        }
        // The group may have grown meanwhile.
        if !self.group.members.is_alone() && !self.leadership.is_trusted() {
            self.read_index().await?;
        }
        Ok(())
    }

    /// The entry that a reader on another server must have applied, if this server leads.
    ///
    /// # Errors
    /// It does not lead, or has stopped.
    pub(crate) async fn read_index(&self) -> Result<u64, Failure> {
        match &self.reads {
            Some(reads) => reads.confirm_here().await,
            None => self.leadership.read_index().await,
        }
    }

    /// The rows as they are on this server, however old.
    #[must_use]
    pub fn read_stale(&self) -> StateView {
        self.group.shared.view()
    }

    /// Notifies when work of this shard is opened, given back or done.
    #[must_use]
    pub fn watch_work(&self) -> Watched {
        self.group.shared.watchers.watch_work()
    }

    /// Notifies when a key becomes void, or a tenant changes or goes, as far as this server has applied it. Only the
    /// catalogue has such changes.
    #[must_use]
    pub fn watch_credentials(&self) -> Watched {
        self.group.shared.watchers.watch_credentials()
    }

    pub(crate) fn set_outbox_max(&self, max: usize) {
        self.group.shared.outbox.set_max(max);
    }

    /// Notifies when an effect of this shard is to go out, or has been delivered.
    #[must_use]
    pub fn watch_outbox(&self) -> Watched {
        self.group.shared.watchers.watch_outbox()
    }

    /// Notifies when this session changes.
    #[must_use]
    pub fn watch(&self, tenant: TenantId, session: SessionId) -> Watched {
        self.group.shared.watchers.watch(tenant, session)
    }
}
