//! Which shard of this server owns which bucket: the catalogue's map, in a form that is read without a lock.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use switchward_machine::{Bucket, limits::BUCKETS};
use switchward_state::catalogue::{BucketMap, ClusterMap, FIRST_EPOCH, MapEpochs};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::failure::Failure;
use crate::limits::MAP_WAIT;

/// The map of buckets as this server has it. Until the catalogue has one, and for ever on a server alone, the buckets are
/// dealt to the groups in turn, as in the map of a new cluster.
///
/// A reader takes the epochs before the owner of a bucket, and a new map changes the owners before the epochs. So who
/// has read an owner of an earlier map names no later epoch.
pub(crate) struct Routes {
    /// The numbers of the groups that own buckets, in the order of the server's shards.
    groups: Vec<u64>,
    /// The position in `groups` of the owner of each bucket.
    owners: Box<[AtomicU8]>,
    since: AtomicU64,
    newest: AtomicU64,
    /// The newest epoch, for those who wait for a later one.
    followed: watch::Sender<u64>,
    /// The epoch of the map by which each bucket got its owner, as far as this server knows. Locked while a new map is taken
    /// in, so that an epoch read after an owner is not older than that owner.
    owned_since: Mutex<Box<[u64]>>,
}

impl Routes {
    /// The buckets dealt to these groups in turn.
    pub(crate) fn of_groups(groups: Vec<u64>) -> Self {
        let buckets = BucketMap::InTurn { groups: groups.len() as u64 };
        let owners = positions(&groups, &buckets).unwrap_or_else(|| vec![0; usize::from(BUCKETS)]);
        Self {
            groups,
            owners: owners.into_iter().map(AtomicU8::new).collect(),
            since: AtomicU64::new(FIRST_EPOCH),
            newest: AtomicU64::new(FIRST_EPOCH),
            followed: watch::Sender::new(FIRST_EPOCH),
            owned_since: Mutex::new(vec![FIRST_EPOCH; usize::from(BUCKETS)].into_boxed_slice()),
        }
    }

    /// The epochs at which each bucket has the owner that it has now.
    pub(crate) fn epochs(&self) -> MapEpochs {
        let newest = self.newest.load(Ordering::Acquire);
        MapEpochs { since: self.since.load(Ordering::Acquire), newest }
    }

    /// The position of a bucket's shard among those that own buckets.
    pub(crate) fn position(&self, bucket: Bucket) -> usize {
        usize::from(self.owners[usize::from(bucket.number())].load(Ordering::Relaxed))
    }

    /// The group that owns a bucket.
    pub(crate) fn group_of(&self, bucket: Bucket) -> Option<u64> {
        self.groups.get(self.position(bucket)).copied()
    }

    /// The epoch of the map by which a bucket got the owner that it has now. If this server has missed a map in between, the
    /// bucket may have had that owner before, too.
    pub(crate) fn owned_since(&self, bucket: Bucket) -> u64 {
        self.owned_since.lock()[usize::from(bucket.number())]
    }

    /// Notifies of each new map.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.followed.subscribe()
    }

    /// Takes a map in, unless a later one is known.
    pub(crate) fn follow(&self, map: &ClusterMap) {
        let mut owned_since = self.owned_since.lock();
        let known = self.epochs();
        if map.epoch < known.newest {
            return;
        }
        let Some(owners) = positions(&self.groups, &map.buckets) else {
            tracing::error!(epoch = map.epoch, "the map of the cluster names a group that this server lacks");
            return;
        };
        let pairs = || self.owners.iter().zip(&owners);
        let same = pairs().all(|(known, owner)| known.load(Ordering::Relaxed) == *owner);
        let own = MapEpochs::of(map.epoch, &map.buckets).since;
        // Between two maps of which one does not follow the other, buckets may have moved away and back.
        let follows = map.epoch <= known.newest + 1;
        let since = if same && follows { own.min(known.since) } else { own };
        let any_may_have_moved = !follows && since > known.newest;
        for ((before, owner), owned_since) in pairs().zip(owned_since.iter_mut()) {
            if before.swap(*owner, Ordering::Relaxed) != *owner || any_may_have_moved {
                *owned_since = map.epoch;
            }
        }
        self.since.store(since, Ordering::Release);
        self.newest.store(map.epoch, Ordering::Release);
        self.followed.send_replace(map.epoch);
    }

    /// Waits until the map has this epoch or a later one, at most [`MAP_WAIT`]; false if it has not.
    pub(crate) async fn reach(&self, epoch: u64) -> bool {
        let mut followed = self.followed.subscribe();
        let reached = followed.wait_for(|newest| *newest >= epoch);
        timeout(MAP_WAIT, reached).await.is_ok_and(|reached| reached.is_ok())
    }

    /// Returns if a process with these epochs routes as this server does. If its map is a later one, waits until this server
    /// has that too, at most [`MAP_WAIT`].
    ///
    /// # Errors
    /// [`Failure::OtherMap`].
    pub(crate) async fn agree(&self, theirs: MapEpochs) -> Result<(), Failure> {
        if self.epochs().overlap(theirs) {
            return Ok(());
        }
        if self.reach(theirs.since).await && self.epochs().overlap(theirs) {
            return Ok(());
        }
        Err(self.other_map())
    }

    /// The refusal of what was routed by another map.
    pub(crate) fn other_map(&self) -> Failure {
        Failure::OtherMap { epoch: self.epochs().newest }
    }
}

/// The position of the owner of each bucket among these groups; `None` if a bucket has no owner among them.
fn positions(groups: &[u64], buckets: &BucketMap) -> Option<Vec<u8>> {
    let position = |number| {
        let group = buckets.group_of(Bucket::new(number)?)?;
        let at = groups.iter().position(|known| *known == group)?;
        u8::try_from(at).ok()
    };
    (0..BUCKETS).map(position).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchward_state::Level;
    use switchward_state::catalogue::BucketRange;

    const GROUPS: [u64; 3] = [1, 2, 3];

    fn routes() -> Routes {
        Routes::of_groups(GROUPS.to_vec())
    }

    fn bucket(number: u16) -> Bucket {
        Bucket::new(number).unwrap()
    }

    fn in_turn(epoch: u64) -> ClusterMap {
        ClusterMap { epoch, ..ClusterMap::founded([1; 16], 1, 3, Level(1), 3) }
    }

    /// A map in which each bucket has another owner than in turn.
    fn shuffled(epoch: u64) -> ClusterMap {
        let group = |number: u16| u64::from((number + 1) % 3) + 1;
        let ranges = (0..BUCKETS).map(|first| BucketRange { first, group: group(first) });
        ClusterMap { buckets: BucketMap::Ranges(ranges.collect()), ..in_turn(epoch) }
    }

    /// The map in turn, but for bucket 0.
    fn one_moved(epoch: u64) -> ClusterMap {
        let group = |number: u16| if number == 0 { 2 } else { u64::from(number % 3) + 1 };
        let ranges = (0..BUCKETS).map(|first| BucketRange { first, group: group(first) });
        ClusterMap { buckets: BucketMap::Ranges(ranges.collect()), ..in_turn(epoch) }
    }

    fn owners(routes: &Routes) -> Vec<Option<u64>> {
        (0..BUCKETS).map(|number| routes.group_of(bucket(number))).collect()
    }

    fn owners_by(map: &ClusterMap) -> Vec<Option<u64>> {
        (0..BUCKETS).map(|number| map.buckets.group_of(bucket(number))).collect()
    }

    #[test]
    fn a_server_without_a_map_deals_the_buckets_in_turn() {
        let routes = routes();
        assert_eq!(owners(&routes), owners_by(&in_turn(1)));
        assert_eq!(routes.epochs(), MapEpochs { since: 1, newest: 1 });
        assert_eq!((routes.position(bucket(0)), routes.position(bucket(4))), (0, 1));
    }

    #[test]
    fn the_map_of_the_catalogue_is_followed_and_never_back() {
        let routes = routes();
        routes.follow(&in_turn(4));
        assert_eq!(routes.epochs(), MapEpochs { since: 1, newest: 4 }, "no bucket has moved");
        routes.follow(&shuffled(6));
        assert_eq!(owners(&routes), owners_by(&shuffled(6)));
        assert_eq!(routes.epochs(), MapEpochs { since: 6, newest: 6 });
        routes.follow(&in_turn(5));
        assert_eq!(owners(&routes), owners_by(&shuffled(6)), "the older map is not taken");
        routes.follow(&shuffled(7));
        assert_eq!(routes.epochs(), MapEpochs { since: 6, newest: 7 }, "it follows the one before");
        routes.follow(&shuffled(9));
        assert_eq!(routes.epochs(), MapEpochs { since: 9, newest: 9 }, "the one before was not seen");
    }

    #[test]
    fn each_bucket_has_its_owner_since_the_map_that_moved_it() {
        let routes = routes();
        let since = || [0, 1].map(|number| routes.owned_since(bucket(number)));
        routes.follow(&in_turn(4));
        assert_eq!(since(), [1, 1], "buckets in turn have never moved");
        routes.follow(&one_moved(5));
        assert_eq!(since(), [5, 1]);
        routes.follow(&one_moved(6));
        assert_eq!(since(), [5, 1]);
        routes.follow(&one_moved(8));
        assert_eq!(since(), [8, 8], "by the map between, any may have moved away");
    }

    #[test]
    fn a_map_with_an_unknown_group_is_not_taken() {
        let routes = routes();
        let range = BucketRange { first: 0, group: 9 };
        routes.follow(&ClusterMap { buckets: BucketMap::Ranges(vec![range]), ..in_turn(2) });
        assert_eq!((owners(&routes), routes.epochs().newest), (owners_by(&in_turn(1)), 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_sender_with_an_older_map_is_refused_at_once() {
        let routes = routes();
        routes.follow(&shuffled(6));
        let began = tokio::time::Instant::now();
        let stale = MapEpochs { since: 1, newest: 5 };
        assert_eq!(routes.agree(stale).await, Err(Failure::OtherMap { epoch: 6 }));
        assert_eq!(began.elapsed(), std::time::Duration::ZERO);
        let alike = MapEpochs { since: 6, newest: 6 };
        routes.follow(&shuffled(7));
        assert_eq!(routes.agree(alike).await, Ok(()), "no bucket has moved since");
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_with_an_older_map_waits_for_the_newer_one() {
        let routes = std::sync::Arc::new(routes());
        let newer = MapEpochs { since: 6, newest: 6 };
        assert_eq!(routes.agree(newer).await, Err(Failure::OtherMap { epoch: 1 }), "it never comes");
        let asked = {
            let routes = std::sync::Arc::clone(&routes);
            tokio::spawn(async move { routes.agree(newer).await })
        };
        tokio::task::yield_now().await;
        assert!(!asked.is_finished());
        routes.follow(&shuffled(6));
        assert_eq!(asked.await.unwrap(), Ok(()));
    }
}
