//! State built live equals state replayed from the first decision, over random definitions and random commands.
//!
//! Every run is determined by its seed; a failing test names it. `ENGINE_TEST_SEED` runs one seed,
//! `ENGINE_TEST_RUNS` several.

#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test looks at what it is about, and stops where it cannot go on"
)]

mod caps;
mod counted;
mod harness;
mod held_jobs;
mod held_timers;
mod ledgers;
mod oracle;
mod planted;
mod sent;
mod votes;

use harness::{Mode, Seen, play};
use std::collections::BTreeSet;
use std::ops::Range;
use switchward_engine::evolve;
use switchward_testkit::{Absent, uncovered};

/// Steps of a run that is replayed at its end.
const STEPS: usize = 200;
const RUNS: u64 = 220;
/// Steps of a run that is replayed after every step.
const STEPS_RESTARTED: usize = 50;
const RUNS_RESTARTED: u64 = 30;

/// Kinds of events that do not occur in these runs.
const ABSENT: &[Absent] = &[
    Absent { why: "no result names an exit: crates/engine/tests/contracts.rs", kinds: &["Run.Deferred.Try"] },
    Absent {
        why: "no server joins another: crates/engine/tests/servers.rs and the tests of shards",
        kinds: &["Catalogue.ClusterChanged", "Catalogue.LevelRaised", "Catalogue.VotersPlaced"],
    },
    Absent {
        why: "conversations have them, and their runs cover them (crates/scenario/tests/random)",
        kinds: &[
            "Approval.Answered",
            "Approval.Escalated",
            "Approval.Lapsed",
            "Approval.ReplyAnswered",
            "Approval.ReplyRecorded",
            "Approval.Votes.Dropped",
            "Catalogue.Assistants.Put",
            "Catalogue.TenancyPut",
            "Run.Activated",
            "Run.CalleesPinned",
            "Run.ChildCreated",
            "Run.ChildEnded",
            "Run.ChildrenJoined",
            "Run.ChildrenPlanned",
            "Run.ChoiceOver",
            "Run.ChoicePending",
            "Run.Deferred.Again",
            "Run.Deferred.Begin",
            "Run.Deferred.Chosen",
            "Run.Deferred.Ended",
            "Run.Deferred.Fault",
            "Run.Deferred.Judged",
            "Run.EarlyUsed",
            "Run.EventRecorded",
            "Run.Faulted",
            "Run.Judged",
            "Run.Looped",
            "Run.Pending.",
            "Run.Restarted",
            "Run.Rested",
            "Run.Signalled",
            "Run.TurnEnded",
            "Run.Wrote",
            "Session.Assisted",
            "Session.MessagePosted",
            "Session.ReplyTokensBegun",
            "Work.",
        ],
    },
    Absent {
        why: "a start without these options, and answers to nobody's page: tests of votes, the corpus and the gateway's tests",
        kinds: &[
            "Approval.AudienceSet",
            "Approval.PageCodes.",
            "Approval.Reminded",
            "Approval.RemindersSet",
            "Approval.Votes.Assigned",
            "Approval.Votes.EscalationSet",
            "Approval.Votes.Given",
            "Approval.Votes.Needed",
            "Approval.Votes.Notified",
            "Approval.Votes.QuorumSet",
            "Session.MessageRecorded",
        ],
    },
    Absent {
        why: "no endpoint, webhook source, attached policy or bounce is known: tests of publishing, policies and mail",
        kinds: &[
            "Delivery.EndpointNoted",
            "Delivery.MailBounced",
            "Delivery.Queued.Publish",
            "Delivery.WebhookSources.",
            "Policy.Policies.",
        ],
    },
    Absent {
        why: "nothing is removed: tests of tenants and of retention",
        kinds: &[
            "Catalogue.Assistants.Deleted",
            "Catalogue.Tenants.",
            "Catalogue.Versions.Archived",
            "Catalogue.Versions.DefinitionDeleted",
            "Catalogue.Versions.Deleted",
            "Catalogue.Versions.Retired",
            "Catalogue.Versions.Unarchived",
            "Session.Removals.",
        ],
    },
];

#[test]
fn what_was_built_live_is_what_a_replay_builds() {
    let mut seen = Seen::default();
    let seeds = seeds(1, RUNS);
    for seed in seeds.clone() {
        let harness = play(seed, STEPS, Mode::Live, evolve);
        seen.add(&harness.unwrap_or_else(|broken| panic!("seed {seed}: {broken}")));
    }
    // The runs must cover enough to be worth something.
    if seeds == (1..1 + RUNS) {
        let rare: Vec<_> = seen.events().filter(|(_, count)| *count < 3).collect();
        assert!(rare.is_empty(), "events that hardly happen: {rare:?}");
        let met: BTreeSet<String> = seen.events().map(|(name, _)| name.to_owned()).collect();
        assert_eq!(uncovered(&met, ABSENT), Vec::<String>::new(), "kinds of events");
        assert!(seen.rejections() > 1_000 && seen.repetitions() > 200, "{seen:?}");
    }
}

#[test]
fn so_it_is_with_a_restart_after_every_step() {
    for seed in seeds(1_000, RUNS_RESTARTED) {
        let harness = play(seed, STEPS_RESTARTED, Mode::RestartAlways, evolve);
        harness.unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
    }
}

/// The seeds of a test: `runs` of them from the first one, unless the environment overrides it.
#[expect(clippy::disallowed_methods, reason = "a search for a failure names seeds by the environment")]
fn seeds(first: u64, runs: u64) -> Range<u64> {
    let number = |name| std::env::var(name).ok().and_then(|text: String| text.parse::<u64>().ok());
    match (number("ENGINE_TEST_SEED"), number("ENGINE_TEST_RUNS")) {
        (Some(seed), runs) => seed..seed + runs.unwrap_or(1),
        (None, more) => first..first + more.unwrap_or(runs),
    }
}
