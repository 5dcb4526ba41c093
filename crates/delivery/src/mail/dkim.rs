//! Signing what goes out. Source: RFC 6376.

use std::fmt;

use lettre::Message;
use lettre::message::dkim::{
    DkimCanonicalization, DkimCanonicalizationType, DkimConfig, DkimSigningAlgorithm, DkimSigningKey,
};
use lettre::message::header::HeaderName;
use rsa::RsaPrivateKey;
use rsa::pkcs1::{EncodeRsaPrivateKey as _, LineEnding};
use rsa::pkcs8::DecodePrivateKey as _;

use crate::Secret;

/// The headers that a signature covers: all that a reader sees or a reply follows.
const SIGNED: [HeaderName; 11] = [
    HeaderName::new_from_ascii_str("From"),
    HeaderName::new_from_ascii_str("To"),
    HeaderName::new_from_ascii_str("Subject"),
    HeaderName::new_from_ascii_str("Date"),
    HeaderName::new_from_ascii_str("Message-ID"),
    HeaderName::new_from_ascii_str("Reply-To"),
    HeaderName::new_from_ascii_str("In-Reply-To"),
    HeaderName::new_from_ascii_str("References"),
    HeaderName::new_from_ascii_str("MIME-Version"),
    HeaderName::new_from_ascii_str("Content-Type"),
    HeaderName::new_from_ascii_str("Auto-Submitted"),
];

/// A key that mails are signed with.
pub struct Dkim(DkimConfig);

impl Dkim {
    /// The key of a domain under a selector: an RSA key as PEM (PKCS #1 or #8), or an Ed25519 seed in base64.
    ///
    /// # Errors
    /// It is no such key.
    pub fn read(domain: String, selector: String, key: &Secret) -> Result<Self, String> {
        let text = key.reveal().trim();
        let kind = if text.starts_with("-----BEGIN") {
            DkimSigningAlgorithm::Rsa
        } else {
            DkimSigningAlgorithm::Ed25519
        };
        // What OpenSSL writes today is PKCS #8, and what signs reads PKCS #1.
        let older = text.starts_with("-----BEGIN PRIVATE KEY").then(|| {
            let key = RsaPrivateKey::from_pkcs8_pem(text).map_err(|error| error.to_string())?;
            key.to_pkcs1_pem(LineEnding::LF).map_err(|error| error.to_string())
        });
        let bad = |error: String| {
            format!("the DKIM key is no RSA key as PEM and no Ed25519 seed in base64: {error}")
        };
        let older = older.transpose().map_err(bad)?;
        let text = older.as_ref().map_or(text, |pem| pem.as_str());
        let key = DkimSigningKey::new(text, kind).map_err(|error| bad(error.to_string()))?;
        let relaxed = DkimCanonicalization {
            header: DkimCanonicalizationType::Relaxed,
            body: DkimCanonicalizationType::Relaxed,
        };
        Ok(Self(DkimConfig::new(selector, domain, key, SIGNED.to_vec(), relaxed)))
    }

    pub(super) fn sign(&self, message: &mut Message) {
        message.sign(&self.0);
    }
}

impl fmt::Debug for Dkim {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Dkim")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_key_is_told_with_what_would_be_one() {
        let read =
            |text: &str| Dkim::read("a.example".into(), "s1".into(), &Secret::new(text.to_owned())).map(drop);
        let problem = read("-----BEGIN PRIVATE KEY-----\nnone\n-----END PRIVATE KEY-----").unwrap_err();
        assert!(problem.contains("no RSA key as PEM"), "{problem}");
        assert!(read("none of both").is_err());
    }
}
