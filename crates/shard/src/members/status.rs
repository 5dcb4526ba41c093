//! The status of a cluster: its servers, and where its groups are.

use futures::future::join_all;
use std::collections::BTreeMap;
use std::io;
use switchward_machine::Time;
use switchward_state::catalogue::{Server, ServerState};
use switchward_state::{Level, Levels};

use super::message::{STATUS, framed, unframed};
use super::options::MemberOptions;
use super::peers::{map, servers};
use super::report::{ReplicaReport, ServerReport, report};
use crate::limits::STATUS_WAIT;
use crate::peers::{PeerConnection, PeerRequest};
use crate::shard::Shard;
use crate::shards::{CATALOGUE, Shards};

/// The number that a server alone is shown with.
const ALONE: u64 = 1;

/// A cluster as one of its servers sees it now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterStatus {
    /// The cluster's id; `None` for a server alone.
    pub cluster: Option<[u8; 16]>,
    /// Raised by each change of the servers; 0 for a server alone.
    pub epoch: u64,
    /// The feature level in force.
    pub level: Level,
    /// The server that answers.
    pub own: u64,
    /// The most voters that a group may have; 1 for a server alone.
    pub voters: usize,
    /// The servers by their numbers, removed ones included.
    pub servers: Vec<ServerStatus>,
    /// The groups by their numbers; the catalogue is group 0.
    pub groups: Vec<GroupStatus>,
}

/// A server of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerStatus {
    /// Its number in the cluster, from 1; never used again.
    pub number: u64,
    /// Where other servers reach it; empty for a server alone.
    pub address: String,
    /// Whether it takes seats, gives them up, or was removed.
    pub state: ServerState,
    /// The feature levels of its program, as of its last start.
    pub levels: Levels,
    /// When it joined; `None` for a server alone.
    pub joined: Option<Time>,
    /// Whether it has answered just now.
    pub reachable: bool,
    /// Whether it may lead: it has answered just now, its clock does not bar it, and it does not stop.
    pub may_lead: bool,
    /// The groups that it leads.
    pub leads: Vec<u64>,
    /// The server that takes its seats, if it is being or was replaced.
    pub replaced_by: Option<u64>,
    /// What it has said of itself just now; `None` if it has not answered.
    pub answer: Option<ServerAnswer>,
}

/// What a server says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerAnswer {
    /// The version of its program.
    pub version: String,
    /// Free bytes of the disk of its data folder; `None` if it is not monitored.
    pub disk_free_bytes: Option<u64>,
    /// Until when its certificate for the other servers is valid; `None` if it has none.
    pub certificate_expires: Option<Time>,
    /// How far its own clock is ahead of the median of all servers' clocks, milliseconds. If servers compare no clocks: of
    /// that of the server that asks; half of the time that the question took may be wrong.
    pub clock_offset_ms: i64,
    /// Whether its clock differs from the others' by too much: then it leads nothing.
    pub clock_bars: bool,
}

/// A group of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupStatus {
    /// Its number.
    pub group: u64,
    /// The server that leads it; `None` if none of those that answered does.
    pub leader: Option<u64>,
    /// The highest term that was reported.
    pub term: u64,
    /// The servers that are to vote by the map, in ascending order; none for a server alone.
    pub placed: Vec<u64>,
    /// The servers that vote.
    pub voters: Vec<u64>,
    /// The servers that hold a replica and do not vote.
    pub learners: Vec<u64>,
    /// The leader's last entry, or else the last one that was reported.
    pub last_index: u64,
    /// The replicas by their servers.
    pub replicas: Vec<ReplicaStatus>,
}

/// A replica of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaStatus {
    /// The server that holds it.
    pub server: u64,
    /// The last entry that it has applied; `None` if the server did not answer.
    pub applied: Option<u64>,
    /// Entries that it lacks as far as the leader knows; `None` if that is not known.
    pub lag: Option<u64>,
    /// Since the leader's last contact with it, milliseconds; `None` if that is not known.
    pub silent_ms: Option<u64>,
    /// Why it has failed, if it has.
    pub failed: Option<String>,
    /// Bytes and entries of the log that it keeps: for a restart, and for replicas that are away. `None` if the server did not
    /// answer.
    pub log: Option<(u64, u64)>,
}

/// The reports of the servers that have answered.
type Reports = BTreeMap<u64, Reported>;

/// A report, and how far its server's time is ahead of that of this server, milliseconds.
pub(super) struct Reported {
    pub(super) report: ServerReport,
    time_offset_ms: i64,
}

impl Reported {
    /// How far its server's own clock is ahead, milliseconds. Servers that compare their clocks agree on the time, and so
    /// it says nothing of them.
    fn clock_offset_ms(&self) -> i64 {
        self.report.clock_ahead_ms.unwrap_or(self.time_offset_ms)
    }
}

/// Asks all servers, each for at most [`STATUS_WAIT`].
///
/// # Errors
/// The rows of the catalogue cannot be read.
pub(crate) async fn status(shards: &Shards) -> io::Result<ClusterStatus> {
    let view = shards.catalogue().read_stale();
    let (map, known) = (map(&view)?, servers(&view)?);
    let own = shards.member().map_or(ALONE, |member| member.number);
    let mut reports = Reports::from([(own, Reported { report: report(shards), time_offset_ms: 0 })]);
    if let Some(member) = shards.member() {
        let present = known.iter().filter(|server| server.state != ServerState::Removed);
        let others = present.map(|server| server.number).filter(|server| *server != own);
        let answers = join_all(others.map(|server| ask(shards, member, server))).await;
        reports.extend(answers.into_iter().flatten());
    }
    let placed = |group: u64| map.as_ref().map(|map| map.voters_of(group).to_vec()).unwrap_or_default();
    let groups = shards.all().map(Shard::number);
    let groups: Vec<GroupStatus> = groups.map(|number| group(number, placed(number), &reports)).collect();
    let servers = if known.is_empty() { vec![alone(own)] } else { known.iter().map(server).collect() };
    let servers = servers.into_iter().map(|server| with_reports(server, &reports, &groups)).collect();
    let (cluster, epoch) = (map.as_ref().map(|map| map.cluster), map.as_ref().map_or(0, |map| map.epoch));
    let level = map.as_ref().map_or(Levels::OF_PROGRAM.highest, |map| map.level);
    let voters = map.map_or(1, |map| map.seats());
    Ok(ClusterStatus { cluster, epoch, level, own, voters, servers, groups })
}

/// Asks a server for its report; `None` if it does not answer within [`STATUS_WAIT`].
pub(super) async fn ask(shards: &Shards, member: &MemberOptions, server: u64) -> Option<(u64, Reported)> {
    let request = PeerRequest { kind: STATUS, group: CATALOGUE, body: framed(&()) };
    let before = shards.now().0;
    let answer = member.transport.call(server, PeerConnection::Control, request, STATUS_WAIT).await.ok()?;
    let after = shards.now().0;
    let report: io::Result<ServerReport> = unframed(&answer);
    let report = report
        .inspect_err(|error| tracing::warn!(%error, server, "failed to read a server's status"))
        .ok()?;
    let time_offset_ms = offset_ms(report.now.0, before, after);
    Some((server, Reported { report, time_offset_ms }))
}

/// How far a clock is ahead that was read between two times, milliseconds.
fn offset_ms(read: u64, before: u64, after: u64) -> i64 {
    let middle = before + after.saturating_sub(before) / 2;
    let signed = |ms: u64| i64::try_from(ms).unwrap_or(i64::MAX);
    signed(read).saturating_sub(signed(middle))
}

fn alone(own: u64) -> ServerStatus {
    ServerStatus {
        number: own,
        address: String::new(),
        state: ServerState::Active,
        levels: Levels::OF_PROGRAM,
        joined: None,
        reachable: true,
        may_lead: true,
        leads: Vec::new(),
        replaced_by: None,
        answer: None,
    }
}

fn server(server: &Server) -> ServerStatus {
    ServerStatus {
        number: server.number,
        address: server.address.clone(),
        state: server.state,
        levels: server.levels,
        joined: Some(server.joined),
        reachable: false,
        may_lead: false,
        leads: Vec::new(),
        replaced_by: server.replaced_by,
        answer: None,
    }
}

fn with_reports(server: ServerStatus, reports: &Reports, groups: &[GroupStatus]) -> ServerStatus {
    let led = groups.iter().filter(|group| group.leader == Some(server.number));
    let leads = led.map(|group| group.group).collect();
    let reported = reports.get(&server.number);
    let may_lead = reported.is_some_and(|reported| reported.report.may_lead);
    let answer = reported.map(|reported| ServerAnswer {
        version: reported.report.version.clone(),
        disk_free_bytes: reported.report.disk_free_bytes,
        certificate_expires: reported.report.certificate_expires,
        clock_offset_ms: reported.clock_offset_ms(),
        clock_bars: reported.report.clock_bars,
    });
    ServerStatus { reachable: answer.is_some(), may_lead, leads, answer, ..server }
}

fn group(number: u64, placed: Vec<u64>, reports: &Reports) -> GroupStatus {
    let of_group =
        |reported: &Reported| reported.report.replicas.iter().find(|report| report.group == number).cloned();
    let replicas: BTreeMap<u64, ReplicaReport> =
        reports.iter().filter_map(|(server, reported)| Some((*server, of_group(reported)?))).collect();
    let leading = replicas.iter().filter(|(_, report)| report.leads).max_by_key(|(_, report)| report.term);
    let leading = leading.or_else(|| elected(&replicas));
    // Without a leader, the replica of the latest term knows best.
    let best = leading.or_else(|| replicas.iter().max_by_key(|(_, report)| (report.term, report.last)));
    let (voters, learners) =
        best.map(|(_, report)| (report.voters.clone(), report.learners.clone())).unwrap_or_default();
    let last_index = best.map_or(0, |(_, report)| report.last);
    let status =
        |server: &u64| replica(*server, replicas.get(server), leading.map(|(at, report)| (*at, report)));
    GroupStatus {
        group: number,
        leader: leading.map(|(server, _)| *server),
        term: replicas.values().map(|report| report.term).max().unwrap_or(0),
        replicas: voters.iter().chain(&learners).map(status).collect(),
        placed,
        voters,
        learners,
        last_index,
    }
}

/// The replica that a majority of its voters names as the leader of the latest term. It has been elected and does not yet know
/// that it leads, such as right after a transfer.
fn elected(replicas: &BTreeMap<u64, ReplicaReport>) -> Option<(&u64, &ReplicaReport)> {
    let term = replicas.values().map(|report| report.term).max()?;
    let names = |report: &ReplicaReport, leader: u64| report.term == term && report.leader == Some(leader);
    replicas.iter().find(|(server, report)| {
        let of = |voter: &&u64| replicas.get(*voter).is_some_and(|report| names(report, **server));
        names(report, **server) && report.voters.iter().filter(of).count() * 2 > report.voters.len()
    })
}

fn replica(
    server: u64,
    own: Option<&ReplicaReport>,
    leading: Option<(u64, &ReplicaReport)>,
) -> ReplicaStatus {
    let leads = leading.is_some_and(|(leader, _)| leader == server);
    let known = leading.and_then(|(_, report)| report.followers.iter().find(|one| one.server == server));
    let last = leading.map_or(0, |(_, report)| report.last);
    let matched = known.and_then(|follower| follower.matched);
    ReplicaStatus {
        server,
        applied: own.map(|report| report.applied),
        lag: if leads { Some(0) } else { matched.map(|matched| last.saturating_sub(matched)) },
        silent_ms: if leads { Some(0) } else { known.and_then(|follower| follower.silent_ms) },
        failed: own.and_then(|report| report.failed.clone()),
        log: own.map(|report| (report.log_bytes, report.log_entries)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::Follower;
    use super::*;

    fn report(leads: bool, term: u64, followers: Vec<Follower>) -> ReplicaReport {
        let (voters, learners) = (vec![1, 2], vec![3]);
        let (last, applied) = (10, 9);
        let leader = Some(1);
        ReplicaReport {
            group: 1,
            leader,
            leads,
            term,
            last,
            applied,
            voters,
            learners,
            failed: None,
            followers,
            log_bytes: 700,
            log_entries: 7,
        }
    }

    fn reported(replica: ReplicaReport) -> Reported {
        let report = ServerReport {
            replicas: vec![replica],
            version: "1.2.3".into(),
            disk_free_bytes: None,
            certificate_expires: None,
            now: Time(5),
            may_lead: true,
            clock_bars: false,
            clock_ahead_ms: None,
        };
        Reported { report, time_offset_ms: 0 }
    }

    #[test]
    fn a_clock_is_compared_with_the_middle_of_the_question() {
        for (read, before, after, offset) in [(100, 90, 110, 0), (150, 90, 110, 50), (60, 90, 110, -40)] {
            assert_eq!(offset_ms(read, before, after), offset, "{read}");
        }
        assert_eq!(offset_ms(10, 30, 20), -20, "a clock that was set back");
    }

    #[test]
    fn a_server_shows_its_own_clock_and_whether_it_may_lead() {
        for (may_lead, clock_bars, ahead_ms, offset_ms) in
            [(true, false, Some(3), 3), (false, true, Some(3_600_000), 3_600_000), (false, false, None, 70)]
        {
            let mut reported = reported(report(false, 4, Vec::new()));
            reported.time_offset_ms = 70;
            reported.report =
                ServerReport { may_lead, clock_bars, clock_ahead_ms: ahead_ms, ..reported.report };
            let seen = with_reports(alone(2), &Reports::from([(2, reported)]), &[]);
            let answer = seen.answer.unwrap();
            assert_eq!((seen.may_lead, answer.clock_bars), (may_lead, clock_bars));
            assert_eq!(answer.clock_offset_ms, offset_ms);
        }
        assert!(!with_reports(alone(2), &Reports::new(), &[]).may_lead, "it has not answered");
    }

    #[test]
    fn a_group_is_seen_as_its_leader_sees_it() {
        let follower =
            |server, matched| Follower { server, matched: Some(matched), silent_ms: Some(server * 10) };
        let reports = Reports::from([
            (1, reported(report(true, 4, vec![follower(2, 10), follower(3, 7)]))),
            (2, reported(report(false, 4, Vec::new()))),
        ]);
        let seen = group(1, vec![1, 2], &reports);
        assert_eq!((seen.leader, seen.term, seen.last_index), (Some(1), 4, 10));
        let lags: Vec<_> =
            seen.replicas.iter().map(|replica| (replica.server, replica.applied, replica.lag)).collect();
        assert_eq!(lags, [(1, Some(9), Some(0)), (2, Some(9), Some(0)), (3, None, Some(3))]);
        assert_eq!(seen.replicas[2].silent_ms, Some(30));
    }

    #[test]
    fn a_leader_that_was_just_elected_is_seen_once_most_voters_name_it() {
        let named = |term| {
            let follower = Follower { server: 2, matched: Some(8), silent_ms: None };
            reported(report(false, term, vec![follower]))
        };
        let seen = group(1, vec![1, 2], &Reports::from([(1, named(4)), (2, named(4))]));
        assert_eq!(seen.leader, Some(1));
        assert_eq!(seen.replicas.iter().map(|one| one.lag).collect::<Vec<_>>(), [Some(0), Some(2), None]);
        for reports in [vec![(1, named(4))], vec![(1, named(4)), (2, named(5))]] {
            assert_eq!(group(1, vec![1, 2], &reports.into_iter().collect()).leader, None);
        }
    }

    #[test]
    fn a_group_without_a_leader_says_so() {
        let reports = Reports::from([(2, reported(report(false, 4, Vec::new())))]);
        let seen = group(1, vec![1, 2], &reports);
        assert_eq!((seen.leader, seen.voters.as_slice()), (None, [1, 2].as_slice()));
        assert!(seen.replicas.iter().all(|replica| replica.lag.is_none()));
        assert_eq!(group(2, Vec::new(), &reports).replicas, []);
    }
}
