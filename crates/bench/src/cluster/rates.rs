//! Durable writes a second: the product at its leaders and at all servers, beside the bare log and etcd, in each round one
//! after the other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

use super::bare::BareLog;
use super::etcd::{self, Etcd};
use super::servers::{COUNT, KEY, Servers};
use super::table::{Bound, Table, median};
use super::{Plan, Scratch};
use crate::load::{self, Shape, Work};
use crate::measure::QUIET_SYNCS;
use crate::probe;

/// Callers at one time.
const CALLERS: [usize; 2] = [64, 256];
/// Connections of a block: to one server, and to three servers.
const CONNECTIONS: usize = 8;
const CONNECTIONS_TO_ALL: usize = 9;
/// Shards of the servers if nothing is said: the bare log and etcd have one log, too. Every log costs each server its own syncs,
/// messages and wake-ups, which only pay off with cores to use.
const SHARDS: u32 = 1;
/// How often every point is measured if nothing is said.
const ROUNDS: usize = 3;
/// The longest block, seconds: the cluster spreads leaders again when they have led for 20 seconds.
const SECONDS_MAX: f64 = 15.0;
/// The least steps at the leaders, and at random servers, for each append of the bare log.
const AT_LEADERS_MIN: f64 = 0.5;
const AT_RANDOM_MIN: f64 = 0.35;
/// Callers warm up before anything is measured.
const WARM_UP: Duration = Duration::from_millis(500);

/// Rates of one point of one round, writes a second.
struct Point {
    callers: usize,
    syncs: f64,
    bare: f64,
    at_leaders: f64,
    at_random: f64,
    /// `None` if etcd is not installed.
    etcd: Option<Puts>,
}

/// Puts a second to etcd: at its leader, and at all its members.
#[derive(Debug, Clone, Copy)]
struct Puts {
    at_leader: f64,
    at_random: f64,
}

/// What is measured side by side.
struct Sides {
    servers: Servers,
    bare: BareLog,
    etcd: Option<Etcd>,
    scratch: Scratch,
}

/// Measures all points, and adds the figures.
///
/// # Errors
/// Something does not start, or a call fails.
pub(super) async fn run(plan: &Plan<'_>, table: &mut Table) -> anyhow::Result<()> {
    anyhow::ensure!(plan.seconds <= SECONDS_MAX, "--seconds can be at most {SECONDS_MAX} for a cluster");
    let (scratch, shards) = (plan.scratch()?, plan.shards.unwrap_or(SHARDS));
    table.add("shards of the servers", f64::from(shards), "", Bound::Shown);
    let sides = Sides {
        servers: Servers::start(plan.binary, scratch.path(), Some(shards)).await?,
        bare: BareLog::start(scratch.path())?,
        etcd: Etcd::start(scratch.path()).await?,
        scratch,
    };
    if sides.etcd.is_none() {
        eprintln!("{}", etcd::MISSING);
    }
    let points = sides.points(plan).await;
    // After a round that failed, too: a profile of what was called until then is then written.
    let ended = sides.servers.end().await;
    let points = points?;
    ended?;
    for callers in CALLERS {
        judge(&points, callers, table);
    }
    Ok(())
}

impl Sides {
    /// Measures all points of all rounds.
    async fn points(&self, plan: &Plan<'_>) -> anyhow::Result<Vec<Point>> {
        let mut points = Vec::new();
        let rounds = plan.rounds.unwrap_or(ROUNDS);
        for round in 1..=rounds {
            for callers in CALLERS {
                let point = self.measure(callers, Duration::from_secs_f64(plan.seconds)).await?;
                let etcd = |etcd: Puts| format!(", etcd {:.0} and {:.0}", etcd.at_leader, etcd.at_random);
                let etcd = point.etcd.map(etcd).unwrap_or_default();
                eprintln!(
                    "round {round} of {rounds}, {callers} callers: bare log {:.0}, at the leaders {:.0}, at random {:.0}{etcd} \
                     a second; {:.0} syncs a second",
                    point.bare, point.at_leaders, point.at_random, point.syncs
                );
                points.push(point);
            }
        }
        Ok(points)
    }

    async fn measure(&self, callers: usize, time: Duration) -> anyhow::Result<Point> {
        let (syncs, _) = probe::syncs(self.scratch.path())?;
        let shape = Shape { callers, connections: CONNECTIONS, time };
        let bare = load::run(&self.bare.leader, shape, Work::Gate).await?;
        // All groups at one server, as the bare log and etcd have it. Each moves, so that none has led for long enough to be
        // moved again.
        self.servers.lead(|group| group % (COUNT - 1) + 2).await?;
        self.servers.lead(|_| 1).await?;
        let at_leaders = load::run_at(&[self.servers.address(1)], KEY, shape, Work::Gate).await?;
        self.still_at_the_first().await?;
        self.servers.lead(|group| group % COUNT + 1).await?;
        let shape = Shape { connections: CONNECTIONS_TO_ALL, ..shape };
        let at_random = load::run_at(&self.servers.addresses(), KEY, shape, Work::Gate).await?;
        let etcd = match &self.etcd {
            Some(etcd) => {
                let leader = [etcd.address(etcd.leader().await?)];
                let (at_leader, at_random) =
                    (puts(&leader, shape).await?, puts(&etcd.addresses(), shape).await?);
                Some(Puts { at_leader, at_random })
            }
            None => None,
        };
        let rate = |load: &load::Load| load.steps as f64 / load.time.as_secs_f64();
        let (bare, at_leaders, at_random) = (rate(&bare), rate(&at_leaders), rate(&at_random));
        Ok(Point { callers, syncs, bare, at_leaders, at_random, etcd })
    }

    /// Fails if leaders have moved: then the block says nothing about calls at the leaders.
    async fn still_at_the_first(&self) -> anyhow::Result<()> {
        let groups = self.servers.cluster().await?.groups;
        let moved = groups.iter().find(|group| group.leader != Some(1));
        anyhow::ensure!(moved.is_none(), "a leader moved during a block; use fewer --seconds");
        Ok(())
    }
}

/// Puts a second at these members of etcd, which share the connections.
async fn puts(addresses: &[String], shape: Shape) -> anyhow::Result<f64> {
    let connections = addresses.iter().cycle().take(shape.connections);
    let clients: Vec<etcd::Client> = connections.map(|at| etcd::Client::to(at)).collect::<Result<_, _>>()?;
    let begin = Instant::now() + WARM_UP;
    let end = begin + shape.time;
    let (count, mut callers) = (Arc::new(AtomicU64::new(0)), JoinSet::new());
    let next = Arc::new(AtomicU64::new(0));
    for caller in 0..shape.callers {
        let mut client = clients[caller % clients.len()].clone();
        let (count, next) = (Arc::clone(&count), Arc::clone(&next));
        callers.spawn(async move {
            while Instant::now() < end {
                client.put(&format!("step-{}", next.fetch_add(1, Ordering::Relaxed))).await?;
                let now = Instant::now();
                if now >= begin && now < end {
                    count.fetch_add(1, Ordering::Relaxed);
                }
            }
            anyhow::Ok(())
        });
    }
    while let Some(ended) = callers.join_next().await {
        ended??;
    }
    Ok(count.load(Ordering::Relaxed) as f64 / shape.time.as_secs_f64())
}

/// Adds the figures of this many callers: the medians of the rounds on a quiet machine.
fn judge(points: &[Point], callers: usize, table: &mut Table) {
    let quiet: Vec<&Point> =
        points.iter().filter(|point| point.callers == callers && point.syncs >= QUIET_SYNCS).collect();
    if quiet.is_empty() {
        table.skip(format!("steps a second, {callers} callers"), "no quiet round");
        return;
    }
    let of = |value: fn(&Point) -> f64| median(&quiet.iter().map(|point| value(point)).collect::<Vec<_>>());
    let mut rate = |what: &str, value, bound| {
        table.add(format!("{what}, {callers} callers"), value, "a second", bound);
    };
    rate("appends to the bare log", of(|point| point.bare), Bound::Shown);
    let etcd = |value: fn(Puts) -> f64| {
        let puts: Vec<f64> = quiet.iter().filter_map(|point| point.etcd.map(value)).collect();
        (!puts.is_empty()).then(|| median(&puts))
    };
    let (etcd_at_leader, etcd_at_random) = (etcd(|puts| puts.at_leader), etcd(|puts| puts.at_random));
    let without_etcd = etcd_at_leader.is_none();
    for (what, steps, puts, beside) in [
        ("the leaders", of(|point| point.at_leaders), "its leader", etcd_at_leader),
        ("random servers", of(|point| point.at_random), "random members", etcd_at_random),
    ] {
        if let Some(beside) = beside {
            rate(&format!("puts to etcd at {puts}"), beside, Bound::Shown);
        }
        rate(&format!("steps at {what}"), steps, beside.map_or(Bound::Shown, Bound::Above));
    }
    for (what, value, least) in [
        ("steps at the leaders", of(|point| point.at_leaders / point.bare), AT_LEADERS_MIN),
        ("steps at random servers", of(|point| point.at_random / point.bare), AT_RANDOM_MIN),
    ] {
        let what = format!("{what} by appends, {callers} callers");
        table.add(what, value, "", Bound::AtLeast(least));
    }
    if without_etcd {
        table.skip(format!("puts to etcd, {callers} callers"), etcd::MISSING);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(at_leaders: f64, at_random: f64, etcd: Option<f64>, syncs: f64) -> Point {
        let etcd = etcd.map(|rate| Puts { at_leader: rate, at_random: rate });
        Point { callers: 64, syncs, bare: 100.0, at_leaders, at_random, etcd }
    }

    fn judged(points: &[Point]) -> Result<(), String> {
        let mut table = Table::default();
        judge(points, 64, &mut table);
        table.judge().map_err(|error| error.to_string())
    }

    #[test]
    fn the_ratios_have_floors_and_both_rates_are_above_etcd() {
        assert_eq!(judged(&[point(50.0, 35.0, Some(34.0), QUIET_SYNCS)]), Ok(()));
        assert_eq!(judged(&[point(50.0, 35.0, None, QUIET_SYNCS)]), Ok(()));
        let slow = judged(&[point(49.0, 34.0, Some(1.0), QUIET_SYNCS)]).unwrap_err();
        assert!(slow.contains("at the leaders by") && slow.contains("at random servers by"), "{slow}");
        let below = judged(&[point(60.0, 40.0, Some(40.0), QUIET_SYNCS)]).unwrap_err();
        assert_eq!(below, "not kept: steps at random servers, 64 callers");
        assert_eq!(judged(&[point(1.0, 1.0, Some(2.0), QUIET_SYNCS - 1.0)]), Ok(()), "nothing was quiet");
    }
}
