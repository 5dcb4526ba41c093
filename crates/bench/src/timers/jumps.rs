//! Timers while the machine's clock jumps and the process is stopped, with all the others pending: none is early, none is
//! fired twice, and none of the pending ones is fired.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use tokio::time::sleep;

use super::{Client, PATIENCE, fired};
use crate::process::Server;

const DEFINITION: &str = "nap-jumps";
/// Timers that fall due, and how long each waits: longer than it takes to start them.
const TIMERS: u64 = 10_000;
const WAIT_MS: u64 = 36_000;
/// How far the clock is off, milliseconds: while the timers begin, and from one look to the next.
const BEHIND: i64 = -3_600_000;
const AHEAD: i64 = 3_600_000;
const JUMPS: [i64; 4] = [AHEAD, 0, BEHIND, AHEAD];
/// The pause between looks, and for how long the process is stopped.
const LOOK: Duration = Duration::from_millis(20);
const STOPPED: Duration = Duration::from_secs(3);

/// The clock that the server uses as the machine's.
struct Clock(PathBuf);

impl Clock {
    fn jump(&self, by_ms: i64) -> anyhow::Result<()> {
        std::fs::write(&self.0, by_ms.to_string()).context("failed to move the clock")
    }
}

/// Kills the server that has all the pending timers, starts it with a clock that jumps, and lets timers fall due.
pub(super) async fn run(server: Server, binary: &Path, folder: &Path, pending: u64) -> anyhow::Result<()> {
    drop(server);
    let clock = Clock(folder.join("clock-off"));
    clock.jump(0)?;
    let server = Server::with_clock(binary, folder, &clock.0).context("the server did not start again")?;
    let client = Client::connect(&server).await?;
    client.deploy(DEFINITION, WAIT_MS).await?;
    clock.jump(BEHIND)?;
    let begun = Instant::now();
    let sent = client.start_recorded(DEFINITION, TIMERS).await?;
    let wait = Duration::from_millis(WAIT_MS);
    anyhow::ensure!(begun.elapsed() < wait, "the sessions were started too slowly");
    stand_still(&server, &clock).await?;
    let mut stops = 1;
    for jump in JUMPS.iter().cycle() {
        let done = look(&server, &sent, wait).await?;
        if done >= TIMERS {
            break;
        }
        anyhow::ensure!(begun.elapsed() < wait + PATIENCE, "only {done} of {TIMERS} timers were fired");
        if stops == 1 && done > 0 {
            stand_still(&server, &clock).await?;
            stops += 1;
        }
        clock.jump(*jump)?;
        sleep(LOOK).await;
    }
    // Checks the log, too; timers that were fired twice or by mistake would be counted by now.
    client.stamps(DEFINITION, TIMERS, WAIT_MS).await?;
    let done = look(&server, &sent, wait).await?;
    anyhow::ensure!(done == TIMERS, "{done} timers were fired, {TIMERS} were due");
    println!(
        "{TIMERS} timers under a clock that jumps by an hour and a process that is stopped {stops} times: none early, none \
         twice, none of {pending} pending ones"
    );
    Ok(())
}

/// Stops the process, lets the clock jump meanwhile, and continues the process.
async fn stand_still(server: &Server, clock: &Clock) -> anyhow::Result<()> {
    server.signal("-STOP")?;
    clock.jump(BEHIND)?;
    sleep(STOPPED).await;
    clock.jump(AHEAD)?;
    server.signal("-CONT")
}

/// Returns how many were fired, and checks that none was early.
async fn look(server: &Server, sent: &[Instant], wait: Duration) -> anyhow::Result<u64> {
    let done = fired(server).await?;
    let now = Instant::now();
    let due = sent.partition_point(|sent| *sent + wait <= now);
    anyhow::ensure!(
        done <= u64::try_from(due)?,
        "{done} timers were fired, but only {due} could be due: one was early"
    );
    Ok(done)
}

impl Client {
    /// Starts sessions; returns when each start was sent, in this order.
    async fn start_recorded(&self, definition: &'static str, count: u64) -> anyhow::Result<Vec<Instant>> {
        let sent = Arc::new(Mutex::new(Vec::new()));
        let times = Arc::clone(&sent);
        self.start(definition, 0, count, move || times.lock().expect("nobody panics").push(Instant::now()))
            .await?;
        let mut sent = std::mem::take(&mut *sent.lock().map_err(|_| anyhow::anyhow!("a task panicked"))?);
        sent.sort();
        Ok(sent)
    }
}
