//! Open items, and work that is done.

use switchward_state::work::WorkEvent;

use super::*;

pub(super) fn items() -> Vec<OpenItemBody> {
    vec![
        OpenItemBody::Work { kind: WorkKind::Agent, owed: Owed::default() },
        OpenItemBody::Wait {
            on: WaitOn::Event,
            due: Time(9),
            late: Port::Named("timeout".into()),
            done: Port::Named("received".into()),
        },
        OpenItemBody::Timer { due: Time(9), why: Why::Backoff },
        OpenItemBody::Work { kind: WorkKind::Judge, owed: owed() },
        OpenItemBody::Work { kind: WorkKind::Delegate, owed: Owed::default() },
        OpenItemBody::Work { kind: WorkKind::Http, owed: Owed { instead: Some(OpenId(10)), ..owed() } },
    ]
}

fn owed() -> Owed {
    Owed {
        fence: 2,
        lease: Some(Lease { worker: "w-1".into(), until: Time(9) }),
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
        wrong: Some("/amount is no number".into()),
        unknown,
    })
}
