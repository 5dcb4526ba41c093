//! A disk of our own: an ext4 on a loop device over a file.
//!
//! What a program writes stays in the page cache of the mounted file system until it is synced, or for half a
//! minute; the loop device's file holds what has reached the disk. A copy of that file, made at once, is the disk of
//! a machine that lost its power.

use anyhow::{Context as _, ensure};
use std::fs::{self, File};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What this rig shows.
pub(crate) const CLAIM: &str = "what was not synced when the server was killed is lost, and the kernel replays the \
                                file system's journal";
/// The file system; most of it stays a hole in the file.
const BYTES: u64 = 1024 * 1024 * 1024;
/// Seconds between two periodic commits of the file system's journal.
const OPTIONS: &str = "loop,commit=300";
/// The flag in ext4's superblock that its journal must be replayed: a bit of the incompatible features.
const FEATURES_AT: u64 = 1024 + 0x60;
const FEATURE_RECOVER: u32 = 4;
/// The longest request of a disk in memory: one page, KiB.
const PAGE_KIB: &str = "4";
/// What is planted: half a page.
const PLANTED: [u8; 2048] = [b'p'; 2048];

/// Runs a tool to its end.
fn run(tool: &mut Command) -> anyhow::Result<()> {
    let out = tool.output().with_context(|| format!("failed to run {tool:?}"))?;
    let said = String::from_utf8_lossy(&out.stderr);
    ensure!(out.status.success(), "{tool:?} ended with {}: {}", out.status, said.trim());
    Ok(())
}

/// Something that is mounted; unmounted when it is dropped.
struct Mount(PathBuf);

impl Mount {
    fn make(at: PathBuf, mount: &mut Command) -> anyhow::Result<Self> {
        fs::create_dir_all(&at)?;
        run(mount.arg(&at))?;
        Ok(Self(at))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if let Err(error) = unmount(&self.0) {
            eprintln!("{} stays mounted: {error:#}", self.0.display());
        }
    }
}

/// Unmounts what is mounted here. Falls back to a lazy unmount: a failed test may leave a dying server behind that still
/// holds it.
pub(crate) fn unmount(at: &Path) -> anyhow::Result<()> {
    run(Command::new("umount").arg(at)).or_else(|_| run(Command::new("umount").arg("--lazy").arg(at)))
}

/// A loop device whose requests have one page each, as long as this lives. If no more than the first pages of a request fit
/// into the file below, the kernel says that all of it was written: a disk that is full would lose what was synced.
struct SinglePages {
    setting: PathBuf,
    before: String,
}

impl SinglePages {
    /// The device of what is mounted here.
    fn of(at: &Path) -> anyhow::Result<Self> {
        let device = fs::metadata(at)?.dev();
        let device = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
        let setting = Path::new("/sys/dev/block").join(device).join("queue/max_sectors_kb");
        let before = fs::read_to_string(&setting)?;
        fs::write(&setting, PAGE_KIB).with_context(|| format!("failed to write {}", setting.display()))?;
        Ok(Self { setting, before })
    }
}

impl Drop for SinglePages {
    fn drop(&mut self) {
        if let Err(error) = fs::write(&self.setting, &self.before) {
            eprintln!("{} stays at {PAGE_KIB}: {error}", self.setting.display());
        }
    }
}

/// A mounted disk. Its parts go in this order: the file system, its device's setting, the file, and what the file lies on.
pub(crate) struct Disk {
    scratch: PathBuf,
    mount: Mount,
    /// Of a disk in memory.
    _pages: Option<SinglePages>,
    file: Backing,
    _ground: Option<Mount>,
}

/// A file behind or beside a disk; removed when it is dropped.
pub(crate) struct Backing(PathBuf);

impl Drop for Backing {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.0) {
            eprintln!("{} is left over: {error}", self.0.display());
        }
    }
}

/// A disk in memory that is soon full. It goes when it is dropped.
pub(crate) struct Small(Mount);

impl Small {
    /// A new one of this many bytes.
    pub(crate) fn new(scratch: &Path, bytes: u64) -> anyhow::Result<Self> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={bytes}"), "tmpfs"]);
        Ok(Self(Mount::make(scratch.join("small"), &mut mount)?))
    }

    /// The path of its files.
    pub(crate) fn path(&self) -> &Path {
        &self.0.0
    }

    /// Fills it to the last byte. Dropping the result frees the space.
    pub(crate) fn fill(&self, name: &str) -> anyhow::Result<Backing> {
        let ballast = Backing(self.path().join(name));
        let mut file = File::create(&ballast.0)?;
        let full = loop {
            if let Err(error) = file.write_all(&[0xbb; 4096]) {
                break error;
            }
        };
        ensure!(full.kind() == ErrorKind::StorageFull, "the disk cannot be filled: {full}");
        Ok(ballast)
    }
}

/// What a cut has left of what was planted before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unsynced {
    /// The file that was not synced is absent or empty.
    Lost,
    /// It is there, because another sync or the kernel's writeback included it.
    Present,
}

impl Disk {
    /// A new disk over a file in `scratch`.
    pub(crate) fn on_files(scratch: &Path, name: &str) -> anyhow::Result<Self> {
        Self::of_bytes(scratch, name, BYTES)
    }

    /// The same of this many bytes.
    pub(crate) fn of_bytes(scratch: &Path, name: &str, bytes: u64) -> anyhow::Result<Self> {
        Self::make(scratch, scratch.join(name), bytes, None)
    }

    /// A new disk of this many bytes over a file in memory, of which at most `ground_bytes` fit.
    pub(crate) fn on_memory(scratch: &Path, bytes: u64, ground_bytes: u64) -> anyhow::Result<Self> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={ground_bytes}"), "tmpfs"]);
        let ground = Mount::make(scratch.join("ground"), &mut mount)?;
        let file = ground.0.join("disk");
        Self::make(scratch, file, bytes, Some(ground))
    }

    fn make(scratch: &Path, file: PathBuf, bytes: u64, ground: Option<Mount>) -> anyhow::Result<Self> {
        File::create(&file)?.set_len(bytes)?;
        let file = Backing(file);
        // Without lazy initialisation, so that only the server writes.
        let whole = ["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"];
        run(Command::new("mkfs.ext4").args(whole).arg(&file.0))?;
        Self::over(scratch, file, ground)
    }

    fn over(scratch: &Path, file: Backing, ground: Option<Mount>) -> anyhow::Result<Self> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "ext4", "-o", OPTIONS]).arg(&file.0);
        let name = file.0.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mount = Mount::make(scratch.join(format!("mounted-{name}")), &mut mount)?;
        let pages = ground.is_some().then(|| SinglePages::of(&mount.0)).transpose()?;
        Ok(Self { scratch: scratch.to_owned(), mount, _pages: pages, file, _ground: ground })
    }

    /// The path of the disk's files.
    pub(crate) fn path(&self) -> &Path {
        &self.mount.0
    }

    /// Writes a file and syncs it; to be done long before a cut, because a sync takes along what others have named.
    pub(crate) fn plant_synced(&self) -> anyhow::Result<()> {
        let mut file = File::create(self.path().join("synced"))?;
        file.write_all(&PLANTED)?;
        file.sync_all()?;
        Ok(File::open(self.path())?.sync_all()?)
    }

    /// Writes a file and does not sync it; to be done just before a cut.
    pub(crate) fn plant_unsynced(&self) -> anyhow::Result<()> {
        Ok(fs::write(self.path().join("unsynced"), PLANTED)?)
    }

    /// Takes the power away: the disk as it would be found, which is copied at once and mounted under another name.
    /// This one is gone with it.
    pub(crate) fn cut(self, name: &str) -> anyhow::Result<Self> {
        let copy = Backing(self.scratch.join(name));
        run(Command::new("cp").args(["--reflink=never", "--sparse=auto"]).arg(&self.file.0).arg(&copy.0))?;
        ensure!(needs_recovery(&copy.0)?, "the copied disk was left in order, so it is none of a power cut");
        let scratch = self.scratch.clone();
        drop(self);
        Self::over(&scratch, copy, None)
    }

    /// What became of what was planted.
    ///
    /// # Errors
    /// The file that was synced is not there whole: the disk has lost what it must keep.
    pub(crate) fn harvest(&self) -> anyhow::Result<Unsynced> {
        let synced = fs::read(self.path().join("synced")).context("the synced file is gone")?;
        ensure!(synced == PLANTED, "the synced file is not whole");
        fs::remove_file(self.path().join("synced"))?;
        let unsynced = self.path().join("unsynced");
        match fs::read(&unsynced) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Unsynced::Lost),
            found => {
                let kept = found?.contains(&PLANTED[0]);
                fs::remove_file(&unsynced)?;
                Ok(if kept { Unsynced::Present } else { Unsynced::Lost })
            }
        }
    }

    /// Fills the file system below the disk's file, so that no new block of the disk can be written. Dropping the result
    /// frees the space.
    pub(crate) fn fill_ground(&self) -> anyhow::Result<Backing> {
        let ground = self.file.0.parent().context("the disk's file lies nowhere")?;
        let ballast = Backing(ground.join("ballast"));
        let mut file = File::create(&ballast.0)?;
        let full = loop {
            if let Err(error) = file.write_all(&[0xbb; 4096]) {
                break error;
            }
        };
        ensure!(full.kind() == ErrorKind::StorageFull, "the disk's ground cannot be filled: {full}");
        Ok(ballast)
    }

    /// Takes the disk out and puts it in again.
    pub(crate) fn again(self) -> anyhow::Result<Self> {
        let Self { scratch, mount, _pages: pages, file, _ground } = self;
        drop(mount);
        // The next one may be on the same device.
        drop(pages);
        Self::over(&scratch, file, _ground)
    }
}

fn needs_recovery(disk: &Path) -> anyhow::Result<bool> {
    let mut features = [0; 4];
    File::open(disk)?.read_exact_at(&mut features, FEATURES_AT)?;
    Ok(u32::from_le_bytes(features) & FEATURE_RECOVER != 0)
}
