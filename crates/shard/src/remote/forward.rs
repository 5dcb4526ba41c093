//! Asks a shard's leader on another server.

use openraft::async_runtime::WatchReceiver;
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use std::time::Duration;
use switchward_engine::SentRows;
use switchward_machine::TenantId;
use switchward_state::catalogue::MapEpochs;
use switchward_state::{Command, Loaded, Reply, ViewError};
use tokio::time::Instant;

use super::message::{Answer, LeaderRequest, QUESTION, decode_answer, encode_asked};
use super::to_leaders::ToLeaders;
use crate::clock::ClockOffset;
use crate::failure::Failure;
use crate::limits::{
    APPLIED_WAIT, FORWARD_AGAIN, FORWARD_AGAIN_FIRST, FORWARD_SERVERS_MAX, FORWARD_WAIT, LEADER_WAIT,
    MAP_TRIES_MAX, READ_INDEX_WAIT,
};
use crate::peers::{PeerConnection, PeerError, PeerRequest};
use crate::shared::Shared;
use crate::timers::{Fired, TimerBatch};
use crate::types::Raft;

/// The way from one replica of a shard to the leader of it.
pub(crate) struct Remote {
    leaders: ToLeaders,
    raft: Raft,
    shared: Arc<Shared>,
    /// This server.
    own: u64,
    /// The server that answered last as the leader, for a replica that has failed; 0 before the first.
    answers: AtomicU64,
}

impl Remote {
    pub(crate) fn of(leaders: ToLeaders, raft: Raft, shared: Arc<Shared>, own: u64) -> Self {
        Self { leaders, raft, shared, own, answers: AtomicU64::new(0) }
    }

    /// See [`Transport::clock_offsets`].
    pub(crate) fn clock_offsets(&self) -> Option<Vec<ClockOffset>> {
        self.leaders.transport().clock_offsets()
    }

    /// Executes a command at the leader. It is sent again only if it was certainly not executed. If rows come with the
    /// reply, it is given at once; else it waits until the command's entry is applied here, at most [`APPLIED_WAIT`].
    ///
    /// # Errors
    /// As [`Failure`] says; [`Failure::Electing`] after [`LEADER_WAIT`] without a leader.
    pub(crate) async fn submit(&self, command: Arc<Command>) -> Result<Reply, Failure> {
        let tenant = command.tenant;
        let asked = LeaderRequest::Submit(command);
        let mut answered = self.ask(&asked, FORWARD_WAIT).await;
        if planted!(ForwardedTwice) && answered == Err(Failure::OutcomeUnknown) {
            answered = self.ask(&asked, FORWARD_WAIT).await;
        }
        match answered? {
            Answer::Reply { mut reply, index, rows } => {
                if let Some(rows) = rows {
                    reply.load(self.received(tenant, index, &rows).await?);
                } else {
                    // The command is executed, even if this replica is behind: who reads then asks the leader first.
                    let _in_time = self.applied(index).await;
                }
                Ok(*reply)
            }
            Answer::Failed(failure) => Err(elsewhere(failure)),
            Answer::ReadIndex(_) | Answer::Fired(_) => Err(Failure::OutcomeUnknown),
        }
    }

    /// The rows that came with the reply to a command whose entry has this index. If a machine of theirs is not installed
    /// here, it waits until that entry is applied.
    ///
    /// # Errors
    /// [`Failure::OutcomeUnknown`] if the rows cannot be read or completed: the command is executed.
    async fn received(&self, tenant: TenantId, index: u64, rows: &[u8]) -> Result<Loaded, Failure> {
        let completed = async {
            let sent = SentRows::decode(rows).map_err(|error| ViewError(error.to_string()))?;
            if let Some(loaded) = sent.complete(&self.shared.view(), tenant)? {
                return Ok(loaded);
            }
            let _in_time = self.applied(index).await;
            let found = sent.complete(&self.shared.view(), tenant)?;
            found.ok_or_else(|| ViewError("a machine is not installed here".to_owned()))
        };
        completed.await.map_err(|error: ViewError| {
            tracing::warn!(%error, index, "rows that came with a reply cannot be completed");
            Failure::OutcomeUnknown
        })
    }

    /// Asks the leader for the entry that a reader must have applied, and waits until it is applied here.
    ///
    /// # Errors
    /// No leader is known, or the leader does not answer in time.
    pub(crate) async fn confirm(&self) -> Result<(), Failure> {
        match self.ask(&LeaderRequest::ReadIndex, READ_INDEX_WAIT).await.map_err(Failure::before)? {
            Answer::ReadIndex(index) if self.applied(index).await => Ok(()),
            Answer::ReadIndex(_) | Answer::Reply { .. } | Answer::Fired(_) => Err(Failure::Electing),
            Answer::Failed(failure) => Err(elsewhere(failure.before())),
        }
    }

    /// Hands a batch of timers to the leader.
    ///
    /// # Errors
    /// No leader is known, or the leader does not answer. The leader then fires the timers of the batch itself.
    pub(crate) async fn fire(&self, batch: &TimerBatch) -> Result<Fired, Failure> {
        match self.ask(&LeaderRequest::Fire(batch.clone()), FORWARD_WAIT).await.map_err(Failure::before)? {
            Answer::Fired(fired) => Ok(fired),
            Answer::Failed(failure) => Err(failure.before()),
            Answer::ReadIndex(_) | Answer::Reply { .. } => Err(Failure::Electing),
        }
    }

    /// Who can be asked now, for [`Remote::wait_for_leader`] after the attempt.
    pub(crate) fn seen(&self) -> LeaderSeen {
        LeaderSeen { other: self.leader(), own: *self.shared.leads.borrow() }
    }

    /// Waits until a leader is known that was not `seen` before an attempt that found none, or until the next pause of the
    /// caller has passed. Returns at once if that leader has become known during the attempt, and false if the caller has
    /// waited long enough.
    pub(crate) async fn wait_for_leader(&self, wait: &mut LeaderWait, seen: LeaderSeen) -> bool {
        let Some(pause) = wait.next_pause() else { return false };
        // Before the first look, so that no change is missed.
        let (mut servers, mut leads) = (self.raft.server_metrics(), self.shared.leads.subscribe());
        let another = async {
            while !self.seen().is_news_after(seen) {
                let goes_on = tokio::select! {
                    changed = servers.changed() => changed.is_ok(),
                    changed = leads.changed() => changed.is_ok(),
                };
                if !goes_on {
                    // The node has stopped, and nothing changes any longer.
                    std::future::pending::<()>().await;
                }
            }
        };
        // It may be cancelled: the next attempt reads the newest state.
        let _in_time = tokio::time::timeout(pause, another).await;
        true
    }

    /// The leader as far as this server knows, if it is another one.
    fn leader(&self) -> Option<u64> {
        let leader = self.raft.server_metrics().borrow_watched().current_leader;
        leader.filter(|leader| *leader != self.own)
    }

    /// Returns true if this server's replica has failed: its node no longer learns who leads, nor applies anything.
    fn has_failed(&self) -> bool {
        self.shared.failed.why().is_some()
    }

    /// The servers that are asked for the leader, one after the other: the one that is known to lead. If this server's
    /// replica has failed, all others of the group as of then, at most [`FORWARD_SERVERS_MAX`]; the one that answered last
    /// comes first.
    pub(crate) fn servers(&self) -> Vec<u64> {
        if !self.has_failed() {
            return self.leader().into_iter().collect();
        }
        let metrics = self.raft.metrics();
        let last = metrics.borrow_watched();
        let first = match self.answers.load(Ordering::SeqCst) {
            0 => last.current_leader,
            server => Some(server),
        };
        let members = last.membership_config.nodes().map(|(server, _)| *server);
        in_turn(members.filter(|server| *server != self.own), first)
    }

    /// Asks the leader by the map that this server has. If the leader has a newer one, waits until this server has that too, and
    /// asks again, at most [`MAP_TRIES_MAX`] times in all.
    ///
    /// # Errors
    /// [`Failure::OtherMap`] also if by this server's own map the bucket of a command has another shard.
    async fn ask(&self, asked: &LeaderRequest, deadline: Duration) -> Result<Answer, Failure> {
        let routes = self.shared.routes.get().ok_or(Failure::Electing)?;
        let mut tries = 1;
        loop {
            // Before the owner of the bucket, so that no later map is named than the one by which it is the owner.
            let epochs = routes.epochs();
            if let LeaderRequest::Submit(command) = asked
                && let Some(bucket) = command.scope.bucket(command.tenant)
                && routes.group_of(bucket) != Some(self.group())
            {
                return Err(routes.other_map());
            }
            let answered = self.ask_by(epochs, asked, deadline).await;
            let Ok(Answer::Failed(Failure::OtherMap { epoch })) = &answered else { return answered };
            // A leader that has an older map has waited for the newer one already.
            if *epoch <= epochs.newest || tries == MAP_TRIES_MAX || !routes.reach(*epoch).await {
                return answered;
            }
            tries += 1;
        }
    }

    /// Asks the leader; see [`Remote::servers`]. Another server is asked only if the one before it certainly did nothing.
    ///
    /// # Errors
    /// [`Failure::Overloaded`] also if too many commands are under way from this server.
    async fn ask_by(
        &self,
        epochs: MapEpochs,
        asked: &LeaderRequest,
        deadline: Duration,
    ) -> Result<Answer, Failure> {
        let servers = self.servers();
        if servers.is_empty() {
            return Err(Failure::Electing);
        }
        let body = encode_asked(epochs, asked);
        let (over, _permit) = match asked {
            LeaderRequest::ReadIndex => (PeerConnection::Control, None),
            LeaderRequest::Fire(_) => (PeerConnection::Bulk, None),
            LeaderRequest::Submit(command) => {
                let permit = self.leaders.permit(command.tenant, body.len()).ok_or(Failure::Overloaded)?;
                (PeerConnection::Commands, Some(permit))
            }
        };
        let request = PeerRequest { kind: QUESTION, group: self.group(), body };
        let mut answered = Err(Failure::Electing);
        for server in servers {
            answered = self.ask_server(server, over, request.clone(), deadline).await;
            if !is_answer_of_no_leader(&answered) {
                self.answers.store(server, Ordering::SeqCst);
                break;
            }
        }
        answered
    }

    /// The number of the group.
    fn group(&self) -> u64 {
        self.shared.state.group().0
    }

    async fn ask_server(
        &self,
        leader: u64,
        over: PeerConnection,
        request: PeerRequest,
        deadline: Duration,
    ) -> Result<Answer, Failure> {
        let answered = self.leaders.transport().call(leader, over, request, deadline).await;
        let bytes = answered.map_err(|error| match error {
            PeerError::NotSent(_) | PeerError::Refused(_) => Failure::Electing,
            PeerError::Unknown(_) | PeerError::TimedOut => Failure::OutcomeUnknown,
        })?;
        decode_answer(&bytes).map_err(|error| {
            tracing::warn!(%error, leader, "a leader answered with something that this server cannot read");
            Failure::OutcomeUnknown
        })
    }

    /// Waits until an entry is applied here, at most [`APPLIED_WAIT`]; false if it is not. A replica that has failed applies
    /// nothing.
    async fn applied(&self, index: u64) -> bool {
        if self.has_failed() {
            return false;
        }
        let mut applied = self.shared.applied();
        let reached = applied.wait_for(|applied| *applied >= index);
        tokio::time::timeout(APPLIED_WAIT, reached).await.is_ok_and(|reached| reached.is_ok())
    }
}

/// Which server leads a group, as far as this one knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LeaderSeen {
    /// The leader, if it is another server.
    other: Option<u64>,
    /// True if this server leads.
    own: bool,
}

impl LeaderSeen {
    /// Returns true if there is a leader now that an attempt after `before` has not asked.
    fn is_news_after(self, before: Self) -> bool {
        self != before && (self.own || self.other.is_some())
    }
}

/// How long one caller waits for a leader, from its first attempt that found none.
pub(crate) struct LeaderWait {
    until: Instant,
    pause: Duration,
}

impl LeaderWait {
    /// Begins a wait of at most [`LEADER_WAIT`].
    pub(crate) fn begin() -> Self {
        Self { until: Instant::now() + LEADER_WAIT, pause: FORWARD_AGAIN_FIRST }
    }

    /// The longest pause before the next attempt; `None` if the caller has waited long enough.
    fn next_pause(&mut self) -> Option<Duration> {
        let left = self.until.saturating_duration_since(Instant::now());
        let pause = self.pause.min(left);
        self.pause = (self.pause * 2).min(FORWARD_AGAIN);
        (!pause.is_zero()).then_some(pause)
    }
}

/// The servers of a group in the order in which they are asked: `first`, if it is one of them, and then by number.
fn in_turn(members: impl Iterator<Item = u64>, first: Option<u64>) -> Vec<u64> {
    let mut servers: Vec<u64> = members.collect();
    servers.sort_unstable_by_key(|server| (Some(*server) != first, *server));
    servers.dedup();
    servers.truncate(FORWARD_SERVERS_MAX);
    servers
}

/// Returns true if a server did nothing because it cannot be reached or does not lead.
fn is_answer_of_no_leader(answered: &Result<Answer, Failure>) -> bool {
    let (Err(failure) | Ok(Answer::Failed(failure))) = answered else { return false };
    matches!(failure, Failure::Electing | Failure::Draining | Failure::Stopped)
}

/// The failure of another server, for a caller here. That the replica of the leader is gone says nothing about the group:
/// another server will lead it.
fn elsewhere(failure: Failure) -> Failure {
    match failure {
        Failure::Stopped | Failure::Draining => Failure::Electing,
        Failure::Rejected(_)
        | Failure::Electing
        | Failure::OutcomeUnknown
        | Failure::Internal
        | Failure::Unconfirmed
        | Failure::OtherMap { .. }
        | Failure::Overloaded
        | Failure::DiskLow { .. } => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_waits_for_a_leader_that_it_has_not_asked() {
        let other = |server| LeaderSeen { other: Some(server), own: false };
        let (own, none) = (LeaderSeen { other: None, own: true }, LeaderSeen { other: None, own: false });
        for (now, before, expected) in [
            (other(2), own, true),
            (other(2), other(1), true),
            (other(2), none, true),
            (own, other(1), true),
            (own, none, true),
            (other(1), other(1), false),
            (own, own, false),
            (none, other(1), false),
            (none, own, false),
        ] {
            assert_eq!(now.is_news_after(before), expected, "{now:?} after {before:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_pauses_of_a_caller_grow_and_end_after_the_longest_wait() {
        let (begun, mut wait, mut pauses) = (Instant::now(), LeaderWait::begin(), Vec::new());
        while let Some(pause) = wait.next_pause() {
            pauses.push(pause);
            tokio::time::advance(pause).await;
        }
        assert_eq!(pauses[..3], [FORWARD_AGAIN_FIRST, FORWARD_AGAIN_FIRST * 2, FORWARD_AGAIN_FIRST * 4]);
        assert_eq!(pauses.iter().max(), Some(&FORWARD_AGAIN));
        assert_eq!(begun.elapsed(), LEADER_WAIT);
    }

    #[test]
    fn the_servers_are_asked_in_turn_beginning_with_the_likely_leader() {
        assert_eq!(in_turn([3, 1, 2].into_iter(), Some(2)), [2, 1, 3]);
        assert_eq!(in_turn([3, 1].into_iter(), Some(2)), [1, 3], "it is no member");
        assert_eq!(in_turn([3, 1].into_iter(), None), [1, 3]);
        assert_eq!(in_turn(1..=100, Some(50)).len(), FORWARD_SERVERS_MAX);
    }

    #[test]
    fn another_server_is_asked_only_if_the_one_before_it_did_nothing() {
        for failure in [Failure::Electing, Failure::Draining, Failure::Stopped] {
            assert!(is_answer_of_no_leader(&Ok(Answer::Failed(failure))));
        }
        assert!(is_answer_of_no_leader(&Err(Failure::Electing)));
        assert!(!is_answer_of_no_leader(&Err(Failure::OutcomeUnknown)));
        assert!(!is_answer_of_no_leader(&Ok(Answer::Failed(Failure::OutcomeUnknown))));
        assert!(!is_answer_of_no_leader(&Ok(Answer::Failed(Failure::OtherMap { epoch: 7 }))));
        assert!(!is_answer_of_no_leader(&Ok(Answer::ReadIndex(7))));
    }
}
