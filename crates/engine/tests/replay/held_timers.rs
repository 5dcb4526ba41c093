//! A wait or a delay that is over while a person is asked whether the state may be left has no effect before they refuse.

use serde_json::Map;
use switchward_machine::Decision;
use switchward_state::approval::ApprovalEvent;
use switchward_state::run::{PendingFact, RunEvent};
use switchward_state::session::{Pause, Resume, SessionCommand};
use switchward_state::work::WorkEvent;
use switchward_state::{Body, Event, ItemKind};

use crate::held_jobs::Held;

const HOUR_MS: u64 = 3_600_000;

/// A list with a wait in its middle. The state has an exit that an event takes, and a person is asked about it first.
const WAITS: &str = r#"
name: p
states:
  - name: cool
    type: logic
    require_human_approval: true
    approval_contacts: [lead@example.com]
    operations:
      - {type: wait, config: {hours: 1}}
      - {type: http_request, config: {method: POST, url: "https://orders.example/", body: {}}}
  - {name: fine, type: conversation}
transitions:
  - {from: cool, to: fine, guards: [{type: external_event, config: {event_key: paid}}]}
"#;

/// An operation that fails at once and is tried again after an hour.
const RETRIES: &str = r#"
name: p
states:
  - name: cool
    type: logic
    require_human_approval: true
    approval_contacts: [lead@example.com]
    on_error: retry_then_port
    retry_policy: {max_attempts: 2, backoff_seconds: 3600}
    operations:
      - {type: set_data, config: {key: amount, value: none}}
      - {type: transform, config: {key: amount, transform: to_number}}
  - {name: fine, type: conversation}
  - {name: sorry, type: conversation}
transitions:
  - {from: cool, to: fine, guards: [{type: external_event, config: {event_key: paid}}]}
  - {from: cool, port: error, to: sorry}
"#;

/// The author's own time limit of an approval.
const ROUNDS: &str = r#"
name: p
states:
  - name: cool
    type: approval
    approvers: [lead@example.com]
    escalation: {timeout_hours: 1, escalation_contacts: [head@example.com], max_escalations: 1}
  - {name: fine, type: conversation}
  - {name: sorry, type: conversation}
transitions:
  - {from: cool, port: approved, to: fine}
  - {from: cool, port: rejected, to: fine}
  - {from: cool, port: timeout, to: sorry}
"#;

/// A session in which a person is asked, and whose wait or delay is open.
fn asked(source: &str, open: ItemKind) -> Held {
    let mut held = Held::start(source);
    assert_eq!((held.at(), held.open(open).len()), ("cool", 1));
    held.event(Map::new()).unwrap();
    assert_eq!((held.at(), held.session().gates().count(), held.open(open).len()), ("cool", 1, 1));
    held
}

/// The time of the wait or delay passes: it is over, and nothing follows from that yet.
fn over(held: &mut Held, open: ItemKind) {
    let events = held.later(HOUR_MS, open);
    let expected = |event: &Event| {
        matches!(
            event,
            Event::Work(WorkEvent::Closed { .. }) | Event::Run(RunEvent::Pending(PendingFact::Held { .. }))
        )
    };
    assert!(events.len() == 2 && events.iter().all(expected), "{events:?}");
    assert_eq!((held.at(), held.session().gates().count()), ("cool", 1), "the person is still asked");
    assert!(held.session().items.iter().all(|listed| listed.kind == ItemKind::Gate), "nothing else is open");
}

fn is_restart(event: &Event) -> bool {
    matches!(event, Event::Run(RunEvent::Restarted { .. }))
}

#[test]
fn a_wait_that_is_over_meanwhile_goes_on_only_if_the_state_is_not_left() {
    let mut held = asked(WAITS, ItemKind::Wait);
    over(&mut held, ItemKind::Wait);
    held.decide(Decision::Refuse);
    assert_eq!((held.at(), held.open(ItemKind::Work).len()), ("cool", 1), "the list goes on");
    assert_eq!(held.session().gates().count(), 0);
    assert!(!held.run().rests && held.run().pending.is_empty());
    held.replayed();

    let mut held = asked(WAITS, ItemKind::Wait);
    over(&mut held, ItemKind::Wait);
    let events = held.decide(Decision::Approve);
    assert!(!events.iter().any(|event| matches!(event, Event::Work(_))), "{events:?}");
    assert!(held.at() == "fine" && held.session().items.is_empty() && held.run().pending.is_empty());
    held.replayed();
}

#[test]
fn a_delay_that_is_over_meanwhile_begins_an_attempt_only_if_the_state_is_not_left() {
    let mut held = asked(RETRIES, ItemKind::Timer);
    over(&mut held, ItemKind::Timer);
    let events = held.decide(Decision::Refuse);
    assert_eq!(events.iter().filter(|event| is_restart(event)).count(), 1, "{events:?}");
    assert_eq!(held.at(), "sorry", "the second attempt has failed, too");
    assert!(held.run().held.is_none() && held.run().pending.is_empty());
    held.replayed();

    let mut held = asked(RETRIES, ItemKind::Timer);
    over(&mut held, ItemKind::Timer);
    let events = held.decide(Decision::Approve);
    assert!(!events.iter().any(is_restart), "{events:?}");
    assert!(held.at() == "fine" && held.run().pending.is_empty());
    held.replayed();
}

#[test]
fn an_approval_that_is_given_before_voids_the_wait() {
    for (source, kind) in [(WAITS, ItemKind::Wait), (RETRIES, ItemKind::Timer)] {
        let mut held = asked(source, kind);
        held.decide(Decision::Approve);
        assert_eq!((held.at(), held.session().items.len()), ("fine", 0));
        held.replayed();
    }
}

#[test]
fn a_refusal_that_comes_before_leaves_the_wait_as_it_is() {
    let mut held = asked(WAITS, ItemKind::Wait);
    held.decide(Decision::Refuse);
    assert!(!held.run().rests, "the body has not ended");
    held.later(HOUR_MS, ItemKind::Wait);
    assert_eq!((held.at(), held.open(ItemKind::Work).len(), held.session().gates().count()), ("cool", 1, 0));
    held.replayed();
}

#[test]
fn resuming_does_not_go_on_with_what_waits_for_the_person() {
    let mut held = asked(WAITS, ItemKind::Wait);
    held.submit(Body::Session(SessionCommand::Pause(Pause { comment: String::new() }))).0.unwrap();
    over(&mut held, ItemKind::Wait);
    held.submit(Body::Session(SessionCommand::Resume(Resume { comment: String::new() }))).0.unwrap();
    assert_eq!((held.open(ItemKind::Work).len(), held.session().gates().count()), (0, 1));
    held.decide(Decision::Refuse);
    assert_eq!((held.at(), held.open(ItemKind::Work).len()), ("cool", 1));
    held.replayed();
}

#[test]
fn the_rounds_of_an_approval_end_at_their_times() {
    let mut held = Held::start(ROUNDS);
    let of = |events: &[Event]| {
        let end = |event: &Event| match event {
            Event::Approval(ApprovalEvent::Escalated { .. }) => Some("escalated"),
            Event::Approval(ApprovalEvent::Lapsed { .. }) => Some("lapsed"),
            _ => None,
        };
        events.iter().filter_map(end).collect::<Vec<_>>()
    };
    assert_eq!(of(&held.later(HOUR_MS, ItemKind::Gate)), ["escalated"]);
    assert_eq!(of(&held.later(HOUR_MS, ItemKind::Gate)), ["lapsed"]);
    assert_eq!(held.at(), "sorry");
    held.replayed();
}
