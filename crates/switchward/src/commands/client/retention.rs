//! `switchward session` and `switchward retention`: deletion, erasure and retention rules.

use serde::Deserialize;
use std::time::Duration;
use switchward_api::v1;
use switchward_messages::cli;

use super::show;
use super::talk::Talk;
use crate::args::{EndSession, PutRetention, RetentionCommand, SessionCommand, files};
use crate::exit::Exit;
use crate::output::{Table, card, clean};

pub(super) async fn session(talk: &Talk, what: SessionCommand) -> Result<(), Exit> {
    match what {
        SessionCommand::Delete(of) => delete(talk, of).await,
        SessionCommand::Erase(of) => erase(talk, of).await,
    }
}

async fn delete(talk: &Talk, of: EndSession) -> Result<(), Exit> {
    if !of.yes {
        talk.sure(&format!("deleting {}", of.session))?;
    }
    let (name, request_id) = (of.session.clone(), talk.request_id());
    let request = v1::DeleteSessionRequest { name, request_id };
    let reply = talk
        .client
        .call(request, |mut it, request| async move { it.retention.delete_session(request).await });
    let reply = reply.await?;
    talk.printer.message("DeleteSessionResponse", &reply, || card(&[("deleted", clean(&of.session))]))
}

async fn erase(talk: &Talk, of: EndSession) -> Result<(), Exit> {
    if !of.yes {
        talk.sure(&format!("erasing {}", of.session))?;
    }
    let (name, request_id) = (of.session.clone(), talk.request_id());
    let request = v1::EraseSessionRequest { name, request_id };
    let reply =
        talk.client.call(request, |mut it, request| async move { it.retention.erase_session(request).await });
    let reply = reply.await?;
    let gone = show::time(reply.gone_time.as_ref());
    let text = || card(&[("erased", clean(&of.session)), ("gone_time", gone.clone())]);
    talk.printer.message("EraseSessionResponse", &reply, text)
}

/// The file with the rules.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    rules: Vec<Rule>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    #[serde(default)]
    definition: String,
    ended_sessions: Option<String>,
    history: Option<String>,
    decisions: Option<String>,
    quarantine: Option<String>,
}

pub(super) async fn rules(talk: &Talk, what: RetentionCommand) -> Result<(), Exit> {
    match what {
        RetentionCommand::Put(put) => self::put(talk, put).await,
        RetentionCommand::Get => get(talk).await,
    }
}

async fn put(talk: &Talk, put: PutRetention) -> Result<(), Exit> {
    let text = files::read(std::path::Path::new(&put.file))?;
    let file: File = serde_json::from_slice(&text)
        .map_err(|error| Exit::usage(format!("{} is not a file of retention rules: {error}", put.file)))?;
    let rules = file.rules.into_iter().map(rule).collect::<Result<Vec<_>, String>>();
    let rules = rules.map_err(|error| Exit::usage(format!("{}: {error}", put.file)))?;
    if !put.yes {
        talk.sure("removing what these rules do not keep")?;
    }
    let retention = Some(v1::Retention { rules, etag: String::new() });
    let request = v1::PutRetentionRequest { retention, request_id: talk.request_id(), ..Default::default() };
    let reply =
        talk.client.call(request, |mut it, request| async move { it.retention.put_retention(request).await });
    let reply = reply.await?;
    let retention = reply.retention.clone().unwrap_or_default();
    talk.printer.message("PutRetentionResponse", &reply, || shown(&retention))
}

async fn get(talk: &Talk) -> Result<(), Exit> {
    let request = v1::GetRetentionRequest::default();
    let reply =
        talk.client.call(request, |mut it, request| async move { it.retention.get_retention(request).await });
    let reply = reply.await?;
    let retention = reply.retention.clone().unwrap_or_default();
    talk.printer.message("GetRetentionResponse", &reply, || shown(&retention))
}

fn rule(rule: Rule) -> Result<v1::RetentionRule, String> {
    let time = |text: Option<String>| {
        let read = |text: String| {
            crate::args::duration(&text).map(seconds).map_err(|error| format!("{text:?}: {error}"))
        };
        text.map(read).transpose()
    };
    Ok(v1::RetentionRule {
        definition: rule.definition,
        ended_sessions: time(rule.ended_sessions)?,
        history: time(rule.history)?,
        decisions: time(rule.decisions)?,
        quarantine: time(rule.quarantine)?,
    })
}

fn seconds(time: Duration) -> prost_types::Duration {
    prost_types::Duration { seconds: i64::try_from(time.as_secs()).unwrap_or(i64::MAX), nanos: 0 }
}

fn shown(retention: &v1::Retention) -> String {
    let mut table = Table::new(&["DEFINITION", "ENDED_SESSIONS", "HISTORY", "DECISIONS", "QUARANTINE"]);
    let time = |time: Option<&prost_types::Duration>| {
        time.map_or_else(String::new, |time| {
            if time.seconds % 86_400 == 0 {
                format!("{}d", time.seconds / 86_400)
            } else {
                format!("{}s", time.seconds)
            }
        })
    };
    for rule in &retention.rules {
        let definition = if rule.definition.is_empty() {
            "(all others)".to_owned()
        } else {
            clean(show::id(&rule.definition))
        };
        let (sessions, history) = (time(rule.ended_sessions.as_ref()), time(rule.history.as_ref()));
        let (decisions, quarantine) = (time(rule.decisions.as_ref()), time(rule.quarantine.as_ref()));
        table.row([definition, sessions, history, decisions, quarantine]);
    }
    table.text(cli::client::NO_RETENTION_RULES)
}
