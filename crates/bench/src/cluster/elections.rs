//! No election without a reason: full load for an hour, while each second a disk stalls, logs are purged, and servers that join
//! are sent snapshots.

use anyhow::Context as _;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use switchward_api::v1;
use switchward_api::v1::retention_service_client::RetentionServiceClient;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::Plan;
use super::operations::has_all_rows;
use super::servers::{COUNT, KEY, LAG_MAX, LOOK, Servers, authorized};
use super::stalls::{StallCounts, Stalls};
use super::table::{Bound, Table};
use crate::load::{self, Shape, Work, channel_to};

/// The load.
const CALLERS: usize = 64;
const CONNECTIONS: usize = 9;
/// How long ended sessions are kept, so that neither disks nor snapshots grow with the time of the measurement.
const KEPT: Duration = Duration::from_secs(5 * 60);
/// How often the cluster is looked at, and after how many looks progress is shown.
const WATCH: Duration = Duration::from_secs(1);
const REPORT_EVERY: u64 = 60;
/// A server joins about every this many minutes, once at least, and leaves when it has all rows.
const JOIN_MINUTES: f64 = 15.0;
/// How long a server that joins may take until the cluster knows it.
const ADMISSION_MAX: Duration = Duration::from_secs(60);
/// The least share of the stalls that must hold a sync: or else the disks did not stall under load.
const HELD_MIN: f64 = 0.9;
/// The least share of the looks at the cluster that a server must answer.
const ANSWERED_MIN: f64 = 0.9;
/// What a server logs when it has got a snapshot.
const SNAPSHOT: &str = "a snapshot is installed";
/// The family on the page of metrics that only a purge makes smaller.
const LOG_BYTES: &str = "switchward_shard_log_bytes";

/// Measures, and adds the figures.
///
/// # Errors
/// A server does not start, or there is no C compiler.
pub(super) async fn run(plan: &Plan<'_>, table: &mut Table) -> anyhow::Result<()> {
    let scratch = plan.scratch()?;
    let stalls = Stalls::prepare(scratch.path()).await?;
    let mut servers =
        Servers::start_with(plan.binary, scratch.path(), plan.shards, stalls.environment()).await?;
    expire(&servers).await?;
    servers.lead(|group| group % COUNT + 1).await?;
    servers.caught_up().await?;
    let (addresses, over) = (servers.addresses(), AtomicBool::new(false));
    let processes: Vec<u32> = servers.processes()?.into_values().collect();
    let time = Duration::from_secs_f64(plan.minutes * 60.0);
    let mut watch = Watch::start(&servers, joins(plan.minutes)).await?;
    let shape = Shape { callers: CALLERS, connections: CONNECTIONS, time };
    let load = async {
        let load = load::run_at(&addresses, KEY, shape, Work::Gate).await;
        over.store(true, Ordering::Relaxed);
        load
    };
    let (load, counts, ()) =
        tokio::join!(load, stalls.run(&processes, &over), watch.run(&mut servers, &over));
    watch.report(counts?, table);
    match load {
        Ok(load) => {
            let rate = load.steps as f64 / load.time.as_secs_f64();
            table.add("elections: steps", rate, "a second", Bound::Shown);
            let ms = |us: u64| us as f64 / 1e3;
            let p99 = ms(load.latency.value_at_quantile(0.99));
            table.add("elections: p99 of a call", p99, "ms", Bound::Shown);
            table.add("elections: worst call", ms(load.latency.max()), "ms", Bound::Shown);
        }
        Err(error) => table.fail("elections: calls", format!("a call failed: {error:#}")),
    }
    Ok(())
}

/// Has ended sessions removed some minutes after their end.
async fn expire(servers: &Servers) -> anyhow::Result<()> {
    let kept = prost_types::Duration { seconds: i64::try_from(KEPT.as_secs())?, nanos: 0 };
    let rule = v1::RetentionRule { ended_sessions: Some(kept), ..v1::RetentionRule::default() };
    let retention = v1::Retention { rules: vec![rule], ..v1::Retention::default() };
    let put = v1::PutRetentionRequest { retention: Some(retention), ..v1::PutRetentionRequest::default() };
    let mut client = RetentionServiceClient::new(channel_to(&servers.address(1)).await?);
    let set = client.put_retention(authorized(put)?).await;
    set.context("failed to set how long sessions are kept")?;
    Ok(())
}

/// When servers join, counted from the start of the load: at equal intervals, and neither at its start nor at its end.
fn joins(minutes: f64) -> Vec<Duration> {
    let count = (minutes / JOIN_MINUTES).floor().max(1.0);
    let each = minutes * 60.0 / (count + 1.0);
    (1_u32..)
        .map(f64::from)
        .take_while(|number| *number <= count)
        .map(|number| Duration::from_secs_f64(each * number))
        .collect()
}

/// A server that joins for its snapshots.
#[derive(Debug, Clone, Copy)]
enum Joiner {
    /// It runs and gets rows.
    Joining(u64),
    /// It was killed, and is to be removed.
    Leaving(u64),
}

/// What is seen of the cluster.
struct Watch {
    begun: Instant,
    /// When servers join from now on, the next one last.
    joins: Vec<Duration>,
    joiner: Option<Joiner>,
    /// Why a server could not join or leave.
    failure: Option<String>,
    /// The terms and the leaders of all groups at the start.
    first: BTreeMap<u64, GroupTerm>,
    /// The same with the highest terms that were seen.
    last: BTreeMap<u64, GroupTerm>,
    /// Groups that another server was seen to lead.
    moved: BTreeSet<u64>,
    logs: Logs,
    snapshots: usize,
    looks: u64,
    /// Looks at which a server said how the cluster is.
    answered: u64,
}

/// The term of a group, and its leader if one is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct GroupTerm {
    term: u64,
    leader: Option<u64>,
}

fn terms(cluster: &v1::GetClusterResponse) -> BTreeMap<u64, GroupTerm> {
    let of = |group: &v1::ClusterGroup| (group.number, GroupTerm { term: group.term, leader: group.leader });
    cluster.groups.iter().map(of).collect()
}

/// How many terms began, over all groups: each is an election or a hand-over.
fn begun_terms(first: &BTreeMap<u64, GroupTerm>, last: &BTreeMap<u64, GroupTerm>) -> u64 {
    let of = |(group, now): (&u64, &GroupTerm)| {
        now.term.saturating_sub(first.get(group).map_or(0, |before| before.term))
    };
    last.iter().map(of).sum()
}

impl Watch {
    async fn start(servers: &Servers, mut joins: Vec<Duration>) -> anyhow::Result<Self> {
        joins.reverse();
        let first = terms(&servers.cluster().await?);
        anyhow::ensure!(first.values().all(|group| group.leader.is_some()), "a group has no leader");
        Ok(Self::of(first, joins))
    }

    /// Nothing has been seen yet but these terms.
    fn of(first: BTreeMap<u64, GroupTerm>, joins: Vec<Duration>) -> Self {
        Self {
            begun: Instant::now(),
            joins,
            joiner: None,
            failure: None,
            last: first.clone(),
            first,
            moved: BTreeSet::new(),
            logs: Logs::default(),
            snapshots: 0,
            looks: 0,
            answered: 0,
        }
    }

    /// Looks once a second until it is over, and once more then.
    async fn run(&mut self, servers: &mut Servers, over: &AtomicBool) {
        let mut ticks = interval(WATCH);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        while !over.load(Ordering::Relaxed) {
            ticks.tick().await;
            // A server whose disk stalls may not answer at once; the next look has everything that this one lacks.
            if let Ok(seen) = servers.cluster().await {
                self.see(&seen);
                self.join(servers, &seen).await;
            }
            for number in 1..=COUNT {
                if let Ok(page) = servers.metrics(number).await {
                    self.logs.see(number, &page);
                }
            }
            self.looks += 1;
            if self.looks.is_multiple_of(REPORT_EVERY) {
                eprintln!(
                    "{:.0} minutes: {} terms begun, {} purges, {} snapshots",
                    self.begun.elapsed().as_secs_f64() / 60.0,
                    begun_terms(&self.first, &self.last),
                    self.logs.purges,
                    self.snapshots
                );
            }
        }
        self.looks += 1;
        if let Ok(seen) = servers.cluster().await {
            self.see(&seen);
        }
        if let Some(Joiner::Joining(number)) = self.joiner {
            self.snapshots += servers.said(number).matches(SNAPSHOT).count();
        }
    }

    /// Takes in the terms and leaders as they are now.
    fn see(&mut self, seen: &v1::GetClusterResponse) {
        self.answered += 1;
        for (group, now) in terms(seen) {
            let before = self.first.get(&group).and_then(|group| group.leader);
            if now.leader.is_some() && now.leader != before {
                self.moved.insert(group);
            }
            // A server that has not answered may know the highest term.
            let last = self.last.entry(group).or_insert(now);
            last.term = last.term.max(now.term);
        }
    }

    /// Lets the next server join or leave. If that fails, the load goes on, and no further server joins.
    async fn join(&mut self, servers: &mut Servers, seen: &v1::GetClusterResponse) {
        if let Err(error) = self.try_join(servers, seen).await {
            eprintln!("a server that joins: {error:#}");
            (self.joiner, self.failure) = (None, Some(format!("{error:#}")));
            self.joins.clear();
        }
    }

    /// Lets the next server join if it is time, and leave if it has all rows.
    async fn try_join(&mut self, servers: &mut Servers, seen: &v1::GetClusterResponse) -> anyhow::Result<()> {
        match self.joiner {
            None if self.joins.last().is_some_and(|at| self.begun.elapsed() >= *at) => {
                self.joins.pop();
                self.joiner = Some(Joiner::Joining(admitted(servers).await?));
            }
            Some(Joiner::Joining(number)) if has_all_rows(seen, number, LAG_MAX) => {
                self.snapshots += servers.said(number).matches(SNAPSHOT).count();
                servers.kill(number).await?;
                eprintln!("server {number} has all rows, and leaves");
                self.joiner = Some(Joiner::Leaving(number));
            }
            Some(Joiner::Leaving(number)) => {
                // It is tried again at the next look.
                if servers.remove(number).await.is_ok() {
                    self.joiner = None;
                }
            }
            None | Some(Joiner::Joining(_)) => {}
        }
        Ok(())
    }

    /// Adds the figures.
    fn report(&self, counts: StallCounts, table: &mut Table) {
        let minutes = self.begun.elapsed().as_secs_f64() / 60.0;
        table.add("elections: time at full load", minutes, "minutes", Bound::Shown);
        let looks_min = self.looks as f64 * ANSWERED_MIN;
        table.add("elections: looks at the cluster", self.answered as f64, "", Bound::AtLeast(looks_min));
        let begun = begun_terms(&self.first, &self.last);
        table.add("elections and hand-overs, all groups", begun as f64, "", Bound::AtMost(0.0));
        table.add("groups that changed their leader", self.moved.len() as f64, "", Bound::AtMost(0.0));
        table.add("elections: disk stalls", counts.stalls as f64, "", Bound::Shown);
        let held_min = counts.stalls as f64 * HELD_MIN;
        table.add(
            "elections: stalls that held a sync",
            counts.held as f64,
            "",
            Bound::AtLeast(held_min.max(1.0)),
        );
        table.add("elections: purges of a log", self.logs.purges as f64, "", Bound::AtLeast(1.0));
        if let Some(why) = &self.failure {
            table.fail("elections: servers that join and leave", why.clone());
        }
        table.add("elections: snapshots sent", self.snapshots as f64, "", Bound::AtLeast(1.0));
    }
}

/// Starts a server that joins as a learner of all groups: it is drained as soon as the cluster knows it, so that it gets no
/// seat, for which leaders would be handed over. Returns its number.
async fn admitted(servers: &mut Servers) -> anyhow::Result<u64> {
    let number = servers.join().await?;
    let begun = Instant::now();
    servers.begin(number)?;
    while let Err(error) = servers.drain(number).await {
        anyhow::ensure!(begun.elapsed() < ADMISSION_MAX, "server {number} is not admitted: {error:#}");
        sleep(LOOK).await;
    }
    eprintln!("server {number} joins as a learner");
    Ok(number)
}

/// The logs of all groups at all servers.
#[derive(Debug, Default)]
struct Logs {
    /// The length of each at the last look, bytes, by server and series.
    bytes: BTreeMap<(u64, String), f64>,
    /// How often one was seen to be shorter than before.
    purges: u64,
}

impl Logs {
    /// Takes in a server's page of metrics.
    fn see(&mut self, server: u64, page: &str) {
        for (series, bytes) in page.lines().filter_map(|line| line.rsplit_once(' ')) {
            let of_logs = series.split('{').next() == Some(LOG_BYTES);
            let Some(bytes) = bytes.parse::<f64>().ok().filter(|_| of_logs) else { continue };
            let before = self.bytes.insert((server, series.to_owned()), bytes);
            self.purges += u64::from(before.is_some_and(|before| bytes < before));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(number: u64, term: u64, leader: Option<u64>) -> v1::ClusterGroup {
        v1::ClusterGroup { number, term, leader, ..v1::ClusterGroup::default() }
    }

    fn cluster(groups: Vec<v1::ClusterGroup>) -> v1::GetClusterResponse {
        v1::GetClusterResponse { groups, ..v1::GetClusterResponse::default() }
    }

    #[test]
    fn each_term_that_began_counts() {
        let first = terms(&cluster(vec![group(0, 3, Some(1)), group(1, 5, Some(2))]));
        assert_eq!(begun_terms(&first, &first), 0);
        let last = terms(&cluster(vec![group(0, 4, Some(1)), group(1, 8, None)]));
        assert_eq!(begun_terms(&first, &last), 4);
    }

    #[test]
    fn a_group_has_moved_if_another_server_leads_it_and_not_if_none_is_known() {
        let first = terms(&cluster(vec![group(0, 3, Some(1)), group(1, 5, Some(2))]));
        let mut watch = Watch::of(first, Vec::new());
        watch.see(&cluster(vec![group(0, 3, None), group(1, 5, Some(2))]));
        assert_eq!(watch.moved, BTreeSet::new());
        watch.see(&cluster(vec![group(0, 3, Some(1)), group(1, 6, Some(3))]));
        watch.see(&cluster(vec![group(0, 3, Some(1)), group(1, 7, Some(2))]));
        assert_eq!(watch.moved, BTreeSet::from([1]));
        let mut table = Table::default();
        watch.report(StallCounts { stalls: 10, held: 9 }, &mut table);
        let error = table.judge().unwrap_err().to_string();
        assert!(
            error.contains("hand-overs") && error.contains("changed") && error.contains("purges"),
            "{error}"
        );
        assert!(error.contains("snapshots") && !error.contains("held"), "{error}");
    }

    #[test]
    fn a_log_that_is_shorter_than_before_was_purged() {
        let page = |first: u64, second: u64| {
            format!(
                "# HELP {LOG_BYTES} bytes\n{LOG_BYTES}{{shard=\"0\"}} {first}\n{LOG_BYTES}{{shard=\"1\"}} {second}\n\
                 {LOG_BYTES}_other 0\nelsewhere 1\n"
            )
        };
        let mut logs = Logs::default();
        for (server, first, second) in [(1, 10, 20), (2, 5, 5), (1, 12, 20), (1, 3, 21), (2, 5, 4)] {
            logs.see(server, &page(first, second));
        }
        assert_eq!(logs.purges, 2);
    }

    #[test]
    fn servers_join_at_equal_intervals_and_once_at_least() {
        let minutes = |minutes: f64| joins(minutes).into_iter().map(|at| at.as_secs()).collect::<Vec<_>>();
        assert_eq!(minutes(2.0), [60]);
        assert_eq!(minutes(30.0), [600, 1_200]);
        assert_eq!(minutes(60.0), [720, 1_440, 2_160, 2_880]);
    }
}
