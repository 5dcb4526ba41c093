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

/// Where a record is on disk. Segments are numbered from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) segment: u64,
    pub(super) at: At,
}

/// What is on disk: the segments, and for each group its metas and the places of its records. It lags behind the views of the
/// groups: an operation is applied once it is durable.
#[derive(Default)]
pub(super) struct Ledger {
    segments: BTreeMap<u64, Held>,
    groups: BTreeMap<GroupId, Places>,
    /// Bytes of all live records, with their heads.
    live_bytes: u64,
}

/// A segment, and the number of its live records.
struct Held {
    segment: Arc<Segment>,
    live: u64,
}

/// One group on disk. While a log is replayed there may be gaps: records that were moved to a later segment fill them.
#[derive(Default)]
struct Places {
    metas: [Option<Bytes>; 3],
    first: u64,
    places: VecDeque<Option<Place>>,
}

impl Ledger {
    pub(super) fn add(&mut self, segment: Arc<Segment>) {
        self.segments.insert(segment.number, Held { segment, live: 0 });
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
        self.groups.iter().flat_map(|(group, places)| {
            let of = |slot: Meta| Some((*group, slot, places.metas[slot as usize].clone()?));
            Meta::ALL.into_iter().filter_map(of)
        })
    }

    pub(super) fn metas_of(&self, group: GroupId) -> [Option<Bytes>; 3] {
        self.groups.get(&group).map(|places| places.metas.clone()).unwrap_or_default()
    }

    /// Applies a durable operation of a segment.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if it cannot follow what is there.
    pub(super) fn apply(&mut self, segment: u64, group: GroupId, change: Change) -> Result<(), StoreError> {
        let places = self.groups.entry(group).or_default();
        match change {
            Change::Meta(slot, bytes) => places.metas[slot as usize] = Some(bytes),
            Change::Record { index, at } => {
                let place = Place { segment, at };
                let before = places.put(group, index, place)?;
                self.count(before.into_iter(), Some(place));
            }
            Change::Remove(indexes) => {
                let removed = places.remove(&indexes);
                self.count(removed.into_iter(), None);
            }
        }
        Ok(())
    }

    fn count(&mut self, gone: impl Iterator<Item = Place>, new: Option<Place>) {
        for place in gone {
            self.live_bytes -= place.stored_bytes();
            if let Some(held) = self.segments.get_mut(&place.segment) {
                held.live -= 1;
            }
        }
        if let Some(place) = new {
            self.live_bytes += place.stored_bytes();
            if let Some(held) = self.segments.get_mut(&place.segment) {
                held.live += 1;
            }
        }
    }

    /// Removes the oldest segments without live records, and returns them; the newest one stays. Segments are removed in order
    /// only: an operation may be forgotten once everything that it changed is gone, and that stands before it.
    pub(super) fn release(&mut self) -> Vec<Arc<Segment>> {
        let mut released = Vec::new();
        while self.segments.len() > 1
            && let Some(oldest) = self.segments.first_entry()
            && oldest.get().live == 0
        {
            released.push(oldest.remove().segment);
        }
        released
    }

    /// Returns true if the segments take more than twice the live bytes and [`LOG_GARBAGE_BYTES`]: records are moved then, so
    /// that the oldest segments become free.
    pub(super) fn is_wasteful(&self) -> bool {
        let bytes: u64 = self.segments.values().map(|held| held.segment.bytes).sum();
        self.segments.len() > 1 && bytes > self.live_bytes * 2 + LOG_GARBAGE_BYTES
    }

    /// Returns records of the oldest segment, `bytes_max` at most, but at least one if there is any.
    pub(super) fn of_oldest(&self, bytes_max: u64) -> Vec<(GroupId, u64, Arc<Segment>, At)> {
        let (mut found, mut bytes) = (Vec::new(), 0);
        let Some((&oldest, held)) = self.segments.first_key_value() else { return found };
        for (group, places) in &self.groups {
            for (index, place) in (places.first..).zip(&places.places) {
                let Some(place) = place.filter(|place| place.segment == oldest) else { continue };
                bytes += place.stored_bytes();
                if !found.is_empty() && bytes > bytes_max {
                    return found;
                }
                found.push((*group, index, Arc::clone(&held.segment), place.at));
            }
        }
        found
    }

    /// Returns where the records of `range` are, in order. Stops before `bytes_max` are exceeded, but returns at least one.
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
            let place = self.groups.get(&group).and_then(|places| places.get(index)).ok_or_else(missing)?;
            let held = self.segments.get(&place.segment).ok_or_else(missing)?;
            bytes += place.at.bytes as usize;
            if !found.is_empty() && bytes > bytes_max {
                break;
            }
            found.push((index, Arc::clone(&held.segment), place.at));
        }
        Ok(found)
    }

    /// The first index of a group, and the sizes of its records.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if one is missing.
    pub(super) fn sizes(&self, group: GroupId) -> Result<(u64, VecDeque<u32>), StoreError> {
        let Some(places) = self.groups.get(&group) else { return Ok((0, VecDeque::new())) };
        let sizes = (places.first..)
            .zip(&places.places)
            .map(|(index, place)| place.map(|place| place.at.bytes).ok_or_else(|| missing(group, index)));
        Ok((places.first, sizes.collect::<Result<_, _>>()?))
    }
}

impl Place {
    fn stored_bytes(&self) -> u64 {
        u64::from(self.at.bytes) + OPERATION_HEAD_BYTES as u64
    }
}

impl Places {
    /// The index after the last.
    fn next(&self) -> u64 {
        self.first + self.places.len() as u64
    }

    fn get(&self, index: u64) -> Option<Place> {
        let at = usize::try_from(index.checked_sub(self.first)?).ok()?;
        *self.places.get(at)?
    }

    /// Returns the place that it had before.
    fn put(&mut self, group: GroupId, index: u64, place: Place) -> Result<Option<Place>, StoreError> {
        if self.places.is_empty() {
            self.first = index;
        }
        let gap = self.first.saturating_sub(index).max(index.saturating_sub(self.next()));
        if gap > LOG_GAP_RECORDS_MAX {
            return Err(missing(group, index));
        }
        while index < self.first {
            self.places.push_front(None);
            self.first -= 1;
        }
        while index >= self.next() {
            self.places.push_back(None);
        }
        let at = usize::try_from(index - self.first).unwrap_or(usize::MAX);
        Ok(self.places.get_mut(at).and_then(|there| there.replace(place)))
    }

    /// Removes an end or the beginning of what is there. Returns the places of what was there.
    fn remove(&mut self, indexes: &RangeInclusive<u64>) -> Vec<Place> {
        let mut removed = Vec::new();
        while self.next() > *indexes.start() && self.next() - 1 <= *indexes.end() {
            match self.places.pop_back() {
                Some(place) => removed.extend(place),
                None => break,
            }
        }
        while !self.places.is_empty() && indexes.contains(&self.first) {
            removed.extend(self.places.pop_front().flatten());
            self.first += 1;
        }
        while let Some(None) = self.places.front() {
            self.places.pop_front();
            self.first += 1;
        }
        while let Some(None) = self.places.back() {
            self.places.pop_back();
        }
        removed
    }
}

fn missing(group: GroupId, index: u64) -> StoreError {
    StoreError::damaged("log", format!("record {index} of group {} is missing", group.0))
}
