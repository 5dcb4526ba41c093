//! Texts of a few words: what policies say of calls, gates in lists, warnings about a directory. Compared with `expected/`.

use crate::support::{entry, same};
use switchward_machine::Decision;
use switchward_messages::{
    APPROVED_BY_YOU, CALL_APPROVED, CALL_TO_REPEAT, CallOutcome, CallProblem, GateLine, GateMatter, NOBODY,
    Notified, approvals, call_allowed, call_asked, call_outcome, call_problem, directory_warning, gate_about,
    gate_decided, gate_deciders, gate_message, gate_question, gate_voided, gate_waited, inputs_held, quorum,
    reminders_left, shortage, vote_way,
};
use switchward_state::approval::{Quorum, Via};
use switchward_state::catalogue::{DefaultSetIn, DirectoryList, DirectoryWarning};
use switchward_state::policy::{CallEffect, MatchedRule, Shortage};

const SET_IN: [DefaultSetIn; 4] =
    [DefaultSetIn::Source, DefaultSetIn::Document, DefaultSetIn::Tenant, DefaultSetIn::Configuration];

#[test]
fn what_a_policy_says_is_rendered() {
    let (capability, address) = ("bash", "eve@b.example");
    let mut problems = vec![
        CallProblem::Listed { capability },
        CallProblem::NobodyToAsk { capability },
        CallProblem::NotListed,
        CallProblem::UnlistedNobodyToAsk,
        CallProblem::Paused,
        CallProblem::Reviewed,
        CallProblem::NoSender,
        CallProblem::NoRecipient,
        CallProblem::SenderNotListed { address },
        CallProblem::RecipientNotListed { address },
        CallProblem::NoAddress { field: "cc" },
    ];
    let by_default = |set_in| CallProblem::DeniedByDefault { layer: "tenant:guard@1", set_in };
    problems.push(by_default(None));
    problems.extend(SET_IN.map(|set_in| by_default(Some(set_in))));
    let mut made: String = problems.iter().map(|one| entry("problem", &[&call_problem(*one)])).collect();
    let rule = |capability: &str, default_set_in| MatchedRule {
        layer: "policy".into(),
        list: "allow".into(),
        capability: capability.into(),
        default_set_in,
    };
    let by_default = SET_IN.map(|set_in| Some(rule("", Some(set_in))));
    for rule in [None, Some(rule("mcp:*", None))].into_iter().chain(by_default) {
        made.push_str(&entry("allowed", &[&call_allowed(capability, rule.as_ref())]));
    }
    made.push_str(&entry("asked", &[&call_asked(capability), CALL_APPROVED]));
    let limit = Shortage::Limit { capability: capability.into() };
    made.push_str(&entry("shortage", &[&shortage(&Shortage::Grants { most: 8 }), &shortage(&limit)]));
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
