//! Effects as messages.

use std::borrow::Cow;
use switchward_api::v1;
use switchward_engine::EffectView;
use switchward_machine::SessionId;
use switchward_messages::delivery_failure;
use switchward_state::delivery::{DeliveryFailure, Effect, EffectBody, EffectKind, EffectSummary};

use super::timestamp;
use crate::auth::Caller;
use crate::hide::without_mail;
use crate::names;

/// An effect of a session. The crate `messages` writes its subject.
pub(crate) fn effect(caller: &Caller, session: SessionId, view: &EffectView) -> v1::Effect {
    let subject = match &view.effect.body {
        EffectBody::Notice { subject, .. } => switchward_messages::request(subject),
        EffectBody::Message { channel, text, .. } => {
            switchward_messages::subject(*channel, text).unwrap_or_default()
        }
        EffectBody::Publish { kind, .. } => kind.word().into(),
        // Effects that the server carries out itself are not shown.
        EffectBody::Confirm { .. } | EffectBody::Settle { .. } => Cow::default(),
    };
    let effect = EffectSummary::of(&view.effect, view.node.clone());
    let effect = effect.map(|effect| summary(caller, session, &effect)).unwrap_or_default();
    v1::Effect { subject: subject.into_owned(), ..effect }
}

/// An effect after a command, without its subject.
pub(crate) fn summary(caller: &Caller, session: SessionId, effect: &EffectSummary) -> v1::Effect {
    let (dead, last) = (effect.dead_letter.as_ref(), effect.last.as_ref());
    let wrong = dead.or(last);
    v1::Effect {
        name: names::of_effect(caller, session, effect.number),
        session: names::of_session(caller, session),
        status: if dead.is_some() { v1::EffectStatus::DeadLetter } else { v1::EffectStatus::Pending }.into(),
        kind: effect.kind.word().to_owned(),
        state: effect.node.clone(),
        gate: effect.gate.map(|gate| names::of_gate(caller, session, gate)).unwrap_or_default(),
        to: effect.to.clone(),
        subject: String::new(),
        create_time: Some(timestamp(effect.since)),
        next_attempt_time: last.map(|_| timestamp(effect.next)),
        round: effect.round,
        code: wrong.map(|wrong| wrong.code.to_string()).unwrap_or_default(),
        message: wrong.map(shown).unwrap_or_default(),
        end_time: dead.map(|dead| timestamp(dead.at)),
        attempts: effect.attempts,
        last_attempt_time: last.map(|last| timestamp(last.at)),
    }
}

/// Returns what went wrong as it is shown: a mail server may repeat the address that bounces or replies go to.
fn shown(failure: &DeliveryFailure) -> String {
    let text = delivery_failure(&failure.code, failure.detail.as_ref());
    without_mail(&text).unwrap_or(text)
}

/// A dead letter as its session shows it.
pub(crate) fn incident(caller: &Caller, session: SessionId, effect: &Effect) -> v1::Incident {
    let dead = effect.dead_letter();
    v1::Incident {
        effect: names::of_effect(caller, session, effect.number),
        kind: kind(effect).to_owned(),
        code: dead.map(|dead| dead.code.to_string()).unwrap_or_default(),
        message: dead.map(shown).unwrap_or_default(),
        create_time: dead.map(|dead| timestamp(dead.at)),
    }
}

/// What an effect is called in filters.
pub(crate) fn kind(effect: &Effect) -> &'static str {
    EffectKind::of(&effect.body).map_or("", EffectKind::word)
}
