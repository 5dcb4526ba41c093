//! The messages of a conversation, from its history.

use prost_types::value::Kind;
use switchward_api::v1;
use tonic::Status;

use super::talk::Talk;

/// The number of newest events that are searched for messages.
const EVENTS: u64 = 500;
/// The maximum number of messages.
const MESSAGES: usize = 10;

pub(super) struct ConversationMessage {
    /// `user` or `agent`.
    pub(super) from: String,
    pub(super) text: String,
}

/// Returns the last messages of a session, oldest first; none for programs, which read the history themselves.
///
/// # Errors
/// The history cannot be read.
pub(super) async fn said(talk: &Talk, session: &v1::Session) -> Result<Vec<ConversationMessage>, Status> {
    // A checkpoint process has no messages.
    let asks = session.checkpoint.as_ref().is_some_and(|checkpoint| !checkpoint.answers.is_empty());
    if asks || talk.printer.is_json() {
        return Ok(Vec::new());
    }
    let request = v1::ListSessionEventsRequest {
        name: session.name.clone(),
        from_sequence: session.sequence.saturating_sub(EVENTS - 1),
        page_size: u32::try_from(EVENTS).unwrap_or(u32::MAX),
        ..v1::ListSessionEventsRequest::default()
    };
    let reply = talk
        .client
        .call(request, |mut it, request| async move { it.sessions.list_session_events(request).await });
    let events = reply.await?.events;
    let mut said: Vec<ConversationMessage> = events.iter().filter_map(message).collect();
    said.drain(..said.len().saturating_sub(MESSAGES));
    Ok(said)
}

fn message(event: &v1::SessionEvent) -> Option<ConversationMessage> {
    let data = event.data.as_ref().filter(|_| event.r#type == "message.posted")?;
    let word = |key: &str| match &data.fields.get(key)?.kind {
        Some(Kind::StringValue(text)) => Some(text.clone()),
        _ => None,
    };
    Some(ConversationMessage { from: word("from")?, text: word("text")? })
}
