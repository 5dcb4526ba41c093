//! Random values of every kind of command, reply, rejection and event. The samples of the golden files are changed step by
//! step as trees of CBOR items. What a decoder accepts is read back as it was, and what it refuses it refuses without a panic.
//!
//! Every run is determined by its seed; a failure names it. `FORMS_TEST_SEED` runs one.

mod changes;
mod tree;

use changes::Pool;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::ops::Range;
use switchward_state::{Command, Decision, FormError, Reason, Rejection, Reply};
use switchward_testkit::Rng;
use tree::Item;

use crate::commands::kinds::{KINDS, kind};
use crate::commands::replies;

/// How often each sample is the beginning of a walk.
const WALKS: u64 = 40;
/// Changes of a tree in one walk.
const STEPS: usize = 30;
/// Values of each kind that a decoder must have accepted, no two of them equal, and none of them a sample.
const ACCEPTED_MIN: usize = 25;
/// Kinds of reply with so few fields that there are not as many values.
const FEW: [(&str, usize); 1] = [("done", 0)];

/// Reads bytes as a value of a form. Returns the kinds of the value and its bytes, or `None` if the bytes are refused.
type Reading = fn(&[u8]) -> Option<(Vec<String>, Vec<u8>)>;

#[test]
fn a_random_command_of_every_kind_is_read_back_as_it_was() {
    let kinds = KINDS.iter().map(|name| (*name).to_owned()).collect();
    walk("command.v1.txt", &kinds, |bytes| {
        let (command, written) = read_back(bytes, Command::decode, Command::encode)?;
        Some((vec![kind(&command.body).to_owned()], written))
    });
}

#[test]
fn a_random_reply_of_every_kind_is_read_back_as_it_was() {
    let kinds = replies::all().into_iter().map(|(name, _)| name.to_owned()).collect();
    walk("reply.v1.txt", &kinds, |bytes| {
        let (reply, written) = read_back(bytes, Reply::decode, Reply::encode)?;
        Some((vec![replies::name(&reply).to_owned()], written))
    });
}

#[test]
fn a_random_rejection_of_every_reason_is_read_back_as_it_was() {
    let kinds = Reason::ALL.iter().map(|reason| reason.code().to_owned()).collect();
    walk("rejection.v1.txt", &kinds, |bytes| {
        let (rejection, written) = read_back(bytes, Rejection::decode, Rejection::encode)?;
        Some((vec![rejection.reason.code().to_owned()], written))
    });
}

#[test]
fn a_random_decision_with_every_kind_of_event_is_read_back_as_it_was() {
    walk("decision.v1.txt", &switchward_testkit::kinds(), |bytes| {
        let (decision, written) = read_back(bytes, Decision::decode, Decision::encode)?;
        let events = decision.turns.iter().flat_map(|turn| &turn.events);
        Some((events.map(switchward_testkit::kind).collect(), written))
    });
}

/// Reads a value, writes it and reads it again. Returns the value and its bytes; `None` if it is refused at first.
fn read_back<T: PartialEq + Debug>(
    bytes: &[u8],
    decode: fn(&[u8]) -> Result<T, FormError>,
    encode: fn(&T) -> Vec<u8>,
) -> Option<(T, Vec<u8>)> {
    let value = decode(bytes).ok()?;
    let written = encode(&value);
    let again = decode(&written).unwrap_or_else(|error| panic!("{error}: {value:?}"));
    assert_eq!(again, value);
    assert_eq!(encode(&again), written);
    Some((value, written))
}

/// Walks from each sample of a golden file, and checks that values of all kinds were met.
fn walk(golden: &str, kinds: &BTreeSet<String>, reading: Reading) {
    let samples = samples(golden);
    let pool = Pool::of(samples.iter().map(|(_, tree)| tree));
    let known: BTreeSet<Vec<u8>> = samples.iter().map(|(form, tree)| tree.framed(*form)).collect();
    let mut met = BTreeMap::<String, BTreeSet<Vec<u8>>>::new();
    for seed in seeds() {
        let mut rng = Rng::new(seed);
        for (form, sample) in &samples {
            let mut tree = sample.clone();
            for _ in 0..STEPS {
                let changed = pool.changed(&tree, &mut rng);
                let trace = Trace { golden, seed, bytes: changed.framed(*form) };
                if let Some((kinds, written)) = reading(&trace.bytes) {
                    tree = changed;
                    if !known.contains(&written) {
                        for kind in kinds {
                            met.entry(kind).or_default().insert(written.clone());
                        }
                    }
                }
            }
        }
    }
    enough(kinds, &met);
}

/// Checks that enough values of each kind were accepted: else the test would have tested nothing.
fn enough(kinds: &BTreeSet<String>, met: &BTreeMap<String, BTreeSet<Vec<u8>>>) {
    if one_seed().is_some() {
        return;
    }
    let least =
        |kind: &str| FEW.iter().find(|(few, _)| *few == kind).map_or(ACCEPTED_MIN, |(_, least)| *least);
    let counts = kinds.iter().map(|kind| (kind.as_str(), met.get(kind).map_or(0, BTreeSet::len)));
    let few: Vec<(&str, usize)> = counts.filter(|(kind, count)| *count < least(kind)).collect();
    assert_eq!(few, [], "too few values of these kinds were accepted");
}

/// The samples of a golden file: the form byte and the tree of each.
fn samples(golden: &str) -> Vec<(u8, Item)> {
    let path = format!("{}/tests/golden/{golden}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let sample = |line: &str| {
        let (_, hex) = line.split_once(' ').unwrap();
        let digits: Vec<u32> = hex.chars().map(|digit| digit.to_digit(16).unwrap()).collect();
        let bytes: Vec<u8> =
            digits.chunks(2).map(|two| u8::try_from(two[0] * 16 + two[1]).unwrap()).collect();
        let tree = Item::read(&bytes[1..]);
        assert_eq!(tree.framed(bytes[0]), bytes, "the tree of {line} is not whole");
        (bytes[0], tree)
    };
    text.lines().map(sample).collect()
}

fn one_seed() -> Option<u64> {
    std::env::var("FORMS_TEST_SEED").ok().map(|seed| seed.parse().unwrap())
}

fn seeds() -> Range<u64> {
    one_seed().map_or(0..WALKS, |seed| seed..seed + 1)
}

/// Prints what was read and its seed if a panic drops it.
struct Trace<'t> {
    golden: &'t str,
    seed: u64,
    bytes: Vec<u8>,
}

impl Drop for Trace<'_> {
    #[expect(clippy::disallowed_macros, reason = "a failure shows how it is played again")]
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let hex: String = self.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        println!("failed with FORMS_TEST_SEED={}, {}: {hex}", self.seed, self.golden);
    }
}
