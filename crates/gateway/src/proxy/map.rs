//! Where the groups of the cluster are, as gateways get it from servers.

use bytes::Bytes;
use minicbor::{Decode, Encode};
use std::io;
use switchward_shard::Cluster;
use switchward_state::catalogue::{BucketMap, MapEpochs, ServerState};

use super::need::Need;

/// Sent form. A form byte, then parts by number.
const FORM: u8 = 1;
/// The group of the catalogue.
const CATALOGUE: u64 = 0;

/// Where the groups of a cluster are. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct RouteMap {
    /// Raised by each change of the map or of a server.
    #[n(0)]
    pub epoch: u64,
    /// The servers that are not removed, by their numbers.
    #[n(1)]
    pub servers: Vec<RouteServer>,
    /// The groups by their numbers; the catalogue is group 0.
    #[n(2)]
    pub groups: Vec<RouteGroup>,
    /// Which group owns which bucket.
    #[n(3)]
    pub buckets: BucketMap,
    /// The numbers of the servers that were removed, whose certificates may still be valid.
    #[n(4)]
    pub removed: Vec<u64>,
}

/// A server of the cluster, as the map that gateways follow has it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct RouteServer {
    /// Its number in the cluster, from 1; never used again.
    #[n(0)]
    pub number: u64,
    /// Where other servers and gateways reach it: `host:port`.
    #[n(1)]
    pub address: String,
}

/// A group, as the map that gateways follow has it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct RouteGroup {
    /// Its number.
    #[n(0)]
    pub group: u64,
    /// The servers that have a replica of it.
    #[n(1)]
    pub servers: Vec<u64>,
    /// The server that leads it, as far as the one that made the map knew.
    #[n(2)]
    pub leader: Option<u64>,
}

impl RouteMap {
    /// The map as this server knows it; `None` for a server alone.
    ///
    /// # Errors
    /// A row cannot be read.
    pub fn of(cluster: &Cluster) -> io::Result<Option<Self>> {
        let Some(map) = cluster.map()? else { return Ok(None) };
        let (removed, present): (Vec<_>, Vec<_>) =
            cluster.servers()?.into_iter().partition(|server| server.state == ServerState::Removed);
        let servers =
            present.into_iter().map(|server| RouteServer { number: server.number, address: server.address });
        let leader =
            |group: u64| cluster.all().find(|shard| shard.number() == group).and_then(|it| it.leader());
        let groups = map.groups.into_iter().map(|replicas| RouteGroup {
            group: replicas.group,
            servers: replicas.servers,
            leader: leader(replicas.group),
        });
        Ok(Some(Self {
            epoch: map.epoch,
            servers: servers.collect(),
            groups: groups.collect(),
            buckets: map.buckets,
            removed: removed.into_iter().map(|server| server.number).collect(),
        }))
    }

    /// The epochs that a request names which is routed by this map.
    #[must_use]
    pub fn epochs(&self) -> MapEpochs {
        MapEpochs::of(self.epoch, &self.buckets)
    }

    /// The bytes that are sent.
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = vec![FORM];
        minicbor::encode(self, &mut out).expect("a vector can always be written to");
        out.into()
    }

    /// Reads what was sent.
    ///
    /// # Errors
    /// It is another form.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, String> {
        let (form, rest) = bytes.split_first().ok_or("the map of the cluster is empty")?;
        if *form != FORM {
            return Err(format!("the map of the cluster has the unknown form {form}"));
        }
        minicbor::decode(rest).map_err(|error| format!("the map of the cluster cannot be read: {error}"))
    }

    /// Returns true if it names this server, and does not say that it was removed.
    pub(crate) fn has(&self, number: u64) -> bool {
        self.servers.iter().any(|server| server.number == number) && !self.removed.contains(&number)
    }

    /// The servers that have what a call needs: its leader first, the others in turn beginning with the `turn`th.
    pub(crate) fn servers_with(&self, need: Need, turn: usize) -> Vec<&RouteServer> {
        let group = match need {
            Need::Bucket(bucket) => self.buckets.group_of(bucket),
            Need::Catalogue => Some(CATALOGUE),
            Need::AllShards | Need::AnyServer => None,
        };
        let group = group.and_then(|group| self.groups.iter().find(|known| known.group == group));
        let has = |server: &&RouteServer| match (need, group) {
            (Need::AnyServer, _) => true,
            (Need::AllShards, _) => self.groups.iter().all(|group| group.servers.contains(&server.number)),
            (Need::Bucket(_) | Need::Catalogue, group) => {
                group.is_some_and(|group| group.servers.contains(&server.number))
            }
        };
        let present = self.servers.iter().filter(|server| self.has(server.number));
        let mut servers: Vec<&RouteServer> = present.filter(has).collect();
        if !servers.is_empty() {
            let first = turn % servers.len();
            servers.rotate_left(first);
        }
        let leader = group.and_then(|group| group.leader);
        // A stable sort: the others stay in their turn.
        servers.sort_by_key(|server| Some(server.number) != leader);
        servers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchward_machine::Bucket;

    fn map() -> RouteMap {
        let server = |number| RouteServer { number, address: format!("node-{number}:7401") };
        let group = |group, servers: &[u64], leader| RouteGroup { group, servers: servers.to_vec(), leader };
        RouteMap {
            epoch: 7,
            servers: (1..=4).map(server).collect(),
            groups: vec![
                group(0, &[1, 2, 3, 4], Some(3)),
                group(1, &[1, 2, 4], Some(2)),
                group(2, &[2, 3, 4], None),
            ],
            buckets: BucketMap::InTurn { groups: 2 },
            removed: vec![5],
        }
    }

    fn servers_with(need: Need, turn: usize) -> Vec<u64> {
        map().servers_with(need, turn).iter().map(|server| server.number).collect()
    }

    fn bucket(number: u16) -> Need {
        Need::Bucket(Bucket::new(number).unwrap())
    }

    #[test]
    fn the_leader_comes_first_and_the_others_in_turn() {
        assert_eq!(servers_with(bucket(0), 0), [2, 1, 4]);
        assert_eq!(servers_with(bucket(0), 2), [2, 4, 1]);
        assert_eq!(servers_with(bucket(1), 1), [3, 4, 2], "no leader is known");
        assert_eq!(servers_with(Need::Catalogue, 0), [3, 1, 2, 4]);
        assert_eq!(servers_with(Need::AnyServer, 1), [2, 3, 4, 1]);
        assert_eq!(servers_with(Need::AllShards, 0), [2, 4], "only these have every group");
        let without = RouteMap { removed: vec![2, 5], ..map() };
        let left = without.servers_with(bucket(0), 0);
        assert!(left.iter().all(|server| server.number != 2), "a removed server gets no call: {left:?}");
        assert_eq!(
            RouteMap { servers: Vec::new(), ..map() }.servers_with(Need::AnyServer, 5),
            Vec::<&RouteServer>::new()
        );
    }

    /// `BLESS=1` rewrites the file.
    #[test]
    fn a_map_has_the_bytes_of_route_map_v1_hex() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/route_map.v1.hex");
        let hex: String = map().encode().iter().map(|byte| format!("{byte:02x}")).collect();
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(file, format!("{hex}\n")).unwrap();
        }
        assert_eq!(format!("{hex}\n"), std::fs::read_to_string(file).unwrap());
    }

    #[test]
    fn a_map_is_read_back_and_other_bytes_are_not() {
        let bytes = map().encode();
        assert_eq!(RouteMap::decode(&bytes), Ok(map()));
        assert!(RouteMap::decode(b"").is_err() && RouteMap::decode(&bytes[1..]).is_err());
        assert!(RouteMap::decode(&bytes[..bytes.len() - 1]).is_err());
    }
}
