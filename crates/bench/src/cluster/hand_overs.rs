//! Planned hand-overs of a leader under calls: how long a call takes meanwhile, and whether one fails.

use std::time::{Duration, Instant};
use tokio::time::sleep;

use super::Plan;
use super::servers::{COUNT, Servers};
use super::table::{Bound, Table, median, worst};
use super::writers::{Ack, Product, Writers};

/// Callers, few enough that calls do not wait for each other.
const CALLERS: usize = 16;
/// How often a leader is handed over if nothing is said.
const ROUNDS: usize = 30;
/// The group that is handed over: the first that holds sessions.
const GROUP: u64 = 1;
/// How long calls are watched after a hand-over has returned, and before it for comparison.
const AFTER: Duration = Duration::from_millis(500);
const BEFORE: Duration = Duration::from_secs(1);
/// The longest that a call may take meanwhile, milliseconds.
const LONGEST_MAX_MS: f64 = 100.0;

/// Measures, and adds the figures.
///
/// # Errors
/// A server does not start, or a hand-over is refused.
pub(super) async fn run(plan: &Plan<'_>, table: &mut Table) -> anyhow::Result<()> {
    let rounds = plan.rounds.unwrap_or(ROUNDS);
    let scratch = plan.scratch()?;
    let servers = Servers::start(plan.binary, scratch.path(), plan.shards).await?;
    let mut writers = Writers::start(&Product::at(&servers.addresses())?, CALLERS);
    let (mut longest, mut without, mut failed) = (Vec::new(), Vec::new(), 0);
    for round in 1..=rounds {
        servers.caught_up().await?;
        failed += failures(&writers.take().await);
        sleep(BEFORE).await;
        let before = writers.take().await;
        anyhow::ensure!(
            before.iter().any(|acks| !acks.is_empty()),
            "no call was answered before the hand-over"
        );
        failed += failures(&before);
        let from = servers.leader(GROUP).await?;
        let (to, begun) = (from % COUNT + 1, Instant::now());
        servers.transfer(GROUP, from, to).await?;
        let took = begun.elapsed();
        sleep(AFTER).await;
        // A call that is still under way shows in no acknowledgement.
        writers.all_after(Instant::now()).await?;
        let acks = writers.take().await;
        failed += failures(&acks);
        // A server that did not lead when it was asked has handed nothing over, and says nothing.
        let leads = servers.leader(GROUP).await?;
        anyhow::ensure!(
            leads == to,
            "server {leads} leads after server {from} should have handed over to {to}"
        );
        without.push(longest_ms(&before));
        longest.push(longest_ms(&acks));
        eprintln!(
            "hand-over {round} of {rounds}: {:.0} ms; longest call {:.1} ms, {:.1} ms without it; {failed} failed so far",
            took.as_secs_f64() * 1e3,
            longest_ms(&acks),
            longest_ms(&before)
        );
    }
    failed += failures(&writers.take().await);
    writers.stop().await?;
    let what = "hand-over: longest call";
    table.add(format!("{what}, median of {rounds}"), median(&longest), "ms", Bound::Shown);
    table.add(format!("{what}, worst of {rounds}"), worst(&longest), "ms", Bound::AtMost(LONGEST_MAX_MS));
    table.add("longest call in a second without one, worst", worst(&without), "ms", Bound::Shown);
    table.add("hand-over: failed calls", failed as f64, "", Bound::AtMost(0.0));
    Ok(())
}

/// The calls that failed before they were acknowledged.
fn failures(acks: &[Vec<Ack>]) -> u64 {
    acks.iter().flatten().map(|ack| ack.failed).sum()
}

/// The longest that a call took, milliseconds.
fn longest_ms(acks: &[Vec<Ack>]) -> f64 {
    let longest = acks.iter().flatten().map(|ack| ack.done - ack.begun).max();
    longest.unwrap_or_default().as_secs_f64() * 1e3
}
