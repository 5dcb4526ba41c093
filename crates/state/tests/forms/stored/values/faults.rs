//! What goes wrong in runs and in work, and the grounds of decisions on calls: each variant once.

use switchward_machine::{
    DeliveryReason, EndReason, Ending, FaultCode, NodeIx, OpenId, Outcome, RunId, SessionId,
};
use switchward_state::delivery::{DeliveryDetail, DeliveryEvent, FailureCode};
use switchward_state::policy::Authorized;
use switchward_state::run::{Deferral, EndComment, RunEvent};
use switchward_state::work::{WorkEvent, WorkProblem};
use switchward_state::{Event, Reply};
use switchward_testkit::{
    call_grounds, delivery_details, failure_codes, faults, missing_facts, result_problems, session_warnings,
};

const RUN: RunId = RunId(1);

/// An event for each fault.
pub(crate) fn events() -> Vec<Event> {
    let faulted = |fault| Event::Run(RunEvent::Faulted { run: RUN, node: NodeIx(1), fault });
    let mut all: Vec<Event> = faults().into_iter().map(faulted).collect();
    let Some(fault) = faults().pop() else { return all };
    let ending = Ending::failed(EndReason::Fault(FaultCode::Child));
    let comment = EndComment::Fault(fault.clone());
    let done = |wrong| WorkEvent::Done {
        item: OpenId(7),
        run: RUN,
        worker: "w-1".into(),
        wrong: Some(wrong),
        unknown: false,
    };
    all.extend([
        Event::Run(RunEvent::Ended { run: RUN, ending, comment }),
        Event::Run(RunEvent::Ended {
            run: RUN,
            ending: Ending::plain(Outcome::Cancelled),
            comment: EndComment::RemovedAfterBackup,
        }),
        Event::Run(RunEvent::Deferred { run: RUN, due: Deferral::Fault(fault.clone()), requester: None }),
        Event::Work(done(WorkProblem::Fault(fault))),
        Event::Work(done(WorkProblem::Undecided)),
    ]);
    all.extend(failure_codes().into_iter().map(|code| dead_letter(code, None)));
    let attempt = || FailureCode::Attempt(DeliveryReason::Timeout);
    all.extend(delivery_details().into_iter().map(|detail| dead_letter(attempt(), Some(detail))));
    all
}

fn dead_letter(code: FailureCode, detail: Option<DeliveryDetail>) -> Event {
    Event::Delivery(DeliveryEvent::Failed { number: 9, code, detail })
}

/// Replies about work and about calls, for each problem and all grounds.
pub(crate) fn replies() -> Vec<Reply> {
    let worked = |wrong| Reply::Worked { session: SessionId([1; 16]), sequence: 4, wrong: Some(wrong) };
    let decided =
        |grounds| Reply::Authorized(Box::new(Authorized { grounds: Some(grounds), ..super::authorized() }));
    let worked = result_problems().into_iter().map(worked);
    worked.chain(call_grounds().into_iter().map(decided)).collect()
}

#[test]
fn the_samples_have_every_kind_of_fact() {
    assert_eq!(missing_facts(faults().iter().map(|fault| &fault.cause)), Vec::<String>::new());
    assert_eq!(missing_facts(&result_problems()), Vec::<String>::new());
    assert_eq!(missing_facts(&call_grounds()), Vec::<String>::new());
    assert_eq!(missing_facts(&failure_codes()), Vec::<String>::new());
    assert_eq!(missing_facts(&delivery_details()), Vec::<String>::new());
    assert_eq!(missing_facts(&session_warnings()), Vec::<String>::new());
}

/// Processes send each other the details of deliveries as JSON.
#[test]
fn a_detail_is_read_back_from_json() {
    for detail in delivery_details() {
        let json = serde_json::to_string(&detail).expect("a detail is JSON");
        assert_eq!(serde_json::from_str::<DeliveryDetail>(&json).ok(), Some(detail), "{json}");
    }
}
