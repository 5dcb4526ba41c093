//! `switchward effect`.

use switchward_api::v1;
use switchward_messages::cli;

use super::show;
use super::talk::Talk;
use crate::args::{DismissEffect, EffectCommand, NamedEffect, ReleaseEffects};
use crate::exit::{Exit, WAITING};
use crate::output::{CARE, card, clean, shell};

/// The kind of the effect of a gate about which nobody was notified.
const NOTICE: &str = "notice";

pub(super) async fn run(talk: &Talk, what: EffectCommand) -> Result<(), Exit> {
    match what {
        EffectCommand::Show(of) => self::show(talk, of).await,
        EffectCommand::Retry(of) => retry(talk, of).await,
        EffectCommand::Dismiss(of) => dismiss(talk, of).await,
        EffectCommand::Release(of) => release(talk, &of).await,
    }
}

async fn release(talk: &Talk, of: &ReleaseEffects) -> Result<(), Exit> {
    let (all_tenants, request_id) = (of.all_tenants, talk.request_id());
    let request = v1::ReleaseEffectsRequest { all_tenants, request_id, ..Default::default() };
    let reply =
        talk.client.call(request, |mut it, request| async move { it.effects.release_effects(request).await });
    let reply = reply.await?;
    let whose = if all_tenants { "all" } else { "" };
    talk.printer.message("ReleaseEffectsResponse", &reply, || {
        card(&[("effects", "released".to_owned()), ("tenants", whose.to_owned())])
    })
}

async fn show(talk: &Talk, of: NamedEffect) -> Result<(), Exit> {
    let request = v1::GetEffectRequest { name: of.name, ..Default::default() };
    let reply =
        talk.client.call(request, |mut it, request| async move { it.effects.get_effect(request).await });
    let reply = reply.await?;
    let effect = reply.effect.clone().unwrap_or_default();
    talk.printer.message("GetEffectResponse", &reply, || shown(&effect))?;
    if effect.status() == v1::EffectStatus::DeadLetter || effect.kind == NOTICE {
        talk.printer.advice(&to_retry(&effect.name));
    }
    Ok(())
}

async fn retry(talk: &Talk, of: NamedEffect) -> Result<(), Exit> {
    let (name, request_id) = (of.name.clone(), talk.request_id());
    let request = v1::RetryEffectRequest { name, request_id, ..Default::default() };
    let reply =
        talk.client.call(request, |mut it, request| async move { it.effects.retry_effect(request).await });
    let reply = reply.await?;
    let text = || match &reply.effect {
        Some(effect) => shown(effect),
        None => card(&[("effect", clean(&of.name)), ("status", cli::client::NOTHING_TO_SEND.to_owned())]),
    };
    let printed = talk.printer.message("RetryEffectResponse", &reply, text);
    printed.or_else(Exit::unless_output_closed)?;
    if reply.effect.as_ref().is_some_and(|effect| effect.kind == NOTICE) {
        talk.printer.advice("switchward directory put FILE   (the directory leads to nobody)");
        return Err(Exit::reported(WAITING));
    }
    Ok(())
}

async fn dismiss(talk: &Talk, of: DismissEffect) -> Result<(), Exit> {
    if !of.yes {
        talk.sure(&format!("dismissing {}", of.name))?;
    }
    let (name, request_id) = (of.name.clone(), talk.request_id());
    let request = v1::DismissEffectRequest { name, request_id, ..Default::default() };
    let reply =
        talk.client.call(request, |mut it, request| async move { it.effects.dismiss_effect(request).await });
    let reply = reply.await?;
    talk.printer.message("DismissEffectResponse", &reply, || card(&[("dismissed", clean(&of.name))]))
}

/// The command that sends a dead letter again.
pub(super) fn to_retry(name: &str) -> String {
    format!("switchward effect retry {}", shell(show::id(name)))
}

/// The delivery state of an effect, and its last failure.
pub(super) fn status(effect: &v1::Effect) -> String {
    let word = match (effect.status(), effect.kind.as_str()) {
        (v1::EffectStatus::DeadLetter, _) => "dead letter",
        (_, NOTICE) => "nobody notified",
        (_, _) => "pending",
    };
    if effect.code.is_empty() { word.to_owned() } else { format!("{word}: {}", effect.code) }
}

/// A count; empty if it is 0.
fn number(count: u32) -> String {
    if count == 0 { String::new() } else { count.to_string() }
}

fn shown(effect: &v1::Effect) -> String {
    let mut status = clean(&status(effect));
    if effect.status() == v1::EffectStatus::DeadLetter {
        status = format!("{CARE}{status}{CARE:#}");
    }
    card(&[
        ("effect", clean(show::id(&effect.name))),
        ("session", clean(show::id(&effect.session))),
        ("kind", clean(&effect.kind)),
        ("state", clean(&effect.state)),
        ("gate", clean(show::id(&effect.gate))),
        ("to", clean(&effect.to)),
        ("subject", clean(&effect.subject)),
        ("status", status),
        ("message", clean(&effect.message)),
        ("attempts", number(effect.attempts)),
        ("last_attempt_time", show::time(effect.last_attempt_time.as_ref())),
        ("next_attempt_time", show::time(effect.next_attempt_time.as_ref())),
        ("round", number(effect.round)),
        ("create_time", show::time(effect.create_time.as_ref())),
        ("end_time", show::time(effect.end_time.as_ref())),
    ])
}
