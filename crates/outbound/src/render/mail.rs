//! What mails say: all that is known of a gate, and where a reply to it goes.

mod code;

use switchward_delivery::{
    channels::Message,
    limits::MAIL_SUBJECT_CHARS_MAX,
    mail::{Choice, Fact, Head, OutboundMail, Purpose as Of},
};
use switchward_engine::{GateView, gate_view};
use switchward_expr::{APPROVALS, REJECTIONS};
use switchward_machine::{Content, Decision, GateSpec, OpenId, SessionId, TenantId, Time};
use switchward_messages::{GateFacts, Medium, prose, reminder, rule};
use switchward_query::outgoing::ShardView;
use switchward_state::ViewError;
use switchward_state::approval::{MailKey, OpenGate, TokenUse};
use switchward_state::delivery::{Effect, EffectBody, MailHead, Purpose};
use switchward_state::session::ReplyTokens;

/// The outbound mail of an effect. `None` if it asks about a gate that is closed.
pub(crate) fn outbound(
    view: &ShardView,
    tenant: TenantId,
    session: SessionId,
    effect: &Effect,
    now: Time,
) -> Result<Option<OutboundMail>, ViewError> {
    let EffectBody::Message { channel, to, text, gate, purpose, head } = &effect.body else {
        return Ok(None);
    };
    let text = switchward_messages::text(*channel, text);
    let about = gate.map(|gate| gate_view(view.rows(), tenant, session, gate)).transpose()?.flatten();
    let asks = of(*purpose) == Of::Ask;
    if *purpose == Purpose::Code {
        return code::outbound(view, tenant, session, effect, now);
    }
    if asks && !matches!(about, Some(GateView::Open(..))) {
        return Ok(None);
    }
    let key = key_of(view, tenant)?;
    let number = effect.number;
    let again = if effect.round() > 0 { format!("-{}", effect.round()) } else { String::new() };
    let own = if head.is_some() { number.to_string() } else { "say".into() };
    let thread = gate.map_or_else(|| format!("{session}-{own}"), |gate| format!("{session}-{}", gate.0));
    let mut outbound = OutboundMail {
        to: to.clone(),
        subject: one_line(&match (purpose, text.subject) {
            (Purpose::Remind, Some(subject)) => reminder(&subject),
            (_, subject) => subject.unwrap_or_default().into_owned(),
        }),
        purpose: of(*purpose),
        body: text.body.into_owned(),
        html: text.content == Content::Html,
        id: format!("{number}{again}"),
        thread,
        reply_token: None,
        page_token: None,
        bounce_token: None,
        facts: Vec::new(),
        choice: None,
        head: head.clone().map(|MailHead { from, to, cc }| Head { from, to, cc }),
    };
    let token = |usage, about, request| {
        key.as_ref().map(|key| key.token(usage, tenant, session, about, request, to).to_string())
    };
    let gate = gate.unwrap_or(OpenId(0));
    // What its reply and its bounce are about; `None` if they lead to nothing.
    let answered = match &about {
        Some(now @ GateView::Open(open, machine, _)) => {
            let request = open.body.asked.as_ref().and_then(|asked| asked.request_of(to));
            // Only those who are asked have a page.
            outbound.page_token = request.and_then(|request| token(TokenUse::Page, gate, request));
            if asks {
                (outbound.subject, outbound.body) = (prose(&outbound.subject), prose(&outbound.body));
                outbound.facts = facts(view, tenant, session, now)?;
                outbound.choice = machine.gate(open.body.spec).and_then(|spec| choice(spec, open));
            }
            Some((gate, request.unwrap_or_default()))
        }
        // A reply to the mail about the outcome is answered with who decided.
        Some(GateView::Closed(closed, _)) => {
            closed.open.body.asked.as_ref().and_then(|asked| Some((gate, asked.request_of(to)?)))
        }
        None => Some((OpenId(0), 0)),
    };
    let token_for = |usage| answered.and_then(|(about, request)| token(usage, about, request));
    (outbound.reply_token, outbound.bounce_token) = (token_for(TokenUse::Reply), token_for(TokenUse::Bounce));
    put_tokens(&mut outbound, view, tenant, session)?;
    Ok(Some(outbound))
}

/// Puts the session's reply tokens into what a definition wrote. What the agent writes is sent as it is written: it may
/// read no token.
fn put_tokens(
    outbound: &mut OutboundMail,
    view: &ShardView,
    tenant: TenantId,
    session: SessionId,
) -> Result<(), ViewError> {
    if outbound.head.is_some() {
        return Ok(());
    }
    let Some(tokens) = ReplyTokens::of_session(view.rows(), tenant, session)? else { return Ok(()) };
    for text in [&mut outbound.subject, &mut outbound.body] {
        if let Some(put) = tokens.put_into(text) {
            *text = put;
        }
    }
    Ok(())
}

fn of(purpose: Purpose) -> Of {
    match purpose {
        Purpose::Say | Purpose::Code => Of::Say,
        Purpose::Ask | Purpose::Remind => Of::Ask,
        Purpose::Inform => Of::Inform,
    }
}

/// A subject as a header takes it, whatever data stands in it.
fn one_line(subject: &str) -> String {
    let spaced: String = subject.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let line = spaced.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAIL_SUBJECT_CHARS_MAX - 1) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn key_of(view: &ShardView, tenant: TenantId) -> Result<Option<MailKey>, ViewError> {
    let tenancy = view.tenancy(tenant)?;
    Ok(tenancy.and_then(|tenancy| tenancy.mail_keys(view.ring(), tenant).into_iter().next()))
}

/// What the engine knows of what is asked; the words of others stand elsewhere.
fn facts(view: &ShardView, tenant: TenantId, id: SessionId, gate: &GateView) -> Result<Vec<Fact>, ViewError> {
    let Some(session) = view.session(tenant, id)? else { return Ok(Vec::new()) };
    let unreached = Some(gate.unreached());
    let gate = GateFacts { open: gate.open(), machine: gate.machine(), unreached };
    let facts = switchward_messages::facts(&session, id, &gate, Medium::Mail).into_iter();
    Ok(facts.map(|fact| Fact { name: fact.name.to_owned(), value: fact.value }).collect())
}

/// What can be decided at a gate; `None` if it asks for an answer.
fn choice(spec: &GateSpec, open: &OpenGate) -> Option<Choice> {
    spec.resolve(Decision::Approve)?;
    Some(Choice {
        approve: Decision::Approve.word().to_owned(),
        refuse: Decision::Refuse.word().to_owned(),
        also: also(spec),
        page_only: !open.body.fits_a_mail(),
        discusses: spec.resolve(Decision::Discuss).is_some(),
        rule: rule(open),
    })
}

/// The other words that decide, beside those that are asked for.
fn also(spec: &GateSpec) -> Vec<String> {
    let words = |decision: Decision, known: &[&str]| {
        let hints = spec.inquiry.as_ref().map(|inquiry| inquiry.phrases_of(decision)).unwrap_or_default();
        let all = hints.iter().map(String::as_str).chain(known.iter().copied());
        let mut others: Vec<&str> = Vec::new();
        for word in all.filter(|word| *word != decision.word()) {
            if !others.contains(&word) {
                others.push(word);
            }
        }
        others.join(" / ")
    };
    vec![words(Decision::Approve, APPROVALS), words(Decision::Refuse, REJECTIONS)]
}

/// A message of a definition to a URL, with the session's reply tokens in it.
pub(crate) fn message(
    view: &ShardView,
    tenant: TenantId,
    session: SessionId,
    url: &str,
    body: &str,
) -> Result<Message, ViewError> {
    let tokens = ReplyTokens::of_session(view.rows(), tenant, session)?;
    let put = |text: &str| tokens.as_ref().and_then(|tokens| tokens.put_into(text));
    let with_tokens = |text: &str| put(text).unwrap_or_else(|| text.to_owned());
    Ok(Message { url: with_tokens(url), body: with_tokens(body) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_one_line_whatever_data_stands_in_it() {
        assert_eq!(one_line("Ship \tit\r\nBcc: all@a.example\u{7}now"), "Ship it Bcc: all@a.example now");
        let long = one_line(&"é".repeat(MAIL_SUBJECT_CHARS_MAX + 1));
        assert_eq!((long.chars().count(), long.ends_with('…')), (MAIL_SUBJECT_CHARS_MAX, true));
    }
}
