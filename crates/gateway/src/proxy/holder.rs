//! What a server says of the credential of a call before a gateway reads the body of that call.

use bytes::Bytes;
use http::{Extensions, HeaderMap};
use minicbor::{Decode, Encode};
use std::time::Duration;
use switchward_machine::TenantId;

use crate::error::{Reason, Refusal};

/// Sent form. A form byte, then parts by number.
const FORM: u8 = 1;

/// Whom a valid credential belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Holder {
    /// The tenant that it opens.
    #[n(0)]
    pub tenant: TenantId,
    /// Whether it is an API key. Otherwise it is a reply token.
    #[n(1)]
    pub is_key: bool,
}

/// Looks up credentials as this server does for the calls that it answers.
#[tonic::async_trait]
pub trait Holders: Send + Sync + 'static {
    /// The holder of the credential in these headers. Takes seconds at most.
    ///
    /// # Errors
    /// As a call with these headers is refused: CREDENTIAL_INVALID, or UNAVAILABLE if this server cannot tell.
    async fn holder(&self, headers: &HeaderMap) -> Result<Holder, Refusal>;
}

/// Looks up credentials by asking servers, as a gateway does.
#[tonic::async_trait]
pub(crate) trait HoldersElsewhere: Send + Sync + 'static {
    /// The holder of the credential in the headers of a request with these extensions.
    ///
    /// # Errors
    /// As a server refuses a call with it; QUOTA_EXCEEDED if servers are asked about too many credentials; SERVER_UNREACHABLE
    /// if no server answers.
    async fn holder(&self, headers: &HeaderMap, extensions: &Extensions) -> Result<Holder, Refusal>;
}

/// The answer to the question of a gateway.
#[derive(Encode, Decode)]
enum Answer {
    #[n(0)]
    Valid {
        #[n(0)]
        holder: Holder,
    },
    #[n(1)]
    Refused {
        #[n(0)]
        reason: String,
        #[n(1)]
        message: String,
        #[n(2)]
        retry_ms: Option<u64>,
    },
}

/// The bytes that are sent.
pub(super) fn encode(found: Result<Holder, Refusal>) -> Bytes {
    let answer = match found {
        Ok(holder) => Answer::Valid { holder },
        Err(refusal) => Answer::Refused {
            reason: refusal.reason().word().to_owned(),
            message: refusal.message().to_owned(),
            retry_ms: refusal.retry_delay().map(|delay| u64::try_from(delay.as_millis()).unwrap_or(u64::MAX)),
        },
    };
    let mut out = vec![FORM];
    minicbor::encode(&answer, &mut out).expect("a vector can always be written to");
    out.into()
}

/// Reads what was sent: whose the credential is, or how its call is refused.
///
/// # Errors
/// It is another form, or names a reason that this program does not know; one line says which.
pub(super) fn decode(bytes: &[u8]) -> Result<Result<Holder, Refusal>, String> {
    let (form, rest) = bytes.split_first().ok_or("it says nothing of the credential")?;
    if *form != FORM {
        return Err(format!("what it says of the credential has the unknown form {form}"));
    }
    let answer: Answer = minicbor::decode(rest)
        .map_err(|error| format!("what it says of the credential cannot be read: {error}"))?;
    let (reason, message, retry_ms) = match answer {
        Answer::Valid { holder } => return Ok(Ok(holder)),
        Answer::Refused { reason, message, retry_ms } => (reason, message, retry_ms),
    };
    let reason = Reason::from_word(&reason).ok_or("it refuses the credential for an unknown reason")?;
    let refusal = Refusal::new(reason, message);
    Ok(Err(match retry_ms {
        Some(retry_ms) => refusal.retry_after(Duration::from_millis(retry_ms)),
        None => refusal,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_back_and_other_bytes_are_not() {
        let refused = Refusal::new(Reason::ShardElecting, "cut off").retry_after(Duration::from_secs(1));
        for found in [
            Ok(Holder { tenant: TenantId(7), is_key: true }),
            Ok(Holder { tenant: TenantId(7), is_key: false }),
            Err(refused),
            Err(crate::auth::invalid()),
        ] {
            let bytes = encode(found.clone());
            assert_eq!(decode(&bytes), Ok(found));
            assert!(decode(&bytes[1..]).is_err() && decode(&bytes[..bytes.len() - 1]).is_err());
        }
        assert!(decode(b"").is_err());
    }

    #[test]
    fn a_reason_of_a_newer_server_is_no_answer() {
        let answer = Answer::Refused { reason: "NEWER_REASON".into(), message: "why".into(), retry_ms: None };
        let mut bytes = vec![FORM];
        minicbor::encode(&answer, &mut bytes).expect("a vector can always be written to");
        assert!(decode(&bytes).is_err());
    }
}
