//! The network between simulated servers: real messages over links that delay, lose, repeat and cut them.

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use switchward_machine::Time;
use switchward_peer::{Request, Traffic, simulation as frames};
use switchward_shard::limits::CONTROL_BYTES_MAX;
use switchward_shard::{
    Clock as _, ClockOffset, Cluster, MemberHandler, PeerConnection, PeerError, PeerRequest, PeerStream,
    Transport,
};
use switchward_store::{DataDir, FolderIdentity, SeenPeer};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::clocks::ServerClock;
use crate::streams;
use crate::timeline::{Timeline, hash_of};

/// The messages that may arrive twice: appends, votes, pre-votes and heartbeats. A question to the leader is never sent again
/// by itself.
const REPEATED: [u8; 4] = [1, 2, 3, 7];
/// How often a message is sent again that vanishes, before its connection is given up.
pub(crate) const TRIES: u32 = 60;
/// The pause between two tries, milliseconds.
pub(crate) const TRY_AGAIN: u64 = 50;

/// How often servers look at each other's clocks, milliseconds, and how long what they saw counts.
const PING_INTERVAL: u64 = 500;
const PING_HOLDS: u64 = 3_000;

/// How a link is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Blocked {
    /// The sender notices it at once.
    Noticed,
    /// What is sent vanishes, and is sent again until the link is mended or the connection is given up.
    Silent,
}

/// What the links do to messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quality {
    /// The usual delay, milliseconds, at least 1.
    pub(crate) delay_max: u64,
    /// One message in this many is late.
    pub(crate) late_in: usize,
    /// How late, milliseconds.
    pub(crate) late_max: u64,
    /// The connection of one message in this many breaks; 0 for none.
    pub(crate) lost_in: usize,
    /// One message in this many arrives twice; 0 for none.
    pub(crate) twice_in: usize,
}

/// Links as in one building.
pub(crate) const GOOD: Quality = Quality { delay_max: 2, late_in: 50, late_max: 15, lost_in: 0, twice_in: 0 };

/// A server that can be reached.
#[derive(Clone)]
pub(crate) struct Endpoint {
    pub(crate) runtime: Handle,
    pub(crate) handler: Arc<MemberHandler>,
    /// `None` until all groups are open.
    pub(crate) cluster: Option<Cluster>,
    /// Its clock, as others see it.
    pub(crate) clock: Arc<ServerClock>,
    /// The data folder that it runs on.
    pub(crate) data: DataDir,
}

/// All links of a simulation; cheap to clone.
#[derive(Clone)]
pub(crate) struct Network {
    pub(crate) timeline: Timeline,
    board: Arc<Mutex<Board>>,
}

struct Board {
    endpoints: BTreeMap<u64, Endpoint>,
    /// Whether a server has accepted another one, by their numbers, and the folders that both had then.
    shaken: BTreeMap<(u64, u64), ([FolderIdentity; 2], bool)>,
    /// What servers know of the others' clocks, by their own number and the other's.
    pings: BTreeMap<(u64, u64), Ping>,
    blocked: BTreeMap<(u64, u64), Blocked>,
    quality: Quality,
}

/// What a server has seen of another one's clock.
#[derive(Clone, Copy)]
struct Ping {
    /// What the other one showed.
    showed: Time,
    /// The right time then.
    at: Time,
    /// The milliseconds since the beginning then.
    seen: u64,
}

impl Board {
    /// Has a server look at another one's clock, if its last look is too long ago.
    fn ping(&mut self, one: u64, other: u64, timeline: &Timeline) {
        let (at, seen) = (timeline.true_time(), timeline.now());
        let is_new = self.pings.get(&(one, other)).is_some_and(|ping| ping.seen + PING_INTERVAL > seen);
        let Some(endpoint) = self.endpoints.get(&other).filter(|_| !is_new) else { return };
        let showed = endpoint.clock.now();
        self.pings.insert((one, other), Ping { showed, at, seen });
    }

    /// Whether two servers accept each other's folders. Of a server that is down nothing is known.
    fn accept_each_other(&mut self, one: u64, other: u64) -> bool {
        [(one, other), (other, one)].into_iter().all(|(one, other)| self.accepts(one, other))
    }

    fn accepts(&mut self, one: u64, other: u64) -> bool {
        // This is asked for each message: nothing is cloned.
        let (Some(own), Some(theirs)) = (self.endpoints.get(&one), self.endpoints.get(&other)) else {
            return true;
        };
        let (own, theirs) = (&own.data, &theirs.data);
        let folders = [own.identity(), theirs.identity()];
        match self.shaken.get(&(one, other)) {
            Some((then, accepted)) if *then == folders => *accepted,
            Some(_) | None => {
                let FolderIdentity { folder, boot, boot_id, .. } = folders[1];
                let accepted = own.note_peer(SeenPeer { server: other, folder, boot, boot_id }).is_ok();
                self.shaken.insert((one, other), (folders, accepted));
                accepted
            }
        }
    }
}

type Answer = Result<Bytes, PeerError>;

/// A message on its way.
struct Sent {
    from: u64,
    to: u64,
    /// Which of the product's connections it takes.
    traffic: Traffic,
    /// Its number among all calls.
    id: u64,
    /// Its frame.
    bytes: Bytes,
    /// `None` for a repetition, whose answer nobody waits for.
    answer: Option<oneshot::Sender<Answer>>,
    tries: u32,
}

/// An answer on its way.
struct Answered {
    from: u64,
    to: u64,
    traffic: Traffic,
    /// The number of its request.
    id: u64,
    answer: oneshot::Sender<Answer>,
    /// Its frame, or why there is none.
    answered: Result<Bytes, PeerError>,
    tries: u32,
}

impl Network {
    pub(crate) fn new(timeline: Timeline) -> Self {
        let board = Board {
            endpoints: BTreeMap::new(),
            shaken: BTreeMap::new(),
            pings: BTreeMap::new(),
            blocked: BTreeMap::new(),
            quality: GOOD,
        };
        Self { timeline, board: Arc::new(Mutex::new(board)) }
    }

    /// The transport of a server.
    pub(crate) fn transport(&self, node: u64) -> Arc<dyn Transport> {
        Arc::new(Links { network: self.clone(), node })
    }

    /// Makes a server reachable, or changes how it is reached.
    pub(crate) fn join(&self, node: u64, endpoint: Endpoint) {
        let before = self.board.lock().endpoints.insert(node, endpoint);
        drop(before);
    }

    /// Removes a server that has ended.
    pub(crate) fn leave(&self, node: u64) {
        let left = {
            let mut board = self.board.lock();
            board.pings.retain(|(one, _), _| *one != node);
            board.endpoints.remove(&node)
        };
        drop(left);
    }

    /// A server that is up, or about to be.
    pub(crate) fn endpoint(&self, node: u64) -> Option<Endpoint> {
        self.board.lock().endpoints.get(&node).cloned()
    }

    /// Cuts the links from one server to another.
    pub(crate) fn block(&self, from: u64, to: u64, how: Blocked) {
        self.board.lock().blocked.insert((from, to), how);
    }

    /// Mends all links.
    pub(crate) fn heal(&self) {
        self.board.lock().blocked.clear();
    }

    /// Changes what the links do.
    pub(crate) fn set_quality(&self, quality: Quality) {
        self.board.lock().quality = quality;
    }

    /// Has all servers greet each other that can reach each other, and look at each other's clocks, as they do by themselves.
    pub(crate) fn shake_hands(&self) {
        let mut board = self.board.lock();
        let nodes: Vec<u64> = board.endpoints.keys().copied().collect();
        for (one, other) in nodes.iter().flat_map(|one| nodes.iter().map(move |other| (*one, *other))) {
            let cut = board.blocked.contains_key(&(one, other)) || board.blocked.contains_key(&(other, one));
            if one < other && !cut && board.accept_each_other(one, other) {
                board.ping(one, other, &self.timeline);
                board.ping(other, one, &self.timeline);
            }
        }
    }

    /// How far the clocks of others are ahead of a server's, as far as it has seen them lately.
    fn clock_offsets(&self, node: u64) -> Vec<ClockOffset> {
        let (now, at) = (self.timeline.now(), self.timeline.true_time());
        let board = self.board.lock();
        let Some(own) = board.endpoints.get(&node).map(|endpoint| endpoint.clock.now()) else {
            return Vec::new();
        };
        let lately =
            board.pings.iter().filter(|((one, _), ping)| *one == node && ping.seen + PING_HOLDS >= now);
        let offset = |theirs: Time| i64::try_from(theirs.0).unwrap() - i64::try_from(own.0).unwrap();
        let shows = |ping: &Ping| ping.showed.after_ms(at.since_ms(ping.at));
        lately.map(|((_, server), ping)| ClockOffset { server: *server, ms: offset(shows(ping)) }).collect()
    }

    /// Whether a message passes a link now. Servers that do not accept each other's folders are not connected.
    pub(crate) fn passes(&self, from: u64, to: u64) -> Result<(), Blocked> {
        let mut board = self.board.lock();
        if !board.accept_each_other(from, to) {
            self.timeline.count("messages of a foreign folder refused");
            return Err(Blocked::Noticed);
        }
        match board.blocked.get(&(from, to)) {
            None => Ok(()),
            Some(how) => {
                self.timeline.count("messages blocked");
                Err(*how)
            }
        }
    }

    /// Draws how long a message takes, milliseconds.
    pub(crate) fn delay(&self) -> u64 {
        let quality = self.board.lock().quality;
        let (ms, late) = self.timeline.draw(|rng| {
            let late = rng.once_in(quality.late_in);
            (rng.between(1, if late { quality.late_max } else { quality.delay_max }), late)
        });
        if late {
            self.timeline.count("messages late");
        }
        ms
    }

    /// Returns true if the connection of a message breaks.
    pub(crate) fn breaks(&self) -> bool {
        let one_in = self.board.lock().quality.lost_in;
        let breaks = one_in > 0 && self.timeline.draw(|rng| rng.once_in(one_in));
        if breaks {
            self.timeline.count("connections broken");
        }
        breaks
    }

    fn repeats(&self, kind: u8) -> bool {
        let one_in = self.board.lock().quality.twice_in;
        let repeats = REPEATED.contains(&kind) && one_in > 0 && self.timeline.draw(|rng| rng.once_in(one_in));
        if repeats {
            self.timeline.count("messages repeated");
        }
        repeats
    }

    /// Sends a message, whose answer comes later or never.
    fn send(&self, kind: u8, sent: Sent) {
        if self.repeats(kind) {
            let twin = Sent { answer: None, bytes: sent.bytes.clone(), ..sent };
            self.send_once(twin);
        }
        self.send_once(sent);
    }

    fn send_once(&self, sent: Sent) {
        let network = self.clone();
        self.timeline.after(self.delay(), move || network.arrive(sent));
    }

    /// Whether something arrives that was sent so often: `None` if it is to be tried again.
    fn arrives(&self, from: u64, to: u64, tries: u32) -> Option<bool> {
        match self.passes(from, to) {
            Ok(()) => Some(true),
            Err(Blocked::Silent) if tries < TRIES => None,
            Err(Blocked::Silent | Blocked::Noticed) => Some(false),
        }
    }

    /// A message arrives, or its connection is given up.
    fn arrive(&self, mut sent: Sent) {
        match self.arrives(sent.from, sent.to, sent.tries) {
            Some(true) => {}
            Some(false) => return,
            None => {
                sent.tries += 1;
                let network = self.clone();
                return self.timeline.after(TRY_AGAIN, move || network.arrive(sent));
            }
        }
        let Sent { from, to, traffic, id, bytes, answer, .. } = sent;
        let (read, request) = frames::read_request(bytes, traffic).unwrap();
        assert_eq!(read, id, "a frame has the number of another request");
        let request = PeerRequest { kind: request.kind, group: request.group, body: request.body };
        let PeerRequest { kind, group, ref body } = request;
        self.timeline.note(format_args!("{from}>{to} {kind}/{group} {:x}", hash_of(body)));
        let answer = answer.map(|answer| {
            move |answered| Answered { from: to, to: from, traffic, id, answer, answered, tries: 0 }
        });
        let Some(endpoint) = self.endpoint(to) else {
            let refused = Err(PeerError::NotSent("nobody listens".into()));
            return answer.into_iter().for_each(|answer| self.answer(answer(refused.clone())));
        };
        let (network, runtime) = (self.clone(), endpoint.runtime.clone());
        runtime.spawn(async move {
            let answered = frames::answer(id, endpoint.handler.call(from, request).await, traffic);
            if let Some(answer) = answer {
                network.answer(answer(Ok(answered)));
            }
        });
    }

    /// Sends an answer.
    fn answer(&self, answered: Answered) {
        let network = self.clone();
        self.timeline.after(self.delay(), move || network.arrive_back(answered));
    }

    fn arrive_back(&self, mut sent: Answered) {
        match self.arrives(sent.from, sent.to, sent.tries) {
            Some(true) => {}
            Some(false) => return,
            None => {
                sent.tries += 1;
                let network = self.clone();
                return self.timeline.after(TRY_AGAIN, move || network.arrive_back(sent));
            }
        }
        let Answered { from, to, traffic, id, answer, answered, .. } = sent;
        let answered = answered.and_then(|bytes| {
            let (read, answered) = frames::read_answer(bytes, traffic).unwrap();
            assert_eq!(read, id, "a frame answers another request");
            answered.map_err(failed)
        });
        let body = answered.as_ref().map_or(0, |bytes| hash_of(bytes));
        self.timeline.note(format_args!("{from}>{to} answer {body:x}"));
        // The server that asked may have stopped meanwhile.
        let _gone = answer.send(answered);
    }
}

/// A failure as the product's transport hands it on.
fn failed(error: switchward_peer::PeerError) -> PeerError {
    match error {
        switchward_peer::PeerError::NotSent(why) => PeerError::NotSent(why),
        switchward_peer::PeerError::Unknown(why) => PeerError::Unknown(why),
        switchward_peer::PeerError::Refused(why) => PeerError::Refused(why),
        switchward_peer::PeerError::TimedOut => PeerError::TimedOut,
    }
}

/// The links from a server.
struct Links {
    network: Network,
    node: u64,
}

fn broken() -> PeerError {
    PeerError::Unknown("the connection is gone".into())
}

#[async_trait]
impl Transport for Links {
    async fn call(
        &self,
        to: u64,
        over: PeerConnection,
        request: PeerRequest,
        deadline: Duration,
    ) -> Result<Bytes, PeerError> {
        let short = request.body.len() <= CONTROL_BYTES_MAX;
        assert!(over != PeerConnection::Control || short, "a message takes the wrong connection");
        if self.network.passes(self.node, to) == Err(Blocked::Noticed) {
            return Err(PeerError::NotSent("the server cannot be reached".into()));
        }
        let breaks = self.network.breaks();
        let arrives = !breaks || self.network.timeline.draw(|rng| rng.once_in(2));
        let (answer, mut answered) = oneshot::channel();
        if arrives {
            let traffic = match over {
                PeerConnection::Control => Traffic::Control,
                PeerConnection::Bulk => Traffic::Bulk,
                PeerConnection::Commands => Traffic::Commands,
            };
            let (id, PeerRequest { kind, group, body }) = (self.network.timeline.stamp(), request);
            let bytes = frames::request(id, Request { kind, group, body });
            let sent = Sent { from: self.node, to, traffic, id, bytes, answer: Some(answer), tries: 0 };
            self.network.send(kind, sent);
        }
        if breaks {
            let delay = Duration::from_millis(self.network.delay());
            // Before or after the answer.
            return match tokio::time::timeout(delay, &mut answered).await {
                Ok(Ok(answered)) => answered,
                Ok(Err(_)) | Err(_) => Err(broken()),
            };
        }
        match tokio::time::timeout(deadline, answered).await {
            Ok(Ok(answered)) => answered,
            Ok(Err(_)) => Err(broken()),
            Err(_) => Err(PeerError::TimedOut),
        }
    }

    fn clock_offsets(&self) -> Option<Vec<ClockOffset>> {
        Some(self.network.clock_offsets(self.node))
    }

    async fn stream(&self, to: u64, request: PeerRequest) -> Result<Arc<dyn PeerStream>, PeerError> {
        if self.network.passes(self.node, to) == Err(Blocked::Noticed) {
            return Err(PeerError::NotSent("the server cannot be reached".into()));
        }
        Ok(streams::open(&self.network, self.node, to, request))
    }
}
