//! Endpoints: the receivers of a tenant's events. They stand in its tenancy, so that every shard knows them.

use switchward_state::catalogue::{CatalogueEvent, Tenancy};
use switchward_state::delivery::{
    ChangeEndpoint, DeliveryDetail, DeliveryEvent, DisabledReason, Endpoint, EndpointSummary, EventSubject,
    FailureCode, PublishedType, SourceSecret,
};
use switchward_state::limits::{
    ENDPOINT_FAILURE_BYTES_MAX, ENDPOINT_FILTERS_MAX, ENDPOINT_URL_BYTES_MAX, ENDPOINTS_MAX, ROTATION_MS_MAX,
    SOURCE_NAME_CHARS_MAX, SOURCE_SECRET_BYTES_MAX,
};
use switchward_state::seal::Sealed;
use switchward_state::{Key, ReadRows as _, Reason, Rejection, Reply};

use crate::delivery::tenant_outbox::publish;
use crate::turn::{Stop, Turn, check_etag, check_size, check_text};

pub(crate) fn run(turn: &mut Turn<'_, '_>, change: &ChangeEndpoint) -> Result<Reply, Stop> {
    match change {
        ChangeEndpoint::Put { id, url, filters, secret, key, etag } => {
            put(turn, id, url, filters, secret, key.as_ref(), etag)
        }
        ChangeEndpoint::Rotate { id, secret, overlap_ms, etag } => {
            rotate(turn, id, secret, *overlap_ms, etag)
        }
        ChangeEndpoint::Disable { id, reason } => disable(turn, id, *reason),
        ChangeEndpoint::Note { id, failure } => note(turn, id, failure.as_ref()),
        ChangeEndpoint::Delete { id, etag } => {
            let (mut tenancy, at) = known(turn, id, etag)?;
            tenancy.endpoints.remove(at);
            written(turn, tenancy)?;
            Ok(Reply::Done)
        }
    }
}

fn put(
    turn: &mut Turn<'_, '_>,
    id: &str,
    url: &str,
    filters: &[String],
    secret: &Sealed,
    key: Option<&Sealed>,
    etag: &str,
) -> Result<Reply, Stop> {
    check(id, url, filters)?;
    check_size("secret", secret.secret_bytes(), SOURCE_SECRET_BYTES_MAX, "bytes")?;
    let found = turn.rows.tenancy_at(&Key::tenancy_record(turn.tenant()))?;
    let mut tenancy = found.map_or_else(
        || Tenancy { revision: 0, ..Tenancy::first(key.cloned()) },
        |found| Tenancy::clone(&found),
    );
    let at = tenancy.endpoints.binary_search_by(|endpoint| endpoint.id.as_str().cmp(id));
    check_etag("endpoint", etag, at.ok().map(|at| tenancy.endpoints[at].etag()))?;
    match at {
        Ok(at) => {
            let before = &tenancy.endpoints[at];
            let (url, filters) = (url.to_owned(), filters.to_vec());
            // One that is enabled again, or has a new address, starts with a full grace period.
            let again = before.disabled.is_some() || before.url != url;
            let health = before.health.clone().filter(|_| !again);
            let endpoint = Endpoint { url, filters, disabled: None, health, ..before.clone() };
            if endpoint == *before {
                return Ok(reply(&endpoint));
            }
            tenancy.endpoints[at] = endpoint.clone();
            written(turn, tenancy)?;
            Ok(reply(&endpoint))
        }
        Err(_) if tenancy.endpoints.len() >= ENDPOINTS_MAX => {
            let message = format!("a tenant has at most {ENDPOINTS_MAX} endpoints");
            Err(Rejection::new(Reason::QuotaExceeded, message).into())
        }
        Err(at) => {
            let secret = SourceSecret { sealed: secret.clone(), until: None };
            let (id, url, filters) = (id.to_owned(), url.to_owned(), filters.to_vec());
            let created = turn.now();
            let (secrets, disabled, health) = (vec![secret], None, None);
            let endpoint = Endpoint { id, url, secrets, filters, disabled, created, health };
            tenancy.endpoints.insert(at, endpoint.clone());
            written(turn, tenancy)?;
            Ok(reply(&endpoint))
        }
    }
}

fn reply(endpoint: &Endpoint) -> Reply {
    Reply::Endpoint(Box::new(EndpointSummary::of(endpoint)))
}

/// The new secret signs at once; the one before it for a while more, and any before that no longer.
fn rotate(
    turn: &mut Turn<'_, '_>,
    id: &str,
    secret: &Sealed,
    overlap_ms: u64,
    etag: &str,
) -> Result<Reply, Stop> {
    check_size("secret", secret.secret_bytes(), SOURCE_SECRET_BYTES_MAX, "bytes")?;
    let (mut tenancy, at) = known(turn, id, etag)?;
    let until = turn.now().after_ms(overlap_ms.min(ROTATION_MS_MAX));
    let endpoint = &mut tenancy.endpoints[at];
    let before = endpoint.secrets.first().filter(|_| overlap_ms > 0);
    let before = before.map(|before| SourceSecret { until: Some(until), ..before.clone() });
    let secret = SourceSecret { sealed: secret.clone(), until: None };
    endpoint.secrets = [secret].into_iter().chain(before).collect();
    let reply = reply(endpoint);
    written(turn, tenancy)?;
    Ok(reply)
}

/// One that is disabled already stays so for the reason that it was.
fn disable(turn: &mut Turn<'_, '_>, id: &str, reason: DisabledReason) -> Result<Reply, Stop> {
    let (mut tenancy, at) = known(turn, id, "")?;
    let endpoint = &mut tenancy.endpoints[at];
    if endpoint.disabled.is_some() {
        return Ok(Reply::Done);
    }
    endpoint.disabled = Some(reason);
    written(turn, tenancy)?;
    publish(turn, PublishedType::EndpointDisabled, EventSubject::Endpoint { id: id.to_owned(), reason })?;
    Ok(Reply::Done)
}

/// The revision stays: shards have no need to know.
fn note(
    turn: &mut Turn<'_, '_>,
    id: &str,
    failure: Option<&(FailureCode, Option<DeliveryDetail>)>,
) -> Result<Reply, Stop> {
    let (tenancy, at) = known(turn, id, "")?;
    if let Some((_, Some(detail))) = failure {
        check_size("message", detail.bytes(), ENDPOINT_FAILURE_BYTES_MAX, "bytes")?;
    }
    let before = tenancy.endpoints[at].health.clone().unwrap_or_default();
    if let Some(health) = before.after(failure, turn.now()) {
        turn.emit(DeliveryEvent::EndpointNoted { id: id.to_owned(), health })?;
    }
    Ok(Reply::Done)
}

fn check(id: &str, url: &str, filters: &[String]) -> Result<(), Stop> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !(1..=SOURCE_NAME_CHARS_MAX).contains(&id.len()) || !id.chars().all(fits) {
        let message = format!("an endpoint's name is 1 to {SOURCE_NAME_CHARS_MAX} of a-z, 0-9 and -");
        return Err(Rejection::new(Reason::FieldInvalid, message).fact("field", "endpoint.name").into());
    }
    check_text("endpoint.url", url, ENDPOINT_URL_BYTES_MAX)?;
    check_size("endpoint.event_types", filters.len(), ENDPOINT_FILTERS_MAX, "types")?;
    for filter in filters {
        check_text("endpoint.event_types", filter, SOURCE_NAME_CHARS_MAX)?;
    }
    Ok(())
}

/// The tenancy, and the index of the endpoint of this name in it, as the caller saw it.
fn known(turn: &Turn<'_, '_>, id: &str, etag: &str) -> Result<(Tenancy, usize), Stop> {
    let tenancy = turn.rows.tenancy_at(&Key::tenancy_record(turn.tenant()))?;
    let at = tenancy.as_ref().and_then(|known| known.endpoints.iter().position(|one| one.id == id));
    let (Some(tenancy), Some(at)) = (tenancy, at) else {
        return Err(Rejection::new(Reason::NotFound, "there is no such endpoint").into());
    };
    check_etag("endpoint", etag, Some(tenancy.endpoints[at].etag()))?;
    Ok((Tenancy::clone(&tenancy), at))
}

fn written(turn: &mut Turn<'_, '_>, tenancy: Tenancy) -> Result<(), Stop> {
    let tenancy = Tenancy { revision: tenancy.revision + 1, ..tenancy };
    Ok(turn.emit(CatalogueEvent::TenancyPut(tenancy))?)
}
