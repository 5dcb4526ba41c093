//! Deletes mail in quarantine that is kept no longer, again and again while the server runs.

use std::time::Duration;

use switchward_gateway::{Api, mail};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

/// How often the quarantine is swept.
const EVERY: Duration = Duration::from_secs(30);

/// The task that does it.
pub(crate) struct Sweeper {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Sweeper {
    /// Starts the task; its first sweep is at once.
    pub(crate) fn start(api: Api) -> Self {
        let (stop, stopped) = oneshot::channel();
        Self { stop, task: tokio::spawn(run(api, stopped)) }
    }

    /// Ends the task. A sweep that is under way is finished first: the next server of the data folder must find no file
    /// that is deleted under it.
    pub(crate) async fn stop(self) {
        // The receiver is gone if the task has ended.
        let _ = self.stop.send(());
        if let Err(error) = self.task.await {
            tracing::error!(%error, "the sweeper of the quarantine panicked");
        }
    }
}

async fn run(api: Api, mut stopped: oneshot::Receiver<()>) {
    let mut tick = interval(EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = &mut stopped => return,
            _ = tick.tick() => {}
        }
        let deleted = mail::sweep(&api).await;
        if deleted > 0 {
            tracing::info!(deleted, "deleted mail from the quarantine");
        }
    }
}
