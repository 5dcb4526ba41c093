//! The calls of a conversation: messages, turns, data, completion, retries.

use switchward_api::v1;
use switchward_machine::WorkKind;
use switchward_state::approval::{ApprovalCommand, RecordReply};
use switchward_state::limits::{MAIL_BYTES_MAX, MESSAGE_BYTES_MAX};
use switchward_state::run::{EndTurn, RecordData, RecordEvent, RunCommand};
use switchward_state::session::{PostMessage, ReplyToken, SessionCommand, SwitchRun};
use switchward_state::{Body, Reply, Scope};
use tonic::Request;

use super::own_words::own_words;
use crate::api::{Api, Call, Driven, position_after, request_id};
use crate::auth::roles;
use crate::convert::{self, positions};
use crate::error::Refusal;
use crate::refusals::{named, odd};
use crate::{names, reply_tokens, run_address};

type Shown = Result<v1::Session, Refusal>;

fn shown(driven: Driven) -> v1::Session {
    positions::session(&driven.caller, &driven.view)
}

fn check_text(text: &str) -> Result<(), Refusal> {
    if text.len() > MESSAGE_BYTES_MAX {
        return Err(Refusal::field("text", format!("must be at most {MESSAGE_BYTES_MAX} bytes")));
    }
    Ok(())
}

pub(super) async fn post_message(api: &Api, request: Request<v1::PostMessageRequest>) -> Shown {
    let posted = api.drive(request, roles::SAY, |_, message| {
        check_text(&message.text)?;
        Ok(Body::Session(SessionCommand::PostMessage(PostMessage { text: message.text })))
    });
    let Driven { caller, view } = posted.await?;
    Ok(reply_tokens::shown_to(&caller, positions::session(&caller, &view)))
}

pub(super) async fn end_turn(api: &Api, request: Request<v1::EndTurnRequest>) -> Shown {
    let ended = api.drive(request, roles::DRIVE, |_, message| {
        check_text(&message.text)?;
        Ok(Body::Run(RunCommand::EndTurn(EndTurn { text: message.text })))
    });
    Ok(shown(ended.await?))
}

pub(super) async fn record_data(api: &Api, request: Request<v1::RecordDataRequest>) -> Shown {
    let recorded = api.drive(request, roles::DRIVE, |_, message| {
        let values = message.values.unwrap_or_default();
        let values =
            convert::json::of_struct(&values).map_err(|problem| Refusal::field("values", problem))?;
        let serde_json::Value::Object(values) = values else {
            return Err(Refusal::field("values", "must be an object"));
        };
        if values.is_empty() {
            return Err(Refusal::field("values", "must hold at least one key"));
        }
        Ok(Body::Run(RunCommand::RecordData(RecordData { values })))
    });
    Ok(shown(recorded.await?))
}

pub(super) async fn signal_completion(api: &Api, request: Request<v1::SignalCompletionRequest>) -> Shown {
    let signalled = api.drive(request, roles::DRIVE, |_, _| Ok(Body::Run(RunCommand::SignalCompletion)));
    Ok(shown(signalled.await?))
}

pub(super) async fn retry_state(api: &Api, request: Request<v1::RetryStateRequest>) -> Shown {
    let retried = api.drive(request, roles::DRIVE, |_, _| Ok(Body::Run(RunCommand::RetryNode)));
    Ok(shown(retried.await?))
}

/// With a token, the session is that of the token.
pub(super) async fn record_event(
    call: &Call<'_>,
    message: v1::RecordEventRequest,
    token: Option<ReplyToken>,
) -> Shown {
    let request = request_id(&message.request_id, "RecordEvent", &message)?;
    let name = match &token {
        Some(token) => reply_tokens::session(&call.caller, token, &message.name)?,
        None => message.name,
    };
    let data = message.data.unwrap_or_default();
    let data = convert::json::of_struct(&data).map_err(|problem| Refusal::field("data", problem))?;
    let serde_json::Value::Object(data) = data else {
        return Err(Refusal::field("data", "must be an object"));
    };
    let state = (!message.state.is_empty()).then_some(message.state);
    let model = call.api.own.contains(&WorkKind::Classify);
    let key = message.key;
    let body = Body::Run(RunCommand::RecordEvent(RecordEvent {
        key,
        data,
        state,
        model,
        token,
        webhook: None,
        once: None,
    }));
    let id = names::session(&call.caller, "name", &name)?;
    let address = run_address::of(&call.caller, id, message.address)?;
    let reply = call.execute_at(Scope::Session(id), address, request, message.expected_sequence, body).await;
    let reply = reply.map_err(|refusal| named(refusal, "session", &name))?;
    let view = position_after(id, reply, &name)?;
    Ok(reply_tokens::shown_to(&call.caller, positions::session(&call.caller, &view)))
}

/// The caller vouches for the sender: nothing proves who wrote the reply.
pub(super) async fn record_reply(
    call: &Call<'_>,
    message: v1::RecordReplyRequest,
) -> Result<v1::RecordReplyResponse, Refusal> {
    let request = request_id(&message.request_id, "RecordReply", &message)?;
    let v1::RecordReplyRequest { from, text, address, .. } = message;
    if text.len() > MAIL_BYTES_MAX {
        return Err(Refusal::field("text", format!("is more than {MAIL_BYTES_MAX} bytes")));
    }
    let model = call.api.own.contains(&WorkKind::Classify);
    let body = Body::Approval(ApprovalCommand::RecordReply(RecordReply {
        from,
        subject: String::new(),
        text: own_words(&text),
        authenticated: false,
        signed: false,
        pages_only: false,
        brought_by: None,
        vouched: true,
        model,
        token: None,
        evidence: None,
        limits: None,
    }));
    let id = names::session(&call.caller, "name", &message.name)?;
    let address = run_address::of(&call.caller, id, address)?;
    let reply = call.execute_at(Scope::Session(id), address, request, message.expected_sequence, body).await;
    let reply = reply.map_err(|refusal| named(refusal, "session", &message.name))?;
    let Reply::Replied { outcome, .. } = reply else { return Err(odd(&reply)) };
    let outcome = outcome.word().to_owned();
    let view = position_after(id, reply, &message.name)?;
    let session = Some(positions::session(&call.caller, &view));
    Ok(v1::RecordReplyResponse { session, outcome })
}

pub(super) async fn switch_workflow(api: &Api, request: Request<v1::SwitchWorkflowRequest>) -> Shown {
    let switched = api.drive(request, roles::DRIVE, |call, message| {
        let workflow = names::definition(&call.caller, "workflow", &message.workflow)?.to_owned();
        Ok(Body::Session(SessionCommand::SwitchRun(SwitchRun { workflow })))
    });
    Ok(shown(switched.await?))
}
