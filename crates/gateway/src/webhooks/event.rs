//! Recording what a webhook says as an event of a session.

use http::StatusCode;
use serde_json::{Map, Value};
use std::time::Duration;
use switchward_machine::{Digest, SessionId, WorkKind};
use switchward_state::run::{Once, RecordEvent, RunCommand};
use switchward_state::session::ReplyToken;
use switchward_state::{Body, Reply, RequestId, Scope};

use super::answer::{Outcome, Refused};
use crate::api::{Call, position_after};
use crate::auth::Caller;
use crate::convert::json;
use crate::error::{Reason, Refusal};
use crate::names;
use crate::refusals::{named, odd};

/// How soon it is worth repeating a message of which nobody knows whether it was recorded: by then there is a leader again.
const UNKNOWN_RETRY: Duration = Duration::from_secs(1);

/// An event as a webhook brings it.
pub(super) struct Brought {
    /// The session that the event is for.
    pub(super) session: SessionId,
    /// The session's name as the sender gave it.
    pub(super) session_name: String,
    pub(super) key: String,
    pub(super) data: Map<String, Value>,
    /// The state for which it is meant, if given.
    pub(super) state: Option<String>,
    pub(super) token: Option<ReplyToken>,
    /// The source that has sent it.
    pub(super) webhook: Option<String>,
    /// The digest of its signed part, if the signature of a copy stays valid at any time.
    pub(super) once: Option<Once>,
    /// The id of the message among all of its sender, if the sender gave one.
    pub(super) id: Option<RequestId>,
}

/// What identifies a message, as a request id of its session.
///
/// The body digest is random: the engine then accepts the first message of an id and recognises every later one as a
/// duplicate, whatever its content and time.
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
    // The same limits on numbers and nesting as in other calls.
    let data = json::of_struct(&json::to_struct(&data)).map_err(|problem| Refusal::field("data", problem))?;
    let Value::Object(data) = data else { return Err(Refusal::field("data", "must be an object").into()) };
    let model = call.api.own.contains(&WorkKind::Classify);
    let is_recognised = id.is_some() || once.is_some();
    let body =
        Body::Run(RunCommand::RecordEvent(RecordEvent { key, data, state, model, token, webhook, once }));
    match call.execute(Scope::Session(session), id, None, body).await {
        Ok(reply) => recorded(&call.caller, session, reply),
        Err(refusal) if refusal.reason() == Reason::RequestIdReused => Ok(Outcome::Duplicate),
        Err(refusal) => Err(unrecorded(named(refusal, "session", &session_name), is_recognised)),
    }
}

/// What the reply of the session says. Nothing else is read: a failure after the event was recorded would make its sender
/// send it again.
fn recorded(caller: &Caller, id: SessionId, reply: Reply) -> Result<Outcome, Refused> {
    let Reply::Recorded { event, .. } = reply else { return Err(odd(&reply).into()) };
    let session = names::of_session(caller, id);
    let event = format!("{session}/events/{event}");
    let state = position_after(id, reply, &session).ok().map(|view| view.at().to_owned());
    Ok(Outcome::Recorded(event, state))
}

/// Says why a message is not recorded. If that is unknown and the message is recognised when it comes again, its sender must
/// repeat it: many senders give up after a status 4xx.
fn unrecorded(refusal: Refusal, is_recognised: bool) -> Refused {
    if refusal.reason() == Reason::OutcomeUnknown && is_recognised {
        return Refused::with(StatusCode::SERVICE_UNAVAILABLE, refusal.retry_after(UNKNOWN_RETRY));
    }
    refusal.into()
}

#[cfg(test)]
mod tests {
    use http::header;
    use switchward_machine::TenantId;
    use switchward_shard::Failure;
    use switchward_state::Actor;
    use switchward_state::catalogue::Settings;

    use super::super::answer;
    use super::*;
    use crate::refusals::refusal;

    #[test]
    fn a_message_of_unknown_outcome_is_to_be_repeated_if_it_is_recognised_then() {
        let moved = || Refusal::new(Reason::StateMismatch, "the session has left the state");
        for (refusal, is_recognised, status, wait) in [
            (refusal(Failure::OutcomeUnknown), true, StatusCode::SERVICE_UNAVAILABLE, Some("1")),
            (refusal(Failure::OutcomeUnknown), false, StatusCode::CONFLICT, None),
            (moved(), true, StatusCode::CONFLICT, None),
        ] {
            let answer = answer::of(Err(unrecorded(refusal, is_recognised)));
            let after = answer.headers().get(header::RETRY_AFTER).map(|value| value.to_str().unwrap());
            assert_eq!((answer.status(), after), (status, wait));
        }
    }

    #[test]
    fn what_was_recorded_is_accepted_although_its_session_cannot_be_shown_any_more() {
        let caller = Caller {
            tenant: TenantId(1),
            tenant_name: "acme".into(),
            settings: Settings::default(),
            actor: Actor::server(),
            key_id: String::new(),
        };
        let session = SessionId([7; 16]);
        let reply = Reply::Recorded { session, sequence: 3, event: 2, position: None };
        let answer = answer::of(recorded(&caller, session, reply).map(Outcome::with_state));
        assert_eq!(answer.status(), StatusCode::ACCEPTED);
    }
}
