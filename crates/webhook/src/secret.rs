//! Signing secrets of Standard Webhooks: `whsec_` and 24 to 64 random bytes in base64.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fmt;
use std::str::FromStr;

use crate::limits::{SECRET_BYTES_MAX, SECRET_BYTES_MIN};
use crate::mac;

/// The prefix of a signing secret.
const PREFIX: &str = "whsec_";
/// The prefix of a signature with such a secret.
pub(crate) const VERSION: &str = "v1,";

/// A signing secret. Only [`SigningSecret::text`] reveals it.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningSecret(Vec<u8>);

/// The text is not a signing secret: another prefix, not base64, too short or too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a signing secret is whsec_ and {SECRET_BYTES_MIN} to {SECRET_BYTES_MAX} bytes in base64")]
pub struct SecretMalformed;

impl SigningSecret {
    /// Creates a secret from random bytes of the caller.
    ///
    /// # Errors
    /// Fewer than [`SECRET_BYTES_MIN`] or more than [`SECRET_BYTES_MAX`].
    pub fn of(bytes: &[u8]) -> Result<Self, SecretMalformed> {
        let fits = (SECRET_BYTES_MIN..=SECRET_BYTES_MAX).contains(&bytes.len());
        if fits { Ok(Self(bytes.to_vec())) } else { Err(SecretMalformed) }
    }

    /// Returns the secret as receivers get it.
    #[must_use]
    pub fn text(&self) -> String {
        format!("{PREFIX}{}", STANDARD.encode(&self.0))
    }

    /// Signs a message: `v1,` and HMAC-SHA256 in base64.
    pub(crate) fn signature(&self, id: &str, timestamp: &str, body: &[u8]) -> String {
        let code = mac::hmac(&self.0, &[id.as_bytes(), b".", timestamp.as_bytes(), b".", body]);
        format!("{VERSION}{}", STANDARD.encode(code))
    }
}

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningSecret(..)")
    }
}

impl FromStr for SigningSecret {
    type Err = SecretMalformed;

    fn from_str(text: &str) -> Result<Self, SecretMalformed> {
        let encoded = text.strip_prefix(PREFIX).ok_or(SecretMalformed)?;
        Self::of(&STANDARD.decode(encoded).map_err(|_| SecretMalformed)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_one_text_and_hides_it() {
        for length in [SECRET_BYTES_MIN, 32, SECRET_BYTES_MAX] {
            let secret = SigningSecret::of(&vec![0xA5; length]).unwrap();
            assert_eq!(secret.text().parse(), Ok(secret.clone()));
            assert_eq!(format!("{secret:?}"), "SigningSecret(..)");
        }
        let good = SigningSecret::of(&[1; 32]).unwrap().text();
        for bad in ["", "whsec_", "whsec_QUJD", good.trim_end_matches('='), &good[6..], &format!(" {good}")] {
            assert_eq!(bad.parse::<SigningSecret>(), Err(SecretMalformed), "{bad:?}");
        }
        assert_eq!(SigningSecret::of(&[0; SECRET_BYTES_MIN - 1]), Err(SecretMalformed));
        assert_eq!(SigningSecret::of(&[0; SECRET_BYTES_MAX + 1]), Err(SecretMalformed));
    }
}
