//! Sends an endpoint the messages that it has missed.

use switchward_api::v1;
use switchward_engine::Missed;
use switchward_machine::{SessionId, Time};
use switchward_query::{GetMissed, ListChanged};
use switchward_state::delivery::{DeliveryCommand, Republish};
use switchward_state::{Body, NO_SESSION, Scope};

use super::endpoint;
use crate::api::Call;
use crate::error::{Reason, Refusal};
use crate::pages::{Listed, Page};
use crate::readable::{is_unreachable, name_of};
use crate::refusals::named;
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
        let message = format!("the endpoint is disabled: {why}; put it again to enable it");
        return Err(Refusal::new(Reason::StateMismatch, message));
    }
    let Listed { entries: sessions, next_page_token, mut unreachable } = match only {
        Some(session) => {
            Listed { entries: vec![session], next_page_token: String::new(), unreachable: Vec::new() }
        }
        None => changed(call, page, since).await?,
    };
    let (tenant, delivered) = (call.caller.tenant, message.include_delivered);
    let mut query = GetMissed { tenant, session: NO_SESSION, endpoint, since, after: 0, delivered };
    let mut recovered = Vec::new();
    for id in sessions {
        let session = names::of_session(&call.caller, id);
        match of_session(call, &mut query, id).await {
            Ok(0) => {}
            Ok(messages) => recovered.push(v1::RecoveredSession { session, messages }),
            // The shard has lost its leader since the page was read.
            Err(no) if message.session.is_empty() && is_unreachable(&no) => {
                unreachable.push(name_of(call.api.cluster.shard_of(id.bucket())));
            }
            Err(no) => {
                let asked = if message.session.is_empty() { &session } else { &message.session };
                return Err(named(no.after_parts(recovered.len()), "session", asked));
            }
        }
    }
    unreachable.sort_unstable();
    unreachable.dedup();
    Ok(v1::RecoverWebhookEndpointResponse { sessions: recovered, next_page_token, unreachable })
}

/// A page of the sessions in which something has happened since.
async fn changed(call: &Call<'_>, page: Page, since: Time) -> Result<Listed<SessionId>, Refusal> {
    let list = ListChanged { tenant: call.caller.tenant, since };
    let show = |_: &Call<'_>, id: SessionId| v1::RecoveredSession { session: id.to_string(), messages: 0 };
    let Listed { entries, next_page_token, unreachable } = page.of_shards(call, list, show).await?;
    let entries = entries.into_iter().filter_map(|one| one.session.parse().ok()).collect();
    Ok(Listed { entries, next_page_token, unreachable })
}

/// Sends the missed messages of one session, and returns how many they were. The query is used for each session in turn,
/// because it holds the endpoint.
async fn of_session(call: &Call<'_>, query: &mut GetMissed, id: SessionId) -> Result<u32, Refusal> {
    let mut messages = 0_usize;
    (query.session, query.after) = (id, 0);
    loop {
        let missed = call.ask(&*query).await.map_err(|refusal| refusal.after_parts(messages))?;
        let missing = || Refusal::not_found("session", names::of_session(&call.caller, id));
        let Missed { retry, events, upto } = missed.ok_or_else(missing)?;
        let count = retry.len() + events.len();
        if count > 0 {
            let body = Republish { endpoint: query.endpoint.id.clone(), retry, events };
            let republish = Body::Delivery(DeliveryCommand::Republish(body));
            let done = call.execute(Scope::Session(id), None, None, republish).await;
            done.map_err(|refusal| refusal.after_parts(messages))?;
        }
        messages += count;
        match upto {
            Some(upto) => query.after = upto,
            None => return Ok(u32::try_from(messages).unwrap_or(u32::MAX)),
        }
    }
}
