//! How much of a group's log a purge leaves for other replicas.
//!
//! A replica that lacks a purged entry gets a snapshot: a copy of all rows. So a leader keeps what a replica lacks that
//! may come back, up to named bounds. A follower does not know what the others have; it keeps what the bounds allow, as
//! it may be the next leader. Erased data is not kept for anybody: `scrub.rs` purges the whole log whatever is said here.

use openraft::{Instant as _, RaftMetrics};
use std::time::Duration;
use switchward_store::DiskLevel;
use tokio::time::Instant;

use crate::limits::{
    LOG_AWAY_BYTES_MAX, LOG_AWAY_ENTRIES_MAX, LOG_AWAY_MAX, LOG_AWAY_SPARE, LOG_BYTES_KEPT, LOG_BYTES_MAX,
    LOG_ENTRIES_KEPT,
};
use crate::log_store::LogStore;
use crate::types::{LogId, TypeConfig};

/// What a group keeps of its log for replicas that are away.
#[derive(Debug, Clone, Copy)]
pub struct LogRetention {
    /// The most that is kept, bytes.
    pub bytes_max: u64,
    /// The most that is kept, entries.
    pub entries_max: u64,
    /// How long after the last contact with a replica nothing more is kept for it.
    pub away_max: Duration,
}

impl Default for LogRetention {
    fn default() -> Self {
        Self { bytes_max: LOG_AWAY_BYTES_MAX, entries_max: LOG_AWAY_ENTRIES_MAX, away_max: LOG_AWAY_MAX }
    }
}

impl LogRetention {
    /// The same on a disk of this level. While it runs low, its space is for what is written: a replica that lacks more than a
    /// log has anyway gets a snapshot.
    pub(crate) fn at(self, level: DiskLevel) -> Self {
        match level {
            DiskLevel::Enough => self,
            DiskLevel::Low | DiskLevel::Reserve | DiskLevel::Full => {
                Self { bytes_max: self.bytes_max.min(LOG_BYTES_MAX), ..self }
            }
        }
    }
}

/// A replica on another server, as its leader knows it.
#[derive(Debug, Clone, Copy)]
struct Peer {
    /// The last entry that it is known to have.
    matched: Option<u64>,
    /// The time since the last contact.
    silent: Duration,
}

/// Since when this server leads: a replica without any contact since then is away since then.
#[derive(Debug, Default)]
pub(crate) struct Leading {
    term: u64,
    since: Option<Instant>,
}

impl Leading {
    /// The index of the last entry that a purge may remove; `None` if it may remove none.
    pub(crate) fn purgeable(
        &mut self,
        log: &LogStore,
        retention: &LogRetention,
        now: &RaftMetrics<TypeConfig>,
    ) -> Option<u64> {
        let unkept = log.all_but(LOG_ENTRIES_KEPT, LOG_BYTES_KEPT)?;
        let (bytes, entries) = log.size();
        let exceeds = bytes > retention.bytes_max || entries > retention.entries_max;
        // A little more than that, so that a log that goes on growing is seldom purged.
        let less = |most: u64| most - most / LOG_AWAY_SPARE;
        let excess = || log.all_but(less(retention.entries_max), less(retention.bytes_max));
        let excess = exceeds.then(excess).flatten();
        match self.peers(now) {
            None => excess,
            Some(peers) => spared(unkept, &peers, retention.away_max).max(excess),
        }
    }

    /// The replicas on other servers; `None` if this server does not lead.
    fn peers(&mut self, now: &RaftMetrics<TypeConfig>) -> Option<Vec<Peer>> {
        let (Some(matched), Some(contacts)) = (&now.replication, &now.heartbeat) else {
            *self = Self::default();
            return None;
        };
        if self.since.is_none() || self.term != now.current_term {
            *self = Self { term: now.current_term, since: Some(Instant::now()) };
        }
        let leads_for = self.since.map_or(Duration::ZERO, |since| since.elapsed());
        let others = matched.iter().filter(|(node, _)| **node != now.id);
        let peer = |(node, matched): (&u64, &Option<LogId>)| {
            let last = contacts.get(node).copied().flatten();
            Peer {
                matched: matched.map(|id| id.index),
                silent: last.map_or(leads_for, |last| last.elapsed().min(leads_for)),
            }
        };
        Some(others.map(peer).collect())
    }
}

/// The last entry up to `unkept` that no peer lacks, among those that are not away for too long.
fn spared(unkept: u64, peers: &[Peer], away_max: Duration) -> Option<u64> {
    let present = peers.iter().filter(|peer| peer.silent <= away_max);
    present.map(|peer| peer.matched).min().map_or(Some(unkept), |least| least.map(|least| least.min(unkept)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use std::sync::Arc;
    use switchward_store::{DataDir, GroupId, GroupLog, LogOptions, LogRecord, SegmentLog};

    const AWAY_MAX: Duration = Duration::from_secs(600);

    fn peer(matched: impl Into<Option<u64>>, silent: u64) -> Peer {
        Peer { matched: matched.into(), silent: Duration::from_secs(silent) }
    }

    #[test]
    fn entries_are_kept_for_the_replica_that_has_least() {
        assert_eq!(spared(90, &[], AWAY_MAX), Some(90), "a server alone");
        assert_eq!(spared(90, &[peer(95, 0), peer(99, 0)], AWAY_MAX), Some(90), "all have them");
        assert_eq!(spared(90, &[peer(95, 0), peer(40, 600)], AWAY_MAX), Some(40));
        assert_eq!(spared(90, &[peer(95, 0), peer(None, 3)], AWAY_MAX), None, "nothing is known of one");
    }

    #[test]
    fn a_disk_that_runs_low_keeps_no_more_than_a_log_has_anyway() {
        let (most, less) =
            (LogRetention::default(), LogRetention { bytes_max: 7, ..LogRetention::default() });
        assert_eq!(most.at(DiskLevel::Enough).bytes_max, LOG_AWAY_BYTES_MAX);
        for level in [DiskLevel::Low, DiskLevel::Reserve, DiskLevel::Full] {
            assert_eq!((most.at(level).bytes_max, less.at(level).bytes_max), (LOG_BYTES_MAX, 7));
        }
    }

    #[test]
    fn nothing_is_kept_for_a_replica_that_is_away_too_long() {
        assert_eq!(spared(90, &[peer(95, 0), peer(40, 601)], AWAY_MAX), Some(90));
        assert_eq!(spared(90, &[peer(95, 0), peer(None, 601)], AWAY_MAX), Some(90));
    }

    /// The bound of a log: this many entries, or their bytes.
    const MOST: u64 = 4 * LOG_AWAY_SPARE;

    /// Lets a follower's log grow by one entry after the other. Returns the last entry at each purge, and the last one
    /// that is removed. `retention` gets the bytes of an entry.
    fn purges(retention: fn(u64) -> LogRetention) -> Vec<(u64, u64)> {
        let (folder, group) = (tempfile::tempdir().unwrap(), GroupId(1));
        let options = LogOptions { on_fatal: Box::new(|error| panic!("{error}")), sync_fault: None };
        let log = Arc::new(SegmentLog::open(&DataDir::open(folder.path()).unwrap(), options).unwrap());
        let store = LogStore::new(Arc::clone(&log) as Arc<dyn GroupLog>, group);
        let (follower, mut purges) = (RaftMetrics::<TypeConfig>::new_initial(2), Vec::new());
        for index in 1..=2 * MOST {
            let entry = LogRecord { index, bytes: Bytes::from_static(b"an entry") };
            log.append(group, vec![entry], Box::new(drop));
            let (_, entry_bytes) = log.stretch(group, index..index + 1);
            if let Some(last) = Leading::default().purgeable(&store, &retention(entry_bytes), &follower) {
                log.purge_to(group, last, Bytes::new(), Box::new(drop));
                purges.push((index, last));
            }
        }
        purges
    }

    #[test]
    fn a_log_at_its_bound_is_purged_by_a_sixteenth_and_not_again_until_it_is_there() {
        let left = MOST - MOST / 16;
        let expected: Vec<_> = (MOST + 1..=2 * MOST).step_by(5).map(|index| (index, index - left)).collect();
        let by_entries = |_: u64| LogRetention { entries_max: MOST, ..LogRetention::default() };
        assert_eq!(purges(by_entries), expected);
        let by_bytes =
            |entry_bytes: u64| LogRetention { bytes_max: MOST * entry_bytes, ..LogRetention::default() };
        assert_eq!(purges(by_bytes), expected);
    }
}
