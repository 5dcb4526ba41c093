//! What people read on a page of a rejection, compared with `expected/`: every reason, and every case of those that depend on
//! facts.

use crate::support::{entry, same};
use switchward_machine::Micros;
use switchward_messages::refusal;
use switchward_state::policy::Shortage;
use switchward_state::{Reason, Rejection};

/// A rejection whose message nobody must read.
fn of(reason: Reason) -> Rejection {
    Rejection::new(reason, "for developers")
}

/// An approval or a decision of this kind that came before.
fn before(decision: &str, via: &str) -> Rejection {
    let at = 1_767_225_600_123_u64;
    of(Reason::AlreadyResolved)
        .fact("at_ms", at)
        .fact("decision", decision)
        .fact("by", "kim@a.example")
        .fact("via", via)
        .fact("comment", "Fine.")
}

/// A rejection of each case that depends on facts.
fn with_facts() -> Vec<Rejection> {
    let field = |name: &str| of(Reason::FieldInvalid).fact("field", name);
    let money =
        Shortage::Money { used: Micros(2_500_000), most: Micros(3_000_000), layer: Some("tenant".into()) };
    let limit = Shortage::Limit { capability: "bash".into() };
    let votes = before("approve", "email").fact("approvals", 1).fact("approvals_needed", 3);
    vec![
        before("approve", "page"),
        before("reject", "vouched"),
        before("answer", "email"),
        before("timeout", ""),
        before("voided", ""),
        votes,
        of(Reason::CredentialInvalid).fact("link_auth", "code"),
        of(Reason::CredentialInvalid).fact("field", "code"),
        field("comment").fact("max", 16_384),
        field("answer"),
        field("answer").fact("max", 65_536),
        field("to").fact("problem", "unknown"),
        field("to").fact("problem", "counted"),
        of(Reason::FieldInvalid).allowed(["approve", "reject"]),
        of(Reason::NotAnApprover).fact("approvers", "ann@a.example, bob@a.example"),
        of(Reason::NotAnApprover).fact("problem", "not_in_directory"),
        of(Reason::SelfApproval).fact("field", "to"),
        of(Reason::SessionTerminal).fact("status", "cancelled"),
        of(Reason::StateMismatch).fact("field", "args_digest"),
        of(Reason::RateLimited).fact("field", "code").fact("max", 5).retry_after_ms(Some(754_000)),
        of(Reason::QuotaExceeded).shortage(Shortage::Grants { most: 8 }),
        of(Reason::BudgetExhausted).shortage(money),
        of(Reason::RateLimited).shortage(limit).retry_after_ms(Some(10_000_000)),
        of(Reason::QuotaExceeded).retry_after_ms(Some(250)),
    ]
}

#[test]
fn every_refusal_is_rendered() {
    let reasons = Reason::ALL.iter().map(|reason| of(*reason));
    let mut made = String::new();
    for rejection in reasons.chain(with_facts()) {
        let text = refusal(&rejection);
        assert!(!text.contains("for developers"), "{text}");
        made.push_str(&entry(rejection.reason.code(), &[&text]));
    }
    same(&made, include_str!("../expected/refusals.txt"));
}

#[test]
fn what_others_wrote_is_safe_to_show() {
    let said = refusal(&of(Reason::SessionTerminal).fact("status", "a\u{202e}b"));
    assert!(!said.contains('\u{202e}'), "{said}");
}
