//! A cluster of three with many parked sessions gets a fourth server, gets back what that one held, and loses a server that
//! the fourth one replaces; other callers go on meanwhile.

use anyhow::Context as _;
use std::time::{Duration, Instant};
use tokio::time::sleep;

use super::Plan;
use super::operations::{has_given_back, is_replaced, share_of_leaders, share_of_voters};
use super::others::{Others, p99_ms};
use super::servers::{COUNT, KEY, Servers};
use super::table::{Bound, Table};
use super::waiting::{Gates, Timers};
use super::writers::Product;
use crate::load;

/// Shards of the servers if nothing is said: with the catalogue nine groups, of which a fifth is two.
const SHARDS: u32 = 8;
/// Callers, few enough that calls do not wait for each other.
const CALLERS: usize = 16;
/// Sessions with a gate, and as many with a timer.
const GATES: usize = 300;
const TIMERS: usize = 300;
/// How long the timers wait: longer than all changes may take.
const TIMERS_WAIT: Duration = Duration::from_secs(252);
/// Parked sessions that are answered afterwards.
const ANSWERED: u64 = 300;
/// How long the servers rest after the sessions were parked, and how long the callers are measured before any change.
const SETTLE: Duration = Duration::from_secs(20);
const QUIET: Duration = Duration::from_secs(30);
/// The share of the voters and of the leaders that the fourth server must get.
const SHARE_MIN: f64 = 0.2;
/// The most seconds that each change may take, and how long it is waited for.
const CHANGE_MAX: f64 = 60.0;
const CHANGE_WAIT: Duration = Duration::from_secs(75);
/// The highest ratio of the p99 of the other callers during a change to that before all of them.
const SLOWER_MAX: f64 = 2.0;
/// The pause before a replacement that was refused is tried again.
const REPLACE_AGAIN: Duration = Duration::from_millis(500);
/// The server that is killed.
const DEAD: u64 = COUNT;

/// Measures, and adds the figures.
///
/// # Errors
/// A server does not start, or a call fails.
pub(super) async fn run(plan: &Plan<'_>, table: &mut Table) -> anyhow::Result<()> {
    let (scratch, shards) = (plan.scratch()?, plan.shards.unwrap_or(SHARDS));
    let servers = Servers::start(plan.binary, scratch.path(), Some(shards)).await?;
    let begun = Instant::now();
    load::park_at(&servers.addresses(), KEY, 0, plan.sessions).await.context("failed to park sessions")?;
    let gates = Gates::open(&servers, GATES).await?;
    eprintln!("{} sessions parked after {:.0} s", plan.sessions, begun.elapsed().as_secs_f64());
    table.add("growth: parked sessions", plan.sessions as f64, "", Bound::Shown);
    servers.lead(|group| group % COUNT + 1).await?;
    servers.caught_up().await?;
    let mut others = Others::start(&Product::at(&servers.addresses())?, CALLERS);
    sleep(SETTLE).await;
    drop(others.take().await?);
    sleep(QUIET).await;
    let quiet_ms = p99_ms(others.take().await?)?;
    eprintln!("p99 of {CALLERS} callers without a change: {quiet_ms:.2} ms");
    table.add("growth: p99 of other callers before", quiet_ms, "ms", Bound::Shown);
    let timers = Timers::start(&servers, TIMERS, TIMERS_WAIT).await?;
    let mut growth = Growth { servers, others, quiet_ms, table };
    let fourth = growth.join().await?;
    growth.drain(fourth).await?;
    growth.replace(fourth).await?;
    growth.afterwards(plan.sessions, gates, timers, fourth).await
}

/// The cluster while it changes.
struct Growth<'t> {
    servers: Servers,
    others: Others,
    /// The p99 of the other callers before all changes, milliseconds.
    quiet_ms: f64,
    table: &'t mut Table,
}

impl Growth<'_> {
    /// Lets a server join, and waits until it has its share. Returns its number.
    async fn join(&mut self) -> anyhow::Result<u64> {
        let number = self.servers.join().await?;
        drop(self.others.take().await?);
        let begun = Instant::now();
        self.servers.begin(number)?;
        let shared = self.servers.until(CHANGE_WAIT, |cluster| {
            share_of_voters(cluster, number) >= SHARE_MIN && share_of_leaders(cluster, number) >= SHARE_MIN
        });
        let took = shared.await.map(|()| begun.elapsed());
        self.report("joined: until it has a fifth", took).await?;
        let seen = self.servers.cluster().await?;
        for (what, share) in
            [("voters", share_of_voters(&seen, number)), ("leaders", share_of_leaders(&seen, number))]
        {
            let what = format!("joined: its share of the {what}");
            self.table.add(what, share, "", Bound::AtLeast(SHARE_MIN));
        }
        self.servers.ready(number).await?;
        Ok(number)
    }

    /// Drains a server, and waits until it has given back what it led and voted in.
    async fn drain(&mut self, number: u64) -> anyhow::Result<()> {
        drop(self.others.take().await?);
        let begun = Instant::now();
        self.servers.drain(number).await?;
        let given_back = self.servers.until(CHANGE_WAIT, |cluster| has_given_back(cluster, number)).await;
        self.report("drained: until it leads and votes nowhere", given_back.map(|()| begun.elapsed())).await
    }

    /// Kills a server, and waits until the spare one has replaced it.
    async fn replace(&mut self, spare: u64) -> anyhow::Result<()> {
        self.servers.activate(spare).await?;
        drop(self.others.take().await?);
        let begun = Instant::now();
        self.servers.kill(DEAD).await?;
        let replaced = self.replaced(spare, begun).await;
        self.report("killed: until another one has replaced it", replaced.map(|()| begun.elapsed())).await
    }

    /// Has the dead server replaced as soon as it counts as lost, and waits for that.
    async fn replaced(&self, spare: u64, begun: Instant) -> anyhow::Result<()> {
        while let Err(error) = self.servers.replace(DEAD, spare).await {
            anyhow::ensure!(begun.elapsed() < CHANGE_WAIT, "the dead server is not replaced: {error:#}");
            sleep(REPLACE_AGAIN).await;
        }
        eprintln!("the replacement was accepted after {:.1} s", begun.elapsed().as_secs_f64());
        let left = CHANGE_WAIT.saturating_sub(begun.elapsed());
        self.servers.until(left, |cluster| is_replaced(cluster, DEAD)).await
    }

    /// Adds how long a change took, and what other callers noticed meanwhile.
    async fn report(&mut self, what: &str, took: anyhow::Result<Duration>) -> anyhow::Result<()> {
        let p99_ms = p99_ms(self.others.take().await?)?;
        let (change, _) = what.split_once(':').context("a figure names its change first")?;
        match took {
            Ok(took) => {
                let took = took.as_secs_f64();
                eprintln!("{what}: {took:.1} s; p99 of other callers {p99_ms:.2} ms");
                self.table.add(what, took, "s", Bound::AtMost(CHANGE_MAX));
            }
            Err(error) => {
                eprintln!("{what}: {error:#}; p99 of other callers {p99_ms:.2} ms");
                self.table.fail(what, format!("{error:#}"));
            }
        }
        let most = self.quiet_ms * SLOWER_MAX;
        self.table.add(
            format!("{change}: p99 of other callers meanwhile"),
            p99_ms,
            "ms",
            Bound::AtMost(most),
        );
        Ok(())
    }

    /// Checks that the sessions that waited go on at the servers that are left.
    async fn afterwards(
        self,
        sessions: u64,
        gates: Gates,
        timers: Timers,
        fourth: u64,
    ) -> anyhow::Result<()> {
        self.others.stop().await?;
        let left = (1..=fourth).filter(|number| *number != DEAD);
        let left: Vec<String> = left.map(|number| self.servers.address(number)).collect();
        let pending = timers.pending(&left).await?;
        let mut all = |what: &str, value: usize, count: usize| {
            let what = format!("afterwards: {what}, of {count}");
            self.table.add(what, value as f64, "", Bound::AtLeast(count as f64));
        };
        // One that was due meanwhile says nothing about the time afterwards.
        all("timers still pending", pending, TIMERS);
        all("gates decided, sessions gone on", gates.decide(&left).await?, GATES);
        let answered = ANSWERED.min(sessions);
        load::probe_at(&left, KEY, sessions, answered).await.context("a parked session is not answered")?;
        let answered = usize::try_from(answered)?;
        all("parked sessions answered", answered, answered);
        eprintln!("waiting for the timers");
        all("timers fired in time", timers.fired(&left).await?, TIMERS);
        Ok(())
    }
}
