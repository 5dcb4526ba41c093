//! The map of a gateway: fetched from servers every few seconds, and at once when it proves outdated.
//!
//! A gateway holds no data: at its start it knows only its seeds, the servers that its configuration names. One of them may
//! have been removed from the cluster since: its certificate is still valid, and its map is the last one that it got, in
//! which it is a member. So the first map comes from a server that more than half of the seeds name as a server of the
//! cluster, each in its own map; until as many have answered, the gateway passes nothing on. Later maps come from the
//! servers of the map that is known, which also says who was removed.
//!
//! Chosen: a majority of the seeds. Rejected: the highest epoch of all that answer, which is that of the removed server if
//! no other one can be reached, and whatever it likes if it does not tell the truth; a majority of the servers that the map
//! itself names, which the sender of the map chooses.

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

use super::forward::{Maps, Proxy};
use super::head::MAP_PATH;
use super::links::Question;
use super::map::{RouteMap, RouteServer};
use crate::limits::{
    ROUTE_MAP_BYTES_MAX, ROUTE_MAP_FIRST_TURNS, ROUTE_MAP_MS, ROUTE_MAP_PAUSE_MS, ROUTE_MAP_REACH_MS,
    ROUTE_MAP_WAIT_MS,
};
use crate::routes::Health;

/// What a gateway knows of the cluster.
pub(super) struct Followed {
    seeds: BTreeMap<u64, String>,
    current: Arc<Current>,
}

#[derive(Default)]
struct Current {
    map: RwLock<Option<Arc<RouteMap>>>,
    /// The epoch of the map, for those who wait for a later one; 0 before the first map.
    epoch: watch::Sender<u64>,
    outdated: Notify,
}

#[tonic::async_trait]
impl Maps for Current {
    fn map(&self) -> Option<Arc<RouteMap>> {
        self.map.read().clone()
    }

    fn outdated(&self) {
        self.outdated.notify_one();
    }

    async fn reach(&self, epoch: u64) -> bool {
        let mut known = self.epoch.subscribe();
        let reached = known.wait_for(|known| *known >= epoch);
        timeout(Duration::from_millis(ROUTE_MAP_REACH_MS), reached).await.is_ok_and(|reached| reached.is_ok())
    }
}

impl Followed {
    pub(super) fn new(seeds: BTreeMap<u64, String>) -> Self {
        Self { seeds, current: Arc::default() }
    }

    pub(super) fn maps(&self) -> Arc<dyn Maps> {
        Arc::clone(&self.current) as Arc<dyn Maps>
    }

    /// The servers that can be asked, in this order: those of the map beginning with the `turn`th, then the configured ones
    /// that it does not name, which so count only if no map is known or no server of the map answers. A removed server is
    /// not among them.
    fn servers(&self, turn: usize) -> Vec<RouteServer> {
        let map = self.current.map();
        let in_turn = |mut servers: Vec<RouteServer>| {
            if !servers.is_empty() {
                let first = turn % servers.len();
                servers.rotate_left(first);
            }
            servers
        };
        let seeds = self.seeds.iter();
        let seeds = seeds.map(|(number, address)| RouteServer { number: *number, address: address.clone() });
        let Some(map) = map else { return in_turn(seeds.collect()) };
        let present = map.servers.iter().filter(|server| map.has(server.number)).cloned();
        let named = |number: u64| map.servers.iter().any(|server| server.number == number);
        let others = seeds.filter(|seed| !named(seed.number) && !map.removed.contains(&seed.number));
        let mut servers = in_turn(present.collect());
        servers.extend(in_turn(others.collect()));
        servers
    }

    /// Takes the first map, from what the seeds have answered until now: of the servers that more than half of all seeds name,
    /// the newest map. Returns `None` if there is no such server yet, or if a map is known already.
    fn begin(&self, answers: &BTreeMap<u64, RouteMap>) -> Option<Arc<RouteMap>> {
        let is_named = |server: u64| {
            let naming = answers.values().filter(|map| map.has(server)).count();
            naming > self.seeds.len() / 2
        };
        let of_servers = answers.iter().filter(|(from, _)| is_named(**from));
        let (_, newest) = of_servers.max_by_key(|(_, map)| map.epoch)?;
        let mut current = self.current.map.write();
        if current.is_some() {
            return None;
        }
        let map = Arc::clone(current.insert(Arc::new(newest.clone())));
        drop(current);
        // Who waits for it finds it.
        self.current.epoch.send_replace(map.epoch);
        Some(map)
    }

    /// Takes a newer map of the server `from`, or the same one with other leaders. [`servers`](Self::servers) says who is
    /// asked for it. Returns the map that is known then.
    ///
    /// # Errors
    /// The map does not name `from` as a server of the cluster, `from` was removed by now, or no map is known yet.
    fn take(&self, from: u64, map: RouteMap) -> Result<Arc<RouteMap>, String> {
        if !map.has(from) {
            return Err("it sent a map that does not name it".to_owned());
        }
        let mut current = self.current.map.write();
        let known = current.as_ref().ok_or("no map is known that it could be newer than")?;
        if known.removed.contains(&from) {
            return Err("it was removed from the cluster".to_owned());
        }
        if known.epoch > map.epoch {
            return Ok(Arc::clone(known));
        }
        let map = Arc::clone(current.insert(Arc::new(map)));
        drop(current);
        // Who waits for it finds it.
        self.current.epoch.send_replace(map.epoch);
        Ok(map)
    }
}

impl Proxy {
    /// Keeps the map of a gateway or a delivery process up to date, and its health: ready while a server answers. Runs until it
    /// is dropped; returns at once for a server, which has the map itself.
    pub async fn follow(&self, health: Health) {
        let Some(followed) = self.followed() else { return };
        let mut was_ready = false;
        for turn in 0.. {
            let ready = self.fetch(followed, turn).await;
            if turn == ROUTE_MAP_FIRST_TURNS && followed.current.map().is_none() {
                tracing::warn!(
                    "this process does nothing yet: more than half of the servers in `cluster.peers` must answer first"
                );
            }
            if ready != was_ready {
                was_ready = ready;
                if ready {
                    tracing::info!("this process knows the cluster");
                    health.set_ready().await;
                } else {
                    tracing::warn!("this process reaches no server of the cluster");
                    health.set_not_ready().await;
                }
            }
            sleep(Duration::from_millis(ROUTE_MAP_PAUSE_MS)).await;
            // Either may come first: the next question is the same.
            let _asked = timeout(
                Duration::from_millis(ROUTE_MAP_MS - ROUTE_MAP_PAUSE_MS),
                followed.current.outdated.notified(),
            )
            .await;
        }
    }

    /// Gets the map: the first one from all seeds, a later one from the first server in turn that answers. Returns false if
    /// no map was taken.
    async fn fetch(&self, followed: &Followed, turn: usize) -> bool {
        let taken = match followed.current.map() {
            None => self.begin(followed).await,
            Some(_) => self.update(followed, turn).await,
        };
        if let Some(map) = &taken {
            self.links().keep(|number| map.has(number));
        }
        taken.is_some()
    }

    /// Asks all seeds at once until there is a first map.
    async fn begin(&self, followed: &Followed) -> Option<Arc<RouteMap>> {
        let seeds = followed.servers(0).into_iter();
        let mut asked: FuturesUnordered<_> =
            seeds.map(|seed| async move { (seed.number, self.ask_in_time(&seed).await) }).collect();
        let mut answers = BTreeMap::new();
        while let Some((from, answer)) = asked.next().await {
            let Some(map) = answer else { continue };
            answers.insert(from, map);
            if let Some(map) = followed.begin(&answers) {
                return Some(map);
            }
        }
        None
    }

    /// Asks the servers in turn until one answers.
    async fn update(&self, followed: &Followed, turn: usize) -> Option<Arc<RouteMap>> {
        for server in followed.servers(turn) {
            let Some(map) = self.ask_in_time(&server).await else { continue };
            match followed.take(server.number, map) {
                Ok(map) => return Some(map),
                Err(error) => not_got(&server, &error),
            }
        }
        None
    }

    async fn ask_in_time(&self, server: &RouteServer) -> Option<RouteMap> {
        let wait = Duration::from_millis(ROUTE_MAP_WAIT_MS);
        let question = Question { path: MAP_PATH, wait, bytes_max: ROUTE_MAP_BYTES_MAX };
        let asked = self.links().get(server, question).await;
        let read = asked.and_then(|bytes| RouteMap::decode(&bytes));
        read.inspect_err(|error| not_got(server, error)).ok()
    }
}

fn not_got(server: &RouteServer, error: &str) {
    tracing::debug!(error, server = server.number, "failed to get the map of the cluster");
}

#[cfg(test)]
mod tests {
    use super::*;
    use switchward_state::catalogue::BucketMap;

    fn followed() -> Followed {
        Followed::new([1, 2, 9].map(|number| (number, format!("seed-{number}:7401"))).into())
    }

    fn map(epoch: u64, servers: &[u64], removed: &[u64]) -> RouteMap {
        let server = |number: &u64| RouteServer { number: *number, address: format!("node-{number}:7401") };
        RouteMap {
            epoch,
            servers: servers.iter().map(server).collect(),
            groups: Vec::new(),
            buckets: BucketMap::InTurn { groups: 1 },
            removed: removed.to_vec(),
        }
    }

    fn asked(followed: &Followed, turn: usize) -> Vec<u64> {
        followed.servers(turn).iter().map(|server| server.number).collect()
    }

    /// Takes the first map from these answers; returns its epoch.
    fn begin<const N: usize>(followed: &Followed, answers: [(u64, RouteMap); N]) -> Option<u64> {
        followed.begin(&answers.into()).map(|map| map.epoch)
    }

    #[test]
    fn a_removed_server_among_the_seeds_gets_no_call_before_the_others_have_said_so() {
        let old = || map(3, &[1, 2, 9], &[]);
        let new = || map(4, &[1, 2, 3], &[9]);
        for (answers, expected) in [
            // The others cannot be reached, or have not answered yet.
            (vec![(9, old())], None),
            (vec![(9, map(u64::MAX, &[9], &[1, 2]))], None),
            (vec![(1, new())], None),
            // It and one other name that other one.
            (vec![(9, old()), (1, new())], Some(4)),
            (vec![(9, map(u64::MAX, &[9], &[])), (1, new())], None),
            (vec![(9, map(u64::MAX, &[1, 2, 9], &[])), (1, new()), (2, new())], Some(4)),
            (vec![(1, new()), (2, new())], Some(4)),
            // One of them has not got the newest map yet.
            (vec![(1, old()), (2, new())], Some(4)),
        ] {
            let followed = followed();
            let what = format!("{answers:?}");
            let taken = followed.begin(&answers.into_iter().collect()).map(|map| map.epoch);
            assert_eq!(taken, expected, "{what}");
            let known = followed.current.map();
            assert_eq!(known.is_some(), expected.is_some(), "{what}");
            assert!(known.is_none_or(|map| !map.has(9)), "{what}");
        }
    }

    #[test]
    fn a_gateway_with_one_seed_believes_it() {
        let followed = Followed::new([(1, "seed-1:7401".to_owned())].into());
        assert_eq!(begin(&followed, [(1, map(3, &[1, 2], &[]))]), Some(3));
        assert_eq!(begin(&followed, [(1, map(4, &[1, 2], &[]))]), None, "a map is known");
    }

    #[test]
    fn seeds_are_asked_after_the_servers_of_the_map_and_removed_ones_never() {
        let followed = followed();
        assert_eq!(asked(&followed, 1), [2, 9, 1], "no map is known");
        begin(&followed, [(1, map(3, &[1, 2, 3], &[])), (2, map(3, &[1, 2, 3], &[]))]).expect("a map");
        assert_eq!(asked(&followed, 1), [2, 3, 1, 9]);
        followed.take(1, map(4, &[1, 3], &[2, 9])).expect("a newer map");
        assert_eq!(asked(&followed, 0), [1, 3]);
        assert_eq!(followed.servers(0)[0].address, "node-1:7401", "the address of the map");
    }

    #[test]
    fn only_a_server_of_the_cluster_changes_the_map() {
        let followed = followed();
        let epoch = || followed.current.map().map(|map| map.epoch);
        assert!(followed.take(1, map(4, &[1, 2], &[9])).is_err(), "no map is known");
        assert_eq!(epoch(), None);
        let first = || map(4, &[1, 2], &[9]);
        assert_eq!(begin(&followed, [(1, first()), (2, first())]), Some(4));
        assert!(followed.take(9, map(u64::MAX, &[1, 2], &[])).is_err(), "it does not name its sender");
        assert!(followed.take(9, map(u64::MAX, &[1, 9], &[9])).is_err(), "its sender was removed");
        assert!(followed.take(9, map(u64::MAX, &[9], &[])).is_err(), "the known map says that 9 was removed");
        assert_eq!(epoch(), Some(4));
        let known = followed.take(2, map(3, &[1, 2], &[])).expect("an older map of a server that is present");
        assert_eq!(known.epoch, 4);
        assert_eq!(epoch(), Some(4));
    }
}
