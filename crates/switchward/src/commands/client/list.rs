//! `switchward list`: follows the pages of a list to its end, or to the limit.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::future::Future;
use switchward_api::v1;
use switchward_messages::{cli, exact};
use tonic::Status;

use super::talk::Talk;
use super::{effect, show};
use crate::args::{ListCommand, ListDefinitions, ListFilter, ListOf, Page};
use crate::exit::Exit;
use crate::output::Table;

/// The default number of entries.
pub(super) const LIMIT_DEFAULT: usize = 100;
/// The maximum number of entries of one call.
const PAGE_MAX: usize = 1_000;

pub(super) async fn run(talk: &Talk, what: crate::args::List) -> Result<(), Exit> {
    match what.what {
        ListCommand::Sessions(list) => sessions(talk, list).await,
        ListCommand::Gates(list) => gates(talk, list).await,
        ListCommand::Effects(list) => effects(talk, list).await,
        ListCommand::Definitions(list) => definitions(talk, list).await,
        ListCommand::Versions(list) => versions(talk, list).await,
        ListCommand::Events(list) => events(talk, list).await,
        ListCommand::Decisions(list) => decisions(talk, list).await,
        ListCommand::Keys(page) => keys(talk, page).await,
    }
}

/// Entries, and the token of the next page.
pub(super) type Part<T> = (Vec<T>, String);

/// Follows pages. `most` is the default number of entries, 0 for all.
pub(super) async fn follow<T, F>(
    page: &Page,
    most: usize,
    fetch: impl Fn(u32, String) -> F,
) -> Result<Part<T>, Status>
where
    F: Future<Output = Result<Part<T>, Status>>,
{
    let limit = match page.limit.unwrap_or(most) {
        0 => usize::MAX,
        limit => limit,
    };
    let mut entries: Vec<T> = Vec::new();
    let mut token = page.page_token.clone().unwrap_or_default();
    loop {
        let size = u32::try_from((limit - entries.len()).min(PAGE_MAX)).unwrap_or(0);
        let (part, next) = fetch(size, token).await?;
        entries.extend(part);
        token = next;
        if token.is_empty() || entries.len() >= limit {
            return Ok((entries, token));
        }
    }
}

/// Hints that there are more entries.
pub(super) fn more(talk: &Talk, token: &str) {
    if !token.is_empty() {
        talk.printer.advice("there are more entries: --limit 0 lists all");
    }
}

/// The shards or servers that pages lack.
#[derive(Default)]
pub(super) struct Missing(RefCell<BTreeSet<String>>);

impl Missing {
    /// Notes what a page lacks; returns its token.
    pub(super) fn note(&self, unreachable: Vec<String>, token: String) -> String {
        self.0.borrow_mut().extend(unreachable);
        token
    }

    /// What all pages lack.
    pub(super) fn take(&self) -> Vec<String> {
        self.0.take().into_iter().collect()
    }
}

/// Says that a list is incomplete, if it is.
pub(super) fn incomplete(talk: &Talk, unreachable: &[String]) {
    if !unreachable.is_empty() {
        let parts = unreachable.join(", ");
        talk.printer.advice(&format!("incomplete: {parts} could not be read; run the command again"));
    }
}

async fn sessions(talk: &Talk, list: ListFilter) -> Result<(), Exit> {
    let filter = list.filter.unwrap_or_default();
    let missing = Missing::default();
    let fetch = async |page_size, page_token| {
        let request = v1::ListSessionsRequest {
            parent: String::new(),
            page_size,
            page_token,
            filter: filter.clone(),
            ..Default::default()
        };
        let reply = talk
            .client
            .call(request, |mut it, request| async move { it.sessions.list_sessions(request).await });
        reply.await.map(|reply| (reply.sessions, missing.note(reply.unreachable, reply.next_page_token)))
    };
    let (sessions, next_page_token) = follow(&list.page, LIMIT_DEFAULT, fetch).await?;
    let unreachable = missing.take();
    let reply = v1::ListSessionsResponse { sessions, next_page_token, unreachable };
    let text = || {
        let mut table =
            Table::new(&["SESSION", "SESSION_ID", "DEFINITION", "STATUS", "AT", "WAITING_ON", "UPDATE_TIME"]);
        for session in &reply.sessions {
            let gates: Vec<String> = session.waiting_on.iter().map(show::waited).collect();
            let process = match session.definition.as_str() {
                "" => String::new(),
                name => format!("{} v{}", show::definition_of(name), session.version),
            };
            table.row([
                show::id(&session.name).to_owned(),
                session.session_id.clone(),
                process,
                show::status_word(session),
                session.at.join(", "),
                gates.join(", "),
                show::time(session.update_time.as_ref()),
            ]);
        }
        table.text("no sessions")
    };
    talk.printer.list("ListSessionsResponse", &reply, "Session", &reply.sessions, text)?;
    more(talk, &reply.next_page_token);
    incomplete(talk, &reply.unreachable);
    Ok(())
}

async fn gates(talk: &Talk, list: ListFilter) -> Result<(), Exit> {
    let filter = list.filter.unwrap_or_default();
    let missing = Missing::default();
    let fetch = async |page_size, page_token| {
        let request = v1::ListGatesRequest {
            parent: String::new(),
            page_size,
            page_token,
            filter: filter.clone(),
            ..Default::default()
        };
        let reply =
            talk.client.call(request, |mut it, request| async move { it.gates.list_gates(request).await });
        reply.await.map(|reply| (reply.gates, missing.note(reply.unreachable, reply.next_page_token)))
    };
    let (gates, next_page_token) = follow(&list.page, LIMIT_DEFAULT, fetch).await?;
    let unreachable = missing.take();
    let reply = v1::ListGatesResponse { gates, next_page_token, unreachable };
    let text = || {
        let mut table = Table::new(&[
            "GATE",
            "REQUEST",
            "ARGS",
            "APPROVALS",
            "NOTIFIED",
            "REQUESTED_BY",
            "CREATE_TIME",
            "SESSION",
        ]);
        for gate in &reply.gates {
            table.row([
                show::id(&gate.name).to_owned(),
                show::about(gate),
                show::brief(&exact(&String::from_utf8_lossy(&gate.args))),
                show::approvals(gate),
                show::reached(gate),
                gate.requested_by.clone(),
                show::time(gate.create_time.as_ref()),
                show::id(&gate.session).to_owned(),
            ]);
        }
        table.text(cli::client::NO_OPEN_GATES)
    };
    talk.printer.list("ListGatesResponse", &reply, "Gate", &reply.gates, text)?;
    // A hint about the first gate that the caller can decide, else about the first gate.
    let own = reply.gates.iter().find(|gate| !gate.caller_decisions.is_empty());
    if let Some(gate) = own.or(reply.gates.first()) {
        talk.printer.advice(&show::to_decide_gate(gate));
    }
    more(talk, &reply.next_page_token);
    incomplete(talk, &reply.unreachable);
    Ok(())
}

async fn effects(talk: &Talk, list: ListFilter) -> Result<(), Exit> {
    let filter = list.filter.unwrap_or_default();
    let missing = Missing::default();
    let fetch = async |page_size, page_token| {
        let request = v1::ListEffectsRequest {
            parent: String::new(),
            page_size,
            page_token,
            filter: filter.clone(),
            ..Default::default()
        };
        let reply = talk
            .client
            .call(request, |mut it, request| async move { it.effects.list_effects(request).await });
        reply.await.map(|reply| (reply.effects, missing.note(reply.unreachable, reply.next_page_token)))
    };
    let (effects, next_page_token) = follow(&list.page, LIMIT_DEFAULT, fetch).await?;
    let unreachable = missing.take();
    let reply = v1::ListEffectsResponse { effects, next_page_token, unreachable };
    let text = || {
        let mut table = Table::new(&[
            "EFFECT",
            "KIND",
            "TO",
            "SUBJECT",
            "STATUS",
            "CREATE_TIME",
            "NEXT_ATTEMPT_TIME",
            "SESSION",
        ]);
        for effect in &reply.effects {
            table.row([
                show::id(&effect.name).to_owned(),
                effect.kind.clone(),
                effect.to.clone(),
                effect.subject.clone(),
                effect::status(effect),
                show::time(effect.create_time.as_ref()),
                show::time(effect.next_attempt_time.as_ref()),
                show::id(&effect.session).to_owned(),
            ]);
        }
        table.text(cli::client::NO_UNDELIVERED_EFFECTS)
    };
    talk.printer.list("ListEffectsResponse", &reply, "Effect", &reply.effects, text)?;
    if let Some(dead) = reply.effects.iter().find(|one| one.status() == v1::EffectStatus::DeadLetter) {
        talk.printer.advice(&effect::to_retry(&dead.name));
    }
    more(talk, &reply.next_page_token);
    incomplete(talk, &reply.unreachable);
    Ok(())
}

async fn definitions(talk: &Talk, list: ListDefinitions) -> Result<(), Exit> {
    let ListDefinitions { show_archived, page } = list;
    let fetch = async |page_size, page_token| {
        let request =
            v1::ListDefinitionsRequest { show_archived, page_size, page_token, ..Default::default() };
        let reply = talk
            .client
            .call(request, |mut it, request| async move { it.definitions.list_definitions(request).await });
        reply.await.map(|reply| (reply.definitions, reply.next_page_token))
    };
    let (definitions, next_page_token) = follow(&page, LIMIT_DEFAULT, fetch).await?;
    let reply = v1::ListDefinitionsResponse { definitions, next_page_token };
    let text = || {
        let mut table =
            Table::new(&["DEFINITION", "FORMAT", "ACTIVE_VERSION", "LATEST_VERSION", "UPDATE_TIME"]);
        for definition in &reply.definitions {
            table.row([
                show::definition_of(&definition.name).to_owned(),
                show::word(definition.format().as_str_name(), "FORMAT_"),
                show::number(definition.active_version),
                show::number(definition.latest_version),
                show::time(definition.update_time.as_ref()),
            ]);
        }
        table.text("no definitions")
    };
    talk.printer.list("ListDefinitionsResponse", &reply, "Definition", &reply.definitions, text)?;
    more(talk, &reply.next_page_token);
    Ok(())
}

async fn versions(talk: &Talk, list: ListOf) -> Result<(), Exit> {
    let fetch = async |page_size, page_token| {
        let request =
            v1::ListVersionsRequest { parent: list.of.clone(), page_size, page_token, ..Default::default() };
        let reply = talk
            .client
            .call(request, |mut it, request| async move { it.definitions.list_versions(request).await });
        reply.await.map(|reply| (reply.versions, reply.next_page_token))
    };
    let (versions, next_page_token) = follow(&list.page, LIMIT_DEFAULT, fetch).await?;
    let reply = v1::ListVersionsResponse { versions, next_page_token };
    let text = || {
        let mut table = Table::new(&["NUMBER", "STATUS", "DIGEST", "CREATED_BY", "CREATE_TIME"]);
        for version in &reply.versions {
            table.row([
                version.number.to_string(),
                show::status_of(version).to_owned(),
                version.digest.chars().take(12).collect(),
                version.created_by.clone(),
                show::time(version.create_time.as_ref()),
            ]);
        }
        table.text("no versions")
    };
    talk.printer.list("ListVersionsResponse", &reply, "Version", &reply.versions, text)?;
    more(talk, &reply.next_page_token);
    Ok(())
}

async fn events(talk: &Talk, list: ListOf) -> Result<(), Exit> {
    let fetch = async |page_size, page_token| {
        let request = v1::ListSessionEventsRequest {
            name: list.of.clone(),
            from_sequence: 0,
            page_size,
            page_token,
            ..Default::default()
        };
        let reply = talk
            .client
            .call(request, |mut it, request| async move { it.sessions.list_session_events(request).await });
        reply.await.map(|reply| (reply.events, reply.next_page_token))
    };
    let (events, next_page_token) = follow(&list.page, 0, fetch).await?;
    let reply = v1::ListSessionEventsResponse { events, next_page_token };
    let text = || reply.events.iter().map(show::event).collect();
    talk.printer.list("ListSessionEventsResponse", &reply, "SessionEvent", &reply.events, text)?;
    more(talk, &reply.next_page_token);
    Ok(())
}

async fn decisions(talk: &Talk, list: ListOf) -> Result<(), Exit> {
    let filter = list.filter.unwrap_or_default();
    let fetch = async |page_size, page_token| {
        let (session, filter) = (list.of.clone(), filter.clone());
        let request =
            v1::ListDecisionsRequest { session, page_size, page_token, filter, ..Default::default() };
        let reply = talk
            .client
            .call(request, |mut it, request| async move { it.policy.list_decisions(request).await });
        reply.await.map(|reply| (reply.decisions, reply.next_page_token))
    };
    let (decisions, next_page_token) = follow(&list.page, 0, fetch).await?;
    let reply = v1::ListDecisionsResponse { decisions, next_page_token };
    let text = || {
        let mut table =
            Table::new(&["SEQUENCE", "TIME", "CAPABILITY", "DECISION", "REASON", "MATCHED_RULE", "GATE"]);
        for decision in &reply.decisions {
            table.row([
                decision.sequence.to_string(),
                show::time(decision.time.as_ref()),
                decision.capability.clone(),
                show::word(decision.decision().as_str_name(), "TOOL_DECISION_"),
                decision.reason.clone(),
                decision.matched_rule.as_ref().map(show::rule).unwrap_or_default(),
                show::id(&decision.gate).to_owned(),
            ]);
        }
        table.text("no decisions")
    };
    talk.printer.list("ListDecisionsResponse", &reply, "DecisionRecord", &reply.decisions, text)?;
    more(talk, &reply.next_page_token);
    Ok(())
}

async fn keys(talk: &Talk, page: Page) -> Result<(), Exit> {
    let fetch = async |page_size, page_token| {
        let request =
            v1::ListApiKeysRequest { parent: String::new(), page_size, page_token, ..Default::default() };
        let reply =
            talk.client.call(request, |mut it, request| async move { it.keys.list_api_keys(request).await });
        reply.await.map(|reply| (reply.api_keys, reply.next_page_token))
    };
    let (api_keys, next_page_token) = follow(&page, LIMIT_DEFAULT, fetch).await?;
    let reply = v1::ListApiKeysResponse { api_keys, next_page_token };
    let text = || {
        let mut table = Table::new(&[
            "API_KEY",
            "ROLE",
            "SUBJECT",
            "DISPLAY_NAME",
            "CREATE_TIME",
            "EXPIRE_TIME",
            "REVOKE_TIME",
        ]);
        for key in &reply.api_keys {
            table.row([
                show::id(&key.name).to_owned(),
                show::word(key.role().as_str_name(), "KEY_ROLE_"),
                key.subject.clone(),
                key.display_name.clone(),
                show::time(key.create_time.as_ref()),
                show::time(key.expire_time.as_ref()),
                show::time(key.revoke_time.as_ref()),
            ]);
        }
        table.text("no keys")
    };
    talk.printer.list("ListApiKeysResponse", &reply, "ApiKey", &reply.api_keys, text)?;
    more(talk, &reply.next_page_token);
    Ok(())
}
