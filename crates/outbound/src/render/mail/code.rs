//! The mail that brings the code which a decision page asks for.

use switchward_delivery::mail::{OutboundMail, Purpose};
use switchward_engine::{GateView, gate_view};
use switchward_gateway::presented;
use switchward_machine::{SessionId, TenantId, Time};
use switchward_shard::StateView;
use switchward_state::ViewError;
use switchward_state::approval::Way;
use switchward_state::delivery::{Effect, EffectBody};
use switchward_state::limits::PAGE_CODE_MS;
use switchward_state::policy::time_text;

use super::{key_of, one_line};

/// The mail; `None` if the code has been used or is too old, or the gate is closed. A later code replaces an earlier one, in
/// mails that have not gone out as well.
pub(super) fn outbound(
    view: &StateView,
    (tenant, session): (TenantId, SessionId),
    effect: &Effect,
    now: Time,
) -> Result<Option<OutboundMail>, ViewError> {
    let EffectBody::Message { to, subject, gate: Some(gate), .. } = &effect.body else { return Ok(None) };
    let Some(GateView::Open(open, ..)) = gate_view(view, tenant, session, *gate)? else { return Ok(None) };
    let (Some(asked), Some(key)) = (&open.gate.asked, key_of(view, tenant)?) else { return Ok(None) };
    let current = asked.codes_of(to).and_then(|codes| codes.current(now));
    let (Some((sent, _)), Some(round)) = (current, asked.round_of(to)) else { return Ok(None) };
    let token = |way| key.token(way, (tenant, session), (*gate, round), to);
    let code = key.page_code(&token(Way::Page), to, sent);
    let (first, second) = code.split_at(code.len() / 2);
    let until = time_text(sent.after_ms(PAGE_CODE_MS));
    let about = presented::prose(&asked.subject);
    let body = format!(
        "{first} {second}\n\n\
         is your code for the decision page of this request:\n\n    {about}\n\n\
         It is valid once, until {until}. Enter it on the page and do not share it: anyone who has it can decide in\n\
         your name. If you did not ask for it, somebody else has the link that was mailed to you. They have not\n\
         decided anything, and you can still answer the mail.\n"
    );
    let again = if effect.round() > 0 { format!("-{}", effect.round()) } else { String::new() };
    Ok(Some(OutboundMail {
        to: to.clone(),
        subject: one_line(&presented::prose(subject.as_deref().unwrap_or_default())),
        purpose: Purpose::Say,
        body,
        html: false,
        id: format!("{}{again}", effect.number),
        thread: format!("{session}-code-{}", effect.number),
        reply_token: None,
        page_token: None,
        bounce_token: Some(token(Way::Bounce).to_string()),
        facts: Vec::new(),
        choice: None,
        head: None,
    }))
}
