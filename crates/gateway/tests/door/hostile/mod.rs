//! Requests that nobody should send: 20,000 of them, drawn from the descriptors and from what is good.
//!
//! Whatever comes in: an answer, a reason of ours, no fault of the server, no panic, and nothing written unless the
//! answer is OK.

mod callers;
mod definitions;
pub(crate) mod dice;
mod fields;
mod frames;
mod heads;
mod json;
mod texts;
pub(crate) mod values;

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, Once};
use std::time::{Duration, Instant};

use http::StatusCode;
use prost::Message;
use prost_reflect::DynamicMessage;
use tonic::{Code, Status};

use crate::rpcs::Rpc;
use crate::told::Told;
use crate::ways::{Answer, Raw, Way, json_error, stream};
use crate::world::World;

/// How many each family sends at least; more than they are told to, nobody minds.
const SENT_MIN: [(&str, usize); 7] = [
    ("callers", callers::SENT),
    ("definitions", definitions::SENT),
    ("fields", fields::SENT),
    ("frames", frames::SENT),
    ("heads", heads::SENT),
    ("json", json::SENT),
    ("texts", texts::SENT),
];

#[test]
fn they_are_twenty_thousand() {
    let all: usize = SENT_MIN.iter().map(|(_, sent)| sent).sum();
    assert!(all >= 20_000, "{all}");
}

/// How long an answer may take before there is none.
const PATIENCE: Duration = Duration::from_secs(60);
/// Refusals between two looks at the whole state.
const BETWEEN_LOOKS: usize = 100;

static PANICS: LazyLock<Mutex<Vec<String>>> = LazyLock::new(Mutex::default);

/// Notes every panic of this process but those of the tests themselves.
fn note_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let own = info.location().is_some_and(|place| place.file().contains("/tests/"));
            if !own {
                PANICS.lock().expect("no panic inside").push(info.to_string());
            }
            before(info);
        }));
    });
}

/// A world that is attacked, and what came of it.
struct Attack {
    family: &'static str,
    world: World,
    /// The state, since something was written last.
    state: Option<Vec<[u8; 32]>>,
    refused_since: usize,
    counts: BTreeMap<String, usize>,
    /// The longest time that an answer took.
    longest: Duration,
}

/// One request that should not be.
struct Shot<'r> {
    rpc: &'r Rpc,
    raw: Raw,
    /// Whatever it is, to be told when something is wrong.
    what: String,
}

impl Attack {
    async fn start(family: &'static str) -> Self {
        note_panics();
        let world = World::start().await;
        let counts = BTreeMap::new();
        let mut attack =
            Self { family, world, state: None, refused_since: 0, counts, longest: Duration::ZERO };
        attack.warm_up().await;
        attack
    }

    /// Brings the machine of the process to every shard; a refused start may bring it there, too.
    async fn warm_up(&mut self) {
        while !self
            .world
            .node
            .cluster
            .shards()
            .iter()
            .all(|shard| shard.group().metrics().commands.load(std::sync::atomic::Ordering::Relaxed) > 0)
        {
            self.world.session().await;
        }
    }

    /// Sends one request and holds the answer against what must be true of any. Gives the answer when it is OK.
    async fn send(&mut self, shot: Shot<'_>) -> Option<Answer> {
        let entries = self.world.node.entries();
        let what = || format!("{} {}: {}", self.family, shot.rpc.method, shot.what);
        let began = Instant::now();
        let answer = tokio::time::timeout(PATIENCE, self.world.node.line.send(shot.raw)).await;
        self.longest = self.longest.max(began.elapsed());
        let answer = answer.unwrap_or_else(|_| panic!("{} is not answered", what()));
        let outcome = outcome(&answer);
        let accepted = match &outcome {
            Ok(()) => true,
            Err(status) => {
                judge(status, &what());
                false
            }
        };
        let late = outcome.as_ref().is_err_and(|status| status.code() == Code::DeadlineExceeded);
        let counted = outcome.map_or_else(|status| format!("{:?}", status.code()), |()| "Ok".to_owned());
        *self.counts.entry(counted).or_default() += 1;
        if accepted && shot.rpc.changes() {
            self.written().await;
            return Some(answer);
        }
        if late && shot.rpc.changes() {
            // Whether it was carried out is not known, and it may still be.
            self.written().await;
            return None;
        }
        assert_eq!(self.world.node.entries(), entries, "{} wrote something", what());
        self.look(&what()).await;
        accepted.then_some(answer)
    }

    /// Something was written: from here on the state is another one.
    async fn written(&mut self) {
        self.world.node.quiet().await;
        self.state = None;
        self.refused_since = 0;
    }

    /// Compares the whole state with itself now and then. Every single request is held against the log, which is where
    /// anything that is written begins.
    async fn look(&mut self, what: &str) {
        self.refused_since += 1;
        if self.refused_since.is_multiple_of(BETWEEN_LOOKS) {
            let state = self.world.node.state().await;
            let before = self.state.get_or_insert_with(|| state.clone());
            assert_eq!(state, *before, "{what}, or one of the {BETWEEN_LOOKS} before it");
        }
    }

    /// Ends the attack, which must have been as long as its family promises.
    async fn end(self, sent: usize) {
        let all: usize = self.counts.values().sum();
        println!("{}: {all} sent, {:?}", self.family, self.counts);
        assert!(all >= sent, "{all} of {sent}");
        self.world.node.end().await;
        assert_eq!(*PANICS.lock().expect("no panic inside"), Vec::<String>::new());
    }
}

/// Whether an answer by any way is OK.
fn outcome(answer: &Answer) -> Result<(), Status> {
    let header =
        |name: &str| answer.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = header("content-type");
    if kind.starts_with("application/grpc-web-text") {
        return stream(Way::WebText, answer).1;
    }
    if kind.starts_with("application/grpc-web") {
        return stream(Way::Web, answer).1;
    }
    if kind.starts_with("application/grpc") {
        return stream(Way::Grpc, answer).1;
    }
    if answer.status == StatusCode::OK { Ok(()) } else { Err(json_error(&answer.json())) }
}

/// What must be true of any refusal.
fn judge(status: &Status, what: &str) {
    let blames_itself = matches!(status.code(), Code::Internal | Code::Unknown | Code::DataLoss);
    assert!(!blames_itself, "{what}: {status:?}");
    let unavailable = matches!(status.code(), Code::Unavailable | Code::Cancelled);
    assert!(!unavailable, "{what}: {status:?}");
    let told = Told::of(status);
    let all = format!("{} {:?} {:?}", told.message, told.metadata, told.others);
    for leak in
        ["panicked", ".rs:", "/root/", "/home/", "/tmp/", "RUST_BACKTRACE", "only-globex", "of globex"]
    {
        assert!(!all.contains(leak) || what.contains(leak), "{what}: {leak} in {all}");
    }
    // Of a path that is no method nothing is said but that.
    let said = !told.message.is_empty() || status.code() == Code::Unimplemented;
    assert!(said && told.message.len() <= 1_024, "{what}: {told:?}");
}

/// A message by a way; by gRPC where it has no JSON.
fn by(way: Way, rpc: &Rpc, message: &DynamicMessage) -> Raw {
    let bytes = message.encode_to_vec();
    if way == Way::Json {
        return match serde_json::to_vec(message) {
            Ok(json) => Raw::post(way, rpc.method, json),
            Err(_) => Raw::post(Way::Grpc, rpc.method, crate::ways::frame(0, &bytes)),
        };
    }
    Raw::post(way, rpc.method, crate::ways::body(way, rpc.method, &bytes))
}

/// The ways by which a method can be called.
fn ways(rpc: &Rpc) -> &'static [Way] {
    if rpc.streams() { &[Way::Grpc, Way::Web, Way::WebText] } else { &Way::ALL }
}

/// A good request that runs out of good ones when one was accepted.
struct Target {
    rpc: Rpc,
    good: DynamicMessage,
    secret: String,
}

impl Target {
    async fn of(attack: &Attack, rpc: Rpc) -> Self {
        let good = rpc.request(&attack.world).await;
        let secret = attack.world.acme.key(rpc.role()).to_owned();
        Self { rpc, good, secret }
    }

    /// Sends a bad request; where it was good enough to be accepted and changed something, makes a new good one.
    async fn shoot(&mut self, attack: &mut Attack, raw: Raw, what: String) -> Option<Answer> {
        let raw = raw.with_key(&self.secret);
        let answer = attack.send(Shot { rpc: &self.rpc, raw, what }).await?;
        if self.rpc.changes() {
            self.good = self.rpc.request(&attack.world).await;
            attack.written().await;
        }
        Some(answer)
    }
}

/// The call that moves the clock.
const CLOCK: &str = "AdvanceClock";

/// The stream that ends only where its request says when; what is damaged at random may not say it.
const ENDLESS: &str = "StreamWork";

/// A target for every call but the clock's, whose every advance would set the sweeper to work, and the stream that may not
/// end. Streams come first: later a bad name may have become a good one, of a session that does not end.
async fn targets(attack: &Attack) -> Vec<Target> {
    let mut targets = targets_that_end(attack).await;
    targets.retain(|target| target.rpc.method != ENDLESS);
    targets
}

/// The same with that stream, for whoever leaves its end alone.
async fn targets_that_end(attack: &Attack) -> Vec<Target> {
    let mut rpcs: Vec<Rpc> = crate::rpcs::all().into_iter().filter(|rpc| rpc.method != CLOCK).collect();
    rpcs.sort_by_key(|rpc| !rpc.streams());
    let mut targets = Vec::new();
    for rpc in rpcs {
        targets.push(Target::of(attack, rpc).await);
    }
    attack.world.node.quiet().await;
    targets
}
