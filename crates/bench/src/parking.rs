//! Parked sessions: what each costs in memory and on disk while it waits for its next answer, and how soon all of them are
//! available again after a kill.

use anyhow::Context as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::load::{self, Shape, deploy, park, probe};
use crate::process::Server;

/// The load before anything is parked.
const WARM_UP: Shape = Shape { callers: 64, connections: 8, time: Duration::from_secs(20) };
/// The first look at memory and disk, sessions.
const FIRST: u64 = 20_000;
/// Memory that one more parked session may cost, bytes.
pub(crate) const MEMORY_BYTES_MAX: f64 = 200.0;
/// Disk that one more parked session may cost, bytes.
pub(crate) const DISK_BYTES_MAX: f64 = 2_048.0;
/// From the start of the killed server's successor to its answers.
const RESTART_MAX: Duration = Duration::from_secs(5);
/// A server is at rest if it uses less than this share of a core, and its memory changes by less than this, for `RESTS`
/// looks in a row: longer than the allocator keeps free pages, 10 s.
const IDLE_SHARE: f64 = 0.05;
const STABLE_BYTES: u64 = 1 << 20;
const REST: Duration = Duration::from_secs(2);
const RESTS: u32 = 7;
const RESTS_MAX: u32 = 60;
/// Sessions, spread over all, that are answered after the restart.
const ANSWERED: u64 = 64;

/// The memory and disk of a number of parked sessions.
pub(crate) struct Look {
    pub(crate) memory: u64,
    pub(crate) disk: u64,
}

impl Look {
    /// Looks once the server is at rest: what it writes and frees before belongs to the load, not to the sessions.
    pub(crate) async fn take(server: &Server, data: &Path) -> anyhow::Result<Self> {
        let (mut before, mut rests) = (server.used()?, 0);
        for _ in 0..RESTS_MAX {
            tokio::time::sleep(REST).await;
            let now = server.used()?;
            let idle = now.0 - before.0 < REST.as_secs_f64() * IDLE_SHARE;
            let stable = now.1.abs_diff(before.1) < STABLE_BYTES;
            rests = if idle && stable { rests + 1 } else { 0 };
            if rests == RESTS {
                return Ok(Self { memory: now.1, disk: disk(data)? });
            }
            before = now;
        }
        anyhow::bail!("the server did not become idle within {} s", (REST * RESTS_MAX).as_secs())
    }
}

/// Measures, prints, and fails if a session costs too much or the restart takes too long.
pub(crate) async fn run(binary: &Path, folder: &Path, sessions: u64) -> anyhow::Result<()> {
    anyhow::ensure!(sessions > FIRST, "the first measurement is at {FIRST} sessions; park more");
    let data = folder.join("data");
    let server = Server::switchward(binary, folder, None)?;
    deploy(&server).await?;
    // Buffers, caches and the allocator grow with the load, whatever is parked: that comes first.
    load::run(&server, WARM_UP, load::Work::Gate).await?;
    let begun = Instant::now();
    park(&server, 0, FIRST).await?;
    let first = Look::take(&server, &data).await?;
    print(FIRST, &first, begun);
    park(&server, FIRST, sessions).await?;
    let second = Look::take(&server, &data).await?;
    print(sessions, &second, begun);
    drop(server);
    let begun = Instant::now();
    let server = Server::switchward(binary, folder, None).context("the server did not start again")?;
    let ready = begun.elapsed();
    probe(&server, sessions, ANSWERED).await?;
    let answered = begun.elapsed();
    let again = Look::take(&server, &data).await?;
    println!(
        "killed and started: ready after {:.2} s, {ANSWERED} sessions answered after {:.2} s, {} MiB in memory",
        ready.as_secs_f64(),
        answered.as_secs_f64(),
        again.memory >> 20
    );
    let more = (sessions - FIRST) as f64;
    let memory = (second.memory as f64 - first.memory as f64) / more;
    let disk = (second.disk as f64 - first.disk as f64) / more;
    println!("one more parked session: {memory:.0} bytes of memory, {disk:.0} bytes of disk");
    anyhow::ensure!(
        memory < MEMORY_BYTES_MAX,
        "a session may use at most {MEMORY_BYTES_MAX} bytes of memory"
    );
    anyhow::ensure!(disk < DISK_BYTES_MAX, "a session may use at most {DISK_BYTES_MAX} bytes of disk");
    anyhow::ensure!(answered < RESTART_MAX, "the restart may take at most {} s", RESTART_MAX.as_secs());
    Ok(())
}

fn print(sessions: u64, look: &Look, begun: Instant) {
    println!(
        "{sessions:>8} parked after {:>5.1} s: {:>4} MiB in memory, {:>4} MiB on disk",
        begun.elapsed().as_secs_f64(),
        look.memory >> 20,
        look.disk >> 20
    );
}

/// Bytes that a folder uses on disk: files may be longer than the part that is written.
pub(crate) fn disk(folder: &Path) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let about = match entry.metadata() {
            Ok(about) => about,
            // The server removes files meanwhile.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error.into()),
        };
        bytes += if about.is_dir() { disk(&entry.path())? } else { about.blocks() * 512 };
    }
    Ok(bytes)
}
