//! What a server reports of itself and its replicas.

use minicbor::{Decode, Encode};
use openraft::{Instant as _, async_runtime::WatchReceiver};
use switchward_machine::Time;

use crate::clock::{ClockAgreement, ClockOffset};
use crate::shard::Shard;
use crate::shards::Shards;

/// A server, as it reports itself.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ServerReport {
    /// One for each group that it holds.
    #[n(0)]
    pub replicas: Vec<ReplicaReport>,
    /// The version of its program.
    #[n(1)]
    pub version: String,
    /// Free bytes of the disk of its data folder.
    #[n(2)]
    pub disk_free_bytes: Option<u64>,
    /// Until when its certificate is valid.
    #[n(3)]
    pub certificate_expires: Option<Time>,
    /// The time by its clock.
    #[n(4)]
    pub now: Time,
    /// Whether it may lead: its clock does not bar it, and it does not stop.
    #[n(5)]
    pub may_lead: bool,
    /// Whether its clock bars it from leading.
    #[n(6)]
    pub clock_bars: bool,
    /// How far its own clock is ahead of the median of all servers' clocks, milliseconds; `None` if it has compared it with
    /// no other clock.
    #[n(7)]
    pub clock_ahead_ms: Option<i64>,
}

/// A replica of a group, as its own server reports it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct ReplicaReport {
    /// The number of the group; 0 is the catalogue.
    #[n(0)]
    pub group: u64,
    /// The leader that the replica knows.
    #[n(1)]
    pub leader: Option<u64>,
    /// Whether the replica itself leads, acknowledged by a majority.
    #[n(2)]
    pub leads: bool,
    /// The highest Raft term that the replica knows.
    #[n(3)]
    pub term: u64,
    /// Its last entry.
    #[n(4)]
    pub last: u64,
    /// The last entry that it has applied.
    #[n(5)]
    pub applied: u64,
    /// The voters that it knows.
    #[n(6)]
    pub voters: Vec<u64>,
    /// The learners that it knows.
    #[n(7)]
    pub learners: Vec<u64>,
    /// Why it has failed, if it has.
    #[n(8)]
    pub failed: Option<String>,
    /// The other members, if it leads.
    #[n(9)]
    pub followers: Vec<Follower>,
    /// Bytes of the log that it keeps.
    #[n(10)]
    pub log_bytes: u64,
    /// Entries of the log that it keeps.
    #[n(11)]
    pub log_entries: u64,
}

/// A member of a group, as its leader knows it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Follower {
    /// The number of the server that holds the replica.
    #[n(0)]
    pub server: u64,
    /// The last entry that it is known to have.
    #[n(1)]
    pub matched: Option<u64>,
    /// Since the last contact, milliseconds.
    #[n(2)]
    pub silent_ms: Option<u64>,
}

/// What this server knows of itself, its replicas and its clock.
pub(crate) fn report(shards: &Shards) -> ServerReport {
    let catalogue = shards.catalogue().group();
    let offsets = catalogue.remote.as_ref().and_then(|remote| remote.clock_offsets()).unwrap_or_default();
    ServerReport {
        replicas: shards.all().map(of).collect(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        disk_free_bytes: Some(shards.log().disk().free_bytes()).filter(|free| *free > 0),
        certificate_expires: shards.member().and_then(|member| member.handler.certificate_expires()),
        now: shards.now(),
        may_lead: catalogue.may_lead(),
        clock_bars: catalogue.shared.may_lead.is_barred_by_clock(),
        clock_ahead_ms: ahead_ms(shards.agreed().agreement(), &offsets),
    }
}

/// How far the own clock is ahead of the median, milliseconds: what was found when they were compared, if it is too much,
/// or else by what is known of the others now.
fn ahead_ms(agreement: ClockAgreement, offsets: &[ClockOffset]) -> Option<i64> {
    if let Some(off_by) = agreement.off_by_ms() {
        return Some(off_by);
    }
    let mut opinions: Vec<i64> = offsets.iter().map(|offset| offset.ms).chain([0]).collect();
    opinions.sort_unstable();
    let middle = opinions.get((opinions.len() - 1) / 2).filter(|_| opinions.len() > 1);
    middle.map(|ms| ms.saturating_neg())
}

fn of(shard: &Shard) -> ReplicaReport {
    let group = shard.group();
    let metrics = group.raft().metrics();
    let now = metrics.borrow_watched();
    let members = now.membership_config.membership();
    let silent = |server: &u64| {
        let contact = now.heartbeat.as_ref()?.get(server).copied().flatten()?;
        u64::try_from(contact.elapsed().as_millis()).ok()
    };
    let followers = now.replication.iter().flatten().filter(|(server, _)| **server != now.id);
    let follower = |(server, matched): (&u64, &Option<_>)| Follower {
        server: *server,
        matched: matched.as_ref().map(|id: &crate::types::LogId| id.index),
        silent_ms: silent(server),
    };
    let (log_bytes, log_entries) = group.log.size();
    ReplicaReport {
        group: shard.number(),
        leader: now.current_leader,
        leads: shard.leads(),
        term: now.current_term,
        last: now.last_log_index.unwrap_or(0),
        applied: now.last_applied.map_or(0, |id| id.index),
        voters: members.voter_ids().collect(),
        learners: members.learner_ids().collect(),
        failed: group.failed().map(str::to_owned),
        followers: followers.map(follower).collect(),
        log_bytes,
        log_entries,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ClockAgreement::{Agrees, Alone, Differs, Undecided, Unknown};

    #[test]
    fn a_server_reports_its_own_clock_and_not_the_time_that_the_others_agree_on() {
        for (agreement, offsets, expected) in [
            (Alone, vec![], None),
            (Unknown, vec![], None),
            (Agrees, vec![10, -15], Some(0)),
            (Agrees, vec![10, 20], Some(-10)),
            (Agrees, vec![-30, -20], Some(20)),
            (Undecided { by_ms: 5_000 }, vec![-5_000], Some(5_000)),
            (Differs { by_ms: -3_600_000 }, vec![3_600_000, 3_600_000], Some(-3_600_000)),
            (Differs { by_ms: 3_600_000 }, vec![], Some(3_600_000)),
        ] {
            let known = offsets.iter().zip(2..).map(|(ms, server)| ClockOffset { server, ms: *ms });
            assert_eq!(
                ahead_ms(agreement, &known.collect::<Vec<_>>()),
                expected,
                "{agreement:?} {offsets:?}"
            );
        }
    }
}
