//! `switchward source`: senders of inbound webhooks.

use std::time::Duration;
use switchward_api::v1;

use super::admin::with_secret;
use super::endpoint::overlap;
use super::list::{LIMIT_DEFAULT, follow, more};
use super::show;
use super::talk::Talk;
use crate::args::files::STDIN;
use crate::args::{
    CreateSource, DeleteSource, KindOfSource, NamedSource, Page, RotateSource, SourceCommand, files,
};
use crate::exit::Exit;
use crate::output::{Table, card, clean, period};

pub(super) async fn run(talk: &Talk, what: SourceCommand) -> Result<(), Exit> {
    match what {
        SourceCommand::Create(create) => self::create(talk, create).await,
        SourceCommand::Get(named) => get(talk, named).await,
        SourceCommand::List(page) => list(talk, page).await,
        SourceCommand::Rotate(rotate) => self::rotate(talk, rotate).await,
        SourceCommand::Delete(delete) => self::delete(talk, delete).await,
    }
}

/// A given secret, from the command line, a file or the standard input.
fn secret(text: Option<&str>) -> Result<String, Exit> {
    let text = text.unwrap_or_default();
    let bytes = files::value(if text == STDIN { "@-" } else { text })?;
    let secret = String::from_utf8(bytes).map_err(|_| Exit::usage("--secret is not UTF-8 text"))?;
    Ok(secret.trim_end_matches(['\r', '\n']).to_owned())
}

async fn create(talk: &Talk, create: CreateSource) -> Result<(), Exit> {
    let kind = match create.kind {
        KindOfSource::StandardWebhooks => v1::WebhookSourceKind::StandardWebhooks,
        KindOfSource::Github => v1::WebhookSourceKind::Github,
        KindOfSource::Stripe => v1::WebhookSourceKind::Stripe,
        KindOfSource::Slack => v1::WebhookSourceKind::Slack,
        KindOfSource::Bearer => v1::WebhookSourceKind::Bearer,
        KindOfSource::None => v1::WebhookSourceKind::None,
    };
    let source = v1::WebhookSource {
        name: create.name,
        kind: kind.into(),
        session: create.session,
        session_pointer: create.session_at,
        event_key: create.event,
        event_key_pointer: create.event_at,
        data_pointer: create.data_at,
        known_time: create.known.and_then(|time| prost_types::Duration::try_from(time).ok()),
        ..v1::WebhookSource::default()
    };
    let request = v1::CreateWebhookSourceRequest {
        source: Some(source),
        secret: secret(create.secret.as_deref())?,
        request_id: talk.request_id(),
    };
    let reply = talk
        .client
        .call(request, |mut it, request| async move { it.sources.create_webhook_source(request).await });
    let reply = reply.await?;
    let source = reply.source.clone().unwrap_or_default();
    talk.printer.message("CreateWebhookSourceResponse", &reply, || revealed(&source, &reply.secret))
}

async fn get(talk: &Talk, named: NamedSource) -> Result<(), Exit> {
    let request = v1::GetWebhookSourceRequest { name: named.name, ..Default::default() };
    let reply = talk
        .client
        .call(request, |mut it, request| async move { it.sources.get_webhook_source(request).await });
    let reply = reply.await?;
    let source = reply.source.clone().unwrap_or_default();
    talk.printer.message("GetWebhookSourceResponse", &reply, || shown(&source))
}

async fn list(talk: &Talk, page: Page) -> Result<(), Exit> {
    let fetch = async |page_size, page_token| {
        let request = v1::ListWebhookSourcesRequest { page_size, page_token, ..Default::default() };
        let reply = talk
            .client
            .call(request, |mut it, request| async move { it.sources.list_webhook_sources(request).await });
        reply.await.map(|reply| (reply.sources, reply.next_page_token))
    };
    let (sources, next_page_token) = follow(&page, LIMIT_DEFAULT, fetch).await?;
    let reply = v1::ListWebhookSourcesResponse { sources, next_page_token };
    let text = || {
        let mut table = Table::new(&["SOURCE", "KIND", "SESSION", "EVENT_KEY"]);
        for source in &reply.sources {
            let either = |fixed: &str, pointer: &str| {
                if fixed.is_empty() { clean(pointer) } else { clean(fixed) }
            };
            table.row([
                show::id(&source.name).to_owned(),
                kind(source),
                either(&source.session, &source.session_pointer),
                either(&source.event_key, &source.event_key_pointer),
            ]);
        }
        table.text("no sources")
    };
    talk.printer.list("ListWebhookSourcesResponse", &reply, "WebhookSource", &reply.sources, text)?;
    more(talk, &reply.next_page_token);
    Ok(())
}

async fn rotate(talk: &Talk, rotate: RotateSource) -> Result<(), Exit> {
    let request = v1::RotateWebhookSourceSecretRequest {
        name: rotate.name,
        secret: secret(rotate.secret.as_deref())?,
        overlap: Some(overlap(if rotate.now { Duration::ZERO } else { rotate.overlap })?),
        request_id: talk.request_id(),
        ..Default::default()
    };
    let reply = talk.client.call(request, |mut it, request| async move {
        it.sources.rotate_webhook_source_secret(request).await
    });
    let reply = reply.await?;
    let source = reply.source.clone().unwrap_or_default();
    talk.printer.message("RotateWebhookSourceSecretResponse", &reply, || revealed(&source, &reply.secret))
}

async fn delete(talk: &Talk, delete: DeleteSource) -> Result<(), Exit> {
    if !delete.yes {
        talk.sure(&format!("deleting {}", delete.name))?;
    }
    let request = v1::DeleteWebhookSourceRequest {
        name: delete.name.clone(),
        expected_etag: String::new(),
        request_id: talk.request_id(),
    };
    let reply = talk
        .client
        .call(request, |mut it, request| async move { it.sources.delete_webhook_source(request).await });
    let reply = reply.await?;
    talk.printer.message("DeleteWebhookSourceResponse", &reply, || card(&[("deleted", clean(&delete.name))]))
}

/// The source with its secret, if there is one to show.
fn revealed(source: &v1::WebhookSource, secret: &str) -> String {
    if secret.is_empty() { shown(source) } else { with_secret(rows(source), secret) }
}

fn kind(source: &v1::WebhookSource) -> String {
    show::word(source.kind().as_str_name(), "WEBHOOK_SOURCE_KIND_").replace('_', "-")
}

/// A duration in words.
fn known(time: prost_types::Duration) -> String {
    period(show::length(time))
}

fn shown(source: &v1::WebhookSource) -> String {
    card(&rows(source))
}

fn rows(source: &v1::WebhookSource) -> Vec<(&'static str, String)> {
    let path = source.name.strip_prefix("tenants/").unwrap_or(&source.name).replace("/sources/", "/");
    vec![
        ("source", clean(show::id(&source.name))),
        ("kind", kind(source)),
        ("path", clean(&format!("/v1/in/{path}"))),
        ("session", clean(&source.session)),
        ("session_pointer", clean(&source.session_pointer)),
        ("event_key", clean(&source.event_key)),
        ("event_key_pointer", clean(&source.event_key_pointer)),
        ("data_pointer", clean(&source.data_pointer)),
        ("known_time", source.known_time.map(known).unwrap_or_default()),
        ("old_secret_expire_time", show::time(source.old_secret_expire_time.as_ref())),
        ("create_time", show::time(source.create_time.as_ref())),
    ]
}
