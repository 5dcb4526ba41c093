//! Sources of webhooks: who may send events to a tenant's sessions without a key of the API.

use switchward_state::delivery::{
    ChangeWebhookSource, Correlation, DeliveryEvent, SourceSecret, SourceSummary, TextSource, WebhookSource,
    WebhookSourceFact, WebhookSourceKind,
};
use switchward_state::limits::{
    DATA_KEY_BYTES_MAX, MESSAGE_KNOWN_MS_MAX, MESSAGE_KNOWN_MS_MIN, ROTATION_MS_MAX, SOURCE_NAME_CHARS_MAX,
    SOURCE_POINTER_BYTES_MAX, SOURCE_SECRET_BYTES_MAX,
};
use switchward_state::{Key, ReadRows as _, Reason, Rejection, Reply};

use crate::turn::{Stop, Turn, check_etag, check_size, check_text};

pub(crate) fn run(turn: &mut Turn<'_, '_>, change: &ChangeWebhookSource) -> Result<Reply, Stop> {
    match change {
        ChangeWebhookSource::Create { name, kind, secret, correlation } => {
            create(turn, name, *kind, secret.as_ref(), correlation)
        }
        ChangeWebhookSource::Correlate { name, correlation, etag } => {
            check(correlation)?;
            let source = known(turn, name, etag)?;
            put(turn, WebhookSource { correlation: correlation.clone(), ..source })
        }
        ChangeWebhookSource::Rotate { name, secret, overlap_ms, etag } => {
            rotate(turn, name, secret, *overlap_ms, etag)
        }
        ChangeWebhookSource::Delete { name, etag } => {
            known(turn, name, etag)?;
            turn.emit(DeliveryEvent::WebhookSources(WebhookSourceFact::Deleted { name: name.clone() }))?;
            Ok(Reply::Done)
        }
    }
}

fn create(
    turn: &mut Turn<'_, '_>,
    name: &str,
    kind: WebhookSourceKind,
    secret: Option<&SourceSecret>,
    correlation: &Correlation,
) -> Result<Reply, Stop> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !(1..=SOURCE_NAME_CHARS_MAX).contains(&name.len()) || !name.chars().all(fits) {
        let message = format!("a source's name is 1 to {SOURCE_NAME_CHARS_MAX} of a-z, 0-9 and -");
        return Err(Rejection::new(Reason::FieldInvalid, message).fact("field", "source.name").into());
    }
    check(correlation)?;
    if let Some(secret) = secret {
        check_size("secret", secret.sealed.secret_bytes(), SOURCE_SECRET_BYTES_MAX, "bytes")?;
    }
    if turn.rows.webhook_source_at(&Key::webhook_source(turn.tenant(), name))?.is_some() {
        return Err(Rejection::new(Reason::AlreadyExists, "there is a source of this name").into());
    }
    let source = WebhookSource {
        name: name.to_owned(),
        kind,
        secrets: secret.cloned().into_iter().collect(),
        correlation: correlation.clone(),
        revision: 0,
        created: turn.now(),
        updated: turn.now(),
    };
    put(turn, source)
}

/// The new secret is good at once; the one before it for a while more, and any before that no longer.
fn rotate(
    turn: &mut Turn<'_, '_>,
    name: &str,
    secret: &SourceSecret,
    overlap_ms: u64,
    etag: &str,
) -> Result<Reply, Stop> {
    check_size("secret", secret.sealed.secret_bytes(), SOURCE_SECRET_BYTES_MAX, "bytes")?;
    let source = known(turn, name, etag)?;
    let until = turn.now().after_ms(overlap_ms.min(ROTATION_MS_MAX));
    let before = source.secrets.first().filter(|_| overlap_ms > 0);
    let before = before.map(|before| SourceSecret { until: Some(until), ..before.clone() });
    let secrets = [secret.clone()].into_iter().chain(before).collect();
    put(turn, WebhookSource { secrets, ..source })
}

fn check(correlation: &Correlation) -> Result<(), Stop> {
    let check_source = |source: &TextSource, fixed: &'static str, pointer: &'static str| match source {
        TextSource::Fixed(text) => check_text(fixed, text, DATA_KEY_BYTES_MAX),
        TextSource::Pointer(text) => check_text(pointer, text, SOURCE_POINTER_BYTES_MAX),
    };
    check_source(&correlation.session, "source.session", "source.session_pointer")?;
    check_source(&correlation.event_key, "source.event_key", "source.event_key_pointer")?;
    if !correlation.known_ms.is_none_or(|ms| (MESSAGE_KNOWN_MS_MIN..=MESSAGE_KNOWN_MS_MAX).contains(&ms)) {
        let (least, most) = (MESSAGE_KNOWN_MS_MIN / 1_000, MESSAGE_KNOWN_MS_MAX / 1_000);
        let message = format!("messages are known again for {least} to {most} seconds");
        return Err(Rejection::new(Reason::FieldInvalid, message).fact("field", "source.known_time").into());
    }
    Ok(check_text("source.data_pointer", &correlation.data, SOURCE_POINTER_BYTES_MAX)?)
}

/// The source of this name, as the caller saw it.
fn known(turn: &Turn<'_, '_>, name: &str, etag: &str) -> Result<WebhookSource, Stop> {
    let Some(source) = turn.rows.webhook_source_at(&Key::webhook_source(turn.tenant(), name))? else {
        return Err(Rejection::new(Reason::NotFound, "there is no such source of webhooks").into());
    };
    check_etag("source", etag, Some(source.etag()))?;
    Ok(WebhookSource::clone(&source))
}

fn put(turn: &mut Turn<'_, '_>, source: WebhookSource) -> Result<Reply, Stop> {
    let source = WebhookSource { revision: source.revision + 1, updated: turn.now(), ..source };
    let summary = Box::new(SourceSummary::of(&source));
    turn.emit(DeliveryEvent::WebhookSources(WebhookSourceFact::Put { source }))?;
    Ok(Reply::Source(summary))
}
