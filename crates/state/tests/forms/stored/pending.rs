//! Pending approvals, and the values that they show.

use switchward_state::run::{PendingFact, PendingInput, RunEvent};

use super::*;

fn inputs() -> [PendingInput; 2] {
    let data = || Json(serde_json::json!({"amount": 3}));
    let port = Port::Named("complete".into());
    [
        PendingInput::Event { key: "paid".into(), data: data() },
        PendingInput::Work { item: OpenId(10), data: data(), port, requester: "worker".into() },
    ]
}

pub(super) fn rows() -> [(&'static str, Row); 2] {
    let asked = GateRequest { values: Some(digest()), ..asked() };
    let gate = Gate { asked: Some(asked), call: None, kind: GateKind::Approval, ..gate() };
    let fault = FaultCause::HttpStatus { status: 503 }.into();
    let failed = PendingInput::Failed { item: OpenId(11), fault };
    let over = PendingInput::TimeOver { item: OpenId(12), port: Some(Port::Named("timeout".into())) };
    let pending = inputs().into_iter().chain([failed, over]).collect();
    [("run-pending", Row::Run(Run { pending, ..run() })), ("open-values", gate_row(gate))]
}

pub(super) fn events() -> Vec<Event> {
    let (run, gate) = (RunId(1), OpenId(6));
    let held = inputs().map(|input| PendingFact::Held { run, gate, input });
    let shown = Json(serde_json::json!({"order": {"shown": {"amount": 3}}}));
    let wrote = Event::Run(RunEvent::Wrote {
        run,
        key: "approval".into(),
        value: shown,
        by: Writer::Request,
        who: None,
    });
    let pending = held.into_iter().chain([PendingFact::Entered { run, count: 2 }]);
    pending.map(Event::from).chain([wrote]).collect()
}
