//! A thread that makes segments before they are needed and removes those that are free, so that the writer of the log
//! waits for neither.

use super::{
    ledger::Released,
    segment::{Blocks, Segment},
};
use crate::{
    StoreError,
    data_dir::LOG_BEGIN_MARKS,
    files::{failed, sync_dir},
    mark::Mark,
};
use parking_lot::Mutex;
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, Sender, channel},
    thread::{self, JoinHandle},
};

/// An order to the thread. Orders are executed one after the other.
enum Order {
    Make {
        number: u64,
        bytes: u64,
        blocks: Blocks,
        to: Sender<Result<Segment, StoreError>>,
    },
    Remove(Released),
    /// Answers true if all segments that were to be removed are gone.
    Settle(Sender<bool>),
}

/// The writer's side of the thread, which ends with it.
pub(super) struct Maker {
    folder: PathBuf,
    /// `None` only while it shuts down.
    orders: Option<Sender<Order>>,
    thread: Option<JoinHandle<()>>,
    ahead: Mutex<Option<Ahead>>,
}

/// A segment that was ordered ahead.
struct Ahead {
    number: u64,
    made: Receiver<Result<Segment, StoreError>>,
}

impl Maker {
    /// Starts the thread for a folder of segments. Before it removes a segment, it puts the first batch that stays
    /// into `begin`.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(super) fn start(folder: PathBuf, begin: Mark<LOG_BEGIN_MARKS>) -> Result<Self, StoreError> {
        let (orders, received) = channel();
        let thread = thread::Builder::new().name("log-segments".to_owned()).spawn({
            let folder = folder.clone();
            move || serve(&folder, &begin, &received)
        });
        let thread = Some(thread.map_err(failed("start the thread that creates log segments in", &folder))?);
        Ok(Self { folder, orders: Some(orders), thread, ahead: Mutex::default() })
    }

    /// Orders a segment, unless one with this number is ordered already.
    pub(super) fn order(&self, number: u64, bytes: u64, blocks: Blocks) {
        let mut ahead = self.ahead.lock();
        if ahead.as_ref().is_some_and(|ahead| ahead.number == number) {
            return;
        }
        let (to, made) = channel();
        self.send(Order::Make { number, bytes, blocks, to });
        *ahead = Some(Ahead { number, made });
    }

    /// Returns the segment with this number, of at least `bytes`: the one that was ordered, or one that is made now.
    ///
    /// # Errors
    /// If it cannot be made.
    pub(super) fn take(&self, number: u64, bytes: u64) -> Result<Segment, StoreError> {
        let ahead = self.ahead.lock().take().filter(|ahead| ahead.number == number);
        match ahead.map(|ahead| ahead.made.recv()) {
            Some(Ok(Ok(segment))) if segment.bytes >= bytes => Ok(segment),
            // Too small, failed, or not ordered: another one is made under the same name.
            Some(_) | None => Segment::make(&self.folder, number, bytes, Blocks::Written),
        }
    }

    /// Orders the removal of a segment. Readers that still hold it can go on reading.
    pub(super) fn remove(&self, released: Released) {
        self.send(Order::Remove(released));
    }

    /// Waits for all removals that were ordered. Returns false if one of them failed.
    pub(super) fn settle(&self) -> bool {
        let (to, settled) = channel();
        self.send(Order::Settle(to));
        settled.recv().unwrap_or(false)
    }

    fn send(&self, order: Order) {
        if let Some(orders) = &self.orders
            && orders.send(order).is_err()
        {
            tracing::error!("the thread that creates log segments has ended");
        }
    }
}

impl Drop for Maker {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that creates log segments panicked");
        }
    }
}

fn serve(folder: &Path, begin: &Mark<LOG_BEGIN_MARKS>, orders: &Receiver<Order>) {
    // Segments are removed in the order of their numbers, and one that cannot be removed keeps those after it: after
    // a crash the end of the log is left, without a gap.
    let mut removing = Vec::new();
    for order in orders {
        match order {
            Order::Make { number, bytes, blocks, to } => {
                // The writer may have ended.
                let _sent = to.send(Segment::make(folder, number, bytes, blocks));
            }
            Order::Remove(released) => {
                removing.push(released);
                remove_all(folder, begin, &mut removing);
            }
            Order::Settle(to) => {
                remove_all(folder, begin, &mut removing);
                let _sent = to.send(removing.is_empty());
            }
        }
    }
}

/// Removes segments from the first on, until one cannot be removed.
fn remove_all(folder: &Path, begin: &Mark<LOG_BEGIN_MARKS>, removing: &mut Vec<Released>) {
    while let Some(released) = removing.first() {
        if let Err(error) = remove(folder, begin, released) {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(error, "failed to remove a log segment; the next removal tries again");
            return;
        }
        removing.remove(0);
    }
}

fn remove(folder: &Path, begin: &Mark<LOG_BEGIN_MARKS>, released: &Released) -> Result<(), StoreError> {
    // Durable before the segment is gone: otherwise the next start would take it for a lost one.
    begin.write([released.begin])?;
    let path = &released.segment.path;
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", path)(error)),
        // Durable before the next one is removed.
        Ok(()) | Err(_) => sync_dir(folder),
    }
}
