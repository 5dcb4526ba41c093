//! Repair of a torn end of a fjall journal, and a search for damage.
//!
//! A batch is written to the journal with several `write` calls into a file that was grown sparsely to 64 MiB, and is
//! synced later. A power cut in between may leave any subset of its pages; the missing ones read as zeros. fjall
//! discards such a batch, and all that follows, if the hole hits the tag of an entry; if the hole lies inside a value
//! (which needs a value of more than a page) or in a number, it fails, and the database never opens again. This
//! module cuts off the first broken batch and all that follows: batches are written without a sync, their contents
//! can be restored from the log, and the reader of the database sees how far it goes. Damage to what was synced is an
//! error that names the position.
//!
//! A journal is synced before the next one is begun, so that in general only the newest one can have been torn. How much
//! of the one that was synced last was synced is known, with the digest of its bytes: the checksum of a batch leaves
//! its sequence number out.
//!
//! What follows may be whole in memory and not on disk, if a sync failed and the process ended: the kernel takes the
//! pages for written then, and the next sync says nothing about them. So it is written and synced again before
//! anything is read from the database: the log is purged up to what a sync has made durable. A journal may even have
//! been followed by another one after its sync had failed; if a power cut has torn it, all later ones are removed, since
//! their batches follow those that are cut off.

mod follower;

use crate::{
    StoreError,
    files::{entries, failed, skip_hole, sync_dir},
};
pub(crate) use follower::Follower;
use std::{
    cmp::Ordering,
    fs::{self, File},
    io::{self, BufReader, Read},
    ops::Range,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};
use xxhash_rust::xxh3::Xxh3;

const START: u8 = 1;
const ITEM: u8 = 2;
const END: u8 = 3;
const CLEAR: u8 = 4;
const MAGIC: [u8; 4] = *b"FJL\x03";
/// How much is read at once, bytes.
const BLOCK: usize = 64 * 1024;

/// How much of a journal was synced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Synced {
    /// The number of the journal.
    pub(crate) journal: u64,
    /// Its first bytes, which end with a batch; 0 if none is known to have been synced.
    pub(crate) bytes: u64,
    /// The 64-bit xxHash of these bytes, by which a restart recognises them.
    pub(crate) digest: u64,
}

impl Synced {
    /// The number of the first bytes of a journal that are known to have been synced.
    fn bytes_of(self, journal: u64) -> u64 {
        match journal.cmp(&self.journal) {
            // After a failed sync no later journal is marked, so what precedes the marked one was synced.
            Ordering::Less => u64::MAX,
            Ordering::Equal => self.bytes,
            Ordering::Greater => 0,
        }
    }
}

/// Cuts a torn end off the journals in `folder`, with all that follows it, and makes all batches durable that are left.
/// Nothing is changed before all of them are known to be sound.
///
/// # Errors
/// [`StoreError::Damaged`], with the position, if something is not as it was written that was synced; if a journal
/// cannot be read, cut, written or synced.
pub(crate) fn repair(folder: &Path, synced: Synced) -> Result<(), StoreError> {
    repair_with(folder, synced, &File::sync_all)
}

/// The same, with this for a sync.
fn repair_with(
    folder: &Path,
    synced: Synced,
    sync: &dyn Fn(&File) -> io::Result<()>,
) -> Result<(), StoreError> {
    let mut journals: Vec<(u64, PathBuf)> =
        entries(folder)?.into_iter().filter_map(|path| Some((number(&path)?, path))).collect();
    journals.sort();
    let newest = journals.last().map(|(number, _)| *number);
    check_number(folder, newest, synced)?;
    let (mut sound, mut journals) = (Vec::new(), journals.into_iter());
    for (number, path) in journals.by_ref() {
        let journal = Sound::read(number, path, synced)?;
        let is_torn = journal.found.broken.is_some();
        sound.push(journal);
        if is_torn {
            break;
        }
    }
    // Before the torn one is cut: another restart must not find them after a journal that looks whole.
    remove(folder, journals.map(|(_, path)| path))?;
    sound.iter().try_for_each(|journal| journal.settle(synced, sync))?;
    // The process may have ended before the entry of the newest one was durable.
    if sound.is_empty() { Ok(()) } else { sync_dir(folder) }
}

/// Removes the journals that follow a torn one, durably.
fn remove(folder: &Path, later: impl Iterator<Item = PathBuf>) -> Result<(), StoreError> {
    for path in later {
        fs::remove_file(&path).map_err(failed("remove", &path))?;
        tracing::warn!(path = %path.display(), "removed an unsynced journal, since an older one was torn");
        sync_dir(folder)?;
    }
    Ok(())
}

/// A journal that is as it was written, except for a torn end.
struct Sound {
    number: u64,
    path: PathBuf,
    file: File,
    found: JournalEnd,
}

impl Sound {
    /// Reads a journal. Fails if something is not as it was written that was synced: that is all of it, if a later one was
    /// synced.
    fn read(number: u64, path: PathBuf, synced: Synced) -> Result<Self, StoreError> {
        let here = if number == synced.journal { synced } else { Synced::default() };
        let file = File::options().read(true).write(true).open(&path).map_err(failed("open", &path))?;
        let found = read(&file, here.bytes).map_err(failed("read", &path))?;
        found.check(&path, here)?;
        if let Some(start) = found.broken.filter(|start| *start < synced.bytes_of(number)) {
            return Err(broken(&path, start, "it is broken, and a later one was synced"));
        }
        Ok(Self { number, path, file, found })
    }

    /// Cuts a torn end off, and makes the batches durable that are not known to be.
    fn settle(&self, synced: Synced, sync: &dyn Fn(&File) -> io::Result<()>) -> Result<(), StoreError> {
        let Self { path, file, found, .. } = self;
        let unsure = synced.bytes_of(self.number)..found.end;
        if unsure.is_empty() && found.broken.is_none() {
            return Ok(());
        }
        if let Some(start) = found.broken {
            file.set_len(start).map_err(failed("cut", path))?;
            let path = path.display();
            tracing::warn!(%path, start, "removed an unsynced batch from the end of the journal");
        }
        write_again(file, unsure).map_err(failed("write", path))?;
        sync(file).map_err(failed("sync", path))
    }
}

/// Writes these bytes of a file to where they are, so that a sync writes them to the disk.
fn write_again(file: &File, bytes: Range<u64>) -> io::Result<()> {
    let (mut buffer, mut at) = (vec![0; BLOCK], bytes.start);
    while at < bytes.end {
        let size = usize::try_from(bytes.end - at).unwrap_or(usize::MAX).min(BLOCK);
        file.read_exact_at(&mut buffer[..size], at)?;
        file.write_all_at(&buffer[..size], at)?;
        at += size as u64;
    }
    Ok(())
}

/// Fails if a journal that was synced is missing, and so all that is newer.
fn check_number(folder: &Path, newest: Option<u64>, synced: Synced) -> Result<(), StoreError> {
    if synced.bytes == 0 || newest >= Some(synced.journal) {
        return Ok(());
    }
    let detail = format!("{}.jnl in {} is missing", synced.journal, folder.display());
    Err(StoreError::damaged("journal", detail))
}

fn broken(path: &Path, start: u64, why: &str) -> StoreError {
    StoreError::damaged("journal", format!("the batch at byte {start} of {}: {why}", path.display()))
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

/// What was found in a journal.
struct JournalEnd {
    /// The offset after the last whole batch.
    end: u64,
    /// The first byte at which it is not as it was written. A journal ends where only zeros follow.
    broken: Option<u64>,
    /// The digest of the bytes that were synced; `None` if no batch ends with them.
    synced: Option<u64>,
}

impl JournalEnd {
    /// Fails unless all that was synced is there, as it was written.
    fn check(&self, path: &Path, synced: Synced) -> Result<(), StoreError> {
        match (self.synced, self.broken) {
            _ if synced.bytes == 0 => Ok(()),
            (Some(digest), _) if digest == synced.digest => Ok(()),
            (Some(_), _) => {
                let (bytes, path) = (synced.bytes, path.display());
                let detail = format!("a batch before byte {bytes} of {path}: it was synced, and has changed");
                Err(StoreError::damaged("journal", detail))
            }
            (None, Some(start)) => Err(broken(path, start, "it was synced, and is broken now")),
            (None, None) => Err(broken(path, self.end, "it was synced, and is missing")),
        }
    }
}

/// Reads a journal; `synced` is the number of its first bytes that were synced.
fn read(file: &File, synced: u64) -> io::Result<JournalEnd> {
    let mut journal = Journal::new(file, 0, Xxh3::new());
    let mut found = JournalEnd { end: 0, broken: None, synced: None };
    loop {
        match journal.batch() {
            Ok(Batch::Sound) => {
                found.end = journal.position;
                if found.end == synced {
                    found.synced = Some(journal.digest.digest());
                }
                continue;
            }
            Ok(Batch::None) if journal.rest_is_zero()? => return Ok(found),
            Ok(Batch::Broken | Batch::None) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                if journal.position == found.end {
                    return Ok(found);
                }
            }
            Err(error) => return Err(error),
        }
        return Ok(JournalEnd { broken: Some(found.end), ..found });
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
    /// Of all bytes that were read.
    digest: Xxh3,
}

impl<'a> Journal<'a> {
    fn new(file: &'a File, position: u64, digest: Xxh3) -> Self {
        Self { reader: BufReader::with_capacity(BLOCK, file), position, digest }
    }

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
            self.digest.update(&buffer[..size]);
            left -= size as u64;
        }
        self.position += key + value;
        Ok(())
    }

    fn take<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.reader.read_exact(&mut bytes)?;
        self.digest.update(&bytes);
        self.position += N as u64;
        Ok(bytes)
    }

    /// Returns true if only zeros follow. The hole that a journal is made with is not read: it would take longer than all else.
    fn rest_is_zero(&mut self) -> io::Result<bool> {
        let (mut buffer, zeros) = (vec![0; BLOCK], vec![0; BLOCK]);
        loop {
            if self.reader.buffer().is_empty() && !skip_hole(self.reader.get_ref())? {
                return Ok(true);
            }
            let size = self.reader.read(&mut buffer)?;
            if size == 0 || buffer[..size] != zeros[..size] {
                return Ok(size == 0);
            }
        }
    }
}

#[cfg(test)]
mod tests;
