//! What people have said about a gate without deciding it, as the session's history has it.

use minicbor::{Decode, Encode};
use std::ops::ControlFlow;
use switchward_machine::{OpenId, SessionId, TenantId, Time};
use switchward_state::approval::ApprovalEvent;
use switchward_state::limits::{COMMENTS_EVENTS_MAX, COMMENTS_SHOWN_MAX};
use switchward_state::{Event, Key, Kind, Row, View, ViewError};

/// Something that somebody said about a gate. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Comment {
    /// The person who said it.
    #[n(0)]
    pub by: String,
    /// When.
    #[n(1)]
    pub at: Time,
    /// The text, never empty.
    #[n(2)]
    pub comment: String,
}

/// The last [`COMMENTS_SHOWN_MAX`] comments about a gate, oldest first, of the last [`COMMENTS_EVENTS_MAX`] events of its
/// session.
///
/// # Errors
/// A row cannot be read.
pub fn comments(
    view: &dyn View,
    tenant: TenantId,
    session: SessionId,
    gate: OpenId,
) -> Result<Vec<Comment>, ViewError> {
    let Some(row) = view.session(tenant, session)? else { return Ok(Vec::new()) };
    let first = row.sequence.saturating_sub(COMMENTS_EVENTS_MAX);
    let (prefix, after) =
        (Key::prefix_of_session(tenant, session, Kind::History), Key::history(tenant, session, first));
    let mut found = Vec::new();
    view.scan(&prefix, Some(after.as_bytes()), &mut |_, row| {
        if let Row::History(history) = &**row {
            for event in &history.events {
                if let Event::Approval(ApprovalEvent::Commented { gate: about, by, comment }) = event
                    && *about == gate
                    && !comment.is_empty()
                {
                    found.push(Comment { by: by.clone(), at: history.at, comment: comment.clone() });
                }
            }
        }
        ControlFlow::Continue(())
    })?;
    found.drain(..found.len().saturating_sub(COMMENTS_SHOWN_MAX));
    Ok(found)
}
