//! SIGKILL and power cuts while a data folder is made.

use anyhow::Context as _;
use rand::Rng as _;
use std::path::Path;
use std::time::Duration;
use switchward_api::v1;

use crate::front::Front;
use crate::plan::{DEFINITION, Notes, Plan, deploy};
use crate::rig::Rig;
use crate::rig::disk::Disk;
use crate::rng::{Rng, setting};
use crate::scratch;
use crate::server::Host;
use crate::tenants::Tenant;

const NOTES: Notes = Notes { long_bytes: 1024, long_each: 8 };

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_start_that_was_killed_can_be_repeated() -> anyhow::Result<()> {
    let scratch = scratch::folder()?;
    killed(scratch.path(), Rng::of("first starts")).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_start_that_lost_its_power_can_be_repeated() -> anyhow::Result<()> {
    let scratch = scratch::folder()?;
    let rng = Rng::of("first starts and power cuts");
    match Rig::here(scratch.path())? {
        Rig::Loop => cut(scratch.path(), rng).await,
        Rig::Layer => {
            eprintln!(
                "the layer needs a data folder that is there already: more first starts are killed instead"
            );
            killed(scratch.path(), rng).await
        }
    }
}

async fn killed(scratch: &Path, mut rng: Rng) -> anyhow::Result<()> {
    let folders: u64 = setting("CRASH_FIRST_STARTS", 20);
    let host = Host::new(scratch, scratch.join("measured"));
    let usual = measured(&host).await?;
    let mut in_time = 0;
    for number in 0..folders {
        let host = host.on(scratch.join(format!("data-{number}")))?;
        let time = moment(&mut rng, usual, number, folders);
        in_time += u64::from(!host.spawn()?.killed_within(time).await?);
        serves(&host, rng.seed, number).await.with_context(|| format!("killed after {time:?}"))?;
        std::fs::remove_dir_all(host.data())?;
    }
    report(&host, folders, in_time, usual)
}

async fn cut(scratch: &Path, mut rng: Rng) -> anyhow::Result<()> {
    let folders: u64 = setting("CRASH_FIRST_STARTS", 20);
    let mut disk = Disk::on_files(scratch, "disk")?;
    let host = Host::new(scratch, disk.path().join("measured"));
    let usual = measured(&host).await?;
    let mut in_time = 0;
    for number in 0..folders {
        let name = format!("data-{number}");
        let time = moment(&mut rng, usual, number, folders);
        in_time += u64::from(!host.on(disk.path().join(&name))?.spawn()?.killed_within(time).await?);
        disk = disk.cut(&format!("disk-{number}"))?;
        let host = host.on(disk.path().join(&name))?;
        serves(&host, rng.seed, number).await.with_context(|| format!("cut after {time:?}"))?;
        std::fs::remove_dir_all(host.data())?;
    }
    report(&host, folders, in_time, usual)
}

/// When a start is ended: spread over the usual time of a start, and a little beyond. So some are early enough, even if the
/// measured one took longer than others.
fn moment(rng: &mut Rng, usual: Duration, number: u64, folders: u64) -> Duration {
    usual.mul_f64((number as f64 + rng.rng.random_range(0.0..1.0)) / folders as f64 * 1.1)
}

/// Measures the time of a first start here, which must not log anything.
async fn measured(host: &Host) -> anyhow::Result<Duration> {
    let server = host.start().await?;
    let usual = server.took;
    server.kill().await?;
    let said = host.said()?;
    anyhow::ensure!(said.is_empty(), "a first start said:\n{said}");
    Ok(usual)
}

/// Starts a server on what is left, and has it do something for two tenants.
async fn serves(host: &Host, seed: u64, number: u64) -> anyhow::Result<()> {
    let server = host.start().await?;
    let live = Front::found(&server.ready).await?.aside(&server.ready).await?;
    deploy(&live, DEFINITION).await?;
    let plan = Plan { seed, number, notes: NOTES };
    for tenant in Tenant::BOTH {
        let wire = live.agent(tenant, 0);
        let started = wire.sessions().start_session(wire.request(plan.start())).await?.into_inner();
        let session = started.session.context("a start was answered without a session")?;
        anyhow::ensure!(session.status() == v1::SessionStatus::Waiting, "it started as {session:?}");
    }
    server.kill().await
}

fn report(host: &Host, folders: u64, in_time: u64, usual: Duration) -> anyhow::Result<()> {
    eprintln!("first starts: {folders}, {in_time} ended before they were ready, usually after {usual:.0?}");
    anyhow::ensure!(in_time > 0, "no first start was ended in time");
    host.assert_sound()
}
