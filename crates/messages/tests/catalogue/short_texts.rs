//! Texts of a few words: what policies say of calls, gates in lists, warnings about a directory. Compared with `expected/`.

use crate::support::{entry, same};
use switchward_machine::Decision;
use switchward_messages::{
    APPROVED_BY_YOU, CALL_TO_REPEAT, CallOutcome, GateLine, GateMatter, NOBODY, Notified, approvals,
    call_grounds, call_outcome, directory_warning, gate_about, gate_decided, gate_deciders, gate_message,
    gate_question, gate_voided, gate_waited, inputs_held, quorum, reminders_left, vote_way,
};
use switchward_state::approval::{Quorum, Via};
use switchward_state::catalogue::{DirectoryList, DirectoryWarning};
use switchward_state::policy::{CallEffect, CallGrounds};

#[test]
fn what_a_policy_says_is_rendered() {
    let name = |grounds: &CallGrounds| match grounds {
        CallGrounds::Approved => "approved",
        CallGrounds::Ask { .. } => "asked",
        CallGrounds::Allowed { .. } => "allowed",
        CallGrounds::Short(_) => "shortage",
        CallGrounds::Problem(_) => "problem",
    };
    let all = switchward_testkit::call_grounds();
    let mut made: String = all.iter().map(|one| entry(name(one), &[&call_grounds(Some(one))])).collect();
    assert_eq!(call_grounds(None), "");
    let effects = [CallEffect::Allow, CallEffect::Ask, CallEffect::Deny];
    made.push_str(&entry("outcome", &effects.map(|effect| call_outcome(CallOutcome::Decided(effect)))));
    made.push_str(&entry(
        "outcome, if made",
        &effects.map(|effect| call_outcome(CallOutcome::Would(effect))),
    ));
    made.push_str(&entry("outcome", &[call_outcome(CallOutcome::Unnotified)]));
    same(&made, include_str!("../expected/policy.txt"));
}

#[test]
fn gates_in_lists_are_rendered() {
    let to = ["ann@a.example".to_owned(), "kim".to_owned()];
    let (state, to) = ("ship", to.as_slice());
    let mut made = String::new();
    for line in [
        GateLine::Call { capability: "bash" },
        GateLine::Review { state, answer: "yes" },
        GateLine::Approval { state, to },
        GateLine::Task { state, to },
    ] {
        let waited = [Notified::Somebody, Notified::Nobody].map(|notified| gate_waited(&line, notified));
        made.push_str(&entry("gate", &[&gate_question(&line), &gate_about(&line), &waited[0], &waited[1]]));
    }
    let matters = [
        GateMatter::Call { capability: "bash" },
        GateMatter::Review { answer: "yes" },
        GateMatter::Request { subject: "Deploy web?" },
        GateMatter::Decision,
    ];
    let messages = matters.map(|matter| gate_message("deploy", matter));
    messages.iter().for_each(|text| made.push_str(&entry("message", &[text])));
    for (decision, via) in [
        (Some(Decision::Approve), Via::Mail),
        (Some(Decision::Refuse), Via::Vouched),
        (Some(Decision::Discuss), Via::Rpc),
        (Some(Decision::Answer), Via::Page),
        (None, Via::Rpc),
    ] {
        made.push_str(&entry("decided", &[&gate_decided(decision, "kim", via)]));
    }
    made.push_str(&entry("vote", &[&vote_way("email", ""), &vote_way("vouched", "ops"), &approvals(1, 3)]));
    let counts = [0, 1, 7];
    counts.map(inputs_held).iter().for_each(|text| made.push_str(&entry("inputs", &[text])));
    counts.map(reminders_left).iter().for_each(|text| made.push_str(&entry("reminders", &[text])));
    made.push_str(&entry("deciders", &[&gate_deciders(&[]), &gate_deciders(&to[..1]), &gate_deciders(to)]));
    let quorums = [None, Some(Quorum::AtLeast(2)), Some(Quorum::All)].map(quorum);
    made.push_str(&entry("quorum", &[&quorums[0], &quorums[1], &quorums[2]]));
    made.push_str(&entry("hints", &[NOBODY, APPROVED_BY_YOU, CALL_TO_REPEAT, &gate_voided("gat_1")]));
    same(&made, include_str!("../expected/gate_lines.txt"));
}

#[test]
fn warnings_about_a_directory_are_rendered() {
    let name = || "group:release".to_owned();
    let unknown = |list| DirectoryWarning::UnknownMember { member: "kim".into(), list, name: name() };
    let warnings = [DirectoryWarning::NoAddress { name: name() }]
        .into_iter()
        .chain(DirectoryList::ALL.map(unknown))
        .chain([DirectoryWarning::EmptyAudience { name: name() }]);
    let made: String = warnings.map(|one| entry("warning", &[&directory_warning(&one)])).collect();
    same(&made, include_str!("../expected/directory.txt"));
}
