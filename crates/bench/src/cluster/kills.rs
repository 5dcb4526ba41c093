//! A leader is killed under load, again and again: how long until writes are accepted again, with the product and with etcd.

use std::time::{Duration, Instant};
use tokio::time::sleep;

use super::Plan;
use super::etcd::{self, Etcd};
use super::servers::Servers;
use super::table::{Bound, Table, median, worst};
use super::writers::{EtcdTarget, Product, Target, Writers};

/// Callers of the load.
const CALLERS: usize = 64;
/// How often a leader is killed if nothing is said.
const ROUNDS: usize = 30;
/// How long the callers write before each kill.
const LOAD: Duration = Duration::from_secs(2);
/// The group whose leader is killed: the first that holds sessions.
const GROUP: u64 = 1;
/// The most seconds until writes are accepted again.
const MEDIAN_MAX: f64 = 0.8;
const WORST_MAX: f64 = 1.5;

/// What has a leader that can be killed.
trait Killable {
    /// Who leads.
    type Server: Copy;

    /// Returns the leader of a cluster in which all servers have caught up.
    async fn leader(&self) -> anyhow::Result<Self::Server>;

    async fn kill(&mut self, server: Self::Server) -> anyhow::Result<()>;

    /// Starts it again.
    async fn restart(&mut self, server: Self::Server) -> anyhow::Result<()>;
}

impl Killable for Servers {
    type Server = u64;

    async fn leader(&self) -> anyhow::Result<u64> {
        self.caught_up().await?;
        Servers::leader(self, GROUP).await
    }

    async fn kill(&mut self, server: u64) -> anyhow::Result<()> {
        Servers::kill(self, server).await
    }

    async fn restart(&mut self, server: u64) -> anyhow::Result<()> {
        self.run(server).await
    }
}

impl Killable for Etcd {
    type Server = usize;

    async fn leader(&self) -> anyhow::Result<usize> {
        Etcd::leader(self).await
    }

    async fn kill(&mut self, server: usize) -> anyhow::Result<()> {
        Etcd::kill(self, server).await
    }

    async fn restart(&mut self, server: usize) -> anyhow::Result<()> {
        self.run(server).await
    }
}

/// Measures both, one after the other, and adds the figures.
///
/// # Errors
/// Something does not start, or writes are not accepted again.
pub(super) async fn run(plan: &Plan<'_>, table: &mut Table) -> anyhow::Result<()> {
    let rounds = plan.rounds.unwrap_or(ROUNDS);
    let scratch = plan.scratch()?;
    {
        let mut servers = Servers::start(plan.binary, scratch.path(), plan.shards).await?;
        let target = Product::at(&servers.addresses())?;
        let outages = outages("the leader", &mut servers, &target, rounds).await?;
        let what = "leader killed: until all callers write again";
        table.add(format!("{what}, median of {rounds}"), median(&outages), "s", Bound::AtMost(MEDIAN_MAX));
        table.add(format!("{what}, worst of {rounds}"), worst(&outages), "s", Bound::AtMost(WORST_MAX));
    }
    let Some(mut etcd) = Etcd::start(scratch.path()).await? else {
        eprintln!("{}", etcd::MISSING);
        table.skip("leader of etcd killed", etcd::MISSING);
        return Ok(());
    };
    let target = EtcdTarget::at(&etcd.addresses())?;
    let outages = outages("the leader of etcd", &mut etcd, &target, rounds).await?;
    table.add(format!("the same with etcd, median of {rounds}"), median(&outages), "s", Bound::Shown);
    table.add(format!("the same with etcd, worst of {rounds}"), worst(&outages), "s", Bound::Shown);
    Ok(())
}

/// Kills the leader under load, and returns how long no write of some caller was acknowledged after each kill, seconds.
async fn outages<C: Killable, T: Target>(
    what: &str,
    cluster: &mut C,
    target: &T,
    rounds: usize,
) -> anyhow::Result<Vec<f64>> {
    let (mut writers, mut outages) = (Writers::start(target, CALLERS), Vec::new());
    for round in 1..=rounds {
        // The server that was killed last leads nothing yet, and may be given groups back meanwhile.
        cluster.leader().await?;
        sleep(LOAD).await;
        let leader = cluster.leader().await?;
        drop(writers.take().await);
        let killed = Instant::now();
        cluster.kill(leader).await?;
        let outage = writers.all_after(killed).await?.as_secs_f64();
        eprintln!("killed {what} {round} of {rounds} times: all callers wrote again after {outage:.3} s");
        outages.push(outage);
        cluster.restart(leader).await?;
    }
    writers.stop().await?;
    Ok(outages)
}
