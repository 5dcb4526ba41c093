//! The commands of an agent: start, answer, authorize, report.

use switchward_api::v1;
use switchward_gateway::Reason;
use switchward_messages::{CallOutcome, call_outcome, cli, gate_voided};
use switchward_state::policy::CallEffect;

use super::show;
use super::talk::Talk;
use super::values::object;
use crate::args::{Answer, Authorize, Report, SendMail, Start, files};
use crate::exit::{DENIED, Exit, WAITING};
use crate::output::{CARE, GOOD, PROBLEM, card, clean, period, put, shell};

pub(super) async fn start(talk: &Talk, start: Start) -> Result<(), Exit> {
    let request = v1::StartSessionRequest {
        definition: start.definition.unwrap_or_default(),
        version: start.version,
        session_id: start.key.unwrap_or_default(),
        input: start
            .input
            .as_deref()
            .map(|text| object("--input", text, "{\"ticket\":\"T-1\"}"))
            .transpose()?,
        role: start.role.unwrap_or_default(),
        labels: start.labels.into_iter().collect(),
        queue: start.queue,
        contact: start.contact.unwrap_or_default(),
        workflows: start.workflows,
        assistant: start.assistant.unwrap_or_default(),
        message: start.message.unwrap_or_default(),
        audience: start.audience,
        reminders: start.reminders.map(|max| v1::Reminders {
            every: start.remind_every.and_then(|every| every.try_into().ok()),
            max,
        }),
        quorum: start.quorum,
        escalation: start.escalation,
        request_id: talk.request_id(),
    };
    let reply =
        talk.client.call(request, |mut it, request| async move { it.sessions.start_session(request).await });
    let reply = reply.await.map_err(|status| Exit::from(status).calling("session_id", "--key"))?;
    let session = reply.session.clone().unwrap_or_default();
    talk.printer.message("StartSessionResponse", &reply, || show::session(&session))?;
    reply.warnings.iter().for_each(|line| talk.printer.warn(line));
    advise(talk, &session);
    Ok(())
}

pub(super) async fn answer(talk: &Talk, answer: Answer) -> Result<(), Exit> {
    let request = v1::AnswerCheckpointRequest {
        name: answer.session.clone(),
        state: answer.state.unwrap_or_default(),
        answer: answer.answer.clone(),
        note: answer.note.unwrap_or_default(),
        address: answer.of.address(),
        expected_sequence: None,
        request_id: talk.request_id(),
    };
    let reply = talk
        .client
        .call(request, |mut it, request| async move { it.sessions.answer_checkpoint(request).await });
    let reply = match reply.await {
        Ok(reply) => reply,
        Err(status) => {
            return Err(unanswered(talk, Exit::from(status), &answer.session, &answer.answer).await);
        }
    };
    let session = reply.session.clone().unwrap_or_default();
    talk.printer.message("AnswerCheckpointResponse", &reply, || show::session(&session))?;
    advise(talk, &session);
    Ok(())
}

/// Adds to a refused answer the nearest allowed answer, or the gates that must be decided first.
async fn unanswered(talk: &Talk, exit: Exit, session: &str, answer: &str) -> Exit {
    let exit = exit.typed(answer);
    if exit.reason() != Some(Reason::ApprovalPending.word()) {
        return exit;
    }
    let request = v1::GetSessionRequest { name: session.to_owned(), ..Default::default() };
    let found =
        talk.client.call(request, |mut it, request| async move { it.sessions.get_session(request).await });
    let gates = found.await.ok().and_then(|reply| reply.session).unwrap_or_default().waiting_on;
    let lines = gates.iter().map(show::to_decide_open);
    lines.fold(exit, Exit::next)
}

/// Prints the next commands for a session, and warns about gates that the call has voided.
pub(super) fn advise(talk: &Talk, session: &v1::Session) {
    for gate in &session.voided_gates {
        talk.printer.warn(&gate_voided(show::id(gate)));
    }
    if session.end_time.is_some() {
        return talk.printer.advice(&format!("switchward list events {}", show::handle(session)));
    }
    for gate in &session.waiting_on {
        talk.printer.advice(&show::to_decide_open(gate));
    }
    let name = show::handle(session);
    if session.resumable {
        if matches!(session.caller_role(), v1::KeyRole::Operator | v1::KeyRole::Admin) {
            talk.printer.advice(&format!("switchward resume {name}"));
        }
        return;
    }
    let held = session.waiting_on.iter().any(|gate| gate.kind() == v1::GateKind::Notify);
    let answers: Vec<String> =
        session.checkpoint.iter().flat_map(|it| &it.answers).map(|answer| shell(&answer.key)).collect();
    if held || !drives(session) || session.active_run_count > 0 {
        return;
    }
    if let Some((first, others)) = answers.split_first() {
        let or = if others.is_empty() { String::new() } else { format!("   (or {})", others.join(", ")) };
        talk.printer.advice(&format!("switchward answer {name} {first}{or}"));
    } else if session.waiting_on.is_empty() && session.open.is_empty() {
        talk.printer.advice(&format!("switchward message {name} TEXT   (a message of the user)"));
        talk.printer
            .advice(&format!("switchward turn {name}   (ends the agent's turn and tries the transitions)"));
    }
}

/// Returns true if the caller can answer and end turns.
fn drives(session: &v1::Session) -> bool {
    matches!(session.caller_role(), v1::KeyRole::Agent | v1::KeyRole::Operator | v1::KeyRole::Admin)
}

pub(super) async fn authorize(talk: &Talk, authorize: Authorize) -> Result<(), Exit> {
    let call = authorize.call;
    let request = v1::AuthorizeToolCallRequest {
        session: call.session,
        capability: call.capability.clone(),
        args: call.args.as_deref().map(files::value).transpose()?.unwrap_or_default().into(),
        args_digest: None,
        est_cost_usd: call.est_cost_usd,
        call_id: authorize.call_id.unwrap_or_default(),
        address: call.of.address(),
        request_id: talk.request_id(),
    };
    let reply = talk
        .client
        .call(request, |mut it, request| async move { it.policy.authorize_tool_call(request).await });
    let reply = reply.await?;
    let printed =
        talk.printer.message("AuthorizeToolCallResponse", &reply, || authorized(&call.capability, &reply));
    printed.or_else(Exit::unless_output_closed)?;
    decided(talk, &reply, cli::client::REPEAT_CALL).await
}

/// Sends a mail in a session's name.
pub(super) async fn send(talk: &Talk, mail: SendMail) -> Result<(), Exit> {
    let text = String::from_utf8(files::value(&mail.text)?);
    let text = text.map_err(|_| Exit::usage("--text is not UTF-8 text"))?;
    let request = v1::SendEmailRequest {
        session: mail.session,
        from: mail.from.unwrap_or_default(),
        to: mail.to,
        cc: mail.cc,
        bcc: mail.bcc,
        subject: mail.subject,
        text,
        call_id: mail.call_id.unwrap_or_default(),
        address: mail.of.address(),
        request_id: talk.request_id(),
    };
    let reply =
        talk.client.call(request, |mut it, request| async move { it.policy.send_email(request).await });
    let reply = reply.await?;
    let call = reply.call.clone().unwrap_or_default();
    let printed = talk.printer.message("SendEmailResponse", &reply, || authorized("a mail", &call));
    printed.or_else(Exit::unless_output_closed)?;
    decided(talk, &call, cli::client::REPEAT_MAIL).await
}

async fn decided(talk: &Talk, reply: &v1::AuthorizeToolCallResponse, again: &str) -> Result<(), Exit> {
    match reply.decision() {
        v1::ToolDecision::Allow | v1::ToolDecision::Bypass => Ok(()),
        v1::ToolDecision::Deny | v1::ToolDecision::Unspecified => {
            if reply.reason == Reason::ApprovalPending.word() {
                talk.printer.advice("switchward list gates   (a person must decide first)");
            }
            Err(Exit::reported(DENIED))
        }
        v1::ToolDecision::Ask => {
            reply.warnings.iter().for_each(|line| talk.printer.warn(line));
            advise_of_gate(talk, &reply.gate).await;
            talk.printer.advice(again);
            Err(Exit::reported(WAITING))
        }
    }
}

/// Says who decides at a gate, if the server shows it. Otherwise the exit code still says that the call waits.
async fn advise_of_gate(talk: &Talk, gate: &str) {
    let request = v1::GetGateRequest { name: gate.to_owned(), ..Default::default() };
    let reply =
        talk.client.call(request, |mut it, request| async move { it.gates.get_gate(request).await }).await;
    if let Ok(reply) = reply {
        talk.printer.advice(&show::to_decide_gate(&reply.gate.unwrap_or_default()));
    }
}

fn authorized(capability: &str, reply: &v1::AuthorizeToolCallResponse) -> String {
    let (style, outcome) = match show::effect(reply.decision()) {
        effect @ CallEffect::Allow => (GOOD, CallOutcome::Decided(effect)),
        CallEffect::Ask if reply.unnotified => (CARE, CallOutcome::Unnotified),
        effect @ CallEffect::Ask => (CARE, CallOutcome::Decided(effect)),
        effect @ CallEffect::Deny => (PROBLEM, CallOutcome::Decided(effect)),
    };
    let word = call_outcome(outcome);
    let mut text = format!("{style}{word}{style:#}  {}", clean(capability));
    if !reply.reason.is_empty() {
        put(&mut text, format_args!("  {}", clean(&reply.reason)));
    }
    text.push('\n');
    let retry = reply.retry_after.map(|delay| period(show::length(delay)));
    text.push_str(&card(&[
        ("message", clean(&reply.message)),
        ("matched_rule", reply.matched_rule.as_ref().map(show::rule).unwrap_or_default()),
        ("layers", show::layers(&reply.layers)),
        ("remaining", reply.remaining.as_ref().map(show::remaining).unwrap_or_default()),
        ("retry_after", retry.unwrap_or_default()),
        ("gate", show::id(&reply.gate).to_owned()),
        ("call_id", clean(&reply.call_id)),
    ]));
    text
}

pub(super) async fn report(talk: &Talk, report: Report) -> Result<(), Exit> {
    if report.capability.is_none() && report.call_id.is_none() {
        if report.failed {
            return Err(Exit::usage("--failed requires CAPABILITY or --call-id"));
        }
        let request = v1::ReportUsageRequest {
            session: report.session,
            cost_usd: report.cost_usd,
            tokens: report.tokens,
            address: report.of.address(),
            request_id: talk.request_id(),
        };
        let reply =
            talk.client.call(request, |mut it, request| async move { it.policy.report_usage(request).await });
        let reply = reply.await?;
        return talk.printer.message("ReportUsageResponse", &reply, || spent(reply.budget.as_ref()));
    }
    let outcome = if report.failed { v1::ToolOutcome::Failure } else { v1::ToolOutcome::Success };
    let request = v1::ReportToolUsageRequest {
        session: report.session,
        call_id: report.call_id.unwrap_or_default(),
        capability: report.capability.unwrap_or_default(),
        outcome: outcome.into(),
        cost_usd: report.cost_usd,
        tokens: report.tokens,
        duration: None,
        address: report.of.address(),
        request_id: talk.request_id(),
    };
    let reply = talk
        .client
        .call(request, |mut it, request| async move { it.policy.report_tool_usage(request).await });
    let reply = reply.await?;
    talk.printer.message("ReportToolUsageResponse", &reply, || spent(reply.budget.as_ref()))
}

fn spent(budget: Option<&v1::Budget>) -> String {
    let used = budget.map(show::budget).filter(|used| !used.is_empty());
    card(&[("budget", used.unwrap_or_else(|| "no usage".into()))])
}
