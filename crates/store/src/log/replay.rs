//! Opening a log: its segments are read in order.
//!
//! A batch is synced before the next one is written, so a power cut tears at most the last batch of the newest segment: it
//! is cut off, unless it is known that it was synced. A segment is durable, with its head, before the first batch is
//! written to it. Whatever else is not as it was written is damage, and an error that says where: a broken batch that a
//! whole one follows or that was synced, a segment that lost its end, a sequence number that is missing, a record that is
//! missing between its neighbours. Nothing is changed in the files before all of them are known to be sound.
//!
//! Old segments are removed, so the file `LOG_BEGIN` says with which batch the log begins. It is written, durably,
//! before a segment is removed: older batches may still be there, and that one must be.
//!
//! The last batch may be whole and not durable, if the process ended between its write and its sync. It is written and
//! synced again before anything is read from the log: what is built on it, such as an answer to a candidate, must not
//! outlive it.

use super::{
    GroupId, SyncFault,
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
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

/// What is known of a log beside its segments.
#[derive(Clone, Copy)]
pub(super) struct Known {
    /// The sequence number of the first batch that must be there; 0 if no segment was removed yet.
    pub(super) begin: u64,
    /// The highest sequence number of a batch that is known to have been synced.
    pub(super) synced: u64,
}

/// A log as read from its files.
pub(super) struct Replayed {
    known: Known,
    pub(super) ledger: Ledger,
    pub(super) views: HashMap<GroupId, View>,
    /// The highest number of a segment.
    pub(super) number: u64,
    /// The sequence number of the last batch.
    pub(super) sequence: u64,
}

/// The end of the newest segment that was written to.
struct End {
    segment: Arc<Segment>,
    /// The offset of its last whole batch, and the bytes of it; `None` if there is no such batch.
    last: Option<(usize, Vec<u8>)>,
    /// The offset of a batch that is broken, after the last whole one.
    broken: Option<usize>,
}

/// Reads the log in a folder, which is made if there is none. `sync_fault` may fail the one sync.
///
/// # Errors
/// If a file cannot be read, cut or synced; [`StoreError::Damaged`] as the module says.
pub(super) fn replay(
    folder: &Path,
    known: Known,
    sync_fault: Option<&SyncFault>,
) -> Result<Replayed, StoreError> {
    make_dir(folder)?;
    let mut replayed =
        Replayed { known, ledger: Ledger::default(), views: HashMap::new(), number: 0, sequence: 0 };
    let mut used = files(folder)?;
    replayed.number = used.last().map_or(0, |(number, _)| *number);
    let unused = split_unused(&mut used)?;
    let newest = used.last().map(|(number, _)| *number);
    let mut end = None;
    for (number, path) in used {
        end = Some(replayed.segment(number, &path, Some(number) == newest)?);
    }
    check_synced(folder, &replayed, end.as_ref())?;
    if let Some(end) = end {
        end.settle(folder, sync_fault)?;
    }
    for path in unused {
        fs::remove_file(&path).map_err(failed("remove", &path))?;
        sync_dir(folder)?;
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

/// Takes the newest segments that were not written to out of these files: they were made ahead, or only in part. The
/// newest one comes first.
fn split_unused(files: &mut Vec<(u64, PathBuf)>) -> Result<Vec<PathBuf>, StoreError> {
    let mut unused = Vec::new();
    while let Some((_, path)) = files.last() {
        let bytes = fs::read(path).map_err(failed("read", path))?;
        if !is_zero(bytes.get(SEGMENT_HEAD_BYTES..).unwrap_or_default()) {
            break;
        }
        unused.extend(files.pop().map(|(_, path)| path));
    }
    Ok(unused)
}

/// Fails if a batch is missing that is known to have been synced.
fn check_synced(folder: &Path, replayed: &Replayed, end: Option<&End>) -> Result<(), StoreError> {
    // The batch with which the log begins was synced before its number was recorded.
    let (sequence, synced) = (replayed.sequence, replayed.known.synced.max(replayed.known.begin));
    if sequence >= synced {
        return Ok(());
    }
    let Some(end) = end else {
        let detail = format!("{synced} batches were synced, and no segment in {} has one", folder.display());
        return Err(StoreError::damaged("log", detail));
    };
    if let Some(offset) = end.broken {
        return Err(broken(&end.segment.path, offset, "it was synced, and is broken now"));
    }
    let (at, path) = (end.whole_bytes(), end.segment.path.display());
    let detail =
        format!("batch {} is missing, which was synced, at byte {at} of {path} or after it", sequence + 1);
    Err(StoreError::damaged("log", detail))
}

impl End {
    /// The offset after the last whole batch.
    fn whole_bytes(&self) -> usize {
        self.last.as_ref().map_or(SEGMENT_HEAD_BYTES, |(offset, bytes)| offset + bytes.len())
    }

    /// Cuts a broken batch off, and makes the last whole one durable. A segment without a whole batch is removed: only the
    /// newest ones may be without.
    fn settle(self, folder: &Path, sync_fault: Option<&SyncFault>) -> Result<(), StoreError> {
        let Segment { file, path, .. } = &*self.segment;
        if let Some(offset) = self.broken {
            tracing::warn!(path = %path.display(), offset, "removed an unsynced batch from the end of the log");
            if offset == SEGMENT_HEAD_BYTES {
                fs::remove_file(path).map_err(failed("remove", path))?;
                return sync_dir(folder);
            }
            file.set_len(offset as u64).and_then(|()| file.sync_all()).map_err(failed("cut", path))?;
        }
        let Some((offset, bytes)) = self.last else { return Ok(()) };
        // Its pages may be clean although they never reached the disk, if an earlier sync failed.
        file.write_all_at(&bytes, offset as u64).map_err(failed("write", path))?;
        let fault = sync_fault.and_then(|fault| fault(0));
        fault.map_or_else(|| file.sync_data(), Err).map_err(failed("sync", path))
    }
}

impl Replayed {
    /// Reads a segment. Returns its end.
    fn segment(&mut self, number: u64, path: &Path, is_newest: bool) -> Result<End, StoreError> {
        let file = File::options().read(true).write(true).open(path).map_err(failed("open", path))?;
        let bytes = fs::read(path).map_err(failed("read", path))?;
        let head = SegmentHead::decode(&bytes).filter(|head| head.number == number);
        let Some(SegmentHead { salt, .. }) = head else {
            let detail = format!("the header of {} is broken, at byte 0", path.display());
            return Err(StoreError::damaged("log", detail));
        };
        let segment = Segment { number, salt, bytes: bytes.len() as u64, path: path.to_owned(), file };
        let segment = Arc::new(segment);
        let (mut offset, mut last) = (SEGMENT_HEAD_BYTES, None);
        while let Some(batch) = Batch::at(&bytes, salt, offset) {
            if self.sequence == 0 {
                self.check_begin(path, batch.sequence)?;
            } else if batch.sequence != self.sequence + 1 {
                return Err(broken(path, offset, "batches before it are missing"));
            }
            // One without a batch has no metas either, and keeps every older one.
            if offset == SEGMENT_HEAD_BYTES {
                self.ledger.add(Arc::clone(&segment), batch.sequence);
            }
            for (group, change) in batch.changes(path)? {
                self.ledger.apply(number, group, change)?;
            }
            self.sequence = batch.sequence;
            last = Some(offset..offset + batch.len());
            offset += batch.len();
        }
        let ends = is_zero(&bytes[offset..]);
        if !ends && (!is_newest || Batch::after(&bytes, salt, offset).is_some()) {
            return Err(broken(path, offset, "it is broken, and other batches follow it"));
        }
        if last.is_none() && !is_newest {
            return Err(broken(path, offset, "it is missing, and other batches follow it"));
        }
        let last = last.filter(|_| is_newest).map(|range| (range.start, bytes[range].to_vec()));
        Ok(End { segment, last, broken: (!ends).then_some(offset) })
    }

    /// Fails if the first batch that was found comes after the one with which the log must begin. It may come before
    /// that one: the process may have ended before it had removed the segment.
    fn check_begin(&self, path: &Path, found: u64) -> Result<(), StoreError> {
        let begin = self.known.begin.max(1);
        if found <= begin {
            return Ok(());
        }
        let (last, path) = (found - 1, path.display());
        let detail = format!(
            "its first segment is missing, with the batches {begin} to {last}: {path} is the oldest one"
        );
        Err(StoreError::damaged("log", detail))
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
