//! A disk of its own for each server, whose power can be cut: what was not synced is gone then. The disks are those of the
//! crash test.

use anyhow::{Context as _, ensure};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tokio::task::block_in_place;

use super::plan::SERVERS;
use crate::disk::{Disk, Unsynced};
use crate::{scratch, setting};

/// The bytes of a disk, most of which stay a hole in its file: more than a server writes in some hours.
const BYTES: u64 = 3 * 1024 * 1024 * 1024;

/// Whether a run goes on where no power can be cut, 1 or 0.
const WITHOUT: &str = "CLUSTER_FAULT_WITHOUT_POWER_CUTS";

/// The disks of all servers. Dropping them unmounts them.
pub(crate) struct Disks {
    disks: Mutex<BTreeMap<u64, Disk>>,
    cuts: Mutex<u64>,
    data: PathBuf,
    _scratch: TempDir,
}

impl Disks {
    /// Mounts a disk for each server, and puts its folder there into the data folder of the cluster. Returns `None`, and says
    /// why, if no disk can be mounted here.
    ///
    /// # Errors
    /// No disk can be mounted here, and power cuts must not be left out.
    pub(crate) fn mount(data: &Path) -> anyhow::Result<Option<Self>> {
        let scratch = scratch::folder()?;
        if let Err(error) = Disk::on_files(scratch.path(), "probe") {
            let why = format!("no loop device can be mounted here ({error:#})").replace('\n', " ");
            ensure!(
                setting(WITHOUT, 1) == 1,
                "no power can be cut, because {why}; {WITHOUT}=1 plays without power cuts"
            );
            // Not by `eprintln!`, which is not seen if the test passes.
            writeln!(std::io::stderr(), "cluster faults: power cuts are left out, because {why}")?;
            return Ok(None);
        }
        fs::create_dir_all(data)?;
        let mut disks = BTreeMap::new();
        for server in SERVERS {
            let disk = Disk::of_bytes(scratch.path(), &format!("disk-{server}"), BYTES)?;
            let folder = disk.path().join("data");
            fs::create_dir(&folder)?;
            fs::set_permissions(&folder, Permissions::from_mode(0o700))?;
            point(data, server, &disk)?;
            disk.plant_synced()?;
            disks.insert(server, disk);
        }
        Ok(Some(Self {
            disks: Mutex::new(disks),
            cuts: Mutex::default(),
            data: data.to_owned(),
            _scratch: scratch,
        }))
    }

    /// Writes something to the disk of a server that is not synced; to be done just before its process is killed.
    pub(crate) fn plant(&self, server: u64) -> anyhow::Result<()> {
        self.disks.lock().get(&server).context("it has no disk")?.plant_unsynced()
    }

    /// Cuts the power of a server whose process was just killed. Returns true if what was planted is lost.
    ///
    /// # Errors
    /// The disk has lost what was synced.
    pub(crate) fn cut(&self, server: u64) -> anyhow::Result<bool> {
        block_in_place(|| {
            let number = {
                let mut cuts = self.cuts.lock();
                *cuts += 1;
                *cuts
            };
            let disk = self.disks.lock().remove(&server).context("it has no disk")?;
            let disk = disk.cut(&format!("disk-{server}-{number}"))?;
            let lost = disk.harvest()? == Unsynced::Lost;
            point(&self.data, server, &disk)?;
            disk.plant_synced()?;
            self.disks.lock().insert(server, disk);
            Ok(lost)
        })
    }
}

/// Makes the data folder of a server that on this disk.
fn point(data: &Path, server: u64, disk: &Disk) -> anyhow::Result<()> {
    let (link, new) = (data.join(format!("server-{server}")), data.join("new-link"));
    symlink(disk.path().join("data"), &new)?;
    Ok(fs::rename(new, link)?)
}
