//! Signs outbound mail by DKIM (RFC 6376, RFC 8463).

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mail_auth::common::crypto::{Ed25519Key, RsaKey, Sha256};
use mail_auth::common::headers::HeaderWriter as _;
use mail_auth::dkim::{DkimSigner, Done};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject as _;

/// The fields that a signature covers: all that a reader sees or a reply uses. Absent ones are covered as well, so that
/// nobody can add them.
const SIGNED: [&str; 11] = [
    "From",
    "To",
    "Subject",
    "Date",
    "Message-ID",
    "Reply-To",
    "In-Reply-To",
    "References",
    "MIME-Version",
    "Content-Type",
    "Auto-Submitted",
];

/// The bytes before the seed in the encoding of an Ed25519 key. Source: RFC 8410, 7.
const SEED_BEHIND: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
/// Bytes of the seed of an Ed25519 key.
const SEED_BYTES: usize = 32;

enum Key {
    Rsa(DkimSigner<RsaKey<Sha256>, Done>),
    Ed25519(DkimSigner<Ed25519Key, Done>),
}

/// The signing key of a domain.
pub struct Signer {
    key: Key,
    domain: String,
    selector: String,
    /// The public key.
    public: Vec<u8>,
}

/// A mail cannot be signed.
#[derive(Debug, thiserror::Error)]
#[error("failed to sign a mail: {0}")]
pub struct NotSigned(String);

impl Signer {
    /// The key of a domain under a selector: an RSA key as PEM (PKCS #1 or #8), or an Ed25519 seed in base64.
    ///
    /// # Errors
    /// A message, if it is no such key, or an RSA key of less than 2048 bits, which ring does not sign with.
    pub fn read(domain: &str, selector: &str, key: &str) -> Result<Self, String> {
        let bad = |error: String| {
            format!("the DKIM key is neither an RSA key in PEM nor an Ed25519 seed in base64: {error}")
        };
        let text = key.trim();
        if text.starts_with("-----BEGIN") {
            let key =
                PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|error| bad(error.to_string()))?;
            let key = RsaKey::<Sha256>::from_key_der(key).map_err(|error| bad(error.to_string()))?;
            let public = key.public_key();
            let signer = DkimSigner::from_key(key).domain(domain).selector(selector).headers(SIGNED);
            return Ok(Self::of(Key::Rsa(signer), domain, selector, public));
        }
        let seed = STANDARD.decode(text).ok().filter(|seed| seed.len() == SEED_BYTES);
        let seed = seed.ok_or_else(|| bad(format!("it is not {SEED_BYTES} bytes in base64")))?;
        let key = Ed25519Key::from_pkcs8_maybe_unchecked_der(&[&SEED_BEHIND[..], &seed].concat());
        Ok(Self::of_ed25519(key.map_err(|error| bad(error.to_string()))?, domain, selector))
    }

    /// A new Ed25519 key, for a development server, and for tests.
    ///
    /// # Errors
    /// The system gives no randomness.
    pub fn draw(domain: &str, selector: &str) -> Result<Self, NotSigned> {
        let document = Ed25519Key::generate_pkcs8().map_err(|error| NotSigned(error.to_string()))?;
        let key = Ed25519Key::from_pkcs8_der(&document).map_err(|error| NotSigned(error.to_string()))?;
        Ok(Self::of_ed25519(key, domain, selector))
    }

    fn of_ed25519(key: Ed25519Key, domain: &str, selector: &str) -> Self {
        let public = key.public_key();
        let signer = DkimSigner::from_key(key).domain(domain).selector(selector).headers(SIGNED);
        Self::of(Key::Ed25519(signer), domain, selector, public)
    }

    fn of(key: Key, domain: &str, selector: &str, public: Vec<u8>) -> Self {
        Self { key, domain: domain.to_owned(), selector: selector.to_owned(), public }
    }

    /// The name and the text of the DNS record that publishes the key.
    #[must_use]
    pub fn record(&self) -> (String, String) {
        let kind = match self.key {
            Key::Rsa(_) => "rsa",
            Key::Ed25519(_) => "ed25519",
        };
        let text = format!("v=DKIM1; k={kind}; p={}", STANDARD.encode(&self.public));
        (format!("{}._domainkey.{}", self.selector, self.domain), text)
    }

    /// Returns the message with a signature above it.
    ///
    /// # Errors
    /// The message has no fields.
    pub fn signed(&self, raw: &[u8]) -> Result<Vec<u8>, NotSigned> {
        let signature = match &self.key {
            Key::Rsa(signer) => signer.sign(raw),
            Key::Ed25519(signer) => signer.sign(raw),
        };
        let signature = signature.map_err(|error| NotSigned(error.to_string()))?;
        Ok([signature.to_header().as_bytes(), raw].concat())
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Signer({} of {})", self.selector, self.domain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_key_is_reported_with_what_would_be_valid() {
        let read = |text: &str| Signer::read("a.example", "s1", text).map(drop);
        let problem = read("-----BEGIN PRIVATE KEY-----\nnone\n-----END PRIVATE KEY-----").unwrap_err();
        assert!(problem.contains("neither an RSA key"), "{problem}");
        assert!(read("none of both").is_err() && read("").is_err() && read("AAAA").is_err());
    }
}
