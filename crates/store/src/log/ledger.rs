use super::{
    GroupId, Meta,
    frame::{At, Change, OPERATION_HEAD_BYTES},
    segment::Segment,
};
use crate::{
    StoreError,
    limits::{LOG_GAP_RECORDS_MAX, LOG_GARBAGE_BYTES},
};
use bytes::Bytes;
use std::{
    collections::{BTreeMap, VecDeque},
    ops::{Range, RangeInclusive},
    sync::Arc,
};

/// The location of a record on disk. Segments are numbered from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Location {
    pub(super) segment: u64,
    pub(super) at: At,
}

/// The log as it is on disk: the segments, and for each group its metas and the locations of its records. It lags
/// behind the views of the groups: an operation is applied once it is durable.
#[derive(Default)]
pub(super) struct Ledger {
    segments: BTreeMap<u64, Held>,
    groups: BTreeMap<GroupId, GroupRecords>,
    /// Bytes of all live records, with their heads.
    live_bytes: u64,
}

struct Held {
    segment: Arc<Segment>,
    /// The sequence number of its first batch.
    first_batch: u64,
    /// The number of its live records.
    live: u64,
}

/// A segment that is no longer needed.
pub(super) struct Released {
    pub(super) segment: Arc<Segment>,
    /// The sequence number of the first batch after it, which is durable.
    pub(super) begin: u64,
}

/// One group on disk. While a log is replayed there may be gaps: records that were moved to a later segment fill them.
#[derive(Default)]
struct GroupRecords {
    metas: [Option<Bytes>; 3],
    first: u64,
    locations: VecDeque<Option<Location>>,
}

impl Ledger {
    /// Adds a segment whose first batch has this sequence number.
    pub(super) fn add(&mut self, segment: Arc<Segment>, first_batch: u64) {
        self.segments.insert(segment.number, Held { segment, first_batch, live: 0 });
    }

    /// The number of the oldest segment.
    pub(super) fn oldest(&self) -> Option<u64> {
        self.segments.keys().next().copied()
    }

    /// The number of the newest segment.
    pub(super) fn newest(&self) -> Option<u64> {
        self.segments.keys().next_back().copied()
    }

    pub(super) fn groups(&self) -> impl Iterator<Item = GroupId> {
        self.groups.keys().copied()
    }

    /// The metas of all groups.
    pub(super) fn metas(&self) -> impl Iterator<Item = (GroupId, Meta, Bytes)> {
        self.groups.iter().flat_map(|(group, records)| {
            let of = |slot: Meta| Some((*group, slot, records.metas[slot as usize].clone()?));
            Meta::ALL.into_iter().filter_map(of)
        })
    }

    pub(super) fn metas_of(&self, group: GroupId) -> [Option<Bytes>; 3] {
        self.groups.get(&group).map(|records| records.metas.clone()).unwrap_or_default()
    }

    /// Applies a durable operation of a segment.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if it cannot follow what is there.
    pub(super) fn apply(&mut self, segment: u64, group: GroupId, change: Change) -> Result<(), StoreError> {
        let records = self.groups.entry(group).or_default();
        match change {
            Change::Meta(slot, bytes) => records.metas[slot as usize] = Some(bytes),
            Change::Record { index, at } => {
                let location = Location { segment, at };
                let before = records.put(group, index, location)?;
                self.count(before.into_iter(), Some(location));
            }
            Change::Remove(indexes) => {
                let removed = records.remove(&indexes);
                self.count(removed.into_iter(), None);
            }
        }
        Ok(())
    }

    fn count(&mut self, gone: impl Iterator<Item = Location>, new: Option<Location>) {
        for location in gone {
            self.live_bytes -= location.stored_bytes();
            if let Some(held) = self.segments.get_mut(&location.segment) {
                held.live -= 1;
            }
        }
        if let Some(location) = new {
            self.live_bytes += location.stored_bytes();
            if let Some(held) = self.segments.get_mut(&location.segment) {
                held.live += 1;
            }
        }
    }

    /// Removes the oldest segments without live records, and returns them; the newest one stays. Segments are removed
    /// only in order: an operation may be forgotten once everything that it changed is gone, and that is in earlier
    /// segments.
    pub(super) fn release(&mut self) -> Vec<Released> {
        let mut released = Vec::new();
        while let Some(begin) = self.segments.values().nth(1).map(|next| next.first_batch)
            && let Some(oldest) = self.segments.first_entry()
            && oldest.get().live == 0
        {
            released.push(Released { segment: oldest.remove().segment, begin });
        }
        released
    }

    /// Returns true if the segments take more than twice the live bytes and [`LOG_GARBAGE_BYTES`]: records are then
    /// moved, so that the oldest segments become free.
    pub(super) fn is_wasteful(&self) -> bool {
        let bytes: u64 = self.segments.values().map(|held| held.segment.bytes).sum();
        self.segments.len() > 1 && bytes > self.live_bytes * 2 + LOG_GARBAGE_BYTES
    }

    /// Returns records of the oldest segment, `bytes_max` at most, but at least one if there is any.
    pub(super) fn of_oldest(&self, bytes_max: u64) -> Vec<(GroupId, u64, Arc<Segment>, At)> {
        let (mut found, mut bytes) = (Vec::new(), 0);
        let Some((&oldest, held)) = self.segments.first_key_value() else { return found };
        let mut left = held.live;
        for (group, records) in &self.groups {
            for (index, location) in (records.first..).zip(&records.locations) {
                let Some(location) = location.filter(|location| location.segment == oldest) else { continue };
                bytes += location.stored_bytes();
                if !found.is_empty() && bytes > bytes_max {
                    return found;
                }
                found.push((*group, index, Arc::clone(&held.segment), location.at));
                left = left.saturating_sub(1);
                // The logs may have many more records, all of them in later segments.
                if left == 0 {
                    return found;
                }
            }
        }
        found
    }

    /// Returns the locations of the records of `range`, in order. Stops before `bytes_max` are exceeded, but returns
    /// at least one.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if one is missing.
    pub(super) fn find(
        &self,
        group: GroupId,
        range: Range<u64>,
        bytes_max: usize,
    ) -> Result<Vec<(u64, Arc<Segment>, At)>, StoreError> {
        let (mut found, mut bytes) = (Vec::new(), 0);
        for index in range {
            let missing = || missing(group, index);
            let location =
                self.groups.get(&group).and_then(|records| records.get(index)).ok_or_else(missing)?;
            let held = self.segments.get(&location.segment).ok_or_else(missing)?;
            bytes += location.at.bytes as usize;
            if !found.is_empty() && bytes > bytes_max {
                break;
            }
            found.push((index, Arc::clone(&held.segment), location.at));
        }
        Ok(found)
    }

    /// The first index of a group, and the sizes of its records.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if one is missing.
    pub(super) fn sizes(&self, group: GroupId) -> Result<(u64, VecDeque<u32>), StoreError> {
        let Some(records) = self.groups.get(&group) else { return Ok((0, VecDeque::new())) };
        let sizes = (records.first..).zip(&records.locations).map(|(index, location)| {
            location.map(|location| location.at.bytes).ok_or_else(|| missing(group, index))
        });
        Ok((records.first, sizes.collect::<Result<_, _>>()?))
    }
}

impl Location {
    fn stored_bytes(&self) -> u64 {
        u64::from(self.at.bytes) + OPERATION_HEAD_BYTES as u64
    }
}

impl GroupRecords {
    /// The index after the last.
    fn next(&self) -> u64 {
        self.first + self.locations.len() as u64
    }

    fn get(&self, index: u64) -> Option<Location> {
        let at = usize::try_from(index.checked_sub(self.first)?).ok()?;
        *self.locations.get(at)?
    }

    /// Sets the location of a record. Returns its previous one.
    fn put(
        &mut self,
        group: GroupId,
        index: u64,
        location: Location,
    ) -> Result<Option<Location>, StoreError> {
        if self.locations.is_empty() {
            self.first = index;
        }
        let gap = self.first.saturating_sub(index).max(index.saturating_sub(self.next()));
        if gap > LOG_GAP_RECORDS_MAX {
            return Err(missing(group, index));
        }
        while index < self.first {
            self.locations.push_front(None);
            self.first -= 1;
        }
        while index >= self.next() {
            self.locations.push_back(None);
        }
        let at = usize::try_from(index - self.first).unwrap_or(usize::MAX);
        Ok(self.locations.get_mut(at).and_then(|there| there.replace(location)))
    }

    /// Removes records from either end. Returns their locations.
    fn remove(&mut self, indexes: &RangeInclusive<u64>) -> Vec<Location> {
        let mut removed = Vec::new();
        while self.next() > *indexes.start() && self.next() - 1 <= *indexes.end() {
            match self.locations.pop_back() {
                Some(location) => removed.extend(location),
                None => break,
            }
        }
        while !self.locations.is_empty() && indexes.contains(&self.first) {
            removed.extend(self.locations.pop_front().flatten());
            self.first += 1;
        }
        while let Some(None) = self.locations.front() {
            self.locations.pop_front();
            self.first += 1;
        }
        while let Some(None) = self.locations.back() {
            self.locations.pop_back();
        }
        removed
    }
}

fn missing(group: GroupId, index: u64) -> StoreError {
    StoreError::damaged("log", format!("record {index} of group {} is missing", group.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::segment::Blocks;

    #[test]
    fn a_search_in_the_oldest_segment_goes_no_further_than_its_last_live_record() {
        let folder = tempfile::tempdir().unwrap();
        let (mut ledger, group) = (Ledger::default(), GroupId(1));
        for number in [1, 2] {
            let segment = Segment::make(folder.path(), number, 4096, Blocks::Allocated).unwrap();
            ledger.add(Arc::new(segment), number);
        }
        for (index, segment) in [(1, 1), (2, 2), (3, 1), (4, 2), (5, 1)] {
            let at = At { offset: 0, bytes: 8 };
            ledger.apply(segment, group, Change::Record { index, at }).unwrap();
        }
        let found = |ledger: &Ledger| -> Vec<u64> {
            ledger.of_oldest(u64::MAX).into_iter().map(|(_, index, ..)| index).collect()
        };
        assert_eq!(found(&ledger), [1, 3, 5]);
        // If the last record is not counted, it is found only by who looks further.
        ledger.segments.get_mut(&1).unwrap().live -= 1;
        assert_eq!(found(&ledger), [1, 3]);
    }
}
