//! Randomly drawn policy documents: the same document decides the same for every format, and layers only ever make
//! one another stricter.
#![expect(clippy::unwrap_used, reason = "a test fails if it cannot continue")]
#![expect(clippy::disallowed_macros, reason = "the test prints how often each case happened")]

mod document;
mod harness;

use document::{CALLS, Document, Says};
use harness::{Harness, Move, Policies};
use std::collections::BTreeMap;
use switchward_state::policy::CallEffect;
use switchward_state::{Key, Reason, Reply, Row};
use switchward_testkit::Rng;

/// Runs of the first property, and of the second.
const PAIRS: u64 = 250;
const STACKS: u64 = 300;
const STEPS_OF_EACH: usize = 30;

const CHECKPOINT: &str = r#"{"name": "p", "initial": "a", "states": {
    "a": {"question": "?", "answers": {"on": {"next": "a"}, "end": {"next": null}}}}}"#;
const CONVERSATION: &str = r#"{"name": "p", "states": [
    {"name": "a", "type": "conversation"}, {"name": "b", "type": "conversation"}],
    "transitions": [{"from": "a", "to": "b", "guards": [{"type": "data_contains", "config": {"key": "go"}}]}]}"#;

/// The outcome of a call, without the session's own numbers.
fn comparable(reply: &Result<Reply, String>) -> String {
    match reply {
        Ok(Reply::Authorized(said)) => format!(
            "{:?} {:?} {:?} {:?} gate {} grant {} {:?} {:?} {:?}",
            said.effect,
            said.reason,
            said.grounds,
            said.rule,
            said.gate.is_some(),
            said.granted_by.is_some(),
            said.retry_after_ms,
            said.remaining,
            said.layers,
        ),
        Ok(_) => "done".into(),
        Err(code) => code.clone(),
    }
}

#[test]
fn a_document_says_the_same_to_a_checkpoint_process_and_to_a_conversation() {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for seed in 1..=PAIRS {
        let mut rng = Rng::new(seed);
        let document = Document::draw(&mut rng, "guard", true);
        let policies = Policies {
            attached: vec![document.clone()],
            tenant: if rng.once_in(2) { vec![Document::draw(&mut rng, "wall", true)] } else { Vec::new() },
            default_effect: document::default_effect(&mut rng),
            restart: seed % 20 == 0,
        };
        let mut one = Harness::begin(CHECKPOINT, &policies);
        let mut other = Harness::begin(CONVERSATION, &policies);
        for step in 0..STEPS_OF_EACH {
            let next = Move::draw(&mut rng, step);
            let (here, there) = (one.make(&next), other.make(&next));
            assert_eq!(comparable(&here), comparable(&there), "seed {seed}, {next:?}\n{policies:#?}");
            if let Ok(Reply::Authorized(said)) = &here {
                let why = said.reason.map(Reason::code).unwrap_or_default();
                let grant = if said.granted_by.is_some() { " granted" } else { "" };
                *seen.entry(format!("{}{grant} {why}", said.effect.word())).or_default() += 1;
            }
        }
        for (process, role, capability) in policies.counters() {
            let key = |harness: &Harness| Key::ledger(harness.tenant(), process, &role, &capability);
            let row = |harness: &Harness| match harness.row(process, &key(harness)).as_deref() {
                Some(Row::Ledger(row)) => {
                    let held: Vec<_> = row.reservations.iter().map(|held| (held.at, held.estimate)).collect();
                    Some((row.calls.clone(), row.spent.clone(), held))
                }
                _ => None,
            };
            let (here, there) = (row(&one), row(&other));
            *seen.entry(format!("ledger {}", here.is_some())).or_default() += 1;
            assert_eq!(here, there, "seed {seed}: {process} {capability}\n{policies:#?}");
        }
    }
    println!("{seen:#?}");
    for what in [
        "allow ",
        "allow granted ",
        "ask ",
        "deny POLICY_DENIED",
        "deny RATE_LIMITED",
        "deny BUDGET_EXHAUSTED",
        "deny QUOTA_EXCEEDED",
        "ledger true",
    ] {
        assert!(seen.get(what).copied().unwrap_or_default() >= 20, "{what} happened too seldom: {seen:#?}");
    }
}

#[test]
fn layers_together_are_as_strict_as_the_strictest_and_never_weaker() {
    let mut seen: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for seed in 1..=STACKS {
        let mut rng = Rng::new(seed);
        let mut draw = |prefix: &str, most: u64| -> Vec<Document> {
            let count = rng.between(0, most);
            (0..count).map(|at| Document::draw(&mut rng, &format!("{prefix}{at}"), false)).collect()
        };
        let (attached, tenant) = (draw("guard", 3), draw("wall", 2));
        let policies = Policies {
            attached: attached.into_iter().map(Document::of_every_role).collect(),
            tenant,
            default_effect: document::default_effect(&mut rng),
            restart: seed % 100 == 0,
        };
        let own = rng.once_in(2).then(|| Document::draw(&mut rng, "own", false).without_limits());
        let source = match &own {
            Some(own) => own.in_checkpoint(CHECKPOINT),
            None if rng.once_in(2) => CHECKPOINT.to_owned(),
            None => CONVERSATION.to_owned(),
        };
        let mut harness = Harness::begin(&source, &policies);
        let holding: Vec<&Document> = policies
            .attached
            .iter()
            .chain(&policies.tenant)
            .filter(|document| document.speaks_to("agent"))
            .collect();
        for capability in CALLS {
            let reply = harness.make(&Move::Call { capability, estimate: 0, args: "{}" });
            let Ok(Reply::Authorized(said)) = reply else { panic!("seed {seed}: {reply:?}") };
            let default_effect = policies.default_effect;
            let mut layers: Vec<Says> =
                holding.iter().map(|document| document.says(capability, default_effect)).collect();
            // If documents apply, an own policy without rules counts as none.
            if let Some(own) = &own
                && (own.is_written() || holding.is_empty())
            {
                layers.push(own.says(capability, default_effect));
            } else if holding.is_empty() {
                layers.push(document::of_default(default_effect));
            }
            let strictest = layers.iter().max().copied().unwrap();
            let came = match said.effect {
                CallEffect::Allow => Says::Allow,
                CallEffect::Ask => Says::Ask,
                CallEffect::Deny => Says::Deny,
            };
            assert!(came >= strictest, "seed {seed}: {capability} {said:?}\n{policies:#?}");
            let by_limit = said.reason.is_some_and(|reason| reason != Reason::PolicyDenied);
            assert!(came == strictest || by_limit, "seed {seed}: {capability} {said:?}\n{policies:#?}");
            assert!(said.rule.is_some(), "seed {seed}: {said:?}");
            let several = said.layers.len();
            assert!(several == 0 || several == layers.len(), "seed {seed}: {layers:?} {said:?}");
            *seen
                .entry((said.effect.word(), if layers.len() > 1 { "of several" } else { "alone" }))
                .or_default() += 1;
        }
    }
    println!("{seen:#?}");
    assert!(seen.len() == 6 && seen.values().all(|count| *count >= 50), "{seen:#?}");
}
