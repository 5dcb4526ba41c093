//! Random workflows under random commands: whatever the author writes and the callers do, a run moves only by its own
//! exits, and a restart after every step changes nothing.
#![expect(clippy::unwrap_used, reason = "a test fails if it cannot continue")]
#![expect(clippy::disallowed_macros, reason = "the test prints how often each case happened")]

mod approvals;
mod guards;
mod moves;
mod tally;
mod tasks;
mod workers;
mod workflow;

use serde_json::{Value, json};

use moves::Harness;
use switchward_state::session::StatusReason;
use switchward_testkit::{Absent, Rng, uncovered};
use tally::Tally;

/// Steps in all; more by `RANDOM_STEPS`.
const STEPS: usize = 280_000;
/// Steps of one workflow.
const OF_EACH: usize = 24;

/// Kinds of events that do not occur in these runs.
const ABSENT: &[Absent] = &[
    Absent { why: "no result names an exit: crates/engine/tests/contracts.rs", kinds: &["Run.Deferred.Try"] },
    Absent {
        why: "no server joins another: crates/engine/tests/servers.rs and the tests of shards",
        kinds: &["Catalogue.ClusterChanged", "Catalogue.LevelRaised", "Catalogue.VotersPlaced"],
    },
    Absent {
        why: "checkpoint processes have them, and their runs cover them (crates/engine/tests/replay)",
        kinds: &["Delivery.Queued.Notice", "Run.Answered", "Run.Deferred.End"],
    },
    Absent {
        why: "the policies of these sessions have no rules, and no call is authorized: the runs of checkpoint processes do",
        kinds: &[
            "Delivery.Queued.Confirm",
            "Delivery.Queued.Settle",
            "Policy.BudgetExhausted",
            "Policy.CallAsked",
            "Policy.CallDenied",
            "Policy.CallLapsed",
            "Policy.CallPermitted",
            "Policy.CapRaised",
            "Policy.GrantLapsed",
            "Policy.GrantMade",
            "Policy.GrantUsed",
            "Policy.LedgerConfirmed",
            "Policy.LedgerReserved",
            "Policy.LedgerSettled",
            "Policy.Policies.",
        ],
    },
    Absent {
        why: "a start without these options, and answers to nobody's page",
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
        why: "no message is delivered here, and no endpoint or webhook source is known",
        kinds: &[
            "Delivery.Acked",
            "Delivery.Deferred",
            "Delivery.Dismissed",
            "Delivery.EndpointNoted",
            "Delivery.Failed",
            "Delivery.Held",
            "Delivery.MailBounced",
            "Delivery.Queued.Publish",
            "Delivery.Retried",
            "Delivery.WebhookSources.",
        ],
    },
    Absent {
        why: "a run ends with its session, and nothing is removed",
        kinds: &["Session.Removals.", "Session.RequestsForgotten"],
    },
    Absent {
        why: "the catalogue changes only before the start",
        kinds: &[
            "Catalogue.Assistants.Deleted",
            "Catalogue.KeyCreated",
            "Catalogue.KeyRevoked",
            "Catalogue.TenantChanged",
            "Catalogue.Tenants.",
            "Catalogue.Versions.Archived",
            "Catalogue.Versions.DefinitionDeleted",
            "Catalogue.Versions.Deleted",
            "Catalogue.Versions.Retired",
            "Catalogue.Versions.Unarchived",
        ],
    },
];

/// Happen in so few workflows that only long runs see them: a count of mails, or a remembered request, is given up hours or
/// days after it was made; a session is cancelled while it is paused and another run waits.
const RARE: [&str; 2] = ["Policy.Swept", "Run.Deferred.Begin"];

#[expect(clippy::disallowed_methods, reason = "`make random` plays more steps")]
fn steps() -> usize {
    std::env::var("RANDOM_STEPS").map_or(STEPS, |steps| steps.parse().expect("a number of steps"))
}

#[test]
fn a_run_moves_only_by_its_own_exits() {
    let (mut played, mut seed, mut shown, mut tally) = (0, 0, 0, Tally::default());
    while played < steps() {
        if played / STEPS > shown {
            shown = played / STEPS;
            println!("{played} of {} steps", steps());
        }
        seed += 1;
        let mut rng = Rng::new(seed);
        let family = workflow::family(&mut rng);
        let mut harness =
            Harness::begin(&mut rng, &family).unwrap_or_else(|why| panic!("seed {seed}: {why}\n{family:#?}"));
        for _ in 0..OF_EACH {
            played += 1;
            match harness.step(&mut rng) {
                Ok(true) => {}
                Ok(false) => break,
                Err(why) => panic!("seed {seed}: {why}\n{family:#?}"),
            }
        }
        harness.replay().unwrap_or_else(|why| panic!("seed {seed}: {why}\n{family:#?}"));
        tally.add(harness.count().unwrap_or_else(|why| panic!("seed {seed}: {why}\n{family:#?}")));
    }
    println!("{played} steps of {seed} workflows\n{tally}");
    assert_eq!(tally.rare(), Vec::<String>::new(), "what happened in less than 100 workflows");
    let mut kinds = tally.kinds().clone();
    kinds.extend(RARE.map(str::to_owned));
    assert_eq!(uncovered(&kinds, ABSENT), Vec::<String>::new(), "kinds of events");
}

/// Alternating logic and output states, each of which leads to the next; the last one leads to `last`, if given.
fn chain(count: usize, last: Option<usize>) -> Value {
    let state = |at: usize| {
        if at.is_multiple_of(2) {
            let set = json!({ "type": "set_data", "config": { "key": "n", "value": at } });
            json!({ "name": format!("s{at}"), "type": "logic", "operations": [set] })
        } else {
            json!({ "name": format!("s{at}"), "type": "output", "template": "n", "target": "conversation" })
        }
    };
    let edge = |at: usize, to: usize| {
        let (from, to) = (format!("s{at}"), format!("s{to}"));
        if at.is_multiple_of(2) {
            json!({ "from": from, "to": to, "guards": [{ "type": "always", "config": {} }] })
        } else {
            json!({ "from": from, "port": "done", "to": to })
        }
    };
    let mut transitions: Vec<Value> = (1..count).map(|at| edge(at - 1, at)).collect();
    transitions.extend(last.map(|to| edge(count - 1, to)));
    let states: Vec<Value> = (0..count).map(state).collect();
    json!({ "name": "chain", "state_schema": {}, "states": states, "transitions": transitions })
}

#[test]
fn two_hundred_states_drain_in_one_decision() {
    let harness = Harness::open(&[chain(200, None)], b"", false, false).unwrap();
    let (decisions, view) = harness.decisions().unwrap();
    assert_eq!((decisions, view.session.status.word(), view.at()), (1, "completed", "s199"));
    assert_eq!((view.run.entry, view.data.get("n")), (200, Some(&json!(198))));
}

#[test]
fn a_cycle_of_them_fails_the_run_and_is_reported_in_its_order() {
    for (count, first) in [(6, 2), (40, 0), (202, 2)] {
        let harness = Harness::open(&[chain(count, Some(first))], b"", false, false).unwrap();
        let (decisions, view) = harness.decisions().unwrap();
        let ended = (decisions, view.session.status.word(), view.session.reason.map(StatusReason::word));
        assert_eq!(ended, (1, "failed", Some("drain_limit")));
        let cycle: Vec<String> = harness.last_words().unwrap().split(" -> ").map(str::to_owned).collect();
        assert_eq!((cycle.len(), cycle.first()), (count - first + 1, cycle.last()), "{cycle:?}");
        let at = |name: &str| name[1..].parse::<usize>().unwrap();
        for pair in cycle.windows(2) {
            let next = if at(&pair[0]) == count - 1 { first } else { at(&pair[0]) + 1 };
            assert_eq!(at(&pair[1]), next, "{cycle:?}");
        }
    }
}

#[test]
fn of_a_cycle_with_very_long_names_the_first_are_reported_and_how_many_more_there_are() {
    let name = |at: usize| format!("{at:0>250}");
    let states: Vec<Value> =
        (0..400).map(|at| json!({ "name": name(at), "type": "logic", "operations": [] })).collect();
    let always = json!([{ "type": "always", "config": {} }]);
    let edge = |at: usize| json!({ "from": name(at), "to": name((at + 1) % 400), "guards": always });
    let transitions: Vec<Value> = (0..400).map(edge).collect();
    let workflow = json!({ "name": "long", "states": states, "transitions": transitions });
    let harness = Harness::open(&[workflow], b"", false, false).unwrap();
    let words = harness.last_words().unwrap();
    let (names, more) = words.rsplit_once(" -> ... and ").unwrap();
    let more: usize = more.strip_suffix(" more").unwrap().parse().unwrap();
    let names: Vec<&str> = names.split(" -> ").collect();
    assert!(names.len() > 200 && words.len() < 70_000, "{} {}", names.len(), words.len());
    assert_eq!(names.len() + more, 401, "the first state is at both ends");
}

#[test]
fn answers_that_the_data_cannot_hold_are_an_error_of_the_task() {
    let people: Vec<String> = (0..20).map(|at| format!("p{at}@example.com")).collect();
    let task = json!({ "participants": people, "instructions": "Tell us all." });
    let workflow = json!({
        "name": "essays",
        "states": [
            { "name": "write", "type": "task", "task_template": task, "on_error": "port" },
            { "name": "done", "type": "conversation" },
            { "name": "sorry", "type": "conversation" },
        ],
        "transitions": [
            { "from": "write", "to": "done", "guards": [{ "type": "all_tasks_complete" }] },
            { "from": "write", "port": "error", "to": "sorry" },
        ],
    });
    for (bytes, at) in [(60 * 1024, "sorry"), (6 * 1024, "done")] {
        let mut harness = Harness::open(std::slice::from_ref(&workflow), b"", false, false).unwrap();
        for person in &people {
            harness.answer(person, json!("x".repeat(bytes))).unwrap();
        }
        let (_, view) = harness.decisions().unwrap();
        assert_eq!((view.at(), view.data.contains_key("tasks")), (at, at == "done"));
    }
    let mut harness = Harness::open(std::slice::from_ref(&workflow), b"", false, false).unwrap();
    assert!(harness.answer(&people[0], json!("x".repeat(64 * 1024))).unwrap_err().contains("bytes"));
    let deep = (0..33).fold(json!(1), |inner, _| json!([inner]));
    assert!(harness.answer(&people[0], deep).unwrap_err().contains("levels"));
    assert!(harness.answer(&people[0], Value::Null).is_err());
    assert!(harness.answer(&people[1], json!(1)).is_err(), "the oldest part belongs to another participant");
}

/// A state that waits an hour, and one that then runs these operations; with an exit if it cannot.
fn after_an_hour(operations: &Value) -> Value {
    json!({
        "name": "later",
        "states": [
            { "name": "rest", "type": "wait", "wait_for": "timer", "timeout_hours": 1 },
            { "name": "work", "type": "logic", "operations": operations, "on_error": "port" },
            { "name": "sorry", "type": "output", "template": "It was too much.", "target": "email",
              "recipients": ["desk@example.com"] },
            { "name": "silent", "type": "conversation" },
            { "name": "done", "type": "conversation" },
        ],
        "transitions": [
            { "from": "rest", "port": "received", "to": "work" },
            { "from": "rest", "port": "timeout", "to": "work" },
            { "from": "work", "to": "done", "guards": [{ "type": "always" }] },
            { "from": "work", "port": "error", "to": "sorry" },
            { "from": "sorry", "port": "done", "to": "silent" },
        ],
    })
}

#[test]
fn what_comes_of_one_step_is_bounded_in_bytes_before_it_takes_memory() {
    let mail = json!({ "channel": "email", "recipients": ["{gathered_data.people}"], "subject": "s",
                       "body": "{gathered_data.text}" });
    let mails = json!({ "type": "send_notification", "config": mail });
    let wait = json!({ "type": "wait", "config": { "hours": 1 } });
    let none = json!({ "over": "none", "as": "other", "operations": [wait] });
    let idle = json!({ "type": "loop", "config": none });
    let each = |operation: &Value| {
        let config = json!({ "over": "items", "as": "item", "operations": [operation] });
        json!([{ "type": "loop", "config": config }])
    };
    let people: Vec<String> = (0..20).map(|at| format!("p{at}@example.com")).collect();
    let after = |operations: &Value, items: usize, item: usize, text: usize| {
        let items = vec!["x".repeat(item); items];
        let input = json!({ "items": items, "people": people, "text": "x".repeat(text) });
        let input = input.to_string();
        let mut harness =
            Harness::open(&[after_an_hour(operations)], input.as_bytes(), false, false).unwrap();
        harness.hours(1).unwrap();
        harness.decisions().unwrap().1
    };
    let few = after(&each(&mails), 10, 1, 50_000);
    assert_eq!((few.at(), few.session.outbox().count), ("done", 200));
    let many = after(&each(&mails), 200, 1, 50_000);
    assert_eq!(many.at(), "silent", "the failure can still be recorded");
    assert!(many.session.outbox().bytes <= 13 * 1024 * 1024, "{:?}", many.session.outbox());
    // Each round of such a loop is recorded with the whole list.
    assert_eq!(after(&each(&idle), 50, 1, 1).at(), "done");
    assert_eq!(after(&each(&idle), 200, 1_000, 1).at(), "silent");
}

#[test]
fn an_approval_whose_mails_reach_nobody_is_escalated_at_once() {
    let workflow = json!({
        "name": "unreached",
        "states": [
            { "name": "decide", "type": "approval", "approvers": ["a@example.com", "b@example.com"],
              "request_template": { "subject_template": "Which?", "body_template": "Say so." },
              "escalation": { "timeout_hours": 4, "escalation_contacts": ["head@example.com"] } },
            { "name": "done", "type": "conversation" },
            { "name": "lapsed", "type": "conversation" },
        ],
        "transitions": [
            { "from": "decide", "port": "approved", "to": "done" },
            { "from": "decide", "port": "rejected", "to": "done" },
            { "from": "decide", "port": "discussion", "to": "done" },
            { "from": "decide", "port": "timeout", "to": "lapsed" },
        ],
    });
    let mut harness = Harness::open(&[workflow], b"", false, false).unwrap();
    harness.undelivered("a@example.com").unwrap();
    assert!(harness.undelivered("head@example.com").is_err(), "one recipient can still be reached");
    harness.undelivered("b@example.com").unwrap();
    let seen = |harness: &Harness| harness.decisions().unwrap().1;
    let view = seen(&harness);
    assert_eq!((view.at(), view.session.outbox().dead_letters, view.incidents.len()), ("decide", 2, 2));
    harness.hours(3).unwrap();
    harness.undelivered("head@example.com").unwrap();
    assert_eq!(seen(&harness).session.outbox().dead_letters, 3, "the contact was sent a mail");
    harness.hours(2).unwrap();
    let view = seen(&harness);
    assert_eq!((view.at(), view.incidents.len()), ("lapsed", 0), "the round lasts its whole time");
}

/// Workflows nested this deep below the first, each of which calls the next; the last one talks.
fn nested(depth: usize) -> Vec<Value> {
    let one = |at: usize| {
        let state = if at == depth {
            json!({ "name": "s", "type": "conversation" })
        } else {
            json!({ "name": "s", "type": "subworkflow", "workflow": format!("w{}", at + 1) })
        };
        json!({ "name": format!("w{at}"), "states": [state], "transitions": [] })
    };
    (0..=depth).map(one).collect()
}

#[test]
fn workflows_call_one_another_so_deep_and_no_deeper() {
    let deepest = switchward_state::limits::CALL_DEPTH_MAX;
    let harness = Harness::open(&nested(deepest), b"", false, false).unwrap();
    let (decisions, view) = harness.decisions().unwrap();
    assert_eq!((decisions, view.at(), view.below.len()), (1, "s", deepest));
    let deeper = Harness::open(&nested(deepest + 1), b"", false, false).err().unwrap();
    assert!(deeper.contains("more than 16 runs below the first"), "{deeper}");
}

#[test]
fn events_that_nothing_listens_to_are_bounded_together_for_as_long_as_they_are_kept() {
    let workflow = json!({
        "name": "deaf", "states": [{ "name": "talk", "type": "conversation" }], "transitions": [],
    });
    let mut harness = Harness::open(&[workflow], b"", false, false).unwrap();
    harness.event(json!("x".repeat(600 * 1024))).unwrap();
    let message = harness.event(json!("x".repeat(600 * 1024))).unwrap_err();
    assert!(message.contains("bytes of them wait"), "{message}");
    for _ in 0..99 {
        harness.event(json!(1)).unwrap();
    }
    assert!(harness.event(json!(1)).unwrap_err().contains("100 events"));
    harness.hours(2).unwrap();
    harness.event(json!("x".repeat(600 * 1024))).unwrap();
}

#[test]
fn addresses_and_the_instructions_of_a_task_are_bounded() {
    let workflow = json!({
        "name": "letters",
        "states": [
            { "name": "talk", "type": "conversation" },
            { "name": "mail", "type": "output", "template": "Hello.", "target": "email",
              "recipients": ["{gathered_data.to}"], "on_error": "port" },
            { "name": "task", "type": "task", "on_error": "port",
              "task_template": { "participants_from": "gathered.people", "instructions": "{gathered.said}" } },
            { "name": "sorry", "type": "conversation" },
            { "name": "done", "type": "conversation" },
        ],
        "transitions": [
            { "from": "talk", "to": "mail", "guards": [{ "type": "data_contains", "config": { "key": "to" } }] },
            { "from": "talk", "to": "task", "guards": [{ "type": "always" }] },
            { "from": "mail", "port": "done", "to": "done" },
            { "from": "mail", "port": "error", "to": "sorry" },
            { "from": "task", "to": "done", "guards": [{ "type": "all_tasks_complete" }] },
            { "from": "task", "port": "error", "to": "sorry" },
        ],
    });
    let after = |values: Value| {
        let mut harness = Harness::open(std::slice::from_ref(&workflow), b"", false, false).unwrap();
        harness.turn(values.as_object().unwrap().clone()).unwrap();
        harness.decisions().unwrap().1.at().to_owned()
    };
    assert_eq!(after(json!({ "to": format!("{}@example.com", "x".repeat(4 * 1024)) })), "sorry");
    assert_eq!(after(json!({ "to": format!("{}@example.com", "x".repeat(64)) })), "done");
    let people: Vec<String> = (0..100).map(|at| format!("p{at}@example.com")).collect();
    assert_eq!(after(json!({ "people": people, "said": "x".repeat(200 * 1024) })), "sorry");
    assert_eq!(after(json!({ "people": people, "said": "x".repeat(20 * 1024) })), "task");
}
