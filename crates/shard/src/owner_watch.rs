//! Notifies those who read for long of new maps of the cluster, and of a bucket that gets another owner.

use std::sync::Arc;
use switchward_machine::Bucket;
use tokio::sync::watch;

use crate::failure::Failure;
use crate::routes::Routes;

/// Notifies when this server gets a new map of the cluster.
pub struct MapChanges(watch::Receiver<u64>);

impl MapChanges {
    pub(crate) fn of(routes: &Routes) -> Self {
        Self(routes.watch())
    }

    /// Waits for the next map. Returns false if the server is gone.
    ///
    /// Cancel safe: a change is not lost.
    pub async fn changed(&mut self) -> bool {
        self.0.changed().await.is_ok()
    }
}

/// Notifies when a bucket gets another owner than it had at the beginning, also if it has come back meanwhile.
pub struct OwnerWatch {
    routes: Arc<Routes>,
    bucket: Bucket,
    /// The epoch of the map by which the bucket had got its owner at the beginning.
    since: u64,
    maps: watch::Receiver<u64>,
}

impl OwnerWatch {
    pub(crate) fn of(routes: &Arc<Routes>, bucket: Bucket) -> Self {
        let maps = routes.watch();
        Self { routes: Arc::clone(routes), bucket, since: routes.owned_since(bucket), maps }
    }

    /// Waits until the bucket has moved, as far as this server knows; returns at once if that is so already. Returns the
    /// failure of what goes by the former owner. Cancel safe.
    pub async fn moved(&mut self) -> Failure {
        while self.routes.owned_since(self.bucket) == self.since {
            if self.maps.changed().await.is_err() {
                // Not while the routes are held here.
                return Failure::Stopped;
            }
        }
        self.routes.other_map()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchward_machine::limits::BUCKETS;
    use switchward_state::Level;
    use switchward_state::catalogue::{BucketMap, BucketRange, ClusterMap};

    /// A map by which the first bucket belongs to this group, and all others to group 2.
    fn map(epoch: u64, group: u64) -> ClusterMap {
        let ranges = vec![BucketRange { first: 0, group }, BucketRange { first: 1, group: 2 }];
        let founded = ClusterMap::founded([1; 16], 1, 2, Level(1), 3);
        ClusterMap { epoch, buckets: BucketMap::Ranges(ranges), ..founded }
    }

    #[tokio::test]
    async fn it_notifies_of_its_own_bucket_alone_and_also_after_the_way_back() {
        let routes = Arc::new(Routes::of_groups(vec![1, 2]));
        routes.follow(&map(2, 1));
        let watch = |number| OwnerWatch::of(&routes, Bucket::new(number).unwrap());
        let (mut first, mut last) = (watch(0), watch(BUCKETS - 1));
        let mut maps = MapChanges::of(&routes);
        for (epoch, group) in [(3, 2), (4, 1)] {
            routes.follow(&map(epoch, group));
        }
        assert!(maps.changed().await);
        assert_eq!(first.moved().await, Failure::OtherMap { epoch: 4 });
        let unmoved = tokio::time::timeout(std::time::Duration::ZERO, last.moved()).await;
        assert!(unmoved.is_err(), "{unmoved:?}");
    }
}
