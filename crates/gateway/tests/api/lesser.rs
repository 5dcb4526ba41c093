//! Random calls of lesser keys: an agent's and a worker's key make every call that their roles allow, in any order and with
//! any fields, and no restriction on them gets weaker.
//!
//! | Variable | What it says | Otherwise |
//! |---|---|---|
//! | `LESSER_RUNS` | random runs of each of the two roles | 60 |
//! | `LESSER_SEED` | the seed of all choices | 1 |
//! | `LESSER_EACH` | how often each call must have succeeded | 1 |

mod fields;
mod site;
mod truths;

use fields::Pool;
use prost::Message;
use prost_reflect::DynamicMessage;
use site::Site;
use std::collections::BTreeMap;

use crate::harness::Harness;
use crate::hostile::dice::Dice;
use crate::protocols::Protocol;
use crate::roles::allowed;
use crate::rpcs::{Rpc, all};

/// Calls of one run.
const CALLS: usize = 12;
/// Runs after which a new server begins, so that lists stay short.
const RUNS_OF_A_SERVER: usize = 150;

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().expect("a number"))
}

/// How often each call succeeded, by role and method.
type Counts = BTreeMap<(&'static str, &'static str), u64>;

/// Makes one call with random fields. Returns the reply's bytes if it succeeded.
async fn call(harness: &Harness, role: &str, rpc: &Rpc, message: &DynamicMessage) -> Option<Vec<u8>> {
    let (line, secret, bytes) = (&harness.node.line, harness.acme.key(role), message.encode_to_vec());
    if rpc.streams() {
        // Its end may be far away: it is enough that it begins.
        return None;
    }
    line.call(Protocol::Grpc, rpc.method, secret, &bytes).await.ok().map(|reply| reply.to_vec())
}

/// The message of a call: a good one, with some of its fields changed, or one of random fields alone.
async fn message(harness: &Harness, rpc: &Rpc, pool: &Pool, dice: &mut Dice) -> DynamicMessage {
    let good = dice.below(3) > 0;
    let mut message =
        if good { rpc.request(harness).await } else { DynamicMessage::new(rpc.descriptor().input()) };
    let changes = if good { dice.below(3) } else { 2 + dice.below(4) };
    for _ in 0..changes {
        pool.change(&mut message, dice);
    }
    message
}

async fn run(site: &Site, role: &'static str, rpcs: &[&Rpc], dice: &mut Dice, counts: &mut Counts) {
    let harness = &site.harness;
    let mut pool = site.sessions(role, dice).await;
    for _ in 0..CALLS {
        let rpc = *dice.pick(rpcs);
        let message = message(harness, rpc, &pool, dice).await;
        if let Some(reply) = call(harness, role, rpc, &message).await {
            *counts.entry((role, rpc.method)).or_default() += 1;
            pool.learn(rpc, &reply);
        }
    }
    site.assert_unweakened(&pool).await;
    if dice.below(4) == 0 {
        site.assert_used_as_shown(&pool).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lesser_keys_weaken_nothing_that_holds_them() {
    let (runs, each) = (setting("LESSER_RUNS", 60), setting("LESSER_EACH", 1));
    let mut dice = Dice::new(setting("LESSER_SEED", 1));
    let rows = all();
    let mut counts = Counts::new();
    let mut left = runs;
    while left > 0 {
        let site = Site::start().await;
        let now = left.min(RUNS_OF_A_SERVER as u64);
        for _ in 0..now {
            for role in ["agent", "worker"] {
                let may: Vec<&Rpc> =
                    rows.iter().filter(|rpc| allowed(&rpc.descriptor(), role) && !rpc.streams()).collect();
                run(&site, role, &may, &mut dice, &mut counts).await;
            }
        }
        site.end().await;
        left -= now;
        eprintln!("  {} of {runs} runs of each role", runs - left);
    }
    for role in ["agent", "worker"] {
        for rpc in rows.iter().filter(|rpc| allowed(&rpc.descriptor(), role) && !rpc.streams()) {
            let count = counts.get(&(role, rpc.method)).copied().unwrap_or_default();
            assert!(count >= each, "{} by {role} succeeded {count} times", rpc.method);
        }
    }
}
