//! Power cuts: what was not synced is gone, what was acknowledged is not.

use anyhow::{Context as _, ensure};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use crate::book::Book;
use crate::crew::CALLERS;
use crate::front::Front;
use crate::kill::{HEAVY, Load, Times, was_purged};
use crate::plan::{DEFINITION, Notes, deploy};
use crate::rig::Rig;
use crate::rig::disk::{Disk, Unsynced};
use crate::rig::layer::Inside;
use crate::rng::{Rng, setting};
use crate::server::{Host, Ready};
use crate::verify::Look;
use crate::{scratch, verify};

/// Some answers cover several pages of the journal.
const LIGHT: Load = Load {
    callers: CALLERS,
    notes: Notes { long_bytes: 12 * 1024, long_each: 8 },
    steps: (1, 400),
    args: &[],
    look: Look::All,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_acknowledged_step_survives_power_cuts() -> anyhow::Result<()> {
    let rng = Rng::of("power cuts");
    let cuts: u32 = setting("CRASH_CUTS", 20);
    let scratch = scratch::folder()?;
    match Rig::here(scratch.path())? {
        Rig::Loop => by_loop(scratch.path(), rng, LIGHT, cuts).await.map(drop),
        Rig::Layer => by_layer(scratch.path(), rng, cuts).await,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_acknowledged_step_survives_power_cuts_while_the_log_is_purged() -> anyhow::Result<()> {
    let rng = Rng::of("power cuts under a purge");
    let cuts: u32 = setting("CRASH_HEAVY_CUTS", 12);
    let scratch = scratch::folder()?;
    match Rig::here(scratch.path())? {
        Rig::Loop => {
            let disk = by_loop(scratch.path(), rng, HEAVY, cuts).await?;
            was_purged(&disk.path().join("data"))
        }
        Rig::Layer => {
            eprintln!(
                "the layer is under the log alone, and a purge is about the rows, too: no purge is played"
            );
            by_layer(scratch.path(), rng, cuts).await
        }
    }
}

/// Returns the disk that is left after the last cut; no server is left.
async fn by_loop(scratch: &Path, mut rng: Rng, load: Load, cuts: u32) -> anyhow::Result<Disk> {
    let mut disk = Disk::on_files(scratch, "disk-0")?;
    let host = Host::new(scratch, disk.path().join("data")).with(load.args);
    let book = Book::new(rng.seed, load.notes);
    let mut server = host.start().await?;
    let front = Front::found(&server.ready).await?;
    let live = front.aside(&server.ready).await?;
    deploy(&live, DEFINITION).await?;
    front.show(live);
    let mut crew = book.callers(&front, load.callers);
    let (begun, mut lost, mut copies, mut starts) = (Instant::now(), 0, Times::default(), Times::default());
    for cut in 1..=cuts {
        disk.plant_synced()?;
        crew.until(book.steps.now() + load.drawn(&mut rng)).await?;
        disk.plant_unsynced()?;
        front.close();
        server.kill().await?;
        let copying = Instant::now();
        disk = disk.cut(&format!("disk-{cut}"))?;
        copies.add(copying.elapsed());
        lost += u32::from(disk.harvest()? == Unsynced::Lost);
        server = host.on(disk.path().join("data"))?.start().await?;
        starts.add(server.took);
        eprintln!("  cut {cut} of {cuts}, {:.1?}", begun.elapsed());
        let live = front.aside(&server.ready).await?;
        verify::meanwhile(&book, &live, load.look).await?;
        front.show(live);
    }
    book.close();
    crew.finish().await?;
    ensure!(lost > 0, "no file was lost that was not synced: this rig proves nothing");
    let counted = verify::the_end(&book, &front.live().await?).await?;
    eprintln!(
        "power cuts: {cuts}, in {lost} of which the file that was not synced was lost, and in none the one that \
         was; {} steps, {counted}, copies {}, starts {}, {:.1?} in all",
        book.steps.now(),
        copies.summary(),
        starts.summary(),
        begun.elapsed()
    );
    server.kill().await?;
    host.assert_sound()?;
    Ok(disk)
}

async fn by_layer(scratch: &Path, mut rng: Rng, cuts: u32) -> anyhow::Result<()> {
    let book = Book::new(rng.seed, LIGHT.notes);
    let mut host = Host::new(scratch, scratch.join("data-0"));
    let (mut ready, front) = prepared(&host).await?;
    let begun = Instant::now();
    let mut lost = 0;
    let mut crew = None;
    for cut in 1..=cuts {
        let image = scratch.join(format!("data-{cut}"));
        let inside = Inside::open(host.data(), &image).await?;
        ready.address.clone_from(&inside.address);
        front.open(&ready).await?;
        let crew = crew.get_or_insert_with(|| book.callers(&front, CALLERS));
        crew.until(book.steps.now() + LIGHT.drawn(&mut rng)).await?;
        inside.cut().await?;
        front.close();
        let (line, fewer) = inside.end().await?;
        ensure!(line.contains("the power is cut"), "the log was lost for another reason: {line}");
        lost += u32::from(fewer);
        std::fs::remove_dir_all(host.data())?;
        host = host.on(image)?;
        eprintln!("  cut {cut} of {cuts}, {:.1?}", begun.elapsed());
        looked_at(&host, &front, &book).await?;
    }
    ensure!(lost > 0, "no batch was lost that was not synced: this rig proves nothing");
    book.close();
    let server = host.start().await?;
    front.open(&server.ready).await?;
    crew.context("no cut was made")?.finish().await?;
    let counted = verify::the_end(&book, &front.live().await?).await?;
    eprintln!(
        "power cuts: {cuts}, in {lost} of which a batch that was not synced was lost; {} steps, {counted}, {:.1?} in \
         all",
        book.steps.now(),
        begun.elapsed()
    );
    host.assert_sound()
}

/// Lets the real server make a data folder with keys and the definition, for a server inside this process.
pub(crate) async fn prepared(host: &Host) -> anyhow::Result<(Ready, Arc<Front>)> {
    let server = host.start().await?;
    let front = Front::found(&server.ready).await?;
    let live = front.aside(&server.ready).await?;
    deploy(&live, DEFINITION).await?;
    let ready = server.ready.clone();
    server.kill().await?;
    Ok((ready, front))
}

/// Lets the real server show what is there, while callers wait.
pub(crate) async fn looked_at(host: &Host, front: &Front, book: &Arc<Book>) -> anyhow::Result<()> {
    let server = host.start().await?;
    let live = front.aside(&server.ready).await?;
    verify::meanwhile(book, &live, Look::All).await?;
    server.kill().await
}
