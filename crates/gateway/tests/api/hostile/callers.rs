//! Random calls by every kind of caller: keys of all roles, a reply token, and no credential. Every call
//! gets one answer soon, and no call succeeds that the published table refuses.
//!
//! | Variable | What it says | Otherwise |
//! |---|---|---|
//! | `FUZZ_CALLS` | random calls | 6,000 |
//! | `FUZZ_SEED` | the seed of all choices | 1 |
//! | `FUZZ_ANSWER_MS` | how long an answer may take, milliseconds | 60,000 |

use prost::Message;
use std::collections::BTreeSet;
use std::time::Duration;

use super::dice::Dice;
use super::values::{hard, leaves, put};
use super::{Attack, Target, targets_that_end};
use crate::harness::{Harness, ROLES};
use crate::protocols::{Protocol, Raw, body, frame};
use crate::roles::allowed;
use crate::rpcs::Rpc;

/// Calls after which a new server begins, so that lists stay short.
const CALLS_OF_A_SERVER: usize = 6_000;
/// The default number of random calls.
pub(super) const SENT: usize = 6_000;

/// The caller.
struct Caller {
    what: &'static str,
    key: Option<String>,
    /// The role, if the caller has a key of the requests' tenant.
    role: Option<&'static str>,
}

impl Caller {
    async fn all(harness: &Harness) -> Vec<Self> {
        let mut all: Vec<Self> = ROLES
            .iter()
            .map(|(role, _)| Self { what: role, key: Some(harness.acme.key(role).into()), role: Some(role) })
            .collect();
        let token = harness.seen(&harness.talk().await.name).await.reply_token;
        assert!(!token.is_empty(), "the session takes events");
        all.push(Self { what: "a reply token", key: Some(token), role: None });
        all.push(Self { what: "nobody", key: None, role: None });
        all
    }

    /// Returns true if this call may succeed.
    fn may(&self, rpc: &Rpc) -> bool {
        self.role.map_or(rpc.method == "RecordEvent" && self.key.is_some(), |role| {
            allowed(&rpc.descriptor(), role)
        })
    }
}

/// A request that is valid, has up to three difficult values, or is damaged.
fn raw(target: &Target, dice: &mut Dice) -> (Raw, String) {
    let mut message = target.good.clone();
    let leaves = leaves(&target.rpc.descriptor().input());
    for _ in 0..dice.below(4).min(leaves.len()) {
        let path = dice.pick(&leaves);
        let values = hard(path.last().expect("a field"));
        put(&mut message, path, dice.pick(&values).clone());
    }
    let (method, protocol) = (target.rpc.method, *dice.pick(&Protocol::ALL));
    let bytes = message.encode_to_vec();
    let what = format!("{bytes:.400?} by {protocol:?}");
    let raw = match (dice.below(5), protocol) {
        (0, Protocol::Grpc | Protocol::Web) => Raw::post(protocol, method, frame(0, &dice.damage(&bytes))),
        // Values without JSON, such as NaN, go by gRPC.
        (_, Protocol::Json) => super::by(protocol, &target.rpc, &message),
        _ => Raw::post(protocol, method, body(protocol, method, &bytes)),
    };
    (raw, what)
}

/// Makes `count` calls.
async fn calls(attack: &mut Attack, dice: &mut Dice, count: usize, made: &mut BTreeSet<String>) {
    let mut targets = targets_that_end(attack).await;
    targets.retain(|target| !target.rpc.streams());
    let callers = Caller::all(&attack.harness).await;
    for _ in 0..count {
        let (at, caller) = (dice.below(targets.len()), dice.pick(&callers));
        let target = &mut targets[at];
        let (raw, what) = raw(target, dice);
        target.secret = caller.key.clone().unwrap_or_default();
        let method = target.rpc.method;
        let what = format!("{what}, by {}", caller.what);
        let accepted = target.shoot(attack, raw, what.clone()).await.is_some();
        assert!(!accepted || caller.may(&target.rpc), "{method} accepted {what}");
        made.insert(format!("{method} by {}", caller.what));
    }
}

fn setting(name: &str, otherwise: usize) -> usize {
    std::env::var(name).map_or(otherwise, |text| text.parse().expect("a number"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_calls_by_every_kind_of_caller() {
    let (sent, slow) = (setting("FUZZ_CALLS", SENT), setting("FUZZ_ANSWER_MS", 60_000));
    let mut dice = Dice::new(u64::try_from(setting("FUZZ_SEED", 1)).expect("a number"));
    let (mut left, mut longest, mut made) = (sent, Duration::ZERO, BTreeSet::new());
    while left > 0 {
        let mut attack = Attack::start("callers").await;
        let now = left.min(CALLS_OF_A_SERVER);
        calls(&mut attack, &mut dice, now, &mut made).await;
        longest = longest.max(attack.longest);
        attack.end(now).await;
        left -= now;
        println!(
            "{} of {sent}, {} pairs of call and caller, the longest {longest:?}",
            sent - left,
            made.len()
        );
    }
    assert!(longest <= Duration::from_millis(slow.try_into().expect("a time")), "{longest:?}");
    let unary =
        crate::rpcs::all().into_iter().filter(|rpc| !rpc.streams() && rpc.method != super::CLOCK).count();
    let pairs = unary * (ROLES.len() + 2);
    assert!(made.len() * 10 >= pairs * 9, "{} of {pairs} pairs of call and caller", made.len());
}
