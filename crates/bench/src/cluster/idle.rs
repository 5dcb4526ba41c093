//! What the servers of a cluster take while nobody calls them.

use std::time::Duration;
use tokio::time::sleep;

use super::Plan;
use super::servers::Servers;
use super::table::{Bound, Table};
use crate::process::used;

/// How long the servers rest first: what they do at their start is none of it.
const SETTLE: Duration = Duration::from_secs(20);
/// How long they are watched.
const WATCHED: Duration = Duration::from_secs(30);
/// The most of a core, percent, and of memory, MB of 1,000,000 bytes, that a server may take.
const CPU_MAX: f64 = 3.0;
const MEMORY_MAX: f64 = 150.0;

/// Measures each server, and adds the figures.
///
/// # Errors
/// A server does not start, or ends.
pub(super) async fn run(plan: &Plan<'_>, table: &mut Table) -> anyhow::Result<()> {
    let scratch = plan.scratch()?;
    let servers = Servers::start(plan.binary, scratch.path(), plan.shards).await?;
    eprintln!("watching three idle servers for {} s", WATCHED.as_secs());
    sleep(SETTLE).await;
    let mut before = Vec::new();
    for (number, process) in servers.processes()? {
        before.push((number, process, used(process)?));
    }
    sleep(WATCHED).await;
    for (number, process, (cpu_before, _)) in before {
        let (cpu, memory) = used(process)?;
        let percent = (cpu - cpu_before) * 100.0 / WATCHED.as_secs_f64();
        table.add(format!("idle server {number}: CPU"), percent, "% of a core", Bound::AtMost(CPU_MAX));
        let mb = memory as f64 / 1_000_000.0;
        table.add(format!("idle server {number}: memory"), mb, "MB", Bound::AtMost(MEMORY_MAX));
    }
    Ok(())
}
