//! Open items, and work that is done.

use switchward_state::work::WorkEvent;

use super::*;

pub(super) fn head() -> ItemHead {
    ItemHead { run: RunId(1), node: NodeIx(1), entry: 2, at: Time(3), trace: None }
}

/// A gate that is open, or was.
pub(super) fn open_gate() -> OpenGate {
    Open { head: head(), body: gate() }
}

pub(super) fn gate_row(body: Gate) -> Row {
    Row::OpenItem(OpenItem::Gate(Box::new(Open { head: head(), body })))
}

pub(super) fn item(body: OpenItemBody) -> Row {
    Row::OpenItem(OpenItem::new(head(), body))
}

pub(super) fn items() -> Vec<OpenItemBody> {
    vec![
        OpenItemBody::Work(WorkItem { kind: WorkKind::Agent, owed: Owed::default() }),
        OpenItemBody::Wait(WaitItem {
            on: WaitOn::Event,
            due: Time(9),
            late: Port::Named("timeout".into()),
            done: Port::Named("received".into()),
        }),
        OpenItemBody::Timer(TimerItem { due: Time(9), why: Why::Backoff }),
        OpenItemBody::Work(WorkItem { kind: WorkKind::Judge, owed: owed() }),
        OpenItemBody::Work(WorkItem { kind: WorkKind::Delegate, owed: Owed::default() }),
        OpenItemBody::Work(WorkItem {
            kind: WorkKind::Http,
            owed: Owed { instead: Some(OpenId(10)), ..owed() },
        }),
    ]
}

fn owed() -> Owed {
    Owed {
        fence: 2,
        lease: Some(Lease { worker: "w-1".into(), until: Time(9), by: "robot".into() }),
        lapsed: 1,
        ..Owed::new(
            serde_json::json!({"rubric": "It is polite."}),
            "refund",
            About::Judge { exit: ExitIx(1), nth: 2 },
        )
    }
}

pub(super) fn work_done(item: OpenId, run: RunId, unknown: bool) -> Event {
    Event::Work(WorkEvent::Done {
        item,
        run,
        worker: "w-1".into(),
        wrong: Some(WorkProblem::Fault(ResultProblem::NoObject.into())),
        unknown,
    })
}
