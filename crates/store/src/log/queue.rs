use super::{Done, Meta};
use crate::{
    GroupId, LogRecord, StoreError,
    limits::{LOG_BATCH_BYTES_MAX, LOG_QUEUE_BYTES_MAX, LOG_QUEUE_OPS_MAX},
};
use bytes::Bytes;
use parking_lot::{Condvar, Mutex};
use std::{collections::VecDeque, ops::RangeInclusive};

/// The writes of one call, and its callback.
pub(super) struct Operation {
    pub(super) group: GroupId,
    /// Its number within the group.
    pub(super) number: u64,
    /// The writes, or why the call was refused.
    pub(super) writes: Result<Vec<Write>, StoreError>,
    pub(super) done: Done,
    /// The capacity that was reserved for it.
    pub(super) bytes: usize,
}

pub(super) enum Write {
    Record(LogRecord),
    Meta(Meta, Bytes),
    Remove(RangeInclusive<u64>),
    /// Another segment is begun.
    Begin,
    /// Some records are moved out of the oldest segment, if its number is lower than this.
    Move(u64),
}

/// The queue between the callers and the writer. Callers reserve capacity before they take any lock that the writer
/// needs, so that waiting for capacity cannot keep the writer from freeing it.
#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    filled: Condvar,
    drained: Condvar,
}

#[derive(Default)]
struct State {
    operations: VecDeque<Operation>,
    reserved: usize,
    reserved_bytes: usize,
    closed: bool,
}

impl Queue {
    /// Waits for capacity for one operation. A lone operation always fits.
    pub(super) fn reserve(&self, bytes: usize) {
        let mut state = self.state.lock();
        while state.reserved >= LOG_QUEUE_OPS_MAX
            || (state.reserved > 0 && state.reserved_bytes + bytes > LOG_QUEUE_BYTES_MAX)
        {
            self.drained.wait(&mut state);
        }
        state.reserved += 1;
        state.reserved_bytes += bytes;
    }

    /// Queues an operation for which capacity was reserved.
    pub(super) fn push(&self, operation: Operation) {
        self.state.lock().operations.push_back(operation);
        self.filled.notify_one();
    }

    /// Everything queued, up to the size of a batch; waits for the first operation. Empty once closed and drained.
    pub(super) fn take(&self) -> Vec<Operation> {
        let mut state = self.state.lock();
        while state.operations.is_empty() && !state.closed {
            self.filled.wait(&mut state);
        }
        let (mut taken, mut bytes) = (Vec::new(), 0);
        while bytes < LOG_BATCH_BYTES_MAX
            && let Some(operation) = state.operations.pop_front()
        {
            bytes += operation.bytes;
            taken.push(operation);
        }
        state.reserved -= taken.len();
        state.reserved_bytes -= bytes;
        self.drained.notify_all();
        taken
    }

    /// Returns true if nothing more comes.
    pub(super) fn is_closed(&self) -> bool {
        self.state.lock().closed
    }

    /// Lets the writer end after what is queued.
    pub(super) fn close(&self) {
        self.state.lock().closed = true;
        self.filled.notify_one();
    }
}
