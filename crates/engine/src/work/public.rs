//! What readers of a history see of open items.

use serde_json::{Value, json};
use switchward_machine::WorkKind;
use switchward_state::PublicEvent;
use switchward_state::work::{OpenItemBody, TimerItem, WaitItem, WorkEvent, WorkItem};

/// Returns what a reader sees of an event; `None` if it is internal.
pub(crate) fn public(event: &WorkEvent) -> Option<PublicEvent> {
    Some(match event {
        WorkEvent::Opened { body, .. } => opened(body),
        WorkEvent::Leased { item, worker, until, again: false, .. } => PublicEvent::new("work.leased")
            .with("work", item.0)
            .with("worker", worker)
            .with("until_ms", until.0),
        WorkEvent::Released { item, lapsed } => {
            PublicEvent::new("work.released").with("work", item.0).with("lapsed", lapsed)
        }
        WorkEvent::Done { item, worker, wrong, .. } => {
            let public = PublicEvent::new("work.done").with("work", item.0).with("worker", worker);
            match wrong {
                Some(problem) => public.with_facts("wrong", problem),
                None => public,
            }
        }
        WorkEvent::Leased { again: true, .. } | WorkEvent::Closed { .. } => return None,
    })
}

fn opened(body: &OpenItemBody) -> PublicEvent {
    match body {
        OpenItemBody::Work(WorkItem { kind, owed }) => PublicEvent::new("work.opened")
            .with("kind", kind.word())
            .with("input", shown(*kind, &owed.input.0)),
        OpenItemBody::Wait(WaitItem { on, due, .. }) => {
            PublicEvent::new("wait.opened").with("for", on.word()).with("due_ms", due.0)
        }
        OpenItemBody::Timer(TimerItem { due, why }) => {
            PublicEvent::new("timer.set").with("for", why.word()).with("due_ms", due.0)
        }
    }
}

/// What readers of a history see of a worker's input: of a request its method and its destination, because its headers,
/// its query and its body may hold secrets.
fn shown(kind: WorkKind, input: &Value) -> Value {
    match kind {
        WorkKind::Http => {
            let url = input.get("url").and_then(Value::as_str).unwrap_or_default();
            let url = url.split(['?', '#']).next().unwrap_or_default();
            let url = url.rsplit_once('@').map_or(url, |(_, rest)| rest);
            json!({ "method": input.get("method"), "url": url })
        }
        WorkKind::Agent
        | WorkKind::Extract
        | WorkKind::Judge
        | WorkKind::Classify
        | WorkKind::Delegate
        | WorkKind::Intent
        | WorkKind::Tool
        | WorkKind::Interaction
        | WorkKind::Script => input.clone(),
    }
}
