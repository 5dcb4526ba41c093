//! The commands for conversations: messages, turns, data, events, retries.

use prost_types::Struct;
use switchward_api::v1;

use super::drive::advise;
use super::talk::Talk;
use super::values::typed;
use super::{conversation, show};
use crate::args::{MailReply, Message, Record, SessionEvent, SessionOnly, Switch, Turn};
use crate::exit::Exit;
use crate::output::{GOOD, card, clean, print};

pub(super) async fn message(talk: &Talk, message: Message) -> Result<(), Exit> {
    let request = v1::PostMessageRequest {
        name: message.session,
        text: message.text,
        expected_sequence: None,
        request_id: talk.request_id(),
    };
    let reply =
        talk.client.call(request, |mut it, request| async move { it.sessions.post_message(request).await });
    let reply = reply.await?;
    let session = reply.session.clone().unwrap_or_default();
    let said = conversation::said(talk, &session).await?;
    let text = || format!("{GOOD}recorded{GOOD:#}\n{}", show::session_with(&session, &said));
    talk.printer.message("PostMessageResponse", &reply, text)?;
    advise(talk, &session);
    Ok(())
}

pub(super) async fn turn(talk: &Talk, turn: Turn) -> Result<(), Exit> {
    let request = v1::EndTurnRequest {
        name: turn.session,
        text: turn.text.unwrap_or_default(),
        address: turn.of.address(),
        expected_sequence: None,
        request_id: talk.request_id(),
    };
    let reply =
        talk.client.call(request, |mut it, request| async move { it.sessions.end_turn(request).await });
    let reply = reply.await?;
    moved(talk, "EndTurnResponse", &reply, reply.session.clone().unwrap_or_default())
}

pub(super) async fn record(talk: &Talk, record: Record) -> Result<(), Exit> {
    let request = v1::RecordDataRequest {
        name: record.session,
        values: Some(values(record.values)),
        address: record.of.address(),
        expected_sequence: None,
        request_id: talk.request_id(),
    };
    let reply =
        talk.client.call(request, |mut it, request| async move { it.sessions.record_data(request).await });
    let reply = reply.await?;
    moved(talk, "RecordDataResponse", &reply, reply.session.clone().unwrap_or_default())
}

pub(super) async fn signal(talk: &Talk, of: SessionOnly) -> Result<(), Exit> {
    let request = v1::SignalCompletionRequest {
        name: of.session,
        address: of.of.address(),
        expected_sequence: None,
        request_id: talk.request_id(),
    };
    let reply = talk
        .client
        .call(request, |mut it, request| async move { it.sessions.signal_completion(request).await });
    let reply = reply.await?;
    moved(talk, "SignalCompletionResponse", &reply, reply.session.clone().unwrap_or_default())
}

pub(super) async fn retry(talk: &Talk, of: SessionOnly) -> Result<(), Exit> {
    let request = v1::RetryStateRequest {
        name: of.session,
        address: of.of.address(),
        expected_sequence: None,
        request_id: talk.request_id(),
    };
    let reply =
        talk.client.call(request, |mut it, request| async move { it.sessions.retry_state(request).await });
    let reply = reply.await?;
    moved(talk, "RetryStateResponse", &reply, reply.session.clone().unwrap_or_default())
}

pub(super) async fn event(talk: &Talk, event: SessionEvent) -> Result<(), Exit> {
    let request = v1::RecordEventRequest {
        name: if event.session == "-" { String::new() } else { event.session },
        key: event.key,
        data: Some(values(event.data)),
        state: event.state.unwrap_or_default(),
        address: event.of.address(),
        expected_sequence: None,
        request_id: talk.request_id(),
    };
    let reply =
        talk.client.call(request, |mut it, request| async move { it.sessions.record_event(request).await });
    let reply = reply.await?;
    moved(talk, "RecordEventResponse", &reply, reply.session.clone().unwrap_or_default())
}

pub(super) async fn reply(talk: &Talk, reply: MailReply) -> Result<(), Exit> {
    let request = v1::RecordReplyRequest {
        name: reply.session,
        from: reply.from,
        text: reply.text,
        address: reply.of.address(),
        expected_sequence: None,
        request_id: talk.request_id(),
    };
    let reply =
        talk.client.call(request, |mut it, request| async move { it.sessions.record_reply(request).await });
    let reply = reply.await?;
    moved(talk, "RecordReplyResponse", &reply, reply.session.clone().unwrap_or_default())?;
    if !talk.printer.is_json() {
        print(&card(&[("outcome", clean(&reply.outcome))]))?;
    }
    Ok(())
}

pub(super) async fn switch(talk: &Talk, switch: Switch) -> Result<(), Exit> {
    let request = v1::SwitchWorkflowRequest {
        name: switch.session,
        workflow: switch.workflow,
        expected_sequence: None,
        request_id: talk.request_id(),
    };
    let reply = talk
        .client
        .call(request, |mut it, request| async move { it.sessions.switch_workflow(request).await });
    let reply = reply.await?;
    moved(talk, "SwitchWorkflowResponse", &reply, reply.session.clone().unwrap_or_default())
}

/// Values, each JSON or else a string.
fn values(pairs: Vec<(String, String)>) -> Struct {
    Struct { fields: pairs.into_iter().map(|(key, text)| (key, typed(text))).collect() }
}

/// Prints the session after a change, with hints.
fn moved(
    talk: &Talk,
    kind: &'static str,
    reply: &impl prost::Message,
    session: v1::Session,
) -> Result<(), Exit> {
    talk.printer.message(kind, reply, || show::session(&session))?;
    advise(talk, &session);
    Ok(())
}
