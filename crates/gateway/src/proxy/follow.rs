//! The map of a gateway: fetched from servers every few seconds, and at once when it proves outdated.

use axum::body::Body;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Limited};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::forward::{Maps, Proxy};
use super::head::MAP_PATH;
use super::links::Line;
use super::map::{RouteMap, RouteServer};
use crate::limits::{ROUTE_MAP_BYTES_MAX, ROUTE_MAP_MS, ROUTE_MAP_PAUSE_MS, ROUTE_MAP_WAIT_MS};
use crate::routes::Health;

/// What a gateway knows of the cluster.
pub(super) struct Followed {
    seeds: BTreeMap<u64, String>,
    current: Arc<Current>,
}

#[derive(Default)]
struct Current {
    map: RwLock<Option<Arc<RouteMap>>>,
    outdated: Notify,
}

impl Maps for Current {
    fn map(&self) -> Option<Arc<RouteMap>> {
        self.map.read().clone()
    }

    fn outdated(&self) {
        self.outdated.notify_one();
    }
}

impl Followed {
    pub(super) fn new(seeds: BTreeMap<u64, String>) -> Self {
        Self { seeds, current: Arc::default() }
    }

    pub(super) fn maps(&self) -> Arc<dyn Maps> {
        Arc::clone(&self.current) as Arc<dyn Maps>
    }

    /// The servers that can be asked: those of the map, then the configured ones that it does not name.
    fn servers(&self) -> Vec<RouteServer> {
        let mut servers = self.current.map().map(|map| map.servers.clone()).unwrap_or_default();
        for (number, address) in &self.seeds {
            if servers.iter().all(|known| known.number != *number) {
                servers.push(RouteServer { number: *number, address: address.clone() });
            }
        }
        servers
    }

    /// Takes a newer map, or the same one with other leaders.
    fn take(&self, map: RouteMap) {
        let mut current = self.current.map.write();
        if current.as_ref().is_none_or(|known| known.epoch <= map.epoch) {
            *current = Some(Arc::new(map));
        }
    }
}

impl Proxy {
    /// Keeps a gateway's map up to date, and its health: ready while a server answers. Runs until it is dropped; returns at
    /// once for a server, which has the map itself.
    pub async fn follow(&self, health: Health) {
        let Some(followed) = self.followed() else { return };
        let mut was_ready = false;
        for turn in 0.. {
            let ready = self.fetch(followed, turn).await;
            if ready != was_ready {
                was_ready = ready;
                if ready {
                    tracing::info!("this gateway knows the cluster");
                    health.set_ready().await;
                } else {
                    tracing::warn!("this gateway reaches no server of the cluster");
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

    /// Asks the servers in turn until one answers. Returns false if none does.
    async fn fetch(&self, followed: &Followed, turn: usize) -> bool {
        let mut servers = followed.servers();
        if !servers.is_empty() {
            let first = turn % servers.len();
            servers.rotate_left(first);
        }
        for server in servers {
            let asked = timeout(Duration::from_millis(ROUTE_MAP_WAIT_MS), self.ask(&server)).await;
            match asked.unwrap_or_else(|_| Err("no answer in time".to_owned())) {
                Ok(map) => {
                    followed.take(map);
                    return true;
                }
                Err(error) => {
                    tracing::debug!(error, server = server.number, "failed to get the map of the cluster");
                }
            }
        }
        false
    }

    async fn ask(&self, server: &RouteServer) -> Result<RouteMap, String> {
        let Line { mut sender, permit: _held } =
            self.links().line(server).await.map_err(|error| format!("{error:?}"))?;
        let uri = format!("https://server-{}{MAP_PATH}", server.number);
        let request = Request::builder().method(Method::GET).uri(uri).body(Body::empty());
        let request = request.map_err(|error| error.to_string())?;
        let response =
            sender.try_send_request(request).await.map_err(|error| error.into_error().to_string())?;
        if !response.status().is_success() {
            return Err(format!("it answered {}", response.status()));
        }
        let body = Limited::new(response.into_body(), ROUTE_MAP_BYTES_MAX).collect().await;
        RouteMap::decode(&body.map_err(|error| error.to_string())?.to_bytes())
    }
}
