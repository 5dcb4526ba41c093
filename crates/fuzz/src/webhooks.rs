//! Incoming webhooks, in a format like HTTP/1.1: the kind of the source, the headers, a blank line, the body.

use std::time::Duration;

use serde_json::Value;
use switchward_webhook::limits::ID_BYTES_MAX;
use switchward_webhook::{
    EventType, Filters, Headers, SigningSecret, SourceKind, Unproven, Verified, greeting, verify,
};

/// When the messages of the corpus were signed: 2025-06-15T15:06:40Z.
const NOW: Duration = Duration::from_secs(1_750_000_000);
/// The secrets that signed them.
const STANDARD_SECRET: &str = "whsec_c3dpdGNod2FyZC1mdXp6aW5nLXNlY3JldC0wMDAx";
const TEXT_SECRET: &str = "switchward-fuzzing-secret-0001";

/// Returns true if the message is verified.
pub(crate) fn read(bytes: &[u8]) -> bool {
    read_words(bytes);
    let (head, body) = split(bytes, b"\n\n").unwrap_or((bytes, &[]));
    let mut lines = head.split(|byte| *byte == b'\n');
    let word = lines.next().and_then(|line| std::str::from_utf8(line).ok()).unwrap_or_default();
    let kind = SourceKind::from_word(word).unwrap_or(SourceKind::StandardWebhooks);
    let pairs: Vec<(&str, &[u8])> = lines
        .filter_map(|line| split(line, b": "))
        .filter_map(|(name, value)| Some((std::str::from_utf8(name).ok()?, value)))
        .collect();
    let headers = Headers::new(&pairs);
    let secret = if kind == SourceKind::StandardWebhooks { STANDARD_SECRET } else { TEXT_SECRET };
    let verified = verify(kind, &[secret], headers, body, NOW, Unproven::Refused);
    if let Ok(verified) = &verified {
        check(kind, secret, verified, headers, body);
    }
    if let Ok(json) = serde_json::from_slice::<Value>(body) {
        let _ = greeting(kind, headers, &json);
    }
    verified.is_ok()
}

/// Checks that a verified message has a valid id, and is refused with another body or another secret.
fn check(kind: SourceKind, secret: &str, verified: &Verified, headers: Headers<'_>, body: &[u8]) {
    if let Some(id) = &verified.id {
        assert!((1..=ID_BYTES_MAX).contains(&id.len()), "{id:?}");
        assert!(id.bytes().all(|byte| byte.is_ascii_graphic()), "{id:?}");
    }
    let other = if kind == SourceKind::StandardWebhooks {
        SigningSecret::of(&[7; 32]).expect("32 bytes are enough").text()
    } else {
        TEXT_SECRET.replace('1', "2")
    };
    let otherwise = verify(kind, &[&other], headers, body, NOW, Unproven::Refused);
    assert!(otherwise.is_err(), "{kind:?} is accepted with another secret");
    assert_ne!(kind, SourceKind::None, "a message without a signature is accepted");
    if kind != SourceKind::Bearer {
        let changed = [body, b" "].concat();
        let changed = verify(kind, &[secret], headers, &changed, NOW, Unproven::Refused);
        assert!(changed.is_err(), "{kind:?} is accepted with another body");
    }
}

/// Checks that the words of webhooks are the same after parsing and printing.
fn read_words(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let text = text.trim();
    if let Ok(secret) = text.parse::<SigningSecret>() {
        assert_eq!(secret.text().parse::<SigningSecret>(), Ok(secret));
    }
    if let Some(kind) = EventType::from_name(text) {
        assert_eq!(kind.name(), text);
    }
    for kind in SourceKind::ALL {
        let _ = kind.takes(text);
    }
    let _ = Filters::read(text.split(','));
}

fn split<'b>(bytes: &'b [u8], at: &[u8]) -> Option<(&'b [u8], &'b [u8])> {
    let found = bytes.windows(at.len()).position(|window| window == at)?;
    Some((&bytes[..found], &bytes[found + at.len()..]))
}
