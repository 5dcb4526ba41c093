//! What goes wrong in runs and in work. Compared with `expected/`.

use crate::support::{entry, same};
use std::collections::BTreeSet;
use switchward_machine::{EndReason, FaultCode};
use switchward_messages::{end_comment, fault, public_value, remedy, result_problem, work_problem};
use switchward_state::PublicValue;
use switchward_state::limits::RESULT_SHOWN_BYTES_MAX;
use switchward_state::run::{EndComment, FaultCause, ResultProblem};
use switchward_state::work::WorkProblem;
use switchward_testkit::{faults, missing_facts, result_problems};

#[test]
fn every_fault_is_rendered() {
    let all = faults();
    assert_eq!(missing_facts(all.iter().map(|fault| &fault.cause)), Vec::<String>::new());
    let made: String = all.iter().map(|one| entry(one.code().word(), &[&fault(one)])).collect();
    same(&made, include_str!("../expected/faults.txt"));
}

#[test]
fn a_fault_has_the_same_words_wherever_it_is_shown() {
    for one in faults() {
        let words = fault(&one);
        assert_eq!(end_comment(&EndComment::Fault(one.clone())), words);
        assert_eq!(work_problem(&WorkProblem::Fault(one.clone())), words);
        assert_eq!(public_value(&PublicValue::Fault(one.clone())), words);
        if let FaultCause::Result(problem) = &one.cause {
            assert_eq!(result_problem(problem), words);
        }
    }
    let undecided = WorkProblem::Undecided;
    assert_eq!(work_problem(&undecided), "the reply counts as undecided");
    assert_eq!(public_value(&PublicValue::WorkProblem(undecided)), "the reply counts as undecided");
    assert_eq!(end_comment(&EndComment::default()), "");
    let removed = EndComment::RemovedAfterBackup;
    assert_eq!(public_value(&PublicValue::from(&removed)), end_comment(&removed));
}

#[test]
fn every_end_has_a_remedy_of_its_own() {
    let own = [EndReason::PortUnconnected, EndReason::DrainLimit, EndReason::NoTransition];
    let all: Vec<EndReason> = own.into_iter().chain(FaultCode::ALL.map(EndReason::Fault)).collect();
    let remedies: BTreeSet<&str> = all.iter().map(|reason| remedy(*reason)).collect();
    assert_eq!(remedies.len(), all.len());
    assert!(remedies.iter().all(|text| !text.is_empty() && !text.ends_with('.')));
}

#[test]
fn what_a_worker_has_sent_is_cut() {
    let long = ResultProblem::UnknownField { field: "x".repeat(RESULT_SHOWN_BYTES_MAX) };
    let text = result_problem(&long);
    assert_eq!(text.len(), RESULT_SHOWN_BYTES_MAX + '…'.len_utf8());
    assert!(text.starts_with("/xxx") && text.ends_with("x…"), "{text}");
    for problem in result_problems() {
        assert!(result_problem(&problem).len() <= RESULT_SHOWN_BYTES_MAX + '…'.len_utf8());
    }
}
