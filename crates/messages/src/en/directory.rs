//! Warnings about a tenant's directory.

use switchward_state::catalogue::{DirectoryList, DirectoryWarning};

/// A warning about a directory, in a sentence.
#[must_use]
pub fn directory_warning(warning: &DirectoryWarning) -> String {
    match warning {
        DirectoryWarning::NoAddress { name } => format!("{name} leads to no address"),
        DirectoryWarning::UnknownMember { member, list, name } => {
            let list = match list {
                DirectoryList::Members => "a member",
                DirectoryList::Audience => "of the audience",
                DirectoryList::Escalation => "of the escalation",
            };
            format!("{member}, {list} of {name}, is neither an address nor a name of the directory")
        }
        DirectoryWarning::EmptyAudience { name } => {
            format!("{name}, of the default audience, leads to no address")
        }
    }
}
