//! Injects the faults of a round, and makes sure that each had its effect.

use anyhow::{Context as _, ensure};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::sleep;

use super::calls::{Answer, Caller, Line, Repeat};
use super::harness::Cluster;
use super::plan::{Kind, SERVERS, Step};
use crate::disk::Unsynced;
use crate::site::Redis;

/// A fault that has no effect for so long was not injected.
const SEEN_MAX: Duration = Duration::from_secs(60);
/// How often its effect is looked for.
const LOOK: Duration = Duration::from_millis(50);
/// What is late, milliseconds, and what is slow, bytes in a second.
const DELAY: &str = "delay:150";
const SLOW: &str = "slow:20000";

/// A fault that was injected.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fired {
    pub(crate) name: &'static str,
    pub(crate) begun: Instant,
    pub(crate) ended: Instant,
}

/// Injects faults, one after the other.
///
/// # Errors
/// One had no effect.
pub(crate) async fn play(cluster: &Arc<Cluster>, steps: &[Step]) -> anyhow::Result<Vec<Fired>> {
    let mut fired = Vec::new();
    for step in steps {
        sleep(step.after).await;
        let begun = Instant::now();
        let injected = inject(cluster, step).await;
        injected.with_context(|| format!("the fault {:?} was not injected", step.name()))?;
        fired.push(Fired { name: step.name(), begun, ended: Instant::now() });
    }
    Ok(fired)
}

async fn inject(cluster: &Arc<Cluster>, step: &Step) -> anyhow::Result<()> {
    let Step { server, other, .. } = *step;
    match step.kind {
        Kind::KillOne => kill(cluster, &[server], step).await,
        Kind::KillLeader => kill(cluster, &[leader(cluster, step.group).await?], step).await,
        Kind::KillTwo => {
            let two: Vec<u64> = SERVERS.into_iter().filter(|one| *one != other).collect();
            kill(cluster, &two, step).await
        }
        Kind::KillAll => kill(cluster, &SERVERS, step).await,
        Kind::PowerCut => cut_power(cluster, &[server], step).await,
        Kind::PowerCutAll => cut_power(cluster, &SERVERS, step).await,
        Kind::Pause => pause(cluster, server, step).await,
        Kind::PauseLeader => pause(cluster, leader(cluster, step.group).await?, step).await,
        Kind::Stall => stall(cluster, server, step).await,
        Kind::StallLeader => stall(cluster, leader(cluster, step.group).await?, step).await,
        Kind::SyncError => fail_syncs(cluster, server, step, Unsynced::Present).await,
        Kind::SyncErrorLeader => {
            fail_syncs(cluster, leader(cluster, step.group).await?, step, Unsynced::Lost).await
        }
        Kind::ClockAhead => wrong_clock(cluster, step, step.wrong.ms()).await,
        Kind::ClockBehind => wrong_clock(cluster, step, -step.wrong.ms()).await,
        Kind::Isolate => {
            cluster.isolate(server).await?;
            links(cluster, step, "cut").await
        }
        Kind::Shatter => {
            for one in SERVERS {
                cluster.isolate(one).await?;
            }
            links(cluster, step, "cut").await
        }
        Kind::CutBoth => {
            cluster.link(server, other, "cut").await?;
            cluster.link(other, server, "cut").await?;
            links(cluster, step, "cut").await
        }
        Kind::OneDirection => {
            cluster.link(server, other, "cut-forth").await?;
            cluster.link(other, server, "cut-back").await?;
            links(cluster, step, "cut-forth").await
        }
        Kind::HalfLink => {
            cluster.link(server, other, "cut-back").await?;
            links(cluster, step, "cut-back").await
        }
        Kind::Delay => all_links(cluster, step, DELAY).await,
        Kind::Slow => all_links(cluster, step, SLOW).await,
        Kind::Reset => {
            cluster.link(server, other, "reset").await?;
            cluster.link(other, server, "reset").await?;
            links(cluster, step, "reset").await
        }
        Kind::RedisKill => kill_redis(cluster, step).await,
        Kind::RedisFlush => flush_redis(cluster).await,
    }
}

/// Waits until something is so.
async fn until(what: &str, mut holds: impl AsyncFnMut() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let begun = Instant::now();
    while !holds().await? {
        ensure!(begun.elapsed() < SEEN_MAX, "not so within {SEEN_MAX:?}: {what}");
        sleep(LOOK).await;
    }
    Ok(())
}

/// The server that leads a group.
async fn leader(cluster: &Arc<Cluster>, group: u64) -> anyhow::Result<u64> {
    let (mut caller, mut leader) = (Caller::person(cluster, group)?, None);
    until("a server leads", async || {
        if let Answer::Done(seen) = caller.insist(Repeat::All, Line::cluster).await {
            leader = seen.groups.iter().find(|one| one.number == group).and_then(|one| one.leader);
        }
        Ok(leader.is_some())
    })
    .await?;
    leader.context("a server leads")
}

/// Kills servers at one time, and starts them again.
async fn kill(cluster: &Cluster, servers: &[u64], step: &Step) -> anyhow::Result<()> {
    end(cluster, servers).await?;
    start_later(cluster, servers, step).await
}

/// Kills servers at one time, takes from their disks what was not synced, and starts them again.
async fn cut_power(cluster: &Cluster, servers: &[u64], step: &Step) -> anyhow::Result<()> {
    let disks = cluster.disks.as_ref().context("no disk can be cut off")?;
    servers.iter().try_for_each(|server| disks.plant(*server))?;
    end(cluster, servers).await?;
    let mut lost = false;
    for server in servers {
        lost |= disks.cut(*server)?;
    }
    ensure!(lost, "no disk has lost what was not synced");
    start_later(cluster, servers, step).await
}

/// Kills servers.
async fn end(cluster: &Cluster, servers: &[u64]) -> anyhow::Result<()> {
    for server in servers {
        cluster.kill(*server).await?;
    }
    for server in servers {
        let status = cluster.status(*server).await?;
        ensure!(status.pid.is_none(), "server {server} is {}", status.state);
    }
    Ok(())
}

/// Starts servers when the fault ends.
async fn start_later(cluster: &Cluster, servers: &[u64], step: &Step) -> anyhow::Result<()> {
    sleep(step.lasts).await;
    for server in servers {
        cluster.start_again(*server).await?;
    }
    Ok(())
}

/// Kills Redis, and starts it again with its append-only file.
async fn kill_redis(cluster: &Cluster, step: &Step) -> anyhow::Result<()> {
    let mut redis = cluster.redis.lock().await;
    something_in(&redis).await?;
    redis.kill().await?;
    ensure!(redis.keys().await.is_err(), "Redis still answers");
    sleep(step.lasts).await;
    redis.run().await?;
    ensure!(redis.keys().await? > 0, "Redis has nothing in its file");
    Ok(())
}

/// Waits until the servers have something in Redis: an earlier fault may have emptied it, with no server up since then.
async fn something_in(redis: &Redis) -> anyhow::Result<()> {
    until("the servers have something in Redis", async || Ok(redis.keys().await? > 0)).await
}

/// Deletes everything in Redis.
async fn flush_redis(cluster: &Cluster) -> anyhow::Result<()> {
    let redis = cluster.redis.lock().await;
    something_in(&redis).await?;
    redis.ask("FLUSHALL").await.map(drop)
}

/// The number of a server's process.
async fn pid(cluster: &Cluster, server: u64) -> anyhow::Result<u64> {
    let status = cluster.status(server).await?;
    status.pid.with_context(|| format!("server {server} has no process: {}", status.state))
}

async fn pause(cluster: &Cluster, server: u64, step: &Step) -> anyhow::Result<()> {
    let pid = pid(cluster, server).await?;
    cluster.pause(server).await?;
    until("the process is stopped", async || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
        Ok(stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T')))
    })
    .await?;
    sleep(step.lasts).await;
    cluster.resume(server).await
}

/// Holds all syncs of a server.
async fn stall(cluster: &Cluster, server: u64, step: &Step) -> anyhow::Result<()> {
    let pid = pid(cluster, server).await?;
    let before = cluster.held(pid);
    cluster.hold_syncs(pid)?;
    let held = until("a sync is held", async || Ok(cluster.held(pid) > before)).await;
    sleep(step.lasts).await;
    cluster.release_syncs()?;
    held
}

/// Lets all syncs of a server fail, makes sure that it ends by itself and says why, and starts it again as its supervisor would:
/// with all that it has written, or, where power can be cut, without what was not synced. A kernel may lose that after it has
/// reported the error.
async fn fail_syncs(cluster: &Cluster, server: u64, step: &Step, unsynced: Unsynced) -> anyhow::Result<()> {
    // One that has just been started again has not begun to serve.
    until("the server runs", async || Ok(cluster.status(server).await?.state == "running")).await?;
    let (pid, log_bytes) = (pid(cluster, server).await?, cluster.log_bytes()?);
    cluster.fail_syncs(pid)?;
    let ended = until("the server has ended", async || Ok(cluster.status(server).await?.pid.is_none())).await;
    cluster.forget(server);
    cluster.mend_syncs()?;
    ended?;
    ensure!(cluster.failed(pid) > 0, "no sync of server {server} has failed");
    let state = cluster.status(server).await?.state;
    ensure!(state == "exited with 1", "server {server} is {state:?} after a sync has failed");
    let mut why = None;
    until("the server has said why it ends", async || {
        why = cluster.why_ended(server, log_bytes)?;
        Ok(why.is_some())
    })
    .await?;
    let why = why.unwrap_or_default();
    ensure!(why.starts_with("failed to "), "server {server} ended with {why:?} after a sync has failed");
    if unsynced == Unsynced::Lost
        && let Some(disks) = &cluster.disks
    {
        disks.plant(server)?;
        ensure!(disks.cut(server)?, "the disk has not lost what was not synced");
    }
    start_later(cluster, &[server], step).await
}

/// Starts a server with another clock, makes sure that it is noticed and the server leads nothing, and starts it again with the
/// right one.
async fn wrong_clock(cluster: &Arc<Cluster>, step: &Step, ms: i64) -> anyhow::Result<()> {
    let server = step.server;
    cluster.kill(server).await?;
    cluster.set_clock_offset(ms)?;
    cluster.start_again(server).await?;
    let mut caller = Caller::person(cluster, server)?;
    let noticed = until("the other clock is noticed, and its server leads nothing", async || {
        let Answer::Done(seen) = caller.insist(Repeat::All, Line::cluster).await else { return Ok(false) };
        let one = seen.servers.iter().find(|one| one.number == server);
        let offset = one.and_then(|one| one.clock_offset_ms).unwrap_or(0);
        let is_off = offset.signum() == ms.signum() && offset.abs() > ms.abs() / 2;
        let leads = seen.groups.iter().any(|group| group.leader == Some(server));
        Ok(is_off && one.is_some_and(|one| one.clock_bars) && !leads)
    })
    .await;
    sleep(step.lasts).await;
    cluster.kill(server).await?;
    cluster.set_clock_offset(0)?;
    cluster.start_again(server).await?;
    noticed
}

/// Sets both links between a server and each of the others.
async fn all_links(cluster: &Cluster, step: &Step, mode: &str) -> anyhow::Result<()> {
    for other in SERVERS.into_iter().filter(|other| *other != step.server) {
        cluster.link(step.server, other, mode).await?;
        cluster.link(other, step.server, mode).await?;
    }
    links(cluster, step, mode).await
}

/// Waits as long as the links of a server are in this mode, and opens all links.
async fn links(cluster: &Cluster, step: &Step, mode: &str) -> anyhow::Result<()> {
    let shown = cluster.status(step.server).await?.links;
    sleep(step.lasts).await;
    cluster.heal().await?;
    ensure!(shown.contains(mode), "the links of server {} were: {shown}", step.server);
    Ok(())
}
