//! The mail that brings the code which a decision page asks for.

use switchward_delivery::mail::{OutboundMail, Purpose};
use switchward_engine::{GateView, gate_view};
use switchward_machine::{SessionId, TenantId, Time};
use switchward_messages::{PageCodeFacts, page_code, prose, request, subject};
use switchward_query::outgoing::ShardView;
use switchward_state::ViewError;
use switchward_state::approval::TokenUse;
use switchward_state::delivery::{Effect, EffectBody};
use switchward_state::limits::PAGE_CODE_MS;

use super::{key_of, one_line};

/// The mail; `None` if the code has been used or is too old, or the gate is closed. A later code replaces an earlier one, in
/// mails that have not gone out as well.
pub(super) fn outbound(
    view: &ShardView,
    tenant: TenantId,
    session: SessionId,
    effect: &Effect,
    now: Time,
) -> Result<Option<OutboundMail>, ViewError> {
    let EffectBody::Message { channel, to, text, gate: Some(gate), .. } = &effect.body else {
        return Ok(None);
    };
    let Some(GateView::Open(open, ..)) = gate_view(view.rows(), tenant, session, *gate)? else {
        return Ok(None);
    };
    let (Some(asked), Some(key)) = (&open.body.asked, key_of(view, tenant)?) else { return Ok(None) };
    let current = asked.codes_of(to).and_then(|codes| codes.current(now));
    let (Some((sent, _)), Some(number)) = (current, asked.request_of(to)) else { return Ok(None) };
    let token = |usage| key.token(usage, tenant, session, *gate, number, to);
    let code = key.page_code(&token(TokenUse::Page), to, sent);
    let until = sent.after_ms(PAGE_CODE_MS);
    let body = page_code(PageCodeFacts { code: &code, request: &request(&asked.subject), until });
    let again = if effect.round() > 0 { format!("-{}", effect.round()) } else { String::new() };
    Ok(Some(OutboundMail {
        to: to.clone(),
        subject: one_line(&prose(&subject(*channel, text).unwrap_or_default())),
        purpose: Purpose::Say,
        body,
        html: false,
        id: format!("{}{again}", effect.number),
        thread: format!("{session}-code-{}", effect.number),
        reply_token: None,
        page_token: None,
        bounce_token: Some(token(TokenUse::Bounce).to_string()),
        facts: Vec::new(),
        choice: None,
        head: None,
    }))
}
