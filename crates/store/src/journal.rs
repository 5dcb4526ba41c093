//! Repair of a torn end of a fjall journal.
//!
//! A batch is written to the journal with several `write` calls into a file that was grown sparsely to 64 MiB, and is
//! synced later. A power cut in between may leave any subset of its pages; the missing ones read as zeros. fjall
//! discards such a batch, and all that follows, if the hole hits the tag of an entry; if the hole lies inside a value
//! (which needs a value of more than a page) or in a number, it fails, and the database never opens again. This
//! module cuts off the first broken batch and all that follows: batches are written without a sync, their contents
//! can be restored from the log, and the reader of the database sees how far it goes. Damage to an older journal is
//! damage to synced data, and stays an error that names the position.
//!
//! A journal is synced before the next one is begun, so that only the newest one can have been torn.

use crate::{
    StoreError,
    files::{entries, failed},
};
use std::{
    fs::File,
    io::{self, BufReader, Read},
    path::Path,
};
use xxhash_rust::xxh3::Xxh3;

const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const CLEAR: u8 = 4;
const MAGIC: [u8; 4] = *b"FJL\x03";
/// How much is read at once, bytes.
const BLOCK: usize = 64 * 1024;

/// Cuts a torn end off the newest journal in `folder`.
///
/// # Errors
/// [`StoreError::Damaged`], with the position, if an older journal is broken.
pub(crate) fn repair(folder: &Path) -> Result<(), StoreError> {
    let mut journals = entries(folder)?;
    journals.retain(|path| number(path).is_some());
    journals.sort_by_key(|path| number(path));
    let newest = journals.last().cloned();
    for path in journals {
        let file = File::options().read(true).write(true).open(&path).map_err(failed("open", &path))?;
        let Some(start) = first_broken(&file).map_err(failed("read", &path))? else { continue };
        if Some(&path) != newest.as_ref() {
            let detail = format!("the batch at byte {start} of {} is broken", path.display());
            return Err(StoreError::damaged("journal", detail));
        }
        file.set_len(start).and_then(|()| file.sync_all()).map_err(failed("cut", &path))?;
        tracing::warn!(path = %path.display(), start, "removed an unsynced batch from the end of the journal");
        return Ok(());
    }
    Ok(())
}

/// Returns true if all journals in `folder` are empty.
pub(crate) fn all_blank(folder: &Path) -> Result<bool, StoreError> {
    for path in entries(folder)?.iter().filter(|path| number(path).is_some()) {
        let mut first = [0];
        let read = File::open(path).and_then(|mut file| file.read(&mut first));
        read.map_err(failed("read", path))?;
        if first != [0] {
            return Ok(false);
        }
    }
    Ok(true)
}

fn number(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.strip_suffix(".jnl")?.parse().ok()
}

/// The first byte at which a journal is not as it was written. A journal ends where only zeros follow.
fn first_broken(file: &File) -> io::Result<Option<u64>> {
    let mut journal = Journal { reader: BufReader::with_capacity(BLOCK, file), position: 0 };
    loop {
        let start = journal.position;
        match journal.batch() {
            Ok(Batch::Sound) => continue,
            Ok(Batch::None) if journal.rest_is_zero()? => return Ok(None),
            Ok(Batch::Broken | Batch::None) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                if journal.position == start {
                    return Ok(None);
                }
            }
            Err(error) => return Err(error),
        }
        return Ok(Some(start));
    }
}

/// What is at a position of a journal.
enum Batch {
    /// A batch, as it was written.
    Sound,
    /// A batch that is not as it was written.
    Broken,
    /// A zero, with which no batch begins, or anything else that does not begin a batch.
    None,
}

struct Journal<'a> {
    reader: BufReader<&'a File>,
    position: u64,
}

impl Journal<'_> {
    /// Reads what is at the current position.
    fn batch(&mut self) -> io::Result<Batch> {
        let [START] = self.take()? else { return Ok(Batch::None) };
        let count = u32::from_le_bytes(self.take()?);
        let _sequence: [u8; 8] = self.take()?;
        let mut sum = Xxh3::new();
        for _ in 0..count {
            let [tag] = self.take()?;
            sum.update(&[tag]);
            match tag {
                ITEM => self.item(&mut sum)?,
                CLEAR => sum.update(&self.take::<8>()?),
                _ => return Ok(Batch::Broken),
            }
        }
        let [END] = self.take()? else { return Ok(Batch::Broken) };
        let expected = u64::from_le_bytes(self.take()?);
        if self.take()? != MAGIC {
            return Ok(Batch::Broken);
        }
        Ok(if sum.digest() == expected { Batch::Sound } else { Batch::Broken })
    }

    /// Value type, compression, keyspace, length of key, of value, of value on disk; then key and value.
    fn item(&mut self, sum: &mut Xxh3) -> io::Result<()> {
        let head: [u8; 20] = self.take()?;
        sum.update(&head);
        let key = u64::from(u16::from_le_bytes([head[10], head[11]]));
        let value = u64::from(u32::from_le_bytes([head[16], head[17], head[18], head[19]]));
        let mut left = key + value;
        let mut buffer = [0; 4096];
        while left > 0 {
            let size = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
            self.reader.read_exact(&mut buffer[..size])?;
            sum.update(&buffer[..size]);
            left -= size as u64;
        }
        self.position += key + value;
        Ok(())
    }

    fn take<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.reader.read_exact(&mut bytes)?;
        self.position += N as u64;
        Ok(bytes)
    }

    fn rest_is_zero(&mut self) -> io::Result<bool> {
        let (mut buffer, zeros) = (vec![0; BLOCK], vec![0; BLOCK]);
        loop {
            match self.reader.read(&mut buffer)? {
                0 => return Ok(true),
                size if buffer[..size] != zeros[..size] => return Ok(false),
                _ => {}
            }
        }
    }
}
