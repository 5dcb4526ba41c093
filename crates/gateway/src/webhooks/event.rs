//! Recording what a webhook says as an event of a session.

use serde_json::{Map, Value};
use switchward_engine::{Body, Once, RecordEvent, Reply, ReplyToken, RequestId, Scope};
use switchward_machine::{Digest, SessionId, WorkKind};

use super::answer::{Outcome, Refused};
use crate::convert::json;
use crate::door::{Call, named, odd};
use crate::error::{Reason, Refusal};
use crate::names;

/// An event as a webhook brings it.
pub(super) struct Brought {
    /// The session's id.
    pub(super) session: SessionId,
    /// How the sender calls it.
    pub(super) session_name: String,
    pub(super) key: String,
    pub(super) data: Map<String, Value>,
    /// The state for which it is meant, where it says.
    pub(super) state: Option<String>,
    pub(super) token: Option<ReplyToken>,
    /// The source that has sent it.
    pub(super) webhook: Option<String>,
    /// What is signed of it, where a copy of it proves itself at any time.
    pub(super) once: Option<Once>,
    /// What identifies the message among all from where it comes, where the sender says.
    pub(super) id: Option<RequestId>,
}

/// What identifies a message, as a request id of its session.
///
/// The digest is drawn: the engine then takes the first message of an id, and tells every later one from it, whatever it
/// says and whenever it comes.
pub(super) fn message_id(from: &str, id: &str) -> RequestId {
    let id = Digest::of_parts(&[from.as_bytes(), id.as_bytes()]);
    RequestId { id: format!("webhook:{id}"), body: Digest(rand::random()) }
}

/// Records the event.
///
/// # Errors
/// All that RecordEvent refuses.
pub(super) async fn record(call: &Call<'_>, brought: Brought) -> Result<Outcome, Refused> {
    let Brought { session, session_name, key, data, state, token, webhook, once, id } = brought;
    if key.is_empty() {
        return Err(Refusal::field("event_key", "is required").into());
    }
    // What other calls take of numbers and nesting, and no more.
    let data = json::of_struct(&json::to_struct(&data)).map_err(|problem| Refusal::field("data", problem))?;
    let Value::Object(data) = data else { return Err(Refusal::field("data", "must be an object").into()) };
    let model = call.door.own.contains(&WorkKind::Classify);
    let body = Body::RecordEvent(RecordEvent { key, data, state, model, token, webhook, once });
    match call.execute(Scope::Session(session), id, None, body).await {
        Ok(Reply::Recorded { event, .. }) => {
            let session = names::of_session(&call.caller, session);
            Ok(Outcome::Recorded(format!("{session}/events/{event}")))
        }
        Ok(reply) => Err(odd(&reply).into()),
        Err(refusal) if refusal.reason() == Reason::RequestIdReused => Ok(Outcome::Duplicate),
        Err(refusal) => Err(named(refusal, "session", &session_name).into()),
    }
}
