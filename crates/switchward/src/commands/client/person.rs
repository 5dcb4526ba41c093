//! The commands of a person about sessions: raise, pause, resume, cancel.

use switchward_api::v1;

use super::drive::advise;
use super::show;
use super::talk::Talk;
use crate::args::{Cancel, Move, Raise};
use crate::exit::Exit;

pub(super) async fn raise(talk: &Talk, raise: Raise) -> Result<(), Exit> {
    let money = raise.cap.cost_usd.map(v1::raise_cap_request::Cap::CostUsd);
    let request = v1::RaiseCapRequest {
        name: raise.session,
        cap: money.or(raise.cap.tokens.map(v1::raise_cap_request::Cap::Tokens)),
        expected_sequence: None,
        request_id: talk.request_id(),
    };
    let reply = talk
        .client
        .call(request, |mut it, request| async move { it.sessions.raise_cap(request).await })
        .await?;
    let session = reply.session.clone().unwrap_or_default();
    talk.printer.message("RaiseCapResponse", &reply, || show::session(&session))
}

pub(super) async fn pause(talk: &Talk, pause: Move) -> Result<(), Exit> {
    let request = v1::PauseSessionRequest {
        name: pause.session,
        reason: pause.reason.unwrap_or_default(),
        expected_sequence: None,
        request_id: talk.request_id(),
    };
    let reply =
        talk.client.call(request, |mut it, request| async move { it.sessions.pause_session(request).await });
    let reply = reply.await?;
    let session = reply.session.clone().unwrap_or_default();
    talk.printer.message("PauseSessionResponse", &reply, || show::session(&session))?;
    advise(talk, &session);
    Ok(())
}

pub(super) async fn resume(talk: &Talk, resume: Move) -> Result<(), Exit> {
    let request = v1::ResumeSessionRequest {
        name: resume.session,
        reason: resume.reason.unwrap_or_default(),
        expected_sequence: None,
        request_id: talk.request_id(),
    };
    let reply =
        talk.client.call(request, |mut it, request| async move { it.sessions.resume_session(request).await });
    let reply = reply.await?;
    let session = reply.session.clone().unwrap_or_default();
    talk.printer.message("ResumeSessionResponse", &reply, || show::session(&session))?;
    advise(talk, &session);
    Ok(())
}

pub(super) async fn cancel(talk: &Talk, cancel: Cancel) -> Result<(), Exit> {
    if !cancel.yes {
        talk.sure(&format!("cancelling {}", cancel.what.session))?;
    }
    let request = v1::CancelSessionRequest {
        name: cancel.what.session,
        reason: cancel.what.reason.unwrap_or_default(),
        expected_sequence: None,
        request_id: talk.request_id(),
    };
    let reply =
        talk.client.call(request, |mut it, request| async move { it.sessions.cancel_session(request).await });
    let reply = reply.await?;
    let session = reply.session.clone().unwrap_or_default();
    talk.printer.message("CancelSessionResponse", &reply, || show::session(&session))
}
