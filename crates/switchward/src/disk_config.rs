//! The configuration of the disk: `[disk]`.

use serde::{Deserialize, Serialize};
use switchward_store::DiskOptions;

/// What happens when the disk runs low.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct DiskConfig {
    /// Free space below which what would grow is refused, MiB.
    pub(crate) min_free_mib: u64,
    /// Space that is allocated ahead for decisions and acknowledgements on a full disk, MiB.
    pub(crate) reserve_mib: u64,
}

impl Default for DiskConfig {
    fn default() -> Self {
        Self { min_free_mib: 256, reserve_mib: 64 }
    }
}

impl DiskConfig {
    /// The same in bytes.
    pub(crate) fn options(&self) -> DiskOptions {
        let bytes = |mib: u64| mib.saturating_mul(1024 * 1024);
        DiskOptions { min_free_bytes: bytes(self.min_free_mib), reserve_bytes: bytes(self.reserve_mib) }
    }
}
