use super::frame::OPERATION_HEAD_BYTES;
use crate::{
    GroupId, LogRecord, Meta, StoreError,
    limits::{LOG_RECORD_BYTES_MAX, LOG_TAIL_BYTES_MAX},
};
use bytes::Bytes;
use std::{
    collections::VecDeque,
    ops::{Range, RangeInclusive},
};

/// The disk space of a record beyond its bytes.
const RECORD_OVERHEAD: u64 = OPERATION_HEAD_BYTES as u64;

/// One group's log as its callers see it, ahead of the disk: the size of every record, the bytes of the last.
///
/// Records on disk and not in the tail were written by a finished operation, so that a reader finds in one of
/// the two whatever the view says exists.
#[derive(Default)]
pub(super) struct View {
    first: u64,
    sizes: VecDeque<u32>,
    bytes: u64,
    tail: VecDeque<Tailed>,
    tail_bytes: usize,
    metas: [Option<Bytes>; 3],
    operations: u64,
}

struct Tailed {
    operation: u64,
    bytes: Bytes,
}

impl View {
    /// Restores a group from its files: the first index, the sizes of all records, and the bytes of the last ones.
    pub(super) fn restored(
        metas: [Option<Bytes>; 3],
        first: u64,
        sizes: VecDeque<u32>,
        tail: Vec<Bytes>,
    ) -> Self {
        View {
            first,
            bytes: sizes.iter().map(|size| u64::from(*size)).sum(),
            sizes,
            tail_bytes: tail.iter().map(Bytes::len).sum(),
            tail: tail.into_iter().map(|bytes| Tailed { operation: 0, bytes }).collect(),
            metas,
            operations: 0,
        }
    }

    /// The number of the next operation; later operations have higher ones.
    pub(super) fn next_operation(&mut self) -> u64 {
        self.operations += 1;
        self.operations
    }

    pub(super) fn meta(&self, slot: Meta) -> Option<Bytes> {
        self.metas[slot as usize].clone()
    }

    pub(super) fn set_meta(&mut self, slot: Meta, bytes: Bytes) {
        self.metas[slot as usize] = Some(bytes);
    }

    pub(super) fn first_last(&self) -> Option<(u64, u64)> {
        (!self.sizes.is_empty()).then(|| (self.first, self.next() - 1))
    }

    /// Bytes of the records that exist, with their heads.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes + RECORD_OVERHEAD * self.sizes.len() as u64
    }

    /// Records of `range`, and their bytes, with their heads.
    pub(super) fn stretch(&self, range: Range<u64>) -> (u64, u64) {
        let end = range.end.min(self.next());
        let start = range.start.clamp(self.first, end.max(self.first));
        let at = |index: u64| usize::try_from(index - self.first).unwrap_or(usize::MAX);
        let sizes = self.sizes.range(at(start)..at(end.max(start)));
        (end.saturating_sub(start), sizes.map(|size| RECORD_OVERHEAD + u64::from(*size)).sum())
    }

    /// The number of the last records, at most `records_max`, that have together at most `bytes_max` bytes.
    pub(super) fn tail_within(&self, records_max: u64, bytes_max: u64) -> u64 {
        let (mut records, mut bytes) = (0, 0);
        for size in self.sizes.iter().rev() {
            bytes += RECORD_OVERHEAD + u64::from(*size);
            if records == records_max || bytes > bytes_max {
                break;
            }
            records += 1;
        }
        records
    }

    /// The first index that the tail holds; everything from there on is in memory.
    pub(super) fn tail_start(&self) -> u64 {
        self.next() - self.tail.len() as u64
    }

    fn next(&self) -> u64 {
        self.first + self.sizes.len() as u64
    }

    /// Appends all records, or none.
    pub(super) fn append(
        &mut self,
        group: GroupId,
        operation: u64,
        records: &[LogRecord],
    ) -> Result<(), StoreError> {
        let mut last = self.first_last().map(|(_, last)| last);
        for LogRecord { index, bytes } in records {
            StoreError::check_size("log record", bytes.len(), LOG_RECORD_BYTES_MAX)?;
            match last {
                Some(last) if last + 1 != *index => {
                    return Err(StoreError::OutOfOrder { group, last, found: *index });
                }
                Some(_) | None => last = Some(*index),
            }
        }
        for record in records {
            if self.sizes.is_empty() {
                self.first = record.index;
            }
            self.sizes.push_back(u32::try_from(record.bytes.len()).expect("checked against the limit"));
            self.bytes += record.bytes.len() as u64;
            self.tail_bytes += record.bytes.len();
            self.tail.push_back(Tailed { operation, bytes: record.bytes.clone() });
        }
        Ok(())
    }

    /// Removes records after `index` (all with `None`). Returns their indexes.
    pub(super) fn truncate_after(&mut self, index: Option<u64>) -> Option<RangeInclusive<u64>> {
        let (first, last) = self.first_last()?;
        let from = index.map_or(first, |index| index.saturating_add(1)).max(first);
        for _ in from..=last {
            self.bytes -= u64::from(self.sizes.pop_back()?);
            if let Some(tailed) = self.tail.pop_back() {
                self.tail_bytes -= tailed.bytes.len();
            }
        }
        (from <= last).then_some(from..=last)
    }

    /// Removes records up to `index`. Returns their indexes.
    pub(super) fn purge_to(&mut self, index: u64) -> Option<RangeInclusive<u64>> {
        let (first, last) = self.first_last()?;
        let to = index.min(last);
        for _ in first..=to {
            self.bytes -= u64::from(self.sizes.pop_front()?);
            self.first += 1;
        }
        while self.tail.len() > self.sizes.len() {
            self.drop_oldest();
        }
        (first <= to).then_some(first..=to)
    }

    /// Shortens the tail to its limit, except for what operations after `written` added.
    pub(super) fn evict(&mut self, written: u64) {
        while self.tail_bytes > LOG_TAIL_BYTES_MAX
            && self.tail.front().is_some_and(|oldest| oldest.operation <= written)
        {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.tail.pop_front() {
            self.tail_bytes -= oldest.bytes.len();
        }
    }

    /// Adds the records of `range`, which the tail must hold, until `budget` refuses one.
    pub(super) fn read_tail(&self, range: Range<u64>, budget: &mut Budget) {
        let start = self.tail_start();
        for index in range {
            let Some(tailed) = index.checked_sub(start).and_then(|at| self.tail.get(at as usize)) else {
                return;
            };
            if !budget.take(LogRecord { index, bytes: tailed.bytes.clone() }) {
                return;
            }
        }
    }
}

/// Collects records up to a number of bytes, and at least one.
pub(super) struct Budget {
    pub(super) records: Vec<LogRecord>,
    left: usize,
}

impl Budget {
    pub(super) fn new(max_bytes: usize) -> Self {
        Budget { records: Vec::new(), left: max_bytes }
    }

    /// Returns true if the record fitted.
    pub(super) fn take(&mut self, record: LogRecord) -> bool {
        if !self.records.is_empty() && record.bytes.len() > self.left {
            self.left = 0;
            return false;
        }
        self.left = self.left.saturating_sub(record.bytes.len());
        self.records.push(record);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_written_yet_stays_in_the_tail() {
        let mut view = View::default();
        for index in 1..=4 {
            let operation = view.next_operation();
            let bytes = vec![0; LOG_TAIL_BYTES_MAX / 2].into();
            view.append(GroupId(0), operation, &[LogRecord { index, bytes }]).unwrap();
        }
        view.evict(1);
        assert_eq!(view.tail_start(), 2, "only records on disk are evicted");
        view.evict(4);
        assert_eq!(view.tail_start(), 3);
        assert_eq!(view.first_last(), Some((1, 4)));
    }
}
