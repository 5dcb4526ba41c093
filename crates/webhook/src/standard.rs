//! Standard Webhooks 1.0.0: three headers, and a signature over `id.timestamp.body`.

use std::time::Duration;

use crate::headers::{Headers, is_id};
use crate::limits::{SECRETS_ACTIVE_MAX, SIGNATURES_MAX};
use crate::mac;
use crate::secret::SigningSecret;
use crate::unverified::Unverified;

/// The header with the id of a message; the same for every delivery attempt.
pub const ID: &str = "webhook-id";
/// The header with the time of this attempt, seconds since 1970.
pub const TIMESTAMP: &str = "webhook-timestamp";
/// The header with the signatures, separated by spaces.
pub const SIGNATURE: &str = "webhook-signature";

/// Why a message was not signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unsigned {
    /// The id is empty, too long, or has something other than visible ASCII, or a full stop, which would make the signed
    /// content ambiguous.
    #[error("the id of the message is malformed")]
    IdMalformed,
    /// There is no secret, or there are more than [`SECRETS_ACTIVE_MAX`].
    #[error("a message needs 1 to {SECRETS_ACTIVE_MAX} secrets to be signed with")]
    Secrets,
}

/// Returns the three headers of a message, names in lower case. Every active secret signs, so that a receiver may have the
/// new secret or still the previous one.
///
/// # Errors
/// A malformed id, no secret, too many of them.
pub fn sign(
    secrets: &[SigningSecret],
    id: &str,
    now: Duration,
    body: &[u8],
) -> Result<[(&'static str, String); 3], Unsigned> {
    if !is_message_id(id) {
        return Err(Unsigned::IdMalformed);
    }
    if !(1..=SECRETS_ACTIVE_MAX).contains(&secrets.len()) {
        return Err(Unsigned::Secrets);
    }
    let timestamp = now.as_secs().to_string();
    let signatures: Vec<String> =
        secrets.iter().map(|secret| secret.signature(id, &timestamp, body)).collect();
    Ok([(ID, id.to_owned()), (TIMESTAMP, timestamp), (SIGNATURE, signatures.join(" "))])
}

/// Returns the id of a message that one of the secrets has signed. Ignores signatures of unknown versions.
///
/// # Errors
/// Every [`Unverified`] but those of other kinds of source.
pub fn verify<'h>(
    secrets: &[SigningSecret],
    headers: Headers<'h>,
    body: &[u8],
    now: Duration,
) -> Result<&'h str, Unverified> {
    if !(1..=SECRETS_ACTIVE_MAX).contains(&secrets.len()) {
        return Err(Unverified::SecretMalformed);
    }
    let id = headers.required(ID)?;
    if !is_message_id(id) {
        return Err(Unverified::HeaderMalformed(ID));
    }
    let timestamp = headers.required(TIMESTAMP)?;
    let signatures: Vec<&str> = headers.required(SIGNATURE)?.split(' ').collect();
    if signatures.len() > SIGNATURES_MAX {
        return Err(Unverified::HeaderMalformed(SIGNATURE));
    }
    mac::check_timestamp(timestamp, now)?;
    let expected: Vec<String> = secrets.iter().map(|secret| secret.signature(id, timestamp, body)).collect();
    if mac::any_same(signatures, &expected) { Ok(id) } else { Err(Unverified::SignatureMismatch) }
}

/// A full stop in an id would let `a.1` at time 2 pass for `a` at time 1 with a body that begins with `2.`.
fn is_message_id(id: &str) -> bool {
    is_id(id) && !id.contains('.')
}
