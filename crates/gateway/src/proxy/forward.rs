//! Passes a request on to a server that has what it needs, and to the next one if nothing has begun.

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, Response, Version, request::Parts};
use hyper::body::Incoming;
use std::collections::BTreeMap;
use std::error::Error as _;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use std::time::Duration;
use switchward_api::Effect;
use switchward_shard::Cluster;
use switchward_state::catalogue::MapEpochs;
use tokio::sync::watch;
use tokio::time::Instant;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use super::credentials::Credentials;
use super::follow::Followed;
use super::head::{
    EPOCH, KEYED, Kind, OTHER_MAP, epoch_at, name_epochs, outgoing, strip_internal, tenant_of_key,
    without_connection,
};
use super::links::{Links, ServerDialer, Unreachable};
use super::map::{RouteMap, RouteServer};
use super::need::{Need, has_several_commands};
use super::permits::{Permit, Permits};
use super::relayed::{CallEnd, Relayed};
use crate::error::{Reason, Refusal};
use crate::limits::{PROXIED_CALLS_MAX, PROXY_DIAL_MS_MAX, PROXY_DIAL_WAIT_MS, PROXY_TRIES_MAX, ROUTED_MAX};

/// When it is worth sending a call again that no server could get.
pub(super) const AGAIN: Duration = Duration::from_millis(200);

/// Where the groups of the cluster are, as far as this process knows.
#[tonic::async_trait]
pub trait Maps: Send + Sync + 'static {
    /// The map; `None` before there is one.
    fn map(&self) -> Option<Arc<RouteMap>>;

    /// A server was not where the map says, or has a newer map.
    fn outdated(&self);

    /// The epochs of the map; `None` before there is one. Called for each request of another process.
    fn epochs(&self) -> Option<MapEpochs> {
        self.map().map(|map| map.epochs())
    }

    /// Waits for a limited time until the map has this epoch or a later one; false if it has not.
    async fn reach(&self, epoch: u64) -> bool {
        self.map().is_some_and(|map| map.epoch >= epoch)
    }

    /// Returns if a process with these epochs routes as this one does. If its map is a later one, may wait for a limited time
    /// until this process has that too.
    ///
    /// # Errors
    /// It does not; returns the epoch of this process's map.
    async fn agree(&self, theirs: MapEpochs) -> Result<(), u64> {
        match self.epochs() {
            Some(own) if !own.overlap(theirs) => Err(own.newest),
            Some(_) | None => Ok(()),
        }
    }
}

/// The map that a server has itself.
pub struct LocalMaps(pub Cluster);

#[tonic::async_trait]
impl Maps for LocalMaps {
    fn map(&self) -> Option<Arc<RouteMap>> {
        let map = RouteMap::of(&self.0);
        let map = map.inspect_err(|error| tracing::error!(%error, "failed to read the map of the cluster"));
        map.ok().flatten().map(Arc::new)
    }

    fn outdated(&self) {}

    fn epochs(&self) -> Option<MapEpochs> {
        Some(self.0.map_epochs())
    }

    async fn reach(&self, epoch: u64) -> bool {
        self.0.reach_epoch(epoch).await
    }

    async fn agree(&self, theirs: MapEpochs) -> Result<(), u64> {
        self.0.agree(theirs).await.map_err(|_| self.0.map_epochs().newest)
    }
}

/// Passes requests on. Cheap to clone.
#[derive(Clone)]
pub struct Proxy(Arc<Inner>);

struct Inner {
    maps: Arc<dyn Maps>,
    /// A gateway's map, which is fetched from servers.
    followed: Option<Followed>,
    links: Links,
    permits: Permits,
    /// What servers have said of credentials; a server asks no other one.
    credentials: Credentials,
    /// The number of this server, which never gets what it passes on; `None` for a gateway.
    own: Option<u64>,
    turn: AtomicUsize,
    stopping: watch::Sender<bool>,
}

/// A checked request on its way to a server.
pub(super) struct Passed {
    pub(super) parts: Parts,
    pub(super) payload: Payload,
    pub(super) kind: Kind,
    pub(super) need: Need,
    pub(super) effect: Effect,
    /// When its caller stops waiting.
    pub(super) deadline: Option<Instant>,
}

impl Passed {
    /// Returns true if it can be sent to another server after one has answered that nothing was done: that is said about
    /// one command, and a method with several of them may have done the first.
    fn can_be_resent(&self) -> bool {
        self.payload.is_whole() && !has_several_commands(self.parts.uri.path())
    }
}

/// The body of what is passed on.
pub(super) enum Payload {
    /// The whole body, which can be sent again.
    Whole(Bytes),
    /// A body that is read as it comes; `None` once a server has begun to read it.
    Stream(Option<Body>),
}

impl Payload {
    /// The body for one server; `None` if another one has read it.
    fn take(&mut self) -> Option<Body> {
        match self {
            Self::Whole(bytes) => Some(Body::from(bytes.clone())),
            Self::Stream(body) => body.take(),
        }
    }

    fn put_back(&mut self, body: Body) {
        match self {
            Self::Whole(_) => {}
            Self::Stream(own) => *own = Some(body),
        }
    }

    fn is_whole(&self) -> bool {
        matches!(self, Self::Whole(_))
    }
}

/// Why a request was not answered by any server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NotPassed {
    /// No server got it.
    Unreachable(String),
    /// This process passes on too many requests.
    Full,
    /// A server got it, and was lost.
    Lost,
}

impl NotPassed {
    /// The answer to a request of this effect.
    pub(super) fn refusal(self, effect: Effect) -> Refusal {
        match self {
            Self::Unreachable(why) => {
                tracing::warn!("a call could not be passed on: {why}");
                unreachable()
            }
            Self::Full => {
                let message = "this process passes on as many calls as it may, as many of this tenant, or as many \
                               without an accepted one; send it again later";
                Refusal::new(Reason::QuotaExceeded, message)
                    .quota("proxied_calls", message)
                    .retry_after(AGAIN)
            }
            Self::Lost => lost(effect),
        }
    }
}

/// The refusal of a call that no server could get.
pub(super) fn unreachable() -> Refusal {
    let message = "no server that has what the call needs can be reached; nothing was changed";
    Refusal::new(Reason::ServerUnreachable, message).retry_after(AGAIN)
}

/// The end of a call whose server was lost after it had got the call.
pub(super) fn lost(effect: Effect) -> Refusal {
    match effect {
        Effect::Reads => {
            Refusal::new(Reason::ServerUnreachable, "the server that answered the call was lost")
                .retry_after(AGAIN)
        }
        // No time to try again: a client must not do that by itself.
        Effect::Changes => Refusal::new(
            Reason::OutcomeUnknown,
            "the server that had got the call was lost; it may have been executed or not",
        ),
    }
}

/// The end of a stream of a process that stops.
pub(super) fn stopping() -> Refusal {
    Refusal::new(Reason::Draining, "the gateway is stopping").retry_after(AGAIN)
}

impl Proxy {
    /// Passes on what this server lacks; `own` is its number.
    #[must_use]
    pub fn of_server(own: u64, maps: Arc<dyn Maps>, dialer: Arc<dyn ServerDialer>) -> Self {
        Self::new(
            Some(own),
            maps,
            None,
            Links::new(dialer, PROXIED_CALLS_MAX),
            Permits::new(PROXIED_CALLS_MAX),
        )
    }

    /// Passes on everything. The map is fetched from servers, at first from `seeds`, their addresses by number, while
    /// [`follow`](Self::follow) runs. Answers that nobody reads may take a part of `memory`, bytes.
    #[must_use]
    pub fn of_gateway(seeds: BTreeMap<u64, String>, dialer: Arc<dyn ServerDialer>, memory: usize) -> Self {
        let (followed, permits) = (Followed::new(seeds), Permits::within(memory));
        let links = Links::new(dialer, permits.calls());
        Self::new(None, followed.maps(), Some(followed), links, permits)
    }

    pub(super) fn new(
        own: Option<u64>,
        maps: Arc<dyn Maps>,
        followed: Option<Followed>,
        links: Links,
        permits: Permits,
    ) -> Self {
        let (turn, stopping) = (AtomicUsize::default(), watch::Sender::new(false));
        let credentials = Credentials::default();
        Self(Arc::new(Inner { maps, followed, links, permits, credentials, own, turn, stopping }))
    }

    pub(super) fn followed(&self) -> Option<&Followed> {
        self.0.followed.as_ref()
    }

    pub(super) fn maps(&self) -> &dyn Maps {
        &*self.0.maps
    }

    pub(super) fn links(&self) -> &Links {
        &self.0.links
    }

    pub(super) fn permits(&self) -> &Permits {
        &self.0.permits
    }

    pub(super) fn credentials(&self) -> &Credentials {
        &self.0.credentials
    }

    /// With which server the next request begins, among those that are as good.
    pub(super) fn next_turn(&self) -> usize {
        self.0.turn.fetch_add(1, Ordering::Relaxed)
    }

    /// Ends the open streams, which would otherwise hold up a process that stops. Their callers resume elsewhere.
    pub fn stop(&self) {
        self.0.stopping.send_replace(true);
    }

    /// Done once this process stops.
    async fn stopped(self) {
        let mut stopping = self.0.stopping.subscribe();
        // The sender lives as long as `self`.
        let _stopped = stopping.wait_for(|stopping| *stopping).await;
    }

    /// Passes a call on, and returns the answer to it. `streams` says that the answer is a stream.
    ///
    /// # Errors
    /// No server has answered it.
    pub(super) async fn call(&self, call: Passed, reply: ReplyKind) -> Result<Response<Body>, Refusal> {
        let effect = call.effect;
        let (response, mut permit) = self.pass(call).await.map_err(|failed| failed.refusal(effect))?;
        if let Some(keyed) = response.headers().get(KEYED) {
            self.0.permits.prove(&mut permit, tenant_of_key(keyed));
        } else if let Some(credential) = permit.key
            && is_unauthenticated(&response)
        {
            self.0.permits.refuse(credential);
            self.0.credentials.forget(credential);
        }
        let stop: Option<futures::future::BoxFuture<'static, ()>> = match reply {
            ReplyKind::One => None,
            ReplyKind::Stream => Some(Box::pin(self.clone().stopped())),
        };
        Ok(answered(response, Some(CallEnd { effect, stop }), permit))
    }

    /// Passes a page on, and returns its answer.
    ///
    /// # Errors
    /// No server has answered it.
    pub(super) async fn page(&self, page: Passed) -> Result<Response<Body>, NotPassed> {
        let (response, permit) = self.pass(page).await?;
        Ok(answered(response, None, permit))
    }

    async fn pass(&self, mut passed: Passed) -> Result<(Response<Incoming>, Permit), NotPassed> {
        let Parts { headers, extensions, .. } = &passed.parts;
        let permit = self.0.permits.take(headers, extensions).ok_or(NotPassed::Full)?;
        let mut routed = 1;
        loop {
            let Some(map) = self.0.maps.map() else {
                return Err(NotPassed::Unreachable("the map of the cluster is not known yet".to_owned()));
            };
            let response = self.pass_by(&map, &mut passed).await?;
            let Some(epoch) = epoch_at(response.headers(), &OTHER_MAP) else { return Ok((response, permit)) };
            self.0.maps.outdated();
            let again = passed.payload.is_whole() && epoch > map.epoch && routed < ROUTED_MAX;
            if !again || !self.0.maps.reach(epoch).await {
                return Ok((response, permit));
            }
            routed += 1;
        }
    }

    /// Offers a request to the servers that have what it needs by a map, until one answers.
    async fn pass_by(&self, map: &RouteMap, passed: &mut Passed) -> Result<Response<Incoming>, NotPassed> {
        let mut servers = map.servers_with(passed.need, self.next_turn());
        servers.retain(|server| Some(server.number) != self.0.own);
        servers.truncate(PROXY_TRIES_MAX);
        let mut last = NotPassed::Unreachable("no server has what the call needs".to_owned());
        let count = servers.len();
        for (at, server) in servers.into_iter().enumerate() {
            // The last one is waited for until its dial has ended: nobody else can get the call.
            let is_last = at + 1 == count;
            let wait_ms = if is_last { PROXY_DIAL_MS_MAX } else { PROXY_DIAL_WAIT_MS };
            match self.offer(server, passed, map, Duration::from_millis(wait_ms)).await {
                Offered::Answered(response) => {
                    if !is_last && next_may_answer(passed, &response, map.epoch) {
                        self.0.maps.outdated();
                        continue;
                    }
                    return Ok(response);
                }
                Offered::NotBegun(why) => last = why,
                Offered::Lost => {
                    self.0.maps.outdated();
                    return Err(NotPassed::Lost);
                }
            }
        }
        self.0.maps.outdated();
        Err(last)
    }

    /// Offers a request to one server, whose connection is waited for this long.
    async fn offer(
        &self,
        server: &RouteServer,
        passed: &mut Passed,
        map: &RouteMap,
        wait: Duration,
    ) -> Offered {
        let mut sender = match self.0.links.line(server, wait).await {
            Ok(sender) => sender,
            Err(Unreachable(why)) => return Offered::NotBegun(NotPassed::Unreachable(why)),
        };
        let left = passed.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        // A body that another server has begun to read is gone.
        let Some(body) = passed.payload.take() else { return Offered::Lost };
        let mut request = outgoing(&passed.parts, body, passed.kind, left);
        name_epochs(request.headers_mut(), map.epochs());
        let mut error = match sender.try_send_request(request).await {
            Ok(response) => {
                if is_newer(response.headers(), map.epoch) {
                    self.0.maps.outdated();
                }
                return Offered::Answered(response);
            }
            Err(error) => error,
        };
        let number = server.number;
        if let Some(request) = error.take_message() {
            passed.payload.put_back(request.into_body());
            let why = format!("server {number} closed the connection");
            return Offered::NotBegun(NotPassed::Unreachable(why));
        }
        let error = error.into_error();
        if passed.payload.is_whole() && was_not_begun(&error) {
            let why = format!("server {number} accepts no more calls: {error}");
            return Offered::NotBegun(NotPassed::Unreachable(why));
        }
        tracing::warn!(%error, server = number, "lost a server that had got a call");
        Offered::Lost
    }
}

/// How many replies a call has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReplyKind {
    One,
    Stream,
}

/// What became of a request that was offered to a server.
enum Offered {
    Answered(Response<Incoming>),
    /// The server has not begun it.
    NotBegun(NotPassed),
    /// It may have begun it.
    Lost,
}

fn answered(response: Response<Incoming>, end: Option<CallEnd>, permit: Permit) -> Response<Body> {
    let mut response = response.map(|body| Body::new(Relayed::new(body, end, permit)));
    // The client's connection has a version of its own.
    *response.version_mut() = Version::default();
    strip_internal(response.headers_mut());
    without_connection(response.headers_mut());
    response
}

/// Returns true if the server that has answered has a newer map.
fn is_newer(headers: &HeaderMap, epoch: u64) -> bool {
    epoch_at(headers, &EPOCH).is_some_and(|theirs| theirs > epoch)
}

/// Returns true if a server did nothing of a request that can be sent to another one, which may do it: it stops, or has an
/// older map than the one of `epoch`. By a newer map, the request is routed again.
fn next_may_answer(passed: &Passed, response: &Response<Incoming>, epoch: u64) -> bool {
    match epoch_at(response.headers(), &OTHER_MAP) {
        Some(theirs) => passed.payload.is_whole() && theirs <= epoch,
        None => passed.can_be_resent() && nothing_was_done(response),
    }
}

/// Returns true if the server does not accept the credential.
fn is_unauthenticated(response: &Response<Incoming>) -> bool {
    Status::from_header_map(response.headers()).is_some_and(|status| status.code() == Code::Unauthenticated)
}

/// Returns true if the server says that its last command did nothing, and that another server may answer.
fn nothing_was_done(response: &Response<Incoming>) -> bool {
    let status = Status::from_header_map(response.headers());
    let Some(status) = status.filter(|status| status.code() == Code::Unavailable) else { return false };
    let reason = status.get_details_error_info().and_then(|info| Reason::from_word(&info.reason));
    matches!(reason, Some(Reason::Draining | Reason::ShardStopped))
}

/// Returns true if the server has said that it did not begin the request: it refuses more streams, or it stops.
fn was_not_begun(error: &hyper::Error) -> bool {
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(cause) = cause.downcast_ref::<h2::Error>() {
            let stops = cause.is_go_away() && cause.reason() == Some(h2::Reason::NO_ERROR);
            return cause.is_remote() && (stops || cause.reason() == Some(h2::Reason::REFUSED_STREAM));
        }
        source = cause.source();
    }
    false
}
