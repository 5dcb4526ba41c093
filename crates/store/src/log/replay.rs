//! Opening a log: its segments are read in order.
//!
//! A batch is synced before the next one is written, so a power cut tears at most the last batch of the newest segment: it
//! is cut off. A segment is durable, with its head, before the first batch is written to it. Whatever else is not as it was
//! written is damage, and an error that says where: a broken batch that a whole one follows, a segment that lost its end,
//! a sequence number that is missing, a record that is missing between its neighbours.

use super::{
    GroupId,
    frame::{Batch, SEGMENT_HEAD_BYTES, SegmentHead},
    ledger::Ledger,
    segment::{Segment, number_of},
    view::View,
};
use crate::{
    StoreError,
    files::{entries, failed, make_dir, sync_dir},
    limits::LOG_TAIL_BYTES_MAX,
};
use std::{
    collections::HashMap,
    fs::{self, File},
    path::{Path, PathBuf},
    sync::Arc,
};

/// A log as read from its files.
pub(super) struct Replayed {
    pub(super) ledger: Ledger,
    pub(super) views: HashMap<GroupId, View>,
    /// The highest number of a segment.
    pub(super) number: u64,
    /// The sequence number of the last batch.
    pub(super) sequence: u64,
}

/// Reads the log in a folder, which is made if there is none.
///
/// # Errors
/// If a file cannot be read or cut; [`StoreError::Damaged`] as the module says.
pub(super) fn replay(folder: &Path) -> Result<Replayed, StoreError> {
    make_dir(folder)?;
    let mut replayed = Replayed { ledger: Ledger::default(), views: HashMap::new(), number: 0, sequence: 0 };
    let files = files(folder)?;
    replayed.number = files.last().map_or(0, |(number, _)| *number);
    let files = used(folder, files)?;
    let newest = files.last().map(|(number, _)| *number);
    for (number, path) in files {
        replayed.segment(number, &path, Some(number) == newest)?;
    }
    let groups: Vec<GroupId> = replayed.ledger.groups().collect();
    for group in groups {
        let view = view(&replayed.ledger, group)?;
        replayed.views.insert(group, view);
    }
    Ok(replayed)
}

/// The segments of a folder, in the order of their numbers.
fn files(folder: &Path) -> Result<Vec<(u64, PathBuf)>, StoreError> {
    let numbered = |path: PathBuf| match number_of(&path) {
        Some(number) => Ok((number, path)),
        None => Err(StoreError::damaged("log", format!("{} is not a segment", path.display()))),
    };
    let mut files = entries(folder)?.into_iter().map(numbered).collect::<Result<Vec<_>, _>>()?;
    files.sort();
    Ok(files)
}

/// The segments that were written to. The newest ones may have been made ahead or only in part: they are removed.
fn used(folder: &Path, mut files: Vec<(u64, PathBuf)>) -> Result<Vec<(u64, PathBuf)>, StoreError> {
    while let Some((_, path)) = files.last() {
        let bytes = fs::read(path).map_err(failed("read", path))?;
        if !is_zero(bytes.get(SEGMENT_HEAD_BYTES..).unwrap_or_default()) {
            break;
        }
        fs::remove_file(path).map_err(failed("remove", path))?;
        sync_dir(folder)?;
        files.pop();
    }
    Ok(files)
}

impl Replayed {
    fn segment(&mut self, number: u64, path: &Path, is_newest: bool) -> Result<(), StoreError> {
        let file = File::options().read(true).write(true).open(path).map_err(failed("open", path))?;
        let bytes = fs::read(path).map_err(failed("read", path))?;
        let head = SegmentHead::decode(&bytes).filter(|head| head.number == number);
        let Some(SegmentHead { salt, .. }) = head else {
            return Err(StoreError::damaged("log", format!("the header of {} is broken", path.display())));
        };
        let segment = Segment { number, salt, bytes: bytes.len() as u64, path: path.to_owned(), file };
        let segment = Arc::new(segment);
        let mut offset = SEGMENT_HEAD_BYTES;
        while let Some(batch) = Batch::at(&bytes, salt, offset) {
            if self.sequence != 0 && batch.sequence != self.sequence + 1 {
                return Err(broken(path, offset, "batches before it are missing"));
            }
            // One without a batch has no metas either, and keeps every older one.
            if offset == SEGMENT_HEAD_BYTES {
                self.ledger.add(Arc::clone(&segment));
            }
            for (group, change) in batch.changes()? {
                self.ledger.apply(number, group, change)?;
            }
            self.sequence = batch.sequence;
            offset += batch.len();
        }
        if is_zero(&bytes[offset..]) {
            return Ok(());
        }
        if !is_newest || Batch::after(&bytes, salt, offset).is_some() {
            return Err(broken(path, offset, "it is broken, and other batches follow it"));
        }
        tracing::warn!(path = %path.display(), offset, "removed an unsynced batch from the end of the log");
        let cut = segment.file.set_len(offset as u64).and_then(|()| segment.file.sync_all());
        cut.map_err(failed("cut", path))
    }
}

fn broken(path: &Path, offset: usize, why: &str) -> StoreError {
    StoreError::damaged("log", format!("the batch at byte {offset} of {}: {why}", path.display()))
}

/// A group's view for callers: the sizes of its records, and the last records themselves.
fn view(ledger: &Ledger, group: GroupId) -> Result<View, StoreError> {
    let (first, sizes) = ledger.sizes(group)?;
    let mut tail_bytes = 0;
    let tail = sizes.iter().rev().take_while(|size| {
        tail_bytes += **size as usize;
        tail_bytes <= LOG_TAIL_BYTES_MAX
    });
    let next = first + sizes.len() as u64;
    let tail = next - tail.count() as u64..next;
    let found = ledger.find(group, tail, usize::MAX)?;
    let tail = found.into_iter().map(|(index, segment, at)| Ok(segment.read(group, index, at)?.bytes));
    let tail = tail.collect::<Result<Vec<_>, StoreError>>()?;
    Ok(View::restored(ledger.metas_of(group), first, sizes, tail))
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}
