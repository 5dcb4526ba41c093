//! The forms in which parts of answers are sent. Those with rows and machines are in the golden file of the crate `gateway`.
//! `BLESS=1` rewrites the file.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::disallowed_methods, reason = "the golden file is compared and rewritten")]

use minicbor::{Decode, Encode};
use std::fmt::Debug;
use switchward_engine::policy::{Explanation, LimitState, LookedAt};
use switchward_engine::{Comment, Missed, Reach, RunView};
use switchward_machine::{BudgetUnit, RunId, Status, Time};
use switchward_state::Reason;
use switchward_state::approval::Warning;
use switchward_state::policy::{CallEffect, CallGrounds, CallProblem, MatchedRule};

/// A line of the golden file; the value must be the same after it was decoded.
fn line<T: Encode<()> + for<'b> Decode<'b, ()> + PartialEq + Debug>(of: &str, value: &T) -> String {
    let bytes = minicbor::to_vec(value).unwrap();
    assert_eq!(minicbor::decode::<T>(&bytes).unwrap(), *value);
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{of} {hex}\n")
}

fn explanation() -> Explanation {
    let rule = MatchedRule {
        layer: "policy".into(),
        list: "deny".into(),
        capability: "bash".into(),
        default_set_in: None,
    };
    Explanation {
        effect: CallEffect::Deny,
        reason: Some(Reason::PolicyDenied),
        grounds: CallGrounds::Problem(CallProblem::Listed { capability: "bash".into() }),
        rule: Some(rule.clone()),
        granted: false,
        looked_at: vec![LookedAt { rule, covers: true }],
        layers: Vec::new(),
        limited: Vec::new(),
        budgets: vec![LimitState { layer: None, unit: BudgetUnit::Mails, used: 1, cap: 2 }],
    }
}

#[test]
fn parts_of_answers_have_the_form_in_which_they_were_sent_first() {
    let run = RunView {
        id: RunId(1),
        definition: "deploy-gate".into(),
        version: 3,
        status: Status::Waiting,
        at: "ready".into(),
        parent: None,
        label: None,
    };
    let reach = Reach {
        unreached: vec!["kim@example.com".into()],
        unnotified: true,
        warnings: vec![Warning::Unreachable],
        held: 2,
    };
    let lines = [
        line("comment", &Comment { by: "kim".into(), at: Time(3), comment: "why now?".into() }),
        line("missed", &Missed { retry: vec![7], events: Vec::new(), upto: Some(9) }),
        line("run", &run),
        line("reach", &reach),
        line("explanation", &explanation()),
    ];
    let path = format!("{}/tests/golden/view.v1.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::create_dir_all(std::path::Path::new(&path).parent().unwrap()).unwrap();
        std::fs::write(&path, lines.concat()).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap();
    assert_eq!(lines.concat(), known, "a sent form has changed: servers of two versions differ in it");
}
