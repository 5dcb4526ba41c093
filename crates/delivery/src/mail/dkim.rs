//! Signing what goes out. Source: RFC 6376.

use std::fmt;

use lettre::Message;
use lettre::message::dkim::{
    DkimCanonicalization, DkimCanonicalizationType, DkimConfig, DkimSigningAlgorithm, DkimSigningKey,
};
use lettre::message::header::HeaderName;

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
    /// The key of a domain under a selector: an RSA key as PEM (PKCS #1), or an Ed25519 seed in base64.
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
        let key =
            DkimSigningKey::new(text, kind).map_err(|error| format!("the DKIM key is none: {error}"))?;
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
