use super::frame::{At, OPERATION_HEAD_BYTES, Operation, SEGMENT_HEAD_BYTES, SegmentHead};
use crate::{
    GroupId, LogRecord, StoreError,
    files::{failed, sync_dir},
    limits::LOG_PREWRITE_BYTES,
};
use bytes::Bytes;
use rustix::fs::{FallocateFlags, fallocate};
use std::{
    fs::{self, File},
    io,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};

/// One file of the log.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) number: u64,
    pub(super) salt: u64,
    /// Its length in bytes. It never grows, so a write to it needs no space on the disk.
    pub(super) bytes: u64,
    pub(super) path: PathBuf,
    pub(super) file: File,
}

/// How the blocks of a segment are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blocks {
    /// They are written with zeros. Overwriting them changes nothing that the file system would have to record, so a
    /// sync takes half the time.
    Written,
    /// They are only allocated. The file system records each when it is first written.
    Allocated,
}

impl Segment {
    /// Makes a segment of zeros, and returns once it is durable.
    ///
    /// # Errors
    /// If it cannot be written. What was made is removed.
    pub(super) fn make(folder: &Path, number: u64, bytes: u64, blocks: Blocks) -> Result<Self, StoreError> {
        let path = folder.join(name(number));
        let head = SegmentHead { number, salt: rand::random() };
        let made = write(&path, head, bytes, blocks);
        let file = match made {
            Ok(file) => file,
            Err(error) => {
                // What is left of it is found at the next start as well.
                let _removed = fs::remove_file(&path);
                return Err(failed("make", &path)(error));
            }
        };
        sync_dir(folder)?;
        Ok(Self { number, salt: head.salt, bytes, path, file })
    }

    /// Reads a record and checks it.
    ///
    /// # Errors
    /// If the file cannot be read; [`StoreError::Damaged`] if there is something else at that position.
    pub(super) fn read(&self, group: GroupId, index: u64, at: At) -> Result<LogRecord, StoreError> {
        let mut stored = vec![0; OPERATION_HEAD_BYTES + at.bytes as usize];
        self.file.read_exact_at(&mut stored, at.offset.into()).map_err(failed("read", &self.path))?;
        let found = Operation::at(&stored, self.salt);
        match found {
            Some((operation, bytes))
                if operation.is_record() && (operation.group, operation.index) == (group, index) =>
            {
                let bytes = stored.len() - bytes.len()..;
                Ok(LogRecord { index, bytes: Bytes::from(stored).slice(bytes) })
            }
            Some(_) | None => {
                let (at, path) = (at.offset, self.path.display());
                Err(StoreError::damaged("log record", format!("record {index} at byte {at} of {path}")))
            }
        }
    }
}

fn write(path: &Path, head: SegmentHead, bytes: u64, blocks: Blocks) -> io::Result<File> {
    let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
    let allocated = match fallocate(&file, FallocateFlags::empty(), 0, bytes) {
        Ok(()) => blocks,
        // If the file system cannot allocate, writing finds out whether there is space.
        Err(rustix::io::Errno::OPNOTSUPP) => Blocks::Written,
        Err(error) => return Err(error.into()),
    };
    match allocated {
        Blocks::Written => write_zeros(&file, head, bytes)?,
        Blocks::Allocated => file.write_all_at(&head.encode(), 0)?,
    }
    file.sync_all()?;
    Ok(file)
}

/// Writes the whole file. One part at a time is written and synced, so that other syncs do not wait for all of it.
fn write_zeros(file: &File, head: SegmentHead, bytes: u64) -> io::Result<()> {
    let mut part = vec![0; LOG_PREWRITE_BYTES.min(usize::try_from(bytes).unwrap_or(usize::MAX))];
    part[..SEGMENT_HEAD_BYTES].copy_from_slice(&head.encode());
    let mut written = 0;
    while written < bytes {
        let size = part.len().min(usize::try_from(bytes - written).unwrap_or(usize::MAX));
        file.write_all_at(&part[..size], written)?;
        written += size as u64;
        if written < bytes {
            file.sync_data()?;
        }
        part[..SEGMENT_HEAD_BYTES].fill(0);
    }
    Ok(())
}

/// The name of a segment's file.
fn name(number: u64) -> String {
    format!("{number:016x}.log")
}

/// The number in the name of a segment's file.
pub(super) fn number_of(path: &Path) -> Option<u64> {
    let digits = path.file_name()?.to_str()?.strip_suffix(".log")?;
    let number = u64::from_str_radix(digits, 16).ok()?;
    (name(number) == path.file_name()?.to_str()?).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_segment_is_its_head_and_zeros_whichever_way_it_is_made() {
        let folder = tempfile::tempdir().unwrap();
        for (number, blocks) in [(1, Blocks::Written), (2, Blocks::Allocated)] {
            let bytes = 2 * LOG_PREWRITE_BYTES as u64 + 4096;
            let segment = Segment::make(folder.path(), number, bytes, blocks).unwrap();
            let stored = fs::read(&segment.path).unwrap();
            assert_eq!(stored.len() as u64, bytes, "{blocks:?}");
            assert_eq!(SegmentHead::decode(&stored), Some(SegmentHead { number, salt: segment.salt }));
            assert!(stored[SEGMENT_HEAD_BYTES..].iter().all(|byte| *byte == 0), "{blocks:?}");
            assert_eq!(number_of(&segment.path), Some(number));
        }
    }
}
