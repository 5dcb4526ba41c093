//! A development server's clock, and API keys.

use switchward_api::v1;
use switchward_messages::cli;
use tonic::Status;

use super::show;
use super::talk::Talk;
use crate::args::{AdvanceClock, CreateKey, KeyRole, RevokeKey};
use crate::commands::dev::server_at;
use crate::exit::Exit;
use crate::output::{CARE, STRONG, card, clean};

pub(super) async fn clock(talk: &Talk) -> Result<(), Exit> {
    let request = v1::GetClockRequest {};
    let reply =
        talk.client.call(request, |mut it, request| async move { it.clock.get_clock(request).await }).await?;
    talk.printer.message("GetClockResponse", &reply, || card(&[("time", show::time(reply.time.as_ref()))]))
}

pub(super) async fn advance(talk: &Talk, advance: AdvanceClock) -> Result<(), Exit> {
    let by = prost_types::Duration::try_from(advance.by);
    let duration = by.map_err(|_| Exit::usage("the duration is too long"))?;
    let request = v1::AdvanceClockRequest { duration: Some(duration), request_id: talk.request_id() };
    let reply =
        talk.client.call(request, |mut it, request| async move { it.clock.advance_clock(request).await });
    let reply = reply.await?;
    talk.printer
        .message("AdvanceClockResponse", &reply, || card(&[("time", show::time(reply.time.as_ref()))]))?;
    if let Some(server) = server_at(&talk.address) {
        talk.printer.warn(&cli::client::one_clock_advanced(server));
    }
    Ok(())
}

pub(super) async fn create_key(talk: &Talk, create: CreateKey) -> Result<(), Exit> {
    let role = match create.role {
        KeyRole::Agent => v1::KeyRole::Agent,
        KeyRole::Author => v1::KeyRole::Author,
        KeyRole::Approver => v1::KeyRole::Approver,
        KeyRole::Operator => v1::KeyRole::Operator,
        KeyRole::Admin => v1::KeyRole::Admin,
        KeyRole::Worker => v1::KeyRole::Worker,
        KeyRole::Integration => v1::KeyRole::Integration,
    };
    let request = v1::CreateApiKeyRequest {
        parent: String::new(),
        role: role.into(),
        display_name: create.display_name.unwrap_or_default(),
        expire_time: match create.expires_in {
            Some(after) => Some(expiry(after)?),
            None => None,
        },
        subject: create.subject.unwrap_or_default(),
        request_id: talk.request_id(),
    };
    let reply =
        talk.client.call(request, |mut it, request| async move { it.keys.create_api_key(request).await });
    let reply = reply.await?;
    talk.printer.message("CreateApiKeyResponse", &reply, || created(&reply))
}

/// A new key and its secret.
pub(in crate::commands) fn created(reply: &v1::CreateApiKeyResponse) -> String {
    let key = reply.api_key.clone().unwrap_or_default();
    with_secret(rows(&key), &reply.secret)
}

/// A card with a secret, which an earlier response may have shown already.
pub(super) fn with_secret(mut rows: Vec<(&'static str, String)>, secret: &str) -> String {
    rows.push((
        "secret",
        if secret.is_empty() {
            format!("{CARE}{}{CARE:#}", cli::client::SECRET_SHOWN_BEFORE)
        } else {
            once(secret)
        },
    ));
    card(&rows)
}

/// A secret that is shown once.
pub(super) fn once(secret: &str) -> String {
    format!("{STRONG}{}{STRONG:#}\n{CARE}{}{CARE:#}", clean(secret), cli::client::SECRET_SHOWN_ONCE)
}

/// Returns the time after this duration. Fails if it is later than a timestamp can say.
fn expiry(after: std::time::Duration) -> Result<prost_types::Timestamp, Exit> {
    let at = std::time::SystemTime::now().checked_add(after);
    let at = at.ok_or_else(|| Exit::usage("the time of expiry is too late"))?;
    let timestamp =
        jiff::Timestamp::try_from(at).map_err(|_| Exit::usage("the time of expiry is too late"))?;
    Ok(prost_types::Timestamp { seconds: timestamp.as_second(), nanos: 0 })
}

pub(super) async fn revoke_key(talk: &Talk, revoke: RevokeKey) -> Result<(), Exit> {
    if !revoke.yes {
        talk.sure(&format!("revoking {}", revoke.key))?;
    }
    let request = v1::RevokeApiKeyRequest { name: revoke.key, request_id: talk.request_id() };
    let reply: Result<_, Status> = talk
        .client
        .call(request, |mut it, request| async move { it.keys.revoke_api_key(request).await })
        .await;
    let reply = reply?;
    let key = reply.api_key.clone().unwrap_or_default();
    talk.printer.message("RevokeApiKeyResponse", &reply, || shown(&key))
}

pub(super) fn shown(key: &v1::ApiKey) -> String {
    card(&rows(key))
}

pub(super) fn rows(key: &v1::ApiKey) -> Vec<(&'static str, String)> {
    vec![
        ("api_key", clean(show::id(&key.name))),
        ("role", show::word(key.role().as_str_name(), "KEY_ROLE_")),
        ("subject", clean(&key.subject)),
        ("display_name", clean(&key.display_name)),
        ("expire_time", show::time(key.expire_time.as_ref())),
        ("revoke_time", show::time(key.revoke_time.as_ref())),
    ]
}
