//! Repair of a torn end of a fjall journal.
//!
//! A batch is written to the journal with several `write` calls into a file that was grown sparsely to 64 MiB,
//! and then synced. A power cut in between may leave any subset of its pages; the missing ones read as zeros.
//! fjall discards such a batch if the hole hits an entry's header or the end; if the hole lies inside a value
//! (which needs a value of more than a page) it fails with a checksum mismatch, and the database never opens
//! again. That batch was never acknowledged, so it may go: this module cuts it off, if it is the last thing in
//! the newest journal. A mismatch anywhere else is damage to data that somebody relies on, and stays an error.

use crate::{
    StoreError,
    files::{entries, failed},
};
use std::{
    fs::File,
    io::{self, BufReader, Read},
    path::{Path, PathBuf},
};
use xxhash_rust::xxh3::Xxh3;

const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const CLEAR: u8 = 4;
const MAGIC: [u8; 4] = *b"FJL\x03";

/// Cuts a torn last batch off the newest journal in `folder`. Returns whether it did.
pub(crate) fn cut_torn_end(folder: &Path) -> Result<bool, StoreError> {
    let Some(path) = newest(folder)? else { return Ok(false) };
    let file = File::options().read(true).write(true).open(&path).map_err(failed("open", &path))?;
    let Some(start) = torn_batch(&file).map_err(failed("read", &path))? else { return Ok(false) };
    file.set_len(start).and_then(|()| file.sync_all()).map_err(failed("cut", &path))?;
    tracing::warn!(path = %path.display(), start, "cut an unfinished batch off the journal");
    Ok(true)
}

/// Whether no journal in `folder` holds anything.
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

fn newest(folder: &Path) -> Result<Option<PathBuf>, StoreError> {
    let journals = entries(folder)?.into_iter().filter(|path| number(path).is_some());
    Ok(journals.max_by_key(|path| number(path)))
}

fn number(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.strip_suffix(".jnl")?.parse().ok()
}

/// Where the batch with a wrong checksum begins, if nothing but zeros follows it.
fn torn_batch(file: &File) -> io::Result<Option<u64>> {
    let mut journal = Journal { reader: BufReader::new(file), position: 0 };
    loop {
        let start = journal.position;
        match journal.batch() {
            Ok(Some(true)) => {}
            Ok(Some(false)) => return Ok(journal.rest_is_zero()?.then_some(start)),
            Ok(None) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error),
        }
    }
}

struct Journal<'a> {
    reader: BufReader<&'a File>,
    position: u64,
}

impl Journal<'_> {
    /// Reads one batch: whether its checksum holds, or `None` if it is no whole batch (which fjall handles).
    fn batch(&mut self) -> io::Result<Option<bool>> {
        let [START] = self.take()? else { return Ok(None) };
        let count = u32::from_le_bytes(self.take()?);
        let _sequence: [u8; 8] = self.take()?;
        let mut sum = Xxh3::new();
        for _ in 0..count {
            let [tag] = self.take()?;
            sum.update(&[tag]);
            match tag {
                ITEM => self.item(&mut sum)?,
                CLEAR => sum.update(&self.take::<8>()?),
                _ => return Ok(None),
            }
        }
        let [END] = self.take()? else { return Ok(None) };
        let expected = u64::from_le_bytes(self.take()?);
        Ok((self.take()? == MAGIC).then_some(sum.digest() == expected))
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
        let mut buffer = [0; 4096];
        loop {
            match self.reader.read(&mut buffer)? {
                0 => return Ok(true),
                size if buffer[..size].iter().any(|&byte| byte != 0) => return Ok(false),
                _ => {}
            }
        }
    }
}
