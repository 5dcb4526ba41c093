//! The servers of a cluster, and which of them hold which group.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::{Bucket, Time};

use crate::{Level, Levels};

/// The epoch of the map of a new cluster, and of a server alone, whose catalogue has no map.
pub const FIRST_EPOCH: u64 = 1;

/// A server of a cluster. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct Server {
    /// Its number, from 1; never given to another server.
    #[n(0)]
    pub number: u64,
    /// The id of its data folder.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub folder: [u8; 16],
    /// Where other servers reach it: `host:port`.
    #[n(2)]
    pub address: String,
    /// Whether it takes seats, gives them up, or was removed.
    #[n(3)]
    pub state: ServerState,
    /// The feature levels of its program, as of its last start.
    #[n(4)]
    pub levels: Levels,
    /// When it became a server of the cluster.
    #[n(5)]
    pub joined: Time,
    /// The server that takes its seats, if it is lost and is being replaced. It is removed when it votes nowhere any more.
    #[n(6)]
    pub replaced_by: Option<u64>,
}

/// What a server of a cluster is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
#[cbor(index_only)]
pub enum ServerState {
    /// It holds replicas, votes and leads.
    #[n(0)]
    Active,
    /// It holds replicas and leads nothing. It votes only while the others would be an even number.
    #[n(1)]
    Draining,
    /// It holds nothing any more, and never comes back.
    #[n(2)]
    Removed,
}

impl ServerState {
    /// The public name.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Draining => "draining",
            Self::Removed => "removed",
        }
    }
}

/// Which servers hold which group, and which group owns which bucket. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct ClusterMap {
    /// Drawn when the cluster was founded.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub cluster: [u8; 16],
    /// Raised by each change of the map or of a server.
    #[n(1)]
    pub epoch: u64,
    /// The groups in the order of their numbers; the catalogue is group 0.
    #[n(2)]
    pub groups: Vec<GroupReplicas>,
    /// Which group owns which bucket.
    #[n(3)]
    pub buckets: BucketMap,
    /// The feature level in force: every server knows it, and nothing above it is written. It never falls.
    #[n(4)]
    pub level: Level,
    /// Voters of each group, as long as there are as many servers; set when the cluster is founded.
    #[n(5)]
    pub voters: u32,
}

/// The servers that hold a replica of a group, and which of them are to vote.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct GroupReplicas {
    /// The number of the group; 0 is the catalogue.
    #[n(0)]
    pub group: u64,
    /// The numbers of the servers, in ascending order.
    #[n(1)]
    pub servers: Vec<u64>,
    /// The numbers of those that are to vote, in ascending order. The others are learners.
    #[n(2)]
    pub voters: Vec<u64>,
}

impl GroupReplicas {
    /// Takes in a server as it is from now on. It gets a seat among the voters if one of `seats` is free.
    fn change(&mut self, server: &Server, seats: usize) {
        let number = server.number;
        match server.state {
            ServerState::Active | ServerState::Draining => insert(&mut self.servers, number),
            ServerState::Removed => {
                self.servers.retain(|known| *known != number);
                self.voters.retain(|known| *known != number);
            }
        }
        if server.state == ServerState::Active && self.voters.len() < seats {
            insert(&mut self.voters, number);
        }
    }
}

/// Adds a number to numbers in ascending order, unless it is one of them.
fn insert(numbers: &mut Vec<u64>, number: u64) {
    if let Err(at) = numbers.binary_search(&number) {
        numbers.insert(at, number);
    }
}

/// Which group owns which bucket.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum BucketMap {
    /// The buckets are dealt to the groups 1 to `groups` in turn, beginning with bucket 0. Each cluster begins with it, and
    /// has ranges for ever once a bucket has moved: so it tells that no bucket has moved yet.
    #[n(0)]
    InTurn {
        /// The number of groups besides the catalogue's.
        #[n(0)]
        groups: u64,
    },
    /// Ranges of buckets, in ascending order; the first one begins with bucket 0.
    #[n(1)]
    Ranges(#[n(0)] Vec<BucketRange>),
}

/// Buckets of one group, up to the beginning of the next range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct BucketRange {
    /// The first bucket.
    #[n(0)]
    pub first: u16,
    /// The group that owns them.
    #[n(1)]
    pub group: u64,
}

/// The epochs during which a process knows that the buckets belonged to the same groups as now. Not every new epoch moves a
/// bucket: two processes whose epochs overlap route alike, also if one of them has an older map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct MapEpochs {
    /// The first epoch of which it is known.
    #[n(0)]
    pub since: u64,
    /// The epoch of the newest map that the process has.
    #[n(1)]
    pub newest: u64,
}

impl MapEpochs {
    /// Those of a process that has this map alone.
    #[must_use]
    pub fn of(newest: u64, buckets: &BucketMap) -> Self {
        let since = match buckets {
            BucketMap::InTurn { .. } => FIRST_EPOCH.min(newest),
            BucketMap::Ranges(_) => newest,
        };
        Self { since, newest }
    }

    /// Returns true if some epoch belongs to both: each bucket has the same group by both maps.
    #[must_use]
    pub fn overlap(self, other: Self) -> bool {
        self.since.max(other.since) <= self.newest.min(other.newest)
    }
}

impl BucketMap {
    /// The group that owns a bucket; `None` if the map does not say it.
    #[must_use]
    pub fn group_of(&self, bucket: Bucket) -> Option<u64> {
        let number = bucket.number();
        match self {
            Self::InTurn { groups } => u64::from(number).checked_rem(*groups).map(|at| at + 1),
            Self::Ranges(ranges) => {
                let after = ranges.partition_point(|range| range.first <= number);
                after.checked_sub(1).and_then(|at| ranges.get(at)).map(|range| range.group)
            }
        }
    }
}

impl ClusterMap {
    /// The map of a new cluster with one server, `shards` groups besides the catalogue's, and this number of voters of each
    /// group.
    #[must_use]
    pub fn founded(cluster: [u8; 16], server: u64, shards: u64, level: Level, voters: u32) -> Self {
        let one = |group| GroupReplicas { group, servers: vec![server], voters: vec![server] };
        let groups = (0..=shards).map(one).collect();
        Self {
            cluster,
            epoch: FIRST_EPOCH,
            groups,
            buckets: BucketMap::InTurn { groups: shards },
            level,
            voters,
        }
    }

    /// The map after a change of a server: every group has a replica on each server that is not removed. An active server
    /// gets a seat in each group that has fewer voters than it should have.
    #[must_use]
    pub fn changed(&self, server: &Server) -> Self {
        let mut next = Self { epoch: self.epoch + 1, ..self.clone() };
        let seats = self.seats();
        next.groups.iter_mut().for_each(|group| group.change(server, seats));
        next
    }

    /// The map with other voters of a group, in ascending order.
    #[must_use]
    pub fn placed(&self, group: u64, voters: &[u64]) -> Self {
        let mut next = Self { epoch: self.epoch + 1, ..self.clone() };
        for known in next.groups.iter_mut().filter(|known| known.group == group) {
            known.voters = voters.to_vec();
        }
        next
    }

    /// The most voters that a group may have.
    #[must_use]
    pub fn seats(&self) -> usize {
        usize::try_from(self.voters).unwrap_or(usize::MAX)
    }

    /// The servers that are to vote in a group; none if there is no such group.
    #[must_use]
    pub fn voters_of(&self, group: u64) -> &[u64] {
        let found = self.groups.iter().find(|replicas| replicas.group == group);
        found.map_or(&[], |replicas| &replicas.voters)
    }

    /// The servers that hold a replica of a group; none if there is no such group.
    #[must_use]
    pub fn replicas(&self, group: u64) -> &[u64] {
        let found = self.groups.iter().find(|replicas| replicas.group == group);
        found.map_or(&[], |replicas| &replicas.servers)
    }

    /// The number of groups besides the catalogue's.
    #[must_use]
    pub fn shards(&self) -> u64 {
        self.groups.len().saturating_sub(1) as u64
    }
}

/// A server and the map after a change. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct ClusterChange {
    /// The server that was added or changed.
    #[n(0)]
    pub server: Server,
    /// The map from now on.
    #[n(1)]
    pub map: ClusterMap,
}

/// The server alone becomes the first one of a cluster. Repeated, it changes nothing.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct FoundCluster {
    /// Drawn for this cluster.
    #[cbor(n(0), with = "minicbor::bytes")]
    pub cluster: [u8; 16],
    /// The server that founds the cluster, with its number and address.
    #[n(1)]
    pub server: JoinServer,
    /// The number of groups besides the catalogue's.
    #[n(2)]
    pub shards: u64,
    /// Voters of each group, as long as there are as many servers: an odd number.
    #[n(3)]
    pub voters: u32,
}

/// A server becomes one of the cluster, or has another address or other feature levels.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct JoinServer {
    /// Its number, from 1.
    #[n(0)]
    pub number: u64,
    /// The id of its data folder.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub folder: [u8; 16],
    /// Where other servers reach it: `host:port`.
    #[n(2)]
    pub address: String,
    /// The feature levels of its program.
    #[n(3)]
    pub levels: Levels,
}

/// A server is drained, used again, or removed for good.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct SetServerState {
    /// The server's number.
    #[n(0)]
    pub number: u64,
    /// Its state from now on.
    #[n(1)]
    pub state: ServerState,
    /// The server that takes its seats, if it is being replaced.
    #[n(2)]
    pub replaced_by: Option<u64>,
    /// Refuses the command if the map has another epoch: what the caller has checked may no longer hold.
    #[n(3)]
    pub epoch: Option<u64>,
}

/// The cluster writes a higher feature level from now on.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct RaiseLevel {
    /// The level; not below the one in force.
    #[n(0)]
    pub level: Level,
}

/// Other servers are to vote in a group. Repeated, it changes nothing.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct AssignVoters {
    /// The number of the group; 0 is the catalogue.
    #[n(0)]
    pub group: u64,
    /// The numbers of the servers, in ascending order. One of those before may be missing, and one may be new.
    #[n(1)]
    pub voters: Vec<u64>,
    /// Refuses the command if the map has another epoch: the reason for it may be gone.
    #[n(2)]
    pub epoch: u64,
}

/// Records for auditors that leaders were transferred away from a server. It changes no server and no group.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub struct RecordTransfers {
    /// The server that led the groups.
    #[n(0)]
    pub from: u64,
    /// The groups, and who leads them since.
    #[n(1)]
    pub transfers: Vec<LeaderTransfer>,
}

/// A group that another server leads since a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct LeaderTransfer {
    /// The number of the group; 0 is the catalogue.
    #[n(0)]
    pub group: u64,
    /// The server that leads it.
    #[n(1)]
    pub to: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchward_machine::limits::BUCKETS;

    fn server(number: u64, state: ServerState) -> Server {
        let address = "10.0.0.2:7001".into();
        Server {
            number,
            folder: [2; 16],
            address,
            state,
            levels: Levels::OF_PROGRAM,
            joined: Time(5),
            replaced_by: None,
        }
    }

    #[test]
    fn buckets_are_dealt_in_turn() {
        let map = BucketMap::InTurn { groups: 3 };
        for number in 0..BUCKETS {
            let bucket = Bucket::new(number).expect("it is below the number of buckets");
            assert_eq!(map.group_of(bucket), Some(u64::from(number % 3) + 1));
        }
        assert_eq!(BucketMap::InTurn { groups: 0 }.group_of(Bucket::new(5).expect("a bucket")), None);
    }

    #[test]
    fn a_range_ends_where_the_next_begins() {
        let ranges = [(0, 1), (5, 2), (4_000, 1)].map(|(first, group)| BucketRange { first, group });
        let map = BucketMap::Ranges(ranges.to_vec());
        let group = |number| map.group_of(Bucket::new(number).expect("a bucket"));
        assert_eq!([0, 4, 5, 3_999, 4_000, 4_095].map(group), [1, 1, 2, 2, 1, 1].map(Some));
        assert_eq!(BucketMap::Ranges(Vec::new()).group_of(Bucket::new(0).expect("a bucket")), None);
    }

    #[test]
    fn processes_whose_epochs_overlap_route_alike() {
        let epochs = |since, newest| MapEpochs { since, newest };
        assert!(epochs(1, 5).overlap(epochs(1, 9)) && epochs(1, 9).overlap(epochs(1, 5)));
        assert!(epochs(1, 5).overlap(epochs(5, 9)) && epochs(4, 4).overlap(epochs(4, 4)));
        assert!(!epochs(1, 5).overlap(epochs(6, 9)) && !epochs(6, 9).overlap(epochs(1, 5)));
        assert!(!epochs(6, 5).overlap(epochs(1, 9)), "it was read while it changed");
        assert_eq!(MapEpochs::of(7, &BucketMap::InTurn { groups: 2 }), epochs(FIRST_EPOCH, 7));
        assert_eq!(MapEpochs::of(7, &BucketMap::Ranges(Vec::new())), epochs(7, 7));
    }

    #[test]
    fn each_group_has_a_replica_on_each_server_that_is_not_removed() {
        let map = ClusterMap::founded([1; 16], 2, 2, Level(1), 3);
        assert_eq!((map.shards(), map.replicas(2), map.replicas(9)), (2, [2].as_slice(), [].as_slice()));
        let map = map.changed(&server(1, ServerState::Active)).changed(&server(1, ServerState::Draining));
        assert_eq!((map.epoch, map.replicas(0)), (3, [1, 2].as_slice()));
        let map = map.changed(&server(2, ServerState::Removed));
        assert_eq!((map.epoch, map.replicas(1)), (4, [1].as_slice()));
    }

    #[test]
    fn a_server_gets_a_seat_as_long_as_one_is_free() {
        let mut map = ClusterMap::founded([1; 16], 1, 2, Level(1), 3);
        for number in [3, 2, 5, 4] {
            map = map.changed(&server(number, ServerState::Active));
        }
        assert_eq!((map.replicas(2), map.voters_of(2)), ([1, 2, 3, 4, 5].as_slice(), [1, 2, 3].as_slice()));
        let moved = map.placed(2, &[1, 3, 5]);
        assert_eq!(
            (moved.epoch, moved.voters_of(1), moved.voters_of(2)),
            (6, &[1, 2, 3][..], &[1, 3, 5][..])
        );
        let drained = moved.changed(&server(3, ServerState::Draining));
        assert_eq!(drained.voters_of(2), [1, 3, 5], "it keeps its seat until another one gets it");
        let removed = drained.changed(&server(3, ServerState::Removed));
        assert_eq!((removed.voters_of(1), removed.voters_of(2)), ([1, 2].as_slice(), [1, 5].as_slice()));
        let back = removed.changed(&server(4, ServerState::Active));
        assert_eq!((back.voters_of(1), back.voters_of(9)), ([1, 2, 4].as_slice(), [].as_slice()));
    }
}
