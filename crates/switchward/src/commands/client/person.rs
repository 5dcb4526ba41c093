//! The commands of a person: decide, raise, pause, resume, cancel.

use switchward_api::v1;

use super::drive::{advise, typed};
use super::show;
use super::talk::Talk;
use crate::args::{Cancel, Decide, Move, Raise, Verdict};
use crate::exit::Exit;

pub(super) async fn decide(talk: &Talk, decide: Decide) -> Result<(), Exit> {
    let decision = match decide.decision {
        Verdict::Approve => v1::GateDecision::Approve,
        Verdict::Reject => v1::GateDecision::Reject,
        Verdict::Discuss => v1::GateDecision::Discuss,
        Verdict::Answer => v1::GateDecision::Answer,
    };
    let request = v1::DecideGateRequest {
        name: decide.gate,
        decision: decision.into(),
        comment: decide.comment.unwrap_or_default(),
        args_digest: decide.args_digest,
        answer: decide.answer.map(typed),
        expected_sequence: None,
        request_id: talk.request_id(),
    };
    let reply = talk
        .client
        .call(request, |mut it, request| async move { it.gates.decide_gate(request).await })
        .await?;
    let gate = reply.gate.clone().unwrap_or_default();
    talk.printer.message("DecideGateResponse", &reply, || show::gate(&gate))?;
    let decided = gate.status() == v1::GateStatus::Decided;
    if decided && gate.kind() == v1::GateKind::ToolAsk && decision == v1::GateDecision::Approve {
        talk.printer.advice("the agent must repeat the same call, which is allowed once");
    }
    Ok(())
}

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
