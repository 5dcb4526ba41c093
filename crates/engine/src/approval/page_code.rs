//! Codes by which a decision page recognises the person whose link it is: a visitor with the link alone sees the request
//! and decides nothing.

use switchward_machine::OpenId;
use switchward_state::approval::{
    ApprovalEvent, EnterPageCode, GateRequest, MailToken, Notice, OpenGate, PageCodeFact, PageCodeStep,
    SendPageCode,
};
use switchward_state::delivery::Purpose;
use switchward_state::limits::{PAGE_CODE_TRIES_MAX, PAGE_CODES_HOUR_MAX};
use switchward_state::{Reason, Rejection, Reply};

use crate::approval::decide_gate::{has_token, may_decide, open_gate};
use crate::approval::mails;
use crate::turn::{Stop, Turn};

/// Mails a code, at most [`PAGE_CODES_HOUR_MAX`] an hour for one person and gate. The mail takes nothing from what a session
/// may send, and nothing that it has sent keeps it back.
pub(crate) fn send(turn: &mut Turn<'_, '_>, send: &SendPageCode) -> Result<Reply, Stop> {
    let (gate, person) = (send.token.about, turn.command.actor.subject.clone());
    let (open, asked) = page(turn, &send.token)?;
    if let Some(wait) = asked.codes_of(&person).and_then(|codes| codes.wait_ms(turn.now())) {
        let message = format!("{PAGE_CODES_HOUR_MAX} codes were sent to you within an hour");
        return Err(Rejection::new(Reason::RateLimited, message)
            .fact("field", "code")
            .fact("max", PAGE_CODES_HOUR_MAX)
            .retry_after_ms(Some(wait))
            .into());
    }
    step(turn, gate, &person, PageCodeStep::Sent)?;
    let code = mails::notice(&person, &asked.subject, Notice::PageCode, Some(gate), Purpose::Code);
    turn.send(open.head.run, code)?;
    Ok(Reply::Gate { gate, sequence: turn.session()?.sequence, summary: None })
}

/// Looks at what was entered. A wrong entry counts, and is an answer.
pub(crate) fn enter(turn: &mut Turn<'_, '_>, enter: &EnterPageCode) -> Result<Reply, Stop> {
    let (gate, person) = (enter.token.about, turn.command.actor.subject.clone());
    let (_, asked) = page(turn, &enter.token)?;
    let current = asked.codes_of(&person).and_then(|codes| codes.current(turn.now()));
    let Some((sent, left)) = current else {
        let message = "no code is valid now; ask for another one";
        return Err(Rejection::new(Reason::CredentialInvalid, message).fact("field", "code").into());
    };
    let code: String = enter.code.chars().filter(|character| !character.is_whitespace()).collect();
    let accepted = turn.is_page_code(&enter.token, &person, sent, &code)?;
    step(turn, gate, &person, if accepted { PageCodeStep::Accepted } else { PageCodeStep::Refused })?;
    let left = if accepted { 0 } else { left.saturating_sub(1).min(PAGE_CODE_TRIES_MAX) };
    Ok(Reply::PageCode { gate, accepted, left })
}

/// The open gate of a page, if the command's actor has its token and may decide there.
fn page(turn: &Turn<'_, '_>, token: &MailToken) -> Result<(OpenGate, GateRequest), Stop> {
    let open = open_gate(turn, token.about)?;
    has_token(turn, token.about, &open, token)?;
    may_decide(&turn.command.actor, &open, &*turn.directory()?)?;
    let asked = open.body.asked.clone();
    let asked = asked.ok_or_else(|| Rejection::new(Reason::NotFound, "the gate asks nobody"))?;
    Ok((open, asked))
}

fn step(turn: &mut Turn<'_, '_>, gate: OpenId, to: &str, step: PageCodeStep) -> Result<(), Stop> {
    turn.emit(ApprovalEvent::PageCodes(PageCodeFact { gate, to: to.to_owned(), step }))?;
    Ok(())
}
