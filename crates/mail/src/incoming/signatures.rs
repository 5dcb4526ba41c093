//! Which signatures of a message count, and with which keys (RFC 6376, RFC 8301).
//!
//! A signature counts if its domain may stand for the sender's, and it covers the fields that [`Settings::signed_fields`]
//! names, the message's identity, the whole body, and the reply address that the message was sent to: a signed mail to
//! somebody else, replayed to a reply address, has a good signature and is no reply. `In-Reply-To` and `References` do not
//! count as a destination: anyone who writes to the sender can put any id into them.
//!
//! All of that is checked before a key is looked up.

use std::collections::HashSet;

use mail_auth::AuthenticatedMessage;
use mail_auth::common::crypto::Algorithm;
use mail_auth::common::headers::Header;
use mail_auth::common::parse::TxtRecordParser;
use mail_auth::common::verify::DomainKey;
use mail_auth::dkim::{Canonicalization, Signature};

use super::authentication::AuthenticationInput;
use super::proof_reason::ProofReason;
use super::{Settings, tokens};
use crate::limits::{RSA_BITS_MIN, RSA_BITS_WARNED, SIGNATURES_CHECKED_MAX};

/// Keeps the signatures that may count, and returns why each other one does not.
pub(super) fn keep_counting(
    message: &mut AuthenticatedMessage<'_>,
    asked: &AuthenticationInput<'_>,
    settings: &Settings,
) -> Vec<ProofReason> {
    let mut why_not = Vec::new();
    let mut left = SIGNATURES_CHECKED_MAX;
    message.dkim_headers.retain(|header| {
        let flaw = flaw(header, asked, settings)
            .or_else(|| (!is_near(&header.header.d, &asked.from.domain)).then_some(ProofReason::NotAligned))
            .or_else(|| (left == 0).then_some(ProofReason::TooManySignatures));
        match flaw {
            None => left -= 1,
            Some(why) => why_not.push(why),
        }
        flaw.is_none()
    });
    // Signatures of other domains, which may be slow to answer, must not delay the sender's own.
    let own = |header: &Header<'_, Signature>| header.header.d.eq_ignore_ascii_case(&asked.from.domain);
    if message.dkim_headers.iter().any(own) {
        message.dkim_headers.retain(own);
    }
    why_not
}

/// Returns the message without the blank lines at the end of its body; `None` if there are none. By the relaxed form such
/// lines are empty, and empty lines at the end are no part of what is signed (RFC 6376, 3.4.4), which the library does not
/// heed.
pub(super) fn without_blank_end(raw: &[u8], body_at: usize) -> Option<Vec<u8>> {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    let body = &raw[body_at..];
    let words = body.iter().rposition(|byte| !is_blank(byte))? + 1;
    let line = words + body[words..].iter().position(|byte| *byte == b'\n')? + 1;
    let blanks = body[line..].iter().any(|byte| matches!(byte, b' ' | b'\t'));
    blanks.then(|| raw[..body_at + line].to_vec())
}

/// Moves the signatures over the relaxed form of the body to the message whose body is trimmed.
pub(super) fn split_relaxed<'t>(
    message: &mut AuthenticatedMessage<'_>,
    trimmed: &'t [u8],
) -> Option<AuthenticatedMessage<'t>> {
    let mut relaxed = AuthenticatedMessage::parse_with_opts(trimmed, None, true)?;
    // Compare by identity: a refused field may have the same value as one that seems to count.
    let counts = |it: &Header<'_, Signature>| {
        message.dkim_headers.iter().any(|kept| kept.header == it.header && kept.value == it.value)
    };
    relaxed.dkim_headers.retain(|it| it.header.cb == Canonicalization::Relaxed && counts(it));
    relaxed.errors.clear();
    message.dkim_headers.retain(|it| it.header.cb == Canonicalization::Simple);
    Some(relaxed)
}

/// Returns true if two domains may belong to one organisation: they end alike.
pub(super) fn is_near(one: &str, other: &str) -> bool {
    let last_two = |domain: &str| {
        let labels: Vec<String> =
            domain.rsplit('.').take(2).map(|label| label.to_ascii_lowercase()).collect();
        labels
    };
    last_two(one) == last_two(other)
}

/// Returns why a signature does not count; `None` if it counts.
pub(super) fn flaw(
    header: &Header<'_, Signature>,
    asked: &AuthenticationInput<'_>,
    settings: &Settings,
) -> Option<ProofReason> {
    let signature = &header.header;
    let covers = |name: &str| signature.h.iter().any(|signed| signed.trim().eq_ignore_ascii_case(name));
    if has_a_tag_twice(header.value) {
        return Some(ProofReason::SignatureAmbiguous);
    }
    if signature.l != 0 || tag(header.value, "l").is_some() {
        return Some(ProofReason::SignatureOfAPart);
    }
    if signature.a == Algorithm::RsaSha1 {
        return Some(ProofReason::WeakSignature);
    }
    if signature.atps.is_some() {
        return Some(ProofReason::SignatureOfAnother);
    }
    if tag(header.value, "q").is_some_and(|ways| !lists(&ways, &["dns/txt"])) {
        return Some(ProofReason::UnknownKeyQuery);
    }
    if !settings.signed_fields.iter().all(|name| covers(name)) {
        return Some(ProofReason::FieldNotSigned);
    }
    if settings.signed_fields.iter().any(|name| asked.headers.all(name).count() != 1) {
        return Some(ProofReason::SignedFieldMissing);
    }
    if identity(&[signature], asked).is_none() {
        return Some(ProofReason::IdentityNotSigned);
    }
    let named = |field: &str| covers(field) && tokens::stands_in(asked.token, asked.headers, field, settings);
    (!named("to") && !named("cc")).then_some(ProofReason::ReplyAddressNotSigned)
}

/// Returns the identity of a message among those of its sender, if all these signatures cover it: its id, or the reply
/// address and the date, as some mail services do not sign the id. `None` if they cover neither, or if there are none.
pub(super) fn identity(signatures: &[&Signature], asked: &AuthenticationInput<'_>) -> Option<String> {
    let covered = |name: &str| {
        let covers = |it: &&Signature| it.h.iter().any(|signed| signed.trim().eq_ignore_ascii_case(name));
        asked.headers.all(name).count() == 1 && !signatures.is_empty() && signatures.iter().all(covers)
    };
    if covered("message-id") {
        return asked.headers.ids("message-id").into_iter().next();
    }
    // A relaxed signature does not see how many blanks there are.
    let date = asked.headers.first("date").filter(|_| covered("date"))?.text();
    let date: Vec<&str> = date.split_whitespace().collect();
    (!date.is_empty()).then(|| format!("{} at {}", asked.token, date.join(" ")))
}

/// A signer's key, as it was published.
pub(super) struct Key {
    pub(super) key: DomainKey,
    /// Whether it is shorter than recommended today.
    pub(super) short: bool,
}

impl Key {
    /// Reads the record of a key.
    ///
    /// # Errors
    /// Why its signatures do not count.
    pub(super) fn read(text: &[u8]) -> Result<Self, ProofReason> {
        let tag = |name| tag(text, name);
        // A name with several records looks like one with a tag twice.
        if ["v", "k", "h", "s", "t", "p"].iter().any(|name| tags(text, name).nth(1).is_some()) {
            return Err(ProofReason::KeyAmbiguous);
        }
        if tag("h").is_some_and(|hashes| !lists(&hashes, &["sha256"])) {
            return Err(ProofReason::KeyOfAnotherHash);
        }
        if tag("s").is_some_and(|services| !lists(&services, &["*", "email"])) {
            return Err(ProofReason::KeyOfAnotherService);
        }
        if tag("t").is_some_and(|flags| lists(&flags, &["y"])) {
            return Err(ProofReason::KeyInTesting);
        }
        if !tag("p").is_some_and(|key| is_base64(&key)) {
            return Err(ProofReason::KeyUnreadable);
        }
        let key = DomainKey::parse(text).map_err(|_| ProofReason::KeyUnreadable)?;
        let rsa = tag("k").is_none_or(|kind| kind.eq_ignore_ascii_case("rsa"));
        let bits = key.p.public_key_bits();
        if rsa && bits < RSA_BITS_MIN {
            return Err(ProofReason::WeakKey);
        }
        Ok(Self { key, short: rsa && bits < RSA_BITS_WARNED })
    }
}

/// The values of a tag, without spaces.
fn tags<'t>(text: &'t [u8], name: &'t str) -> impl Iterator<Item = String> + 't {
    text.split(|byte| *byte == b';').filter_map(move |part| {
        let part = String::from_utf8_lossy(part);
        let (tag, value) = part.split_once('=')?;
        (tag.trim() == name).then(|| value.chars().filter(|c| !c.is_ascii_whitespace()).collect())
    })
}

fn tag(text: &[u8], name: &str) -> Option<String> {
    tags(text, name).next()
}

/// Returns true if a tag occurs twice: the list is then invalid (RFC 6376, 3.2), as readers differ in which one they take.
fn has_a_tag_twice(text: &[u8]) -> bool {
    let name =
        |part: &[u8]| String::from_utf8_lossy(part).split_once('=').map(|(name, _)| name.trim().to_owned());
    let mut seen = HashSet::new();
    text.split(|byte| *byte == b';').filter_map(name).any(|name| !seen.insert(name))
}

/// Returns true if a list divided by colons has one of these words.
fn lists(list: &str, words: &[&str]) -> bool {
    list.split(':').any(|one| words.iter().any(|word| one.eq_ignore_ascii_case(word)))
}

fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    text.len() - digits.len() <= 2
        && digits.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: &str = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";

    #[test]
    fn what_a_key_says_of_itself_is_honoured() {
        let rows = [
            ("v=DKIM1; k=ed25519; p=P", None),
            ("k=ed25519; t=s; s=*; h=sha1:sha256; p=P", None),
            ("k=ed25519; s=tlsrpt : email; n=a note; p=P", None),
            ("k=ed25519; t=s:y; p=P", Some(ProofReason::KeyInTesting)),
            ("k=ed25519; t = y ; p=P", Some(ProofReason::KeyInTesting)),
            ("k=ed25519; s=tlsrpt; p=P", Some(ProofReason::KeyOfAnotherService)),
            ("k=ed25519; h=sha1; p=P", Some(ProofReason::KeyOfAnotherHash)),
            ("k=ed25519; h=; p=P", Some(ProofReason::KeyOfAnotherHash)),
            ("k=ed25519; p=", Some(ProofReason::KeyUnreadable)),
            ("k=ed25519", Some(ProofReason::KeyUnreadable)),
            ("k=other; p=P", Some(ProofReason::KeyUnreadable)),
            // Two records of one name.
            ("k=ed25519; p=Pk=ed25519; p=P", Some(ProofReason::KeyAmbiguous)),
            ("k=ed25519; p=Pv=spf1 -all", Some(ProofReason::KeyUnreadable)),
        ];
        for (text, wanted) in rows {
            let text = text.replace("p=P", &format!("p={P}"));
            assert_eq!(Key::read(text.as_bytes()).err(), wanted, "{text}");
        }
    }

    /// Public RSA keys, by their bits.
    const RSA: [(usize, &str); 4] = [
        (
            512,
            "MFwwDQYJKoZIhvcNAQEBBQADSwAwSAJBAM7ufwXqY3GRUpfJKplQRyQ198nc81erj5br4uaYb4xj4AK57FvLF27f6G7bfh7qahb9\
         crmKt9bqEjAt53fb+s0CAwEAAQ==",
        ),
        (
            768,
            "MHwwDQYJKoZIhvcNAQEBBQADawAwaAJhALyNKRH5+pYrmvxPp2lU3L4khmRpH9Q6HWqRhcjZJs+Z5XRXaoY5H5Oi5ks+5k5Ce5i3\
         chdigBSNiMGK5D2NQkQWJJ4LeDM0G08zKvNnBfBEddJgaXMB9HhJ2V0mvrUAHQIDAQAB",
        ),
        (
            1024,
            "MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDhDX8uOgSzLj8SR/bBKzRkTuChuGGXQvE4x5s1Q0Tj2Iu/aefe9tbGyKKRKLVA\
         KKj86DTyak4mrDz9D5WAvEM3kXTLhPUSi+opwT/HuQPSoC5N5W3rigrroA2eAiimWoXsVaD7ReHvUcV9ZvdrjnQKY3Q0ZUG1AVoz\
         4U+5YQFVSwIDAQAB",
        ),
        (
            2048,
            "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA0HmJ9ToWiv//7SOUJPA4NRur3HcUiAxI6W/NSftBXpnuGENFsv7+dEKu\
         o145MZiE9Gp48LcvG1iwp3/pIY+uLTkl+nx02hWatu83JcupZHP/yRVzwyIeMdpeXh/ytWpgkEjoLKX9vzxNaSD2kdditi4kb0By\
         K99jQt5gFJUC36NzZTg8xknygg18+deNRSW0Xh/i9z/fyAa988pU63R0fSmjN+wk/vs5bJngoXz2gX3pgc5yu/n3P9XRhkniuICy\
         IP/JFBdETIG8/ra9iRhHU4ZimA/UmWcZHw/gmoVGhHHxI2vbb8vU2HZWb0sQ/+Z7IBUnjFrQJpuLyD7wv9uoSwIDAQAB",
        ),
    ];

    #[test]
    fn an_rsa_key_that_is_too_short_signs_nothing() {
        for (bits, key) in RSA {
            for kind in ["k=rsa; ", ""] {
                let read = Key::read(format!("v=DKIM1; {kind}p={key}").as_bytes());
                let short = read.map(|key| key.short);
                let wanted = if bits < 1024 { Err(ProofReason::WeakKey) } else { Ok(bits < 2048) };
                assert_eq!(short, wanted, "{bits}");
            }
        }
    }

    #[test]
    fn a_tag_that_stands_twice_is_seen_whatever_it_says() {
        for text in ["v=1; h=From; h=To", "a=b; \r\n\ta = c;", "d=a.example;d=a.example"] {
            assert!(has_a_tag_twice(text.as_bytes()), "{text}");
        }
        for text in ["v=1; a=b; b=YWJj==; bh=a=; h=From:To", "", ";;", "v=1;\r\n d=a; x=1;"] {
            assert!(!has_a_tag_twice(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn domains_of_one_organisation_end_alike() {
        assert!(is_near("mail.acme.example", "Acme.example") && is_near("a.example", "a.example"));
        assert!(!is_near("evil.example", "acme.example") && !is_near("example", "acme.example"));
    }
}
