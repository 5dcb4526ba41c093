//! Why a call has no capacity, in the words of refusals.

use switchward_state::policy::Shortage;

/// A shortage, for a refusal.
pub(crate) fn shortage_message(shortage: &Shortage) -> String {
    let by = |layer: &Option<String>| layer.as_ref().map_or_else(String::new, |it| format!(", as {it} says"));
    match shortage {
        Shortage::Grants { most } => format!("{most} approved calls are not yet made"),
        Shortage::Money { used, most, layer } => {
            format!("the session has used or reserved {used} USD of its {most} USD{}", by(layer))
        }
        Shortage::Mails { sent, most, layer } => {
            format!("the session has sent {sent} of its {most} mails{}", by(layer))
        }
        Shortage::Limit { capability } => limit_full_message(capability),
    }
}

/// The message about a call whose limit is full.
#[must_use]
pub fn limit_full_message(capability: &str) -> String {
    format!("the limit of {capability} has no room")
}
