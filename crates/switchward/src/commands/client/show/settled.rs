//! The settings for the gates of a session, and their sources.

use switchward_api::v1::{self, SettingSource};
use switchward_messages::cli;
use switchward_state::approval::Quorum;

use super::{count_of, length};
use crate::output::{clean, period};

/// The people who are notified of gates that address nobody.
pub(super) fn audience(session: &v1::Session) -> String {
    sourced(clean(&session.audience.join(", ")), session.audience_source())
}

/// The reminders for approvers.
pub(super) fn reminders(session: &v1::Session) -> String {
    let text = session.reminders.as_ref().map(often).unwrap_or_default();
    sourced(text, session.reminders_source())
}

/// The number of people who must approve.
pub(super) fn quorum(session: &v1::Session) -> String {
    let text = session.quorum.as_ref().map(approving).unwrap_or_default();
    sourced(text, session.quorum_source())
}

/// The people who are asked as well if the approvers do not decide.
pub(super) fn escalation(session: &v1::Session) -> String {
    sourced(clean(&session.escalation.join(", ")), session.escalation_source())
}

/// Reminders, in words.
pub(in crate::commands::client) fn often(reminders: &v1::Reminders) -> String {
    let every = period(reminders.every.map(length).unwrap_or_default());
    format!("at most {}, every {every}", count_of(reminders.max, "reminder"))
}

/// A quorum, in words.
pub(in crate::commands::client) fn approving(quorum: &v1::Quorum) -> String {
    switchward_messages::quorum(match quorum.rule {
        Some(v1::quorum::Rule::All(_)) => Some(Quorum::All),
        Some(v1::quorum::Rule::AtLeast(least)) => Some(Quorum::AtLeast(least)),
        Some(v1::quorum::Rule::Any(_)) | None => None,
    })
}

/// A setting with its source; empty if it has none.
fn sourced(text: String, source: SettingSource) -> String {
    let by = match source {
        SettingSource::Unspecified => return String::new(),
        SettingSource::Start => "start",
        SettingSource::DefinitionEntry => cli::client::FROM_DEFINITION_ENTRY,
        SettingSource::OwnerEntry => cli::client::FROM_OWNER_ENTRY,
        SettingSource::Directory => cli::client::FROM_DEFAULT_AUDIENCE,
        SettingSource::Definition => "definition",
    };
    format!("{text} ({by})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_shows_its_source() {
        let mut session = v1::Session { audience: vec!["kim".into()], ..v1::Session::default() };
        assert_eq!((audience(&session).as_str(), quorum(&session).as_str()), ("", ""));
        session.audience_source = SettingSource::OwnerEntry.into();
        session.quorum = Some(v1::Quorum { rule: Some(v1::quorum::Rule::AtLeast(2)) });
        session.quorum_source = SettingSource::Start.into();
        assert_eq!(audience(&session), "kim (directory, owner entry)");
        assert_eq!(quorum(&session), "at least 2 (start)");
    }
}
