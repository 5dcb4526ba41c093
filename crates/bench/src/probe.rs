//! The bare disk: how many syncs a second one thread gets.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

const RECORD_BYTES: usize = 4096;
const TIME: Duration = Duration::from_millis(400);

/// Syncs a second, and the median of one in milliseconds: 4 KiB appended to a growing file each time.
pub(crate) fn syncs(folder: &Path) -> std::io::Result<(f64, f64)> {
    let path = folder.join("probe");
    let mut file = File::create(&path)?;
    let record = [7u8; RECORD_BYTES];
    let mut each = Vec::new();
    let begin = Instant::now();
    while begin.elapsed() < TIME {
        let since = Instant::now();
        file.write_all(&record)?;
        file.sync_data()?;
        each.push(since.elapsed());
    }
    let rate = each.len() as f64 / begin.elapsed().as_secs_f64();
    std::fs::remove_file(&path)?;
    each.sort_unstable();
    let median = each.get(each.len() / 2).copied().unwrap_or_default();
    Ok((rate, median.as_secs_f64() * 1e3))
}
