//! The disk of a data folder: its free space, what waits when it runs low, and a reserve that was allocated in
//! advance.

use crate::{
    StoreError,
    error::GaveUp,
    limits::{
        DISK_FLOOR_BYTES, DISK_LOOK, DISK_LOOK_LOW, DISK_NEARLY_FULL_BYTES, DISK_REMEMBERED, DISK_STARVED,
        DISK_STARVED_BYTES, SPACE_REFUSALS_MAX,
    },
};
use parking_lot::Mutex;
use rustix::fs::{FallocateFlags, fallocate, statvfs};
use std::{
    error::Error,
    fs::{self, File},
    io::{self, ErrorKind, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{
        Arc, Weak,
        atomic::{AtomicU8, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Instant,
};

/// The file that holds the reserve.
const RESERVE: &str = "RESERVE";

/// When writes are refused, and what is reserved for those that are not. If all are zero, the disk is not monitored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskOptions {
    /// Free space below which nothing that grows is admitted, bytes.
    pub min_free_bytes: u64,
    /// Space that is allocated ahead, for what must be written on a full disk, bytes.
    pub reserve_bytes: u64,
}

/// How much space a disk has, from the best to the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DiskLevel {
    /// Everything is admitted.
    Enough,
    /// There is less than the minimum: what grows is refused.
    Low,
    /// As before, and the reserve is being used.
    Reserve,
    /// The reserve is used up: every write is refused.
    Full,
}

impl DiskLevel {
    const ALL: [Self; 4] = [Self::Enough, Self::Low, Self::Reserve, Self::Full];

    fn of(number: u8) -> Self {
        Self::ALL.into_iter().find(|level| *level as u8 == number).unwrap_or(Self::Full)
    }
}

/// What a file system has left for this process's user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// What may still be written, bytes; reserves for the superuser are not counted.
    pub free_bytes: u64,
    /// Files that can still be made; `None` if the file system does not count them.
    pub free_files: Option<u64>,
}

impl Space {
    /// Queries the file system of a folder.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn of(folder: &Path) -> io::Result<Self> {
        let found = statvfs(folder)?;
        let free_files = (found.f_files > 0).then_some(found.f_favail);
        Ok(Self { free_bytes: found.f_bavail.saturating_mul(found.f_frsize), free_files })
    }
}

/// The state of the reserve.
#[derive(Debug)]
struct Reserve {
    /// True if it is allocated; one of no bytes always is.
    held: bool,
    /// Since when there is next to no other free space.
    starved: Option<Instant>,
}

impl Reserve {
    /// Returns true if the disk has been full for a moment. Whatever fills it has then stopped, and does not take the
    /// space that is given up.
    fn is_due(&mut self, free_bytes: u64) -> bool {
        if free_bytes >= DISK_STARVED_BYTES {
            self.starved = None;
            return false;
        }
        self.starved.get_or_insert_with(Instant::now).elapsed() >= DISK_STARVED
    }
}

/// The disk of a data folder.
#[derive(Debug)]
pub struct Disk {
    folder: PathBuf,
    options: DiskOptions,
    /// Locked while the reserve is taken or given up.
    reserve: Mutex<Reserve>,
    level: AtomicU8,
    free_bytes: AtomicU64,
    /// When the disk was last so full that a write may have failed.
    full_at: Mutex<Option<Instant>>,
}

impl Disk {
    /// A disk that is not monitored.
    pub(crate) fn unwatched(folder: &Path) -> Arc<Self> {
        Arc::new(Self::new(folder, DiskOptions::default()))
    }

    /// Monitors the disk from now on, as long as the result is held, and allocates the reserve.
    pub(crate) fn watched(folder: &Path, options: DiskOptions) -> io::Result<Arc<Self>> {
        let disk = Arc::new(Self::new(folder, options));
        disk.find_reserve();
        disk.look();
        let watched = Arc::downgrade(&disk);
        thread::Builder::new().name("disk-watch".to_owned()).spawn(move || watch(&watched))?;
        Ok(disk)
    }

    fn new(folder: &Path, options: DiskOptions) -> Self {
        Self {
            folder: folder.to_owned(),
            options,
            reserve: Mutex::new(Reserve { held: options.reserve_bytes == 0, starved: None }),
            level: AtomicU8::new(DiskLevel::Enough as u8),
            free_bytes: AtomicU64::new(u64::MAX),
            full_at: Mutex::default(),
        }
    }

    /// The configured options.
    #[must_use]
    pub fn options(&self) -> DiskOptions {
        self.options
    }

    /// The level at the last check.
    #[must_use]
    pub fn level(&self) -> DiskLevel {
        DiskLevel::of(self.level.load(Relaxed))
    }

    /// Free bytes at the last check.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        self.free_bytes.load(Relaxed)
    }

    /// Returns true if something that makes the data grow may be written.
    #[must_use]
    pub fn admits_growth(&self) -> bool {
        self.level() == DiskLevel::Enough
    }

    /// Returns true if something may be written that ends what is under way. Checks the disk again unless there is
    /// enough space.
    #[must_use]
    pub fn admits_ends(&self) -> bool {
        self.level() == DiskLevel::Enough || self.look() < DiskLevel::Full
    }

    /// Returns true if rows may be flushed: there is space that is not reserved.
    #[must_use]
    pub fn admits_maintenance(&self) -> bool {
        match self.level() {
            DiskLevel::Enough => true,
            DiskLevel::Low => self.free_bytes() >= self.floor_bytes(),
            DiskLevel::Reserve | DiskLevel::Full => false,
        }
    }

    /// Returns true if this many more bytes of rows leave what must stay free, as of the last check.
    #[must_use]
    pub fn has_space_for(&self, bytes: u64) -> bool {
        self.admits_maintenance() && self.free_bytes() >= self.floor_bytes().saturating_add(bytes)
    }

    /// Checks the free space, gives the reserve up if it is needed, and takes it back if it fits.
    pub fn look(&self) -> DiskLevel {
        if self.options == DiskOptions::default() {
            return DiskLevel::Enough;
        }
        let mut reserve = self.reserve.lock();
        let Ok(mut free) = Space::of(&self.folder).map(|space| space.free_bytes) else { return self.level() };
        let DiskOptions { min_free_bytes, reserve_bytes } = self.options;
        // A write that failed for lack of space may have freed some by now.
        if free < self.floor_bytes().max(DISK_NEARLY_FULL_BYTES) {
            *self.full_at.lock() = Some(Instant::now());
        }
        if reserve.is_due(free) && reserve.held && reserve_bytes > 0 {
            reserve.held = !self.give_up_reserve();
            free = Space::of(&self.folder).map_or(free, |space| space.free_bytes);
        } else if !reserve.held && free >= min_free_bytes.saturating_add(reserve_bytes) {
            reserve.held = self.allocate_reserve();
            free = Space::of(&self.folder).map_or(free, |space| space.free_bytes);
        }
        let before = self.level();
        // So that the level does not oscillate at the threshold.
        let margin = if before == DiskLevel::Enough { 0 } else { min_free_bytes / 16 };
        let level = match reserve.held {
            true if free >= min_free_bytes.saturating_add(margin) => DiskLevel::Enough,
            true if reserve_bytes > 0 => DiskLevel::Low,
            _ if free < self.floor_bytes() => DiskLevel::Full,
            true => DiskLevel::Low,
            false => DiskLevel::Reserve,
        };
        self.free_bytes.store(free, Relaxed);
        self.level.store(level as u8, Relaxed);
        drop(reserve);
        self.changed(before, level, free);
        level
    }

    fn changed(&self, before: DiskLevel, level: DiskLevel, free_bytes: u64) {
        if level >= DiskLevel::Reserve {
            *self.full_at.lock() = Some(Instant::now());
        }
        if level == before {
            return;
        }
        let min_free_bytes = self.options.min_free_bytes;
        match level {
            DiskLevel::Enough => {
                tracing::info!(free_bytes, "the disk has enough free space again: all writes are accepted");
            }
            DiskLevel::Low => tracing::warn!(
                free_bytes,
                min_free_bytes,
                "the disk runs low: writes that add data are refused; reads, decisions and acknowledgements continue"
            ),
            DiskLevel::Reserve => tracing::error!(
                free_bytes,
                "the disk is full: decisions and acknowledgements are written to the reserve"
            ),
            DiskLevel::Full => {
                tracing::error!(
                    free_bytes,
                    "the disk is full and the reserve is used up: every write is refused"
                );
            }
        }
    }

    /// What must stay free for the files themselves, bytes.
    #[must_use]
    pub fn floor_bytes(&self) -> u64 {
        let DiskOptions { min_free_bytes, reserve_bytes } = self.options;
        if reserve_bytes > 0 { reserve_bytes / 4 } else { DISK_FLOOR_BYTES.min(min_free_bytes / 4) }
    }

    /// Waits a moment, in which whatever fills the disk stops, and gives the reserve up, because a write has failed
    /// for lack of space.
    pub(crate) fn on_disk_full(&self) {
        thread::sleep(DISK_STARVED);
        let mut reserve = self.reserve.lock();
        if reserve.held && self.options.reserve_bytes > 0 {
            reserve.held = !self.give_up_reserve();
        }
        drop(reserve);
        *self.full_at.lock() = Some(Instant::now());
        self.look();
    }

    /// Returns true if a failure comes from a full disk and lost nothing: a write found no space, or the database
    /// below has given up while there was none.
    #[must_use]
    pub fn caused(&self, error: &(dyn Error + 'static)) -> bool {
        let mut causes = causes(error);
        if causes.any(|cause| cause.downcast_ref().is_some_and(is_storage_full)) {
            *self.full_at.lock() = Some(Instant::now());
            return true;
        }
        self.gave_up(error)
    }

    /// Returns true if the database below has given up, and the disk was recently full.
    pub(crate) fn gave_up(&self, error: &(dyn Error + 'static)) -> bool {
        let mut causes = causes(error);
        if !causes.any(|cause| cause.is::<GaveUp>()) {
            return false;
        }
        self.look();
        self.full_at.lock().is_some_and(|at| at.elapsed() < DISK_REMEMBERED)
    }

    /// Returns true if the file system says that it has space for a write of this many bytes.
    fn claims_space_for(&self, bytes: u64) -> bool {
        let least = self.floor_bytes().max(DISK_NEARLY_FULL_BYTES).saturating_add(bytes);
        let has = |space: Space| space.free_bytes >= least && space.free_files != Some(0);
        Space::of(&self.folder).is_ok_and(has)
    }

    fn reserve_file(&self) -> PathBuf {
        self.folder.join(RESERVE)
    }

    /// Takes over the reserve of an earlier start; one of another size is given up.
    fn find_reserve(&self) {
        let mut reserve = self.reserve.lock();
        let Ok(found) = self.reserve_file().metadata() else { return };
        let wanted = self.options.reserve_bytes;
        if wanted > 0 && found.len() == wanted && found.blocks().saturating_mul(512) >= wanted {
            reserve.held = true;
        } else {
            self.give_up_reserve();
        }
    }

    fn give_up_reserve(&self) -> bool {
        let removed = fs::remove_file(self.reserve_file());
        match removed {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                tracing::error!(%error, "failed to free the disk reserve");
                false
            }
            Ok(()) | Err(_) => true,
        }
    }

    fn allocate_reserve(&self) -> bool {
        match allocate(&self.reserve_file(), self.options.reserve_bytes) {
            Ok(()) => true,
            Err(error) => {
                tracing::debug!(%error, "failed to allocate the disk reserve");
                self.give_up_reserve();
                false
            }
        }
    }
}

/// The attempts to write that found no space, although the file system has some.
#[derive(Debug, Default)]
pub(crate) struct Refusals(u32);

impl Refusals {
    /// Takes note of an attempt to write this many bytes, which has failed. Returns true if further ones are in vain: what
    /// lies below the file system is full, such as the pool of a volume that was promised more than there is. A quota does
    /// not show in what the file system says.
    pub(crate) fn end(&mut self, disk: &Disk, error: &(dyn Error + 'static), bytes: u64) -> bool {
        let full = |cause: &io::Error| cause.kind() == ErrorKind::StorageFull;
        if !causes(error).any(|cause| cause.downcast_ref().is_some_and(full)) {
            return false;
        }
        self.0 = if disk.claims_space_for(bytes) { self.0.saturating_add(1) } else { 0 };
        self.0 >= SPACE_REFUSALS_MAX
    }
}

/// Creates a file with all of its blocks allocated.
fn allocate(path: &Path, bytes: u64) -> io::Result<()> {
    let mut file = File::options().create(true).truncate(true).write(true).open(path)?;
    match fallocate(&file, FallocateFlags::empty(), 0, bytes) {
        Err(rustix::io::Errno::OPNOTSUPP) => {
            let zeros = vec![0; 1 << 20];
            let mut left = bytes;
            while left > 0 {
                let part = left.min(1 << 20);
                file.write_all(&zeros[..usize::try_from(part).unwrap_or(1 << 20)])?;
                left -= part;
            }
        }
        other => other?,
    }
    file.sync_all()
}

fn watch(disk: &Weak<Disk>) {
    while let Some(disk) = disk.upgrade() {
        let low = disk.look() != DiskLevel::Enough
            || disk.free_bytes() < disk.options.min_free_bytes.saturating_mul(4);
        drop(disk);
        thread::sleep(if low { DISK_LOOK_LOW } else { DISK_LOOK });
    }
}

fn is_storage_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

/// An error and all of its causes. An `io::Error` hides the error it was made from, so that is looked for inside.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error: &&'a (dyn Error + 'static)| {
        let error: &'a (dyn Error + 'static) = *error;
        // So does the pointer by which our own error shares its source.
        if let Some(StoreError::Database { source, .. }) = error.downcast_ref() {
            return Some(&**source as &(dyn Error + 'static));
        }
        if let Some(StoreError::Io { source, .. }) = error.downcast_ref() {
            return Some(&**source as &(dyn Error + 'static));
        }
        let inside = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        inside.map(|inside| inside as &(dyn Error + 'static)).or_else(move || error.source())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::failed;

    #[test]
    fn a_full_disk_is_found_behind_every_wrapping() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::unwatched(folder.path());
        let full = || io::Error::from(ErrorKind::StorageFull);
        assert!(disk.caused(&full()));
        assert!(disk.caused(&StoreError::database("write")(fjall::Error::Io(full()))));
        assert!(disk.caused(&io::Error::other(StoreError::database("write")(fjall::Error::Io(full())))));
        assert!(!disk.caused(&io::Error::other("broken")));
        let broken = StoreError::database("sync")(fjall::Error::Io(io::Error::other("broken")));
        assert!(!disk.caused(&broken));
    }

    #[test]
    fn a_database_that_gave_up_is_no_matter_of_the_disk_unless_it_was_full() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::unwatched(folder.path());
        let gave_up = StoreError::database("write")(fjall::Error::Poisoned);
        assert!(!disk.caused(&gave_up));
        disk.on_disk_full();
        assert!(disk.caused(&gave_up));
    }

    #[test]
    fn a_file_system_that_has_space_and_refuses_it_again_and_again_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::unwatched(folder.path());
        let refused = |kind: ErrorKind| failed("make", folder.path())(io::Error::from(kind));
        let (full, quota) = (refused(ErrorKind::StorageFull), refused(ErrorKind::QuotaExceeded));
        let mut refusals = Refusals::default();
        for _ in 1..SPACE_REFUSALS_MAX {
            assert!(!refusals.end(&disk, &full, 0), "too early");
            assert!(!refusals.end(&disk, &quota, 0), "a quota is none of the file system's space");
        }
        assert!(!refusals.end(&disk, &full, u64::MAX), "there is no space for it");
        for nth in 1..=SPACE_REFUSALS_MAX {
            assert_eq!(refusals.end(&disk, &full, 0), nth == SPACE_REFUSALS_MAX, "{nth}");
        }
    }

    #[test]
    fn the_reserve_is_allocated_given_up_and_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let options = DiskOptions { min_free_bytes: 1, reserve_bytes: 1 << 20 };
        let blocks = || fs::metadata(folder.path().join(RESERVE)).map(|it| it.blocks() * 512).ok();
        let disk = Disk::watched(folder.path(), options).unwrap();
        assert_eq!(disk.level(), DiskLevel::Enough);
        assert!(blocks().is_some_and(|bytes| bytes >= 1 << 20), "{:?}", blocks());
        drop(disk);
        let other = DiskOptions { min_free_bytes: u64::MAX / 2, reserve_bytes: 1 << 19 };
        let disk = Disk::watched(folder.path(), other).unwrap();
        assert_eq!((disk.level(), blocks()), (DiskLevel::Reserve, None), "the disk is full");
        assert!(!disk.admits_growth() && disk.admits_ends());
    }
}
