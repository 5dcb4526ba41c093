//! Endpoints: the URLs that receive a tenant's events.

use std::time::{Duration, SystemTime};
use switchward_api::v1;
use switchward_messages::cli;

use super::admin::with_secret;
use super::list::{LIMIT_DEFAULT, Missing, follow, incomplete, more};
use super::show;
use super::talk::Talk;
use crate::args::{
    DeleteEndpoint, EndpointCommand, NamedEndpoint, Page, PingEndpoint, PutEndpoint, RecoverEndpoint,
    RotateEndpoint, Trigger,
};
use crate::exit::Exit;
use crate::output::{CARE, Table, card, clean, count};

pub(super) async fn run(talk: &Talk, what: EndpointCommand) -> Result<(), Exit> {
    match what {
        EndpointCommand::Put(put) => self::put(talk, put).await,
        EndpointCommand::Get(named) => get(talk, named).await,
        EndpointCommand::List(page) => list(talk, page).await,
        EndpointCommand::Rotate(rotate) => self::rotate(talk, rotate).await,
        EndpointCommand::Ping(ping) => self::ping(talk, ping).await,
        EndpointCommand::Recover(recover) => self::recover(talk, recover).await,
        EndpointCommand::Delete(delete) => self::delete(talk, delete).await,
    }
}

pub(super) async fn trigger(talk: &Talk, trigger: Trigger) -> Result<(), Exit> {
    ping(talk, PingEndpoint { name: trigger.name, event: trigger.event }).await
}

async fn put(talk: &Talk, put: PutEndpoint) -> Result<(), Exit> {
    let endpoint = v1::WebhookEndpoint {
        name: put.name,
        url: put.url,
        event_types: put.events,
        ..v1::WebhookEndpoint::default()
    };
    let request = v1::PutWebhookEndpointRequest { endpoint: Some(endpoint), request_id: talk.request_id() };
    let reply = talk
        .client
        .call(request, |mut it, request| async move { it.endpoints.put_webhook_endpoint(request).await });
    let reply = reply.await?;
    let endpoint = reply.endpoint.clone().unwrap_or_default();
    talk.printer.message("PutWebhookEndpointResponse", &reply, || revealed(&endpoint, &reply.secret))?;
    talk.printer.advice(&format!("switchward endpoint ping {}", show::id(&endpoint.name)));
    Ok(())
}

async fn get(talk: &Talk, named: NamedEndpoint) -> Result<(), Exit> {
    let request = v1::GetWebhookEndpointRequest { name: named.name, ..Default::default() };
    let reply = talk
        .client
        .call(request, |mut it, request| async move { it.endpoints.get_webhook_endpoint(request).await });
    let reply = reply.await?;
    let endpoint = reply.endpoint.clone().unwrap_or_default();
    talk.printer.message("GetWebhookEndpointResponse", &reply, || shown(&endpoint))
}

async fn list(talk: &Talk, page: Page) -> Result<(), Exit> {
    let fetch = async |page_size, page_token| {
        let request = v1::ListWebhookEndpointsRequest { page_size, page_token, ..Default::default() };
        let reply = talk.client.call(request, |mut it, request| async move {
            it.endpoints.list_webhook_endpoints(request).await
        });
        reply.await.map(|reply| (reply.endpoints, reply.next_page_token))
    };
    let (endpoints, next_page_token) = follow(&page, LIMIT_DEFAULT, fetch).await?;
    let reply = v1::ListWebhookEndpointsResponse { endpoints, next_page_token };
    let text = || {
        let mut table = Table::new(&["ENDPOINT", "URL", "EVENT_TYPES", "STATUS"]);
        for endpoint in &reply.endpoints {
            table.row([
                show::id(&endpoint.name).to_owned(),
                clean(&endpoint.url),
                wants(endpoint),
                status_words(endpoint),
            ]);
        }
        table.text("no endpoints")
    };
    talk.printer.list("ListWebhookEndpointsResponse", &reply, "WebhookEndpoint", &reply.endpoints, text)?;
    more(talk, &reply.next_page_token);
    Ok(())
}

async fn rotate(talk: &Talk, rotate: RotateEndpoint) -> Result<(), Exit> {
    let request = v1::RotateWebhookEndpointSecretRequest {
        name: rotate.name,
        overlap: Some(overlap(if rotate.now { Duration::ZERO } else { rotate.overlap })?),
        request_id: talk.request_id(),
        ..Default::default()
    };
    let reply = talk.client.call(request, |mut it, request| async move {
        it.endpoints.rotate_webhook_endpoint_secret(request).await
    });
    let reply = reply.await?;
    let endpoint = reply.endpoint.clone().unwrap_or_default();
    talk.printer.message("RotateWebhookEndpointSecretResponse", &reply, || revealed(&endpoint, &reply.secret))
}

/// How long a replaced secret stays valid.
pub(super) fn overlap(length: Duration) -> Result<prost_types::Duration, Exit> {
    prost_types::Duration::try_from(length).map_err(|_| Exit::usage("the overlap is too long"))
}

async fn ping(talk: &Talk, ping: PingEndpoint) -> Result<(), Exit> {
    let request = v1::PingWebhookEndpointRequest { name: ping.name.clone(), event_type: ping.event };
    let reply = talk.client.call_once(request, |mut it, request| async move {
        it.endpoints.ping_webhook_endpoint(request).await
    });
    let reply = reply.await?;
    let printed = talk.printer.message("PingWebhookEndpointResponse", &reply, || {
        let took = reply.duration.map(show::length).unwrap_or_default();
        let outcome = if reply.code.is_empty() {
            "accepted".to_owned()
        } else {
            format!("{CARE}{}: {}{CARE:#}", clean(&reply.code), clean(&reply.message))
        };
        card(&[
            ("message_id", clean(&reply.message_id)),
            (
                "http_status",
                if reply.http_status == 0 { String::new() } else { reply.http_status.to_string() },
            ),
            ("outcome", outcome),
            ("duration", format!("{} ms", took.as_millis())),
            ("body", clean(&reply.body)),
        ])
    });
    printed.or_else(Exit::unless_output_closed)?;
    if reply.code.is_empty() { Ok(()) } else { Err(Exit::reported(1)) }
}

async fn recover(talk: &Talk, recover: RecoverEndpoint) -> Result<(), Exit> {
    let since = SystemTime::now().checked_sub(recover.since).unwrap_or(SystemTime::UNIX_EPOCH);
    let missing = Missing::default();
    let fetch = async |page_size, page_token| {
        let request = v1::RecoverWebhookEndpointRequest {
            name: recover.name.clone(),
            since_time: Some(since.into()),
            session: recover.session.clone().unwrap_or_default(),
            include_delivered: recover.delivered,
            page_size,
            page_token,
        };
        let reply = talk.client.call_once(request, |mut it, request| async move {
            it.endpoints.recover_webhook_endpoint(request).await
        });
        reply.await.map(|reply| (reply.sessions, missing.note(reply.unreachable, reply.next_page_token)))
    };
    let (mut sessions, mut token) = (Vec::new(), String::new());
    loop {
        let (more, next) = fetch(0, token).await?;
        sessions.extend(more);
        token = next;
        if token.is_empty() {
            break;
        }
    }
    let unreachable = missing.take();
    let reply = v1::RecoverWebhookEndpointResponse { sessions, next_page_token: token, unreachable };
    let text = || {
        let mut table = Table::new(&["SESSION", "MESSAGES"]);
        for session in &reply.sessions {
            table.row([show::id(&session.session).to_owned(), session.messages.to_string()]);
        }
        table.text(cli::client::NO_MISSED_MESSAGES)
    };
    talk.printer.list("RecoverWebhookEndpointResponse", &reply, "RecoveredSession", &reply.sessions, text)?;
    let messages = reply.sessions.iter().map(|one| usize::try_from(one.messages).unwrap_or(0)).sum();
    incomplete(talk, &reply.unreachable);
    if messages > 0 {
        talk.printer.advice(&format!(
            "switchward list effects --filter 'kind=\"event\"'   (the undelivered ones of {})",
            count(messages, "message")
        ));
    }
    Ok(())
}

async fn delete(talk: &Talk, delete: DeleteEndpoint) -> Result<(), Exit> {
    if !delete.yes {
        talk.sure(&format!("deleting {}", delete.name))?;
    }
    let request = v1::DeleteWebhookEndpointRequest {
        name: delete.name.clone(),
        expected_etag: String::new(),
        request_id: talk.request_id(),
    };
    let reply = talk
        .client
        .call(request, |mut it, request| async move { it.endpoints.delete_webhook_endpoint(request).await });
    let reply = reply.await?;
    talk.printer
        .message("DeleteWebhookEndpointResponse", &reply, || card(&[("deleted", clean(&delete.name))]))
}

/// The endpoint with its secret, if there is one to show.
fn revealed(endpoint: &v1::WebhookEndpoint, secret: &str) -> String {
    if secret.is_empty() { shown(endpoint) } else { with_secret(rows(endpoint), secret) }
}

fn shown(endpoint: &v1::WebhookEndpoint) -> String {
    card(&rows(endpoint))
}

fn rows(endpoint: &v1::WebhookEndpoint) -> Vec<(&'static str, String)> {
    vec![
        ("endpoint", clean(show::id(&endpoint.name))),
        ("url", clean(&endpoint.url)),
        ("event_types", wants(endpoint)),
        ("status", status(endpoint)),
        ("failing_since_time", failing(endpoint)),
        ("last_failure_time", failure(endpoint)),
        ("last_success_time", show::time(endpoint.last_success_time.as_ref())),
        ("old_secret_expire_time", show::time(endpoint.old_secret_expire_time.as_ref())),
        ("create_time", show::time(endpoint.create_time.as_ref())),
    ]
}

fn failing(endpoint: &v1::WebhookEndpoint) -> String {
    match endpoint.failing_since_time.as_ref() {
        Some(since) => format!("{CARE}{}{CARE:#}", show::time(Some(since))),
        None => String::new(),
    }
}

fn failure(endpoint: &v1::WebhookEndpoint) -> String {
    let at = show::time(endpoint.last_failure_time.as_ref());
    let (code, message) = (clean(&endpoint.last_failure_code), clean(&endpoint.last_failure_message));
    if at.is_empty() { at } else { format!("{at}, {code}: {message}") }
}

fn wants(endpoint: &v1::WebhookEndpoint) -> String {
    if endpoint.event_types.is_empty() { "*".to_owned() } else { clean(&endpoint.event_types.join(", ")) }
}

/// In colour if something is wrong.
fn status(endpoint: &v1::WebhookEndpoint) -> String {
    match status_words(endpoint).as_str() {
        "enabled" => "enabled".to_owned(),
        words => format!("{CARE}{words}{CARE:#}"),
    }
}

fn status_words(endpoint: &v1::WebhookEndpoint) -> String {
    match endpoint.disabled_reason.as_str() {
        "" if endpoint.failing_since_time.is_some() => "failing".to_owned(),
        "" => "enabled".to_owned(),
        why => format!("disabled: {}", clean(why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_endpoint_shows_since_when_and_why() {
        let at = |seconds| Some(prost_types::Timestamp { seconds, nanos: 0 });
        let failing = v1::WebhookEndpoint {
            name: "tenants/acme/endpoints/ops".into(),
            failing_since_time: at(60),
            last_failure_time: at(120),
            last_failure_code: "receiver_refused".into(),
            last_failure_message: "the endpoint answered 500".into(),
            ..v1::WebhookEndpoint::default()
        };
        let text = anstream::adapter::strip_str(&shown(&failing)).to_string();
        assert!(text.contains("failing_since_time  1970-01-01T00:01:00Z"), "{text}");
        assert!(text.contains("1970-01-01T00:02:00Z, receiver_refused: the endpoint answered 500"), "{text}");
        assert_eq!(status_words(&failing), "failing");
        let disabled = v1::WebhookEndpoint { disabled_reason: "failing".into(), ..failing };
        assert_eq!(status_words(&disabled), "disabled: failing");
    }
}
