//! Ways to cut the power: a disk that loses unsynced data, or, if no disk can be mounted, a layer under the log that does.

pub(crate) mod disk;
pub(crate) mod layer;

use anyhow::bail;
use disk::Disk;
use std::path::Path;

use crate::rng::setting;

/// How the power is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rig {
    /// A file system on a loop device, whose file is copied between syncs.
    Loop,
    /// The log inside this process, stopped before a sync.
    Layer,
}

impl Rig {
    /// What can be done here, or what the environment asks for. Says which it is, and why.
    pub(crate) fn here(scratch: &Path) -> anyhow::Result<Self> {
        match setting("CRASH_RIG", String::new()).as_str() {
            "layer" => {
                eprintln!("power cuts by the layer, as CRASH_RIG says: {}", layer::CLAIM);
                Ok(Self::Layer)
            }
            "loop" => {
                eprintln!("power cuts by the loop device, as CRASH_RIG says: {}", disk::CLAIM);
                Ok(Self::Loop)
            }
            "" => match Disk::on_files(scratch, "probe") {
                Ok(_) => {
                    eprintln!("power cuts by the loop device: {}", disk::CLAIM);
                    Ok(Self::Loop)
                }
                Err(error) => {
                    eprintln!("power cuts by the layer, for no loop device can be mounted here: {error:#}");
                    eprintln!("{}", layer::CLAIM);
                    Ok(Self::Layer)
                }
            },
            other => bail!("CRASH_RIG={other}: say loop or layer"),
        }
    }
}
