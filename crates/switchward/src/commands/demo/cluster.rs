//! `switchward demo cluster`: an approval by mail while the leaders of a cluster of three servers are killed.
//!
//! The demo checks each response of the servers: if it succeeds, everything that it shows is true.

mod acts;
mod callers;
mod servers;
mod story;

use tempfile::TempDir;

use super::steps::Steps;
use crate::args::Output;
use crate::exit::Exit;
use crate::node::stopped_or_hung_up;
use servers::Servers;
use story::ClusterStory;

/// Plays the demo. At its end no process runs any more and the folder is deleted, whatever happened.
pub(super) fn run(scratch: TempDir, output: Output) -> Result<Steps, Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        // From now on, so that a signal never ends this process before its servers.
        let stop = stopped_or_hung_up();
        let mut servers = Servers::launch(scratch.path())?;
        let mut story = ClusterStory::new(output);
        let played = tokio::select! {
            played = story.play(&mut servers) => played,
            () = stop => Err(anyhow::anyhow!("interrupted").into()),
        };
        let ended = servers.stop().await;
        // A process that still wrote would make the folder come back.
        played?;
        ended?;
        scratch.close()?;
        story.end()
    })
}
