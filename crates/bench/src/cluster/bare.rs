//! The bare log on three processes: a leader that batches what it gets and sends each batch to two followers over tonic;
//! all three append it to a file and sync it, and a majority answers. No terms, no elections, no state.

mod replica;

use anyhow::Context as _;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};
use tonic::Status;

use crate::echo;
use crate::process::Server;
use replica::Follower;

/// Requests of one batch.
const BATCH_MAX: usize = 1_024;
/// Requests that wait for the next batch.
const QUEUE_MAX: usize = 4_096;
/// Batches that a slow replica may be behind.
const BEHIND_MAX: usize = 64;
/// Replicas that must have a batch.
const MAJORITY: usize = 2;

/// A request that waits for its batch.
struct Waiting {
    bytes: Vec<u8>,
    written: oneshot::Sender<()>,
}

/// A batch on its way to a replica.
#[derive(Clone)]
struct Batch {
    bytes: Arc<Vec<u8>>,
    /// Gets a message when the replica has it on disk.
    synced: mpsc::Sender<()>,
}

/// The leader's log.
pub(crate) struct Log {
    queue: mpsc::Sender<Waiting>,
}

impl Log {
    /// A log that writes to this file and to the followers at these addresses.
    ///
    /// # Errors
    /// The file cannot be created, or a follower cannot be reached.
    async fn open(file: &Path, followers: &[String]) -> anyhow::Result<Self> {
        let mut replicas = vec![own(File::create(file)?)];
        for address in followers {
            replicas.push(far(Follower::connect(address).await?));
        }
        let (queue, waiting) = mpsc::channel(QUEUE_MAX);
        tokio::spawn(batches(waiting, replicas));
        Ok(Self { queue })
    }

    /// Returns when a majority has these bytes on disk.
    ///
    /// # Errors
    /// UNAVAILABLE if the log has ended.
    pub(crate) async fn append(&self, bytes: Vec<u8>) -> Result<(), Status> {
        let ended = || Status::unavailable("the bare log has ended");
        let (written, done) = oneshot::channel();
        self.queue.send(Waiting { bytes, written }).await.map_err(|_| ended())?;
        done.await.map_err(|_| ended())
    }
}

/// Writes one batch after the other: what waits while one is written is the next.
async fn batches(mut queue: mpsc::Receiver<Waiting>, replicas: Vec<mpsc::Sender<Batch>>) {
    let mut waiting = Vec::new();
    while queue.recv_many(&mut waiting, BATCH_MAX).await > 0 {
        let bytes = waiting.iter().flat_map(|one: &Waiting| one.bytes.iter().copied()).collect();
        let (synced, mut answers) = mpsc::channel(replicas.len());
        let batch = Batch { bytes: Arc::new(bytes), synced };
        for replica in &replicas {
            // A replica that has ended does not answer, and if two have, nobody is answered.
            let _ended = replica.send(batch.clone()).await;
        }
        drop(batch);
        for _ in 0..MAJORITY {
            if answers.recv().await.is_none() {
                return;
            }
        }
        for one in waiting.drain(..) {
            // A caller that is gone needs no answer.
            let _gone = one.written.send(());
        }
    }
}

/// The leader's own replica: a thread, because syncs block.
fn own(mut file: File) -> mpsc::Sender<Batch> {
    let (sender, mut batches) = mpsc::channel::<Batch>(BEHIND_MAX);
    std::thread::spawn(move || {
        while let Some(batch) = batches.blocking_recv() {
            if write(&mut file, &batch.bytes).is_err() {
                return;
            }
            // The majority may have answered without this replica.
            let _late = batch.synced.blocking_send(());
        }
    });
    sender
}

/// A replica in another process.
fn far(mut follower: Follower) -> mpsc::Sender<Batch> {
    let (sender, mut batches) = mpsc::channel::<Batch>(BEHIND_MAX);
    tokio::spawn(async move {
        while let Some(batch) = batches.recv().await {
            if follower.append(batch.bytes.as_ref().clone()).await.is_err() {
                return;
            }
            // The majority may have answered without this replica.
            let _late = batch.synced.send(()).await;
        }
    });
    sender
}

/// Appends a batch and syncs it.
fn write(file: &mut File, bytes: &[u8]) -> std::io::Result<()> {
    file.write_all(bytes)?;
    file.sync_data()
}

/// Is a process of the bare log until it is killed: a follower, or the leader if it has followers.
///
/// # Errors
/// The file cannot be created, or a follower cannot be reached.
pub(crate) async fn serve(file: &Path, followers: &[String]) -> anyhow::Result<()> {
    if followers.is_empty() {
        return replica::serve(File::create(file)?).await;
    }
    echo::serve(Some(Log::open(file, followers).await?)).await
}

/// The three processes. They end with this value.
pub(crate) struct BareLog {
    pub(crate) leader: Server,
    _followers: [Server; 2],
}

impl BareLog {
    /// Starts them, with their files in this folder.
    ///
    /// # Errors
    /// One does not start.
    pub(crate) fn start(folder: &Path) -> anyhow::Result<Self> {
        let follower = |number: u8| Server::bare_follower(&folder.join(format!("bare-{number}.log")));
        let followers = [follower(2)?, follower(3)?];
        let [second, third] = &followers;
        let leader = Server::bare_leader(&folder.join("bare-1.log"), &[second, third])
            .context("failed to start the bare log")?;
        Ok(Self { leader, _followers: followers })
    }
}
