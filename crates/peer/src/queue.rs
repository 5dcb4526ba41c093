//! What waits to be written to a connection.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::task::Poll;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use crate::frame::Frame;
use crate::request::Traffic;
use crate::wire::{WireError, Writer};

/// Where frames wait. It has no limit of its own: each frame in it holds a part of a [`Capacity`].
pub(crate) type Queue = UnboundedSender<Out>;

/// A frame that waits to be written.
#[derive(Debug)]
pub(crate) struct Out {
    pub(crate) frame: Frame,
    /// Whether it was written, for one who waits for its answer.
    pub(crate) progress: Option<Arc<Progress>>,
    /// What it holds while it waits.
    pub(crate) _held: Option<Arc<Held>>,
}

/// Whether a request was written.
#[derive(Debug, Default)]
pub(crate) struct Progress(AtomicU8);

const QUEUED: u8 = 0;
const WRITTEN: u8 = 1;
const CANCELLED: u8 = 2;

impl Progress {
    /// The request is written from now on. Returns false if it was cancelled.
    fn begin(&self) -> bool {
        self.0.compare_exchange(QUEUED, WRITTEN, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Keeps the request from being written. Returns false if it is too late.
    pub(crate) fn cancel(&self) -> bool {
        self.0.compare_exchange(QUEUED, CANCELLED, Ordering::AcqRel, Ordering::Acquire) != Err(WRITTEN)
    }
}

/// How many requests, and how many bytes of them, can be under way.
#[derive(Debug)]
pub(crate) struct Capacity {
    requests: AtomicUsize,
    bytes: AtomicUsize,
    requests_max: usize,
    bytes_max: usize,
}

/// A request that counts until the last clone is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    of: Arc<Capacity>,
    bytes: usize,
}

impl Capacity {
    pub(crate) fn new(requests_max: usize, bytes_max: usize) -> Arc<Self> {
        Arc::new(Self { requests: AtomicUsize::new(0), bytes: AtomicUsize::new(0), requests_max, bytes_max })
    }

    /// Counts a request.
    ///
    /// # Errors
    /// There are too many, or they have too many bytes. The first one may have any number.
    pub(crate) fn take(self: &Arc<Self>, bytes: usize) -> Result<Arc<Held>, String> {
        let held = Held { of: Arc::clone(self), bytes };
        let requests = self.requests.fetch_add(1, Ordering::Relaxed);
        let total = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if requests >= self.requests_max {
            return Err(format!("{requests} requests are under way"));
        }
        if requests > 0 && total > self.bytes_max {
            return Err(format!("requests with {} bytes are under way", total - bytes));
        }
        Ok(Arc::new(held))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.of.requests.fetch_sub(1, Ordering::Relaxed);
        self.of.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Writes what comes into the queue, in order, and gives it to the network when nothing more waits. Returns when the
/// connection has ended.
pub(crate) async fn write_queue(
    mut writer: Writer,
    mut queue: UnboundedReceiver<Out>,
    traffic: Traffic,
) -> WireError {
    while let Some(first) = queue.recv().await {
        // What sends on other connections runs on other threads, and goes on meanwhile.
        if traffic == Traffic::Commands {
            after_ready_tasks().await;
        }
        let mut next = Some(first);
        while let Some(out) = next {
            let wanted = out.progress.as_ref().is_none_or(|progress| progress.begin());
            if wanted && let Err(error) = writer.send(&out.frame).await {
                return error;
            }
            drop(out);
            next = queue.try_recv().ok();
        }
        if let Err(error) = writer.flush().await {
            return error;
        }
    }
    WireError::Closed
}

/// Lets the tasks run that are ready on this thread: what they send goes out in one write.
async fn after_ready_tasks() {
    let mut waited = false;
    poll_fn(|context| {
        if std::mem::replace(&mut waited, true) {
            return Poll::Ready(());
        }
        // Woken while it runs, a task is put behind those that are ready.
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacity_is_given_back_also_by_what_was_refused() {
        let capacity = Capacity::new(2, 10);
        let first = capacity.take(11).unwrap();
        assert_eq!(capacity.take(1).unwrap_err(), "requests with 11 bytes are under way");
        drop(first);
        let held = [capacity.take(5).unwrap(), capacity.take(5).unwrap()];
        assert_eq!(capacity.take(0).unwrap_err(), "2 requests are under way");
        drop(held);
        assert!(capacity.take(10).is_ok());
    }

    #[tokio::test]
    async fn what_ready_tasks_send_is_there_after_them() {
        let (sender, sent) = tokio::sync::mpsc::unbounded_channel();
        for number in 0..3 {
            let sender = sender.clone();
            tokio::spawn(async move { sender.send(number) });
        }
        assert_eq!(sent.len(), 0);
        after_ready_tasks().await;
        assert_eq!(sent.len(), 3);
    }

    #[test]
    fn a_request_is_either_cancelled_or_written() {
        let progress = Progress::default();
        assert!(progress.begin() && !progress.cancel() && !progress.begin());
        let progress = Progress::default();
        assert!(progress.cancel() && progress.cancel() && !progress.begin());
    }
}
