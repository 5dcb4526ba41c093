//! A voter that is away at full load, and how it catches up.

use anyhow::ensure;
use std::time::{Duration, Instant};
use switchward_api::v1;
use tokio::time::sleep;

use super::Plan;
use super::servers::{COUNT, KEY, LAG_MAX, Servers};
use super::table::{Bound, Table};
use crate::load::{self, Shape, Work};

/// The load, which goes on while the voter catches up.
const CALLERS: usize = 64;
const CONNECTIONS: usize = 8;
/// How long the voter is away, and how long the load lasts after that.
const AWAY: Duration = Duration::from_secs(60);
const LOAD_AFTER: Duration = Duration::from_secs(20);
/// Within this time it must have caught up.
const CAUGHT_UP_MAX: f64 = 60.0;
/// How often its lag is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// The voter that goes; the others lead before that, so that no group changes its leader.
const AWAY_SERVER: u64 = COUNT;
/// What a server logs when another one sends it a snapshot.
const SNAPSHOT: &str = "receiving a snapshot";

/// Measures, and adds the figures.
///
/// # Errors
/// A server does not start, or a call fails.
pub(super) async fn run(plan: &Plan<'_>, table: &mut Table) -> anyhow::Result<()> {
    let scratch = plan.scratch()?;
    let mut servers = Servers::start(plan.binary, scratch.path(), plan.shards).await?;
    servers.lead(|group| group % (COUNT - 1) + 1).await?;
    servers.kill(AWAY_SERVER).await?;
    eprintln!("server {AWAY_SERVER} is away for {} s at full load", AWAY.as_secs());
    let there: Vec<String> = (1..AWAY_SERVER).map(|number| servers.address(number)).collect();
    let shape = Shape { callers: CALLERS, connections: CONNECTIONS, time: AWAY + LOAD_AFTER };
    let load = load::run_at(&there, KEY, shape, Work::Gate);
    let (load, back) = tokio::try_join!(load, back(&mut servers))?;
    let rate = load.steps as f64 / load.time.as_secs_f64();
    table.add("steps with a voter away and while it catches up", rate, "a second", Bound::Shown);
    let missed = back.missed.map_or(f64::NAN, |missed| missed as f64);
    table.add("entries that the voter lacked when it came back", missed, "entries", Bound::Shown);
    let took = back.took.as_secs_f64();
    table.add("until the voter has caught up, from its start", took, "s", Bound::AtMost(CAUGHT_UP_MAX));
    table.add("snapshots that it was sent", back.snapshots as f64, "", Bound::AtMost(0.0));
    Ok(())
}

/// How a voter came back.
struct Back {
    /// `None` if no leader says it.
    missed: Option<u64>,
    took: Duration,
    snapshots: usize,
}

/// Starts the voter after its time, and waits until it has caught up.
async fn back(servers: &mut Servers) -> anyhow::Result<Back> {
    sleep(AWAY).await;
    let said = servers.said(AWAY_SERVER).len();
    let missed = lag(&servers.cluster().await?);
    let begun = Instant::now();
    servers.run(AWAY_SERVER).await?;
    loop {
        let lag = servers.cluster().await.ok().and_then(|cluster| lag(&cluster));
        if lag.is_some_and(|lag| lag <= LAG_MAX) {
            break;
        }
        ensure!(
            begun.elapsed().as_secs_f64() < CAUGHT_UP_MAX,
            "the voter does not catch up: it lacks {lag:?}"
        );
        sleep(LOOK).await;
    }
    let took = begun.elapsed();
    let said = servers.said(AWAY_SERVER).split_off(said);
    Ok(Back { missed, took, snapshots: said.matches(SNAPSHOT).count() })
}

/// The most entries that the voter lacks in a group; `None` if a leader does not say it.
fn lag(cluster: &v1::GetClusterResponse) -> Option<u64> {
    let of = |group: &v1::ClusterGroup| {
        let replica = group.replicas.iter().find(|replica| replica.server == AWAY_SERVER)?;
        replica.lag_entries
    };
    let lags: Option<Vec<u64>> = cluster.groups.iter().map(of).collect();
    lags?.into_iter().max()
}
