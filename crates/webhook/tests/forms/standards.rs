//! Signing and verifying after Standard Webhooks.

use proptest::collection::vec;
use proptest::prelude::*;
use std::time::Duration;
use switchward_webhook::limits::{SECRETS_ACTIVE_MAX, SIGNATURES_MAX, TOLERANCE};
use switchward_webhook::standard::{self, Unsigned, sign};
use switchward_webhook::{Headers, SigningSecret, Unverified};

const NOW: Duration = Duration::from_secs(1_700_000_000);

fn secret(byte: u8) -> SigningSecret {
    SigningSecret::of(&[byte; 32]).unwrap()
}

/// A message as it is on its way.
#[derive(Clone)]
struct Sent {
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
}

impl Sent {
    fn by(secrets: &[SigningSecret], id: &str, body: &[u8]) -> Self {
        let headers = sign(secrets, id, NOW, body).unwrap();
        let headers = headers.into_iter().map(|(name, value)| (name.to_owned(), value.into_bytes()));
        Self { headers: headers.collect(), body: body.to_vec() }
    }

    fn verify(&self, secrets: &[SigningSecret], now: Duration) -> Result<String, Unverified> {
        let pairs: Vec<(&str, &[u8])> =
            self.headers.iter().map(|(name, value)| (name.as_str(), &value[..])).collect();
        standard::verify(secrets, Headers::new(&pairs), &self.body, now).map(str::to_owned)
    }

    fn value(&mut self, name: &str) -> &mut Vec<u8> {
        &mut self.headers.iter_mut().find(|(given, _)| given == name).unwrap().1
    }
}

/// The example that Svix publishes with its libraries.
#[test]
fn a_published_example_is_verified() {
    let secret: SigningSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().unwrap();
    let (id, at) = ("msg_p5jXN8AQM9LWM0D4loKWxJek", Duration::from_secs(1_614_265_330));
    let body = br#"{"test": 2432232314}"#;
    let headers = sign(&[secret], id, at, body).unwrap();
    assert_eq!(headers[0], ("webhook-id", id.to_owned()));
    assert_eq!(headers[1], ("webhook-timestamp", "1614265330".to_owned()));
    let signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
    assert_eq!(headers[2], ("webhook-signature", signature.to_owned()));
}

#[test]
fn while_a_secret_is_rotated_both_are_good() {
    let (old, new, other) = (secret(1), secret(2), secret(3));
    let both = Sent::by(&[new.clone(), old.clone()], "msg_1", b"{}");
    let by_old = Sent::by(std::slice::from_ref(&old), "msg_1", b"{}");
    assert_eq!(both.verify(std::slice::from_ref(&old), NOW), Ok("msg_1".into()));
    assert_eq!(both.verify(std::slice::from_ref(&new), NOW), Ok("msg_1".into()));
    assert_eq!(by_old.verify(&[new.clone(), old], NOW), Ok("msg_1".into()));
    assert_eq!(by_old.verify(&[new], NOW), Err(Unverified::SignatureMismatch));
    assert_eq!(both.verify(&[other], NOW), Err(Unverified::SignatureMismatch));
}

#[test]
fn signatures_of_other_versions_are_passed_over() {
    let mut sent = Sent::by(&[secret(1)], "msg_1", b"{}");
    let own = String::from_utf8(sent.value(standard::SIGNATURE).clone()).unwrap();
    let mut shown = |text: String| {
        *sent.value(standard::SIGNATURE) = text.into_bytes();
        sent.verify(&[secret(1)], NOW)
    };
    let code = own.strip_prefix("v1,").unwrap();
    assert_eq!(shown(format!("v1a,{code} v2,{code} {own} x")), Ok("msg_1".into()));
    for other in
        [format!("v1a,{code}"), format!("v2,{code}"), code.to_owned(), format!("V1,{code}"), String::new()]
    {
        assert_eq!(shown(other), Err(Unverified::SignatureMismatch));
    }
    let most = vec!["v1,AAAA"; SIGNATURES_MAX - 1].join(" ");
    assert_eq!(shown(format!("{most} {own}")), Ok("msg_1".into()));
    assert_eq!(shown(format!("{most} v1,AAAA {own}")), Err(Unverified::HeaderMalformed(standard::SIGNATURE)));
}

#[test]
fn what_is_missing_or_there_twice_is_refused() {
    let whole = Sent::by(&[secret(1)], "msg_1", b"{}");
    for name in [standard::ID, standard::TIMESTAMP, standard::SIGNATURE] {
        let mut less = whole.clone();
        less.headers.retain(|(given, _)| given != name);
        assert_eq!(less.verify(&[secret(1)], NOW), Err(Unverified::HeaderMissing(name)));
        let mut twice = whole.clone();
        twice.headers.push((name.to_uppercase(), b"1".to_vec()));
        assert_eq!(twice.verify(&[secret(1)], NOW), Err(Unverified::HeaderMalformed(name)));
    }
    assert_eq!(whole.verify(&[], NOW), Err(Unverified::SecretMalformed));
    let many = vec![secret(1); SECRETS_ACTIVE_MAX + 1];
    assert_eq!(whole.verify(&many, NOW), Err(Unverified::SecretMalformed));
    assert_eq!(sign(&[], "msg_1", NOW, b""), Err(Unsigned::Secrets));
    assert_eq!(sign(&many, "msg_1", NOW, b""), Err(Unsigned::Secrets));
    for bad in ["", "a.b", "a b", "ä", &"a".repeat(256)] {
        assert_eq!(sign(&[secret(1)], bad, NOW, b""), Err(Unsigned::IdMalformed));
    }
}

/// What is signed is the same text for both messages.
#[test]
fn a_full_stop_cannot_move_a_part_of_the_id_into_the_body() {
    let at = NOW.as_secs();
    let mut sent = Sent::by(&[secret(1)], "a", format!("{at}.rest").as_bytes());
    *sent.value(standard::ID) = format!("a.{at}").into_bytes();
    sent.body = b"rest".to_vec();
    assert_eq!(sent.verify(&[secret(1)], NOW), Err(Unverified::HeaderMalformed(standard::ID)));
}

fn secrets() -> impl Strategy<Value = SigningSecret> {
    vec(any::<u8>(), 24..=64).prop_map(|bytes| SigningSecret::of(&bytes).unwrap())
}

proptest! {
    #[test]
    fn what_is_signed_is_verified(
        secret in secrets(),
        id in "[!-\\-/-~]{1,64}",
        body in vec(any::<u8>(), 0..2_000),
        ahead in -300_i64..=300,
    ) {
        let sent = Sent::by(std::slice::from_ref(&secret), &id, &body);
        let now = Duration::from_secs(NOW.as_secs().checked_add_signed(ahead).unwrap());
        prop_assert_eq!(sent.verify(std::slice::from_ref(&secret), now), Ok(id));
    }

    #[test]
    fn a_body_that_changed_is_refused(
        body in vec(any::<u8>(), 1..500),
        at in any::<prop::sample::Index>(),
        flip in 1_u8..,
    ) {
        let mut sent = Sent::by(&[secret(1)], "msg_1", &body);
        let at = at.index(body.len());
        sent.body[at] ^= flip;
        prop_assert_eq!(sent.verify(&[secret(1)], NOW), Err(Unverified::SignatureMismatch));
        sent.body.remove(at);
        prop_assert_eq!(sent.verify(&[secret(1)], NOW), Err(Unverified::SignatureMismatch));
    }

    #[test]
    fn a_header_that_changed_is_refused(
        which in 0_usize..3,
        at in any::<prop::sample::Index>(),
        put in prop::num::u8::ANY,
    ) {
        let mut sent = Sent::by(&[secret(1)], "msg_1", b"{}");
        let value = &mut sent.headers[which].1;
        let at = at.index(value.len());
        prop_assume!(value[at] != put);
        value[at] = put;
        prop_assert!(sent.verify(&[secret(1)], NOW).is_err());
        sent.headers[which].1.remove(at);
        prop_assert!(sent.verify(&[secret(1)], NOW).is_err());
    }

    #[test]
    fn another_secret_and_another_time_are_refused(
        secret in secrets(),
        other in secrets(),
        beyond in 1_u64..1_000_000,
    ) {
        prop_assume!(secret != other);
        let sent = Sent::by(std::slice::from_ref(&secret), "msg_1", b"{}");
        prop_assert_eq!(sent.verify(&[other], NOW), Err(Unverified::SignatureMismatch));
        let away = TOLERANCE + Duration::from_secs(beyond);
        let secret = [secret];
        prop_assert_eq!(sent.verify(&secret, NOW + away), Err(Unverified::TimestampTooOld));
        prop_assert_eq!(sent.verify(&secret, NOW - away), Err(Unverified::TimestampTooNew));
    }

    #[test]
    fn hostile_headers_are_refused_and_harm_nothing(
        headers in vec((prop::sample::select(vec!["webhook-id", "webhook-timestamp", "webhook-signature"]),
            vec(any::<u8>(), 0..64)), 0..5),
        body in vec(any::<u8>(), 0..64),
    ) {
        let headers = headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let sent = Sent { headers, body };
        prop_assert!(sent.verify(&[secret(1)], NOW).is_err());
    }
}
