//! Sends an endpoint the messages that it has missed.

use switchward_api::v1;
use switchward_engine::{Missed, missed};
use switchward_machine::{SessionId, Time};
use switchward_shard::StateView;
use switchward_state::delivery::{DeliveryCommand, Endpoint, Republish};
use switchward_state::{Body, IndexKey, Key, Row, Scope, View, ViewError};

use super::endpoint;
use crate::api::{Call, named, refusal, unreadable};
use crate::error::{Reason, Refusal};
use crate::pages::Page;
use crate::{convert, names};

/// Processes a page of sessions.
pub(super) async fn recover(
    call: &Call<'_>,
    message: v1::RecoverWebhookEndpointRequest,
) -> Result<v1::RecoverWebhookEndpointResponse, Refusal> {
    let id = names::webhook_endpoint(&call.caller, "name", &message.name)?;
    let since = message.since_time.ok_or_else(|| Refusal::field("since_time", "is required"))?;
    let since = convert::time("since_time", since)?;
    let only = match message.session.as_str() {
        "" => None,
        name => Some(names::session(&call.caller, "session", name)?),
    };
    let list =
        ["recovered", call.caller.tenant_name.as_str(), message.name.as_str(), message.session.as_str()];
    let page = Page::read(message.page_size, &message.page_token, &list)?;
    let endpoint = endpoint(call, id, &message.name).await?;
    if let Some(why) = &endpoint.disabled {
        let text = format!("the endpoint is disabled: {why}; put it again to enable it");
        return Err(Refusal::new(Reason::StateMismatch, text));
    }
    let recovery = Recovery { endpoint, since, delivered: message.include_delivered };
    let (sessions, next_page_token) = match only {
        Some(session) => (vec![(names::of_session(&call.caller, session), session)], String::new()),
        None => changed(call, page, since).await?,
    };
    let mut recovered = Vec::new();
    for (session, id) in sessions {
        let messages = of_session(call, &recovery, id).await.map_err(|no| {
            named(no, "session", if message.session.is_empty() { &session } else { &message.session })
        })?;
        if messages > 0 {
            recovered.push(v1::RecoveredSession { session, messages });
        }
    }
    Ok(v1::RecoverWebhookEndpointResponse { sessions: recovered, next_page_token })
}

struct Recovery {
    endpoint: Endpoint,
    since: Time,
    delivered: bool,
}

type Sessions = (Vec<(String, SessionId)>, String);

/// A page of the sessions in which something has happened since.
async fn changed(call: &Call<'_>, page: Page, since: Time) -> Result<Sessions, Refusal> {
    let tenant = call.caller.tenant;
    let pick = move |_: &Call<'_>, view: &StateView, entry: &Key| {
        let Some(id) = IndexKey::session_of(entry) else { return Ok(None) };
        let row = view.row(&Key::session(tenant, id)).map_err(unreadable)?;
        let Some(Row::Session(session)) = row.as_deref() else { return Ok(None) };
        let changed = session.updated >= since;
        Ok(changed.then(|| v1::RecoveredSession { session: id.to_string(), messages: 0 }))
    };
    let (sessions, token) = page.of_shards(call, IndexKey::sessions(tenant), pick).await?;
    let named = sessions.into_iter().filter_map(|one| {
        let id: SessionId = one.session.parse().ok()?;
        Some((names::of_session(&call.caller, id), id))
    });
    Ok((named.collect(), token))
}

/// Sends the missed messages of one session, and returns how many they were.
async fn of_session(call: &Call<'_>, recovery: &Recovery, id: SessionId) -> Result<u32, Refusal> {
    let (mut messages, mut after) = (0_usize, 0);
    loop {
        let Missed { retry, events, upto } = look(call, recovery, id, after).await?;
        let count = retry.len() + events.len();
        if count > 0 {
            let body = Republish { endpoint: recovery.endpoint.id.clone(), retry, events };
            call.execute(Scope::Session(id), None, None, Body::Delivery(DeliveryCommand::Republish(body)))
                .await?;
        }
        messages += count;
        match upto {
            Some(upto) => after = upto,
            None => return Ok(u32::try_from(messages).unwrap_or(u32::MAX)),
        }
    }
}

async fn look(call: &Call<'_>, recovery: &Recovery, id: SessionId, after: u64) -> Result<Missed, Refusal> {
    let view = call.shard(id).read().await.map_err(refusal)?;
    let tenant = call.caller.tenant;
    let known = view.row(&Key::session(tenant, id)).map_err(unreadable)?;
    if known.is_none() {
        return Err(Refusal::not_found("session", names::of_session(&call.caller, id)));
    }
    let found = |rows: &dyn View| -> Result<Missed, ViewError> {
        missed(rows, (tenant, id), &recovery.endpoint, (recovery.since, after), recovery.delivered)
    };
    view.consistent(found).map_err(unreadable)
}
