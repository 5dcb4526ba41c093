//! The sources of incoming webhooks, and how each of them is authenticated.

use serde::Deserialize;
use std::time::Duration;

use crate::headers::{Headers, is_id};
use crate::limits::{
    IN_BODY_BYTES_MAX, SECRET_TEXT_CHARS_MAX, SECRET_TEXT_CHARS_MIN, SECRETS_ACTIVE_MAX, SIGNATURES_MAX,
};
use crate::mac;
use crate::secret::SigningSecret;
use crate::standard;
use crate::unverified::Unverified;

const AUTHORIZATION: &str = "authorization";
const GITHUB_SIGNATURE: &str = "x-hub-signature-256";
const GITHUB_DELIVERY: &str = "x-github-delivery";
const STRIPE_SIGNATURE: &str = "stripe-signature";
const SLACK_SIGNATURE: &str = "x-slack-signature";
const SLACK_TIMESTAMP: &str = "x-slack-request-timestamp";
/// The header by which senders without a format of their own may identify a message, beside [`standard::ID`].
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// How a source is authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SourceKind {
    /// Standard Webhooks: id, timestamp and body are signed.
    StandardWebhooks,
    /// GitHub: the body is signed, the delivery id is not, and there is no timestamp.
    Github,
    /// Stripe: timestamp and body are signed; the id is in the body.
    Stripe,
    /// Slack: timestamp and body are signed; the id is in the body.
    Slack,
    /// A token in the header `authorization`; nothing is signed.
    Bearer,
    /// No authentication; only if the caller of [`verify`] allows it.
    None,
}

impl SourceKind {
    /// Every kind.
    pub const ALL: &[Self] =
        &[Self::StandardWebhooks, Self::Github, Self::Stripe, Self::Slack, Self::Bearer, Self::None];

    /// Returns what a message's proof covers.
    #[must_use]
    pub fn covers(self) -> Covers {
        match self {
            Self::StandardWebhooks | Self::Stripe | Self::Slack => Covers::BodyAndTime,
            Self::Github => Covers::Body,
            Self::Bearer | Self::None => Covers::Nothing,
        }
    }

    /// The kind's stable word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::StandardWebhooks => "standard-webhooks",
            Self::Github => "github",
            Self::Stripe => "stripe",
            Self::Slack => "slack",
            Self::Bearer => "bearer",
            Self::None => "none",
        }
    }

    /// Returns the kind of this word; `None` if this version does not know it.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.word() == word)
    }

    /// Returns true if a text can be a secret of this kind: `whsec_...` for Standard Webhooks, printable ASCII of
    /// [`SECRET_TEXT_CHARS_MIN`] to [`SECRET_TEXT_CHARS_MAX`] characters for the others, none for [`SourceKind::None`].
    #[must_use]
    pub fn takes(self, secret: &str) -> bool {
        let fits = (SECRET_TEXT_CHARS_MIN..=SECRET_TEXT_CHARS_MAX).contains(&secret.len());
        match self {
            Self::StandardWebhooks => secret.parse::<SigningSecret>().is_ok(),
            Self::Github | Self::Stripe | Self::Slack | Self::Bearer => {
                let printed = secret.bytes().all(|byte| matches!(byte, b' '..=b'~'));
                fits && printed && secret.trim() == secret
            }
            Self::None => false,
        }
    }
}

/// What the proof of a message covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Covers {
    /// The body and the time at which it was sent: a replay is refused after [`TOLERANCE`](crate::limits::TOLERANCE).
    BodyAndTime,
    /// The body alone: a replay is valid at any time, and may have another id, which is not covered.
    Body,
    /// Nothing of the message.
    Nothing,
}

/// An authenticated message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The id of the message, the same for every delivery attempt; visible ASCII, at most
    /// [`ID_BYTES_MAX`](crate::limits::ID_BYTES_MAX) bytes. `None` if the sender gives none.
    pub id: Option<String>,
}

/// Whether messages without authentication are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unproven {
    /// [`SourceKind::None`] is refused.
    Refused,
    /// [`SourceKind::None`] is accepted; for development.
    Allowed,
}

/// Verifies that the sender of a message holds one of the secrets. `body` must be the received bytes.
///
/// # Errors
/// [`Unverified`], also if a secret is malformed, or if there are none or more than [`SECRETS_ACTIVE_MAX`].
pub fn verify(
    kind: SourceKind,
    secrets: &[&str],
    headers: Headers<'_>,
    body: &[u8],
    now: Duration,
    unproven: Unproven,
) -> Result<Verified, Unverified> {
    if body.len() > IN_BODY_BYTES_MAX {
        return Err(Unverified::BodyTooLarge);
    }
    let counted = (1..=SECRETS_ACTIVE_MAX).contains(&secrets.len());
    let formed = counted && secrets.iter().all(|secret| kind.takes(secret));
    if !formed && kind != SourceKind::None {
        return Err(Unverified::SecretMalformed);
    }
    let id = match kind {
        SourceKind::StandardWebhooks => {
            let parsed: Result<Vec<SigningSecret>, _> = secrets.iter().map(|secret| secret.parse()).collect();
            let secrets = parsed.map_err(|_| Unverified::SecretMalformed)?;
            Some(standard::verify(&secrets, headers, body, now)?.to_owned())
        }
        SourceKind::Github => github(secrets, headers, body)?,
        SourceKind::Stripe => stripe(secrets, headers, body, now)?,
        SourceKind::Slack => slack(secrets, headers, body, now)?,
        SourceKind::Bearer => bearer(secrets, headers)?,
        SourceKind::None if unproven == Unproven::Refused => return Err(Unverified::UnsignedNotAllowed),
        SourceKind::None => free_id(headers)?,
    };
    Ok(Verified { id })
}

fn github(secrets: &[&str], headers: Headers<'_>, body: &[u8]) -> Result<Option<String>, Unverified> {
    let signature = headers.required(GITHUB_SIGNATURE)?;
    let expected = codes(secrets, "sha256=", &[body]);
    if !mac::any_same([signature], &expected) {
        return Err(Unverified::SignatureMismatch);
    }
    Ok(headers.id(GITHUB_DELIVERY)?.map(str::to_owned))
}

fn stripe(
    secrets: &[&str],
    headers: Headers<'_>,
    body: &[u8],
    now: Duration,
) -> Result<Option<String>, Unverified> {
    let malformed = Unverified::HeaderMalformed(STRIPE_SIGNATURE);
    let (mut timestamp, mut signatures) = (None, Vec::new());
    for part in headers.required(STRIPE_SIGNATURE)?.split(',') {
        match part.split_once('=').ok_or(malformed)? {
            ("t", at) if timestamp.is_none() => timestamp = Some(at),
            ("t", _) => return Err(malformed),
            ("v1", signature) => signatures.push(signature),
            // Ignores signatures of other versions.
            _ => {}
        }
    }
    if signatures.len() > SIGNATURES_MAX {
        return Err(malformed);
    }
    let timestamp = timestamp.ok_or(malformed)?;
    mac::check_timestamp(timestamp, now)?;
    let expected = codes(secrets, "", &[timestamp.as_bytes(), b".", body]);
    if !mac::any_same(signatures, &expected) {
        return Err(Unverified::SignatureMismatch);
    }
    Ok(identified(body).id)
}

fn slack(
    secrets: &[&str],
    headers: Headers<'_>,
    body: &[u8],
    now: Duration,
) -> Result<Option<String>, Unverified> {
    let timestamp = headers.required(SLACK_TIMESTAMP)?;
    let signature = headers.required(SLACK_SIGNATURE)?;
    mac::check_timestamp(timestamp, now)?;
    let expected = codes(secrets, "v0=", &[b"v0:", timestamp.as_bytes(), b":", body]);
    if !mac::any_same([signature], &expected) {
        return Err(Unverified::SignatureMismatch);
    }
    Ok(identified(body).event_id)
}

fn bearer(secrets: &[&str], headers: Headers<'_>) -> Result<Option<String>, Unverified> {
    let (scheme, token) =
        headers.required(AUTHORIZATION)?.split_once(' ').ok_or(Unverified::HeaderMalformed(AUTHORIZATION))?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(Unverified::HeaderMalformed(AUTHORIZATION));
    }
    let known = secrets.iter().fold(false, |found, secret| found | mac::same_token(token, secret));
    if known { free_id(headers) } else { Err(Unverified::SignatureMismatch) }
}

/// Returns the id of a message whose sender has no format of its own.
fn free_id(headers: Headers<'_>) -> Result<Option<String>, Unverified> {
    let id = match headers.id(standard::ID)? {
        Some(id) => Some(id),
        None => headers.id(IDEMPOTENCY_KEY)?,
    };
    Ok(id.map(str::to_owned))
}

/// Computes the MAC of the parts with each secret, in hex.
fn codes(secrets: &[&str], prefix: &str, parts: &[&[u8]]) -> Vec<String> {
    let code = |secret: &&str| format!("{prefix}{}", mac::hex(&mac::hmac(secret.as_bytes(), parts)));
    secrets.iter().map(code).collect()
}

/// The event id in a body. A body that is not JSON, or names it otherwise, has none.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Ids {
    #[serde(deserialize_with = "text")]
    id: Option<String>,
    #[serde(deserialize_with = "text")]
    event_id: Option<String>,
}

fn identified(body: &[u8]) -> Ids {
    serde_json::from_slice(body).unwrap_or_default()
}

/// Reads a text that can be an id, or `None` for any other value.
fn text<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(value.as_str().filter(|text| is_id(text)).map(str::to_owned))
}
