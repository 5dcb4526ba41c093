//! What a policy says of a call, and what leaves no capacity for one.

use switchward_state::catalogue::DefaultSetIn;
use switchward_state::policy::{CallEffect, CallGrounds, CallProblem, MatchedRule, Shortage};

/// Why a call is decided as it is; empty if the rule that decides says it all.
#[must_use]
pub fn call_grounds(grounds: Option<&CallGrounds>) -> String {
    match grounds {
        None => String::new(),
        Some(CallGrounds::Approved) => "a person approved exactly this call, once".to_owned(),
        Some(CallGrounds::Ask { capability }) => call_asked(capability),
        Some(CallGrounds::Allowed { capability, rule }) => call_allowed(capability, rule.as_ref()),
        Some(CallGrounds::Short(short)) => shortage(short),
        Some(CallGrounds::Problem(problem)) => call_problem(problem),
    }
}

/// Why a call is denied or waits, as a part of a sentence.
fn call_problem(problem: &CallProblem) -> String {
    match problem {
        CallProblem::Listed { capability } => format!("{capability} is on the deny list"),
        CallProblem::NobodyToAsk { capability } => {
            format!("a person must approve {capability}, and nobody can be asked")
        }
        CallProblem::NotListed => "it is not on the list of allowed calls".to_owned(),
        CallProblem::UnlistedNobodyToAsk => "no rule matches, and nobody can be asked".to_owned(),
        CallProblem::DeniedByDefault { layer, set_in } => {
            let who = match set_in {
                None | Some(DefaultSetIn::Source) => "the format",
                Some(DefaultSetIn::Document) => layer.as_str(),
                Some(DefaultSetIn::Tenant) => "the tenant",
                Some(DefaultSetIn::Configuration) => "the server's configuration",
            };
            format!("no rule matches, and {who} denies by default")
        }
        CallProblem::Paused => "the session is paused".to_owned(),
        CallProblem::Reviewed => "a person reviews this step first".to_owned(),
        CallProblem::NoSender => "the mail has no sender, and only listed senders may send".to_owned(),
        CallProblem::NoRecipient => {
            "the mail has no recipient, and only listed recipients may receive".to_owned()
        }
        CallProblem::SenderNotListed { address } => format!("{address} may not send"),
        CallProblem::RecipientNotListed { address } => format!("{address} may not receive"),
        CallProblem::NoAddress { field } => format!("{field} holds something that is not an address"),
        CallProblem::Arguments { diagnostic } => diagnostic.clone(),
    }
}

/// Says that a person must approve this call first, and what to do then.
fn call_asked(capability: &str) -> String {
    format!("a person must approve {capability} with these arguments; then repeat the same call")
}

/// Why a call is allowed: the rule that says so, if any does.
fn call_allowed(capability: &str, rule: Option<&MatchedRule>) -> String {
    let Some(rule) = rule else { return format!("no rule or default covers {capability}, so it is allowed") };
    if !rule.capability.is_empty() {
        return format!("{} allows {}", rule.layer, rule.capability);
    }
    let open = format!("no rule of {} covers {capability}, and", rule.layer);
    match rule.default_set_in {
        None | Some(DefaultSetIn::Source) => format!("{open} what no rule covers is allowed"),
        Some(DefaultSetIn::Document) => format!("{open} it allows by default"),
        Some(DefaultSetIn::Tenant) => format!("{open} the tenant allows by default"),
        Some(DefaultSetIn::Configuration) => format!("{open} the server's configuration allows by default"),
    }
}

/// What leaves no capacity for a call, as a part of a sentence.
#[must_use]
pub fn shortage(shortage: &Shortage) -> String {
    let by = |layer: &Option<String>| {
        layer.as_ref().map_or_else(String::new, |it| format!(" (limit set by {it})"))
    };
    match shortage {
        Shortage::Grants { most } => format!("{most} approved calls have not been made yet"),
        Shortage::Money { used, most, layer } => {
            format!("the session has used or reserved {used} USD of its {most} USD{}", by(layer))
        }
        Shortage::Mails { sent, most, layer } => {
            format!("the session has sent {sent} of its {most} mails{}", by(layer))
        }
        Shortage::Limit { capability } => format!("the limit of {capability} is used up"),
    }
}

/// What was said of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallOutcome {
    /// The call was decided like this.
    Decided(CallEffect),
    /// A person must decide, and nobody who may was notified.
    Unnotified,
    /// This would be said, if the call were made.
    Would(CallEffect),
}

/// What was said of a call, in a word or two.
#[must_use]
pub fn call_outcome(outcome: CallOutcome) -> &'static str {
    match outcome {
        CallOutcome::Decided(CallEffect::Allow) => "allowed",
        CallOutcome::Decided(CallEffect::Ask) => "a person is asked",
        CallOutcome::Decided(CallEffect::Deny) => "denied",
        CallOutcome::Unnotified => "a person must decide",
        CallOutcome::Would(CallEffect::Allow) => "would be allowed",
        CallOutcome::Would(CallEffect::Ask) => "would be asked about",
        CallOutcome::Would(CallEffect::Deny) => "would be denied",
    }
}
