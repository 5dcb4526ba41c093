//! Who did something, and how far approvals have come.

use switchward_state::approval::{Decider, Progress, Via, Voting};

/// Who decided.
pub(crate) fn who(by: &str, via: Via) -> String {
    match via {
        Via::Rpc | Via::Mail | Via::Page | Via::PageByCode | Via::PageByOidc => by.to_owned(),
        Via::Vouched => format!("a reply vouched by {by}"),
    }
}

/// The names of several people.
pub(crate) fn names(people: &[Decider]) -> String {
    people.iter().map(|one| who(&one.by, one.via)).collect::<Vec<_>>().join(", ")
}

/// How many approvals a gate has and needs.
#[must_use]
pub fn approvals(have: u32, need: u32) -> String {
    format!("{have} of {need} approvals")
}

/// The approvals so far, in a sentence.
pub(crate) fn so_far(progress: &Progress) -> String {
    let have = u32::try_from(progress.approved.len()).unwrap_or(u32::MAX);
    format!("{} so far{}", approvals(have, progress.need), beside(&progress.approved))
}

/// The approvals so far, beside a label.
pub(crate) fn count(voting: &Voting) -> String {
    let progress = voting.progress();
    format!("{} of {}{}", progress.approved.len(), progress.need, beside(&progress.approved))
}

fn beside(people: &[Decider]) -> String {
    if people.is_empty() { String::new() } else { format!(" ({})", names(people)) }
}
