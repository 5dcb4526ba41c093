//! Hostile requests: 20,000 of them, generated from the descriptors and from good requests.
//!
//! Every request gets an answer with a reason of ours, without a server error or a panic, and nothing is written unless
//! the answer is OK.

mod callers;
mod definitions;
pub(crate) mod dice;
mod fields;
mod frames;
mod heads;
mod json;
mod texts;
pub(crate) mod values;

use http::StatusCode;
use prost::Message;
use prost_reflect::DynamicMessage;
use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, Once};
use std::time::{Duration, Instant};
use tonic::{Code, Status};

use crate::harness::Harness;
use crate::protocols::{Answer, Protocol, Raw, json_error, stream};
use crate::refusal::Refusal;
use crate::rpcs::Rpc;

/// The least number of requests that each family sends; more is fine.
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

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// Refusals between two comparisons of the whole state.
const BETWEEN_LOOKS: usize = 100;

static PANICS: LazyLock<Mutex<Vec<String>>> = LazyLock::new(Mutex::default);

/// Records every panic of this process except those of the tests themselves.
fn note_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let own = info.location().is_some_and(|location| location.file().contains("/tests/"));
            if !own {
                PANICS.lock().expect("no panic inside").push(info.to_string());
            }
            before(info);
        }));
    });
}

/// A harness under attack, and the results.
struct Attack {
    family: &'static str,
    harness: Harness,
    /// The state after the last write, if known.
    state: Option<Vec<[u8; 32]>>,
    refused_since: usize,
    counts: BTreeMap<String, usize>,
    /// The longest time that an answer took.
    longest: Duration,
}

/// One hostile request.
struct Shot<'r> {
    rpc: &'r Rpc,
    raw: Raw,
    /// A description for failure messages.
    what: String,
}

impl Attack {
    async fn start(family: &'static str) -> Self {
        note_panics();
        let harness = Harness::start().await;
        let counts = BTreeMap::new();
        let mut attack =
            Self { family, harness, state: None, refused_since: 0, counts, longest: Duration::ZERO };
        attack.warm_up().await;
        attack
    }

    /// Stores the process's machine in every shard; a refused start may store it there, too.
    async fn warm_up(&mut self) {
        while !self.harness.node.every_shard_has_decided() {
            self.harness.session().await;
        }
    }

    /// Sends one request and checks what must be true of any answer. Returns the answer if it is OK.
    async fn send(&mut self, shot: Shot<'_>) -> Option<Answer> {
        let entries = self.harness.node.entries();
        let what = || format!("{} {}: {}", self.family, shot.rpc.method, shot.what);
        let began = Instant::now();
        let answer = tokio::time::timeout(PATIENCE, self.harness.node.line.send(shot.raw)).await;
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
            // It is unknown whether it was carried out, and it may still be.
            self.written().await;
            return None;
        }
        assert_eq!(self.harness.node.entries(), entries, "{} wrote something", what());
        self.look(&what()).await;
        accepted.then_some(answer)
    }

    /// Forgets the state after a write.
    async fn written(&mut self) {
        self.harness.node.quiet().await;
        self.state = None;
        self.refused_since = 0;
    }

    /// Compares the whole state with the earlier one from time to time. After every request the log's length is checked,
    /// as every write begins in the log.
    async fn look(&mut self, what: &str) {
        self.refused_since += 1;
        if self.refused_since.is_multiple_of(BETWEEN_LOOKS) {
            let state = self.harness.node.state().await;
            let before = self.state.get_or_insert_with(|| state.clone());
            assert_eq!(state, *before, "{what}, or one of the {BETWEEN_LOOKS} before it");
        }
    }

    /// Ends the attack, which must have sent as many requests as its family promises.
    async fn end(self, sent: usize) {
        let all: usize = self.counts.values().sum();
        println!("{}: {all} sent, {:?}", self.family, self.counts);
        assert!(all >= sent, "{all} of {sent}");
        self.harness.node.end().await;
        assert_eq!(*PANICS.lock().expect("no panic inside"), Vec::<String>::new());
    }
}

/// Returns the refusal if the answer, in any protocol, is not OK.
fn outcome(answer: &Answer) -> Result<(), Status> {
    let header =
        |name: &str| answer.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = header("content-type");
    if kind.starts_with("application/grpc-web-text") {
        return stream(Protocol::WebText, answer).1;
    }
    if kind.starts_with("application/grpc-web") {
        return stream(Protocol::Web, answer).1;
    }
    if kind.starts_with("application/grpc") {
        return stream(Protocol::Grpc, answer).1;
    }
    if answer.status == StatusCode::OK { Ok(()) } else { Err(json_error(&answer.json())) }
}

/// What must be true of any refusal.
fn judge(status: &Status, what: &str) {
    let blames_itself = matches!(status.code(), Code::Internal | Code::Unknown | Code::DataLoss);
    assert!(!blames_itself, "{what}: {status:?}");
    let unavailable = matches!(status.code(), Code::Unavailable | Code::Cancelled);
    assert!(!unavailable, "{what}: {status:?}");
    let refusal = Refusal::of(status);
    let all = format!("{} {:?} {:?}", refusal.message, refusal.metadata, refusal.others);
    for leak in
        ["panicked", ".rs:", "/root/", "/home/", "/tmp/", "RUST_BACKTRACE", "only-globex", "of globex"]
    {
        assert!(!all.contains(leak) || what.contains(leak), "{what}: {leak} in {all}");
    }
    // An unknown method has no message.
    let said = !refusal.message.is_empty() || status.code() == Code::Unimplemented;
    assert!(said && refusal.message.len() <= 1_024, "{what}: {refusal:?}");
}

/// A message by a way in; by gRPC if it has no JSON.
fn by(protocol: Protocol, rpc: &Rpc, message: &DynamicMessage) -> Raw {
    let bytes = message.encode_to_vec();
    if protocol == Protocol::Json {
        return match serde_json::to_vec(message) {
            Ok(json) => Raw::post(protocol, rpc.method, json),
            Err(_) => Raw::post(Protocol::Grpc, rpc.method, crate::protocols::frame(0, &bytes)),
        };
    }
    Raw::post(protocol, rpc.method, crate::protocols::body(protocol, rpc.method, &bytes))
}

/// The ways by which a method can be called.
fn protocols(rpc: &Rpc) -> &'static [Protocol] {
    if rpc.streams() { &[Protocol::Grpc, Protocol::Web, Protocol::WebText] } else { &Protocol::ALL }
}

/// A call with a good request, which is renewed after an accepted one.
struct Target {
    rpc: Rpc,
    good: DynamicMessage,
    secret: String,
}

impl Target {
    async fn of(attack: &Attack, rpc: Rpc) -> Self {
        let good = rpc.request(&attack.harness).await;
        let secret = attack.harness.acme.key(rpc.role()).to_owned();
        Self { rpc, good, secret }
    }

    /// Sends a bad request. If it is accepted and changes something, creates a new good one.
    async fn shoot(&mut self, attack: &mut Attack, raw: Raw, what: String) -> Option<Answer> {
        let raw = raw.with_key(&self.secret);
        let answer = attack.send(Shot { rpc: &self.rpc, raw, what }).await?;
        if self.rpc.changes() {
            self.good = self.rpc.request(&attack.harness).await;
            attack.written().await;
        }
        Some(answer)
    }
}

/// The call that moves the clock.
const CLOCK: &str = "AdvanceClock";

/// The stream that ends only if its request sets an end, which a randomly damaged request may not.
const ENDLESS: &str = "StreamWork";

/// A target for every call except the clock's, whose every advance would start the sweeper, and the stream that may not
/// end. Streams come first: later a bad name may have become a good one, of a session that does not end.
async fn targets(attack: &Attack) -> Vec<Target> {
    let mut targets = targets_that_end(attack).await;
    targets.retain(|target| target.rpc.method != ENDLESS);
    targets
}

/// The same with that stream, for families that do not change its end.
async fn targets_that_end(attack: &Attack) -> Vec<Target> {
    let mut rpcs: Vec<Rpc> = crate::rpcs::all().into_iter().filter(|rpc| rpc.method != CLOCK).collect();
    rpcs.sort_by_key(|rpc| !rpc.streams());
    let mut targets = Vec::new();
    for rpc in rpcs {
        targets.push(Target::of(attack, rpc).await);
    }
    attack.harness.node.quiet().await;
    targets
}
