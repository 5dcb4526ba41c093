//! `switchward demo`: plays an agent and a person at a deploy gate against this program as a separate server, only
//! through the public API. `switchward demo cluster` does so with three servers, of which it kills two.
//!
//! The demo checks each response of the server: if it succeeds, everything that it shows is true.

mod cluster;
mod history;
mod mail;
mod narrator;
mod server;
mod steps;
mod story;
mod webhooks;

use std::fs;
use std::path::{Path, PathBuf};
use steps::Steps;
use story::Story;

use crate::args::{DemoArgs, DemoCommand, Output};
use crate::exit::Exit;
use crate::node::stopped_or_hung_up;
use crate::output::print;

/// The definition that the demo plays.
const DEPLOY_GATE: &[u8] =
    include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/gallery/deploy-gate/deploy-gate.json"));

/// Plays the demo.
pub(crate) fn run(args: &DemoArgs, output: Output) -> Result<(), Exit> {
    play_and_print(args, output).map_err(|exit| exit.in_format(output))
}

fn play_and_print(args: &DemoArgs, output: Output) -> Result<(), Exit> {
    let scratch = tempfile::Builder::new().prefix("switchward-demo-").tempdir()?;
    if let Some(DemoCommand::Cluster) = args.what {
        return print_steps(&cluster::run(scratch, output)?, output);
    }
    let data = match &args.data_dir {
        Some(folder) => empty(folder)?,
        None => scratch.path().join("data"),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let steps = runtime.block_on(async {
        // From now on, so that a signal never ends this process before its server.
        let stop = stopped_or_hung_up();
        // Interrupted, the story is dropped, and its server with it.
        tokio::select! {
            played = play(scratch.path(), &data, output) => played,
            () = stop => Err(anyhow::anyhow!("interrupted").into()),
        }
    })?;
    if let Some(file) = &args.steps_json {
        fs::write(file, steps.json())?;
    }
    print_steps(&steps, output)
}

/// Prints the steps for a program; a person has read them already.
fn print_steps(steps: &Steps, output: Output) -> Result<(), Exit> {
    match output {
        Output::Text => Ok(()),
        Output::Json => print(&steps.json()),
        Output::Jsonl => print(&steps.lines()),
    }
}

async fn play(scratch: &Path, data: &Path, output: Output) -> Result<Steps, Exit> {
    let mut story = Story::open(scratch, data, output).await?;
    story.deploy().await?;
    story.start().await?;
    story.limit().await?;
    story.ask().await?;
    story.kill().await?;
    story.approve().await?;
    story.mail().await?;
    story.integrator().await?;
    story.answer().await?;
    story.notified_by_webhook().await?;
    story.history().await?;
    story.end().await
}

/// Returns the folder if it is empty or does not exist.
fn empty(folder: &Path) -> Result<PathBuf, Exit> {
    let holds_something = fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    if holds_something {
        return Err(Exit::usage(format!(
            "{} is not empty; the demo needs a new or empty folder",
            folder.display()
        )));
    }
    Ok(folder.to_owned())
}
