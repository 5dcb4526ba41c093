//! Verifying what other senders sign.

use std::time::Duration;
use switchward_webhook::limits::IN_BODY_BYTES_MAX;
use switchward_webhook::{Headers, SourceKind, Unproven, Unverified, verify};

type Pairs<'p> = &'p [(&'p str, &'p str)];

fn believed(
    kind: SourceKind,
    secrets: &[&str],
    headers: Pairs<'_>,
    body: &str,
    now: u64,
) -> Result<Option<String>, Unverified> {
    let pairs: Vec<(&str, &[u8])> = headers.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
    let now = Duration::from_secs(now);
    let verified = verify(kind, secrets, Headers::new(&pairs), body.as_bytes(), now, Unproven::Refused);
    verified.map(|verified| verified.id)
}

/// The example of GitHub's documentation.
#[test]
fn github_signs_the_body() {
    let secret = ["It's a Secret to Everybody"];
    let signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    let ask = |secrets: &[&str], headers: Pairs<'_>, body: &str| {
        believed(SourceKind::Github, secrets, headers, body, 0)
    };
    let headers = [("X-Hub-Signature-256", signature), ("X-GitHub-Delivery", "72d3162e")];
    assert_eq!(ask(&secret, &headers, "Hello, World!"), Ok(Some("72d3162e".into())));
    assert_eq!(ask(&secret, &headers[..1], "Hello, World!"), Ok(None));
    let both = ["another secret of theirs", secret[0]];
    assert_eq!(ask(&both, &headers, "Hello, World!"), Ok(Some("72d3162e".into())));
    assert_eq!(ask(&both[..1], &headers, "Hello, World!"), Err(Unverified::SignatureMismatch));
    assert_eq!(ask(&secret, &headers, "Hello, World?"), Err(Unverified::SignatureMismatch));
    let missing = Err(Unverified::HeaderMissing("x-hub-signature-256"));
    assert_eq!(ask(&secret, &headers[1..], "Hello, World!"), missing);
    for bad in [&signature[7..], &signature.to_uppercase(), &signature[..70], "sha1=", "sha256=", ""] {
        let headers = [("x-hub-signature-256", bad)];
        assert_eq!(ask(&secret, &headers, "Hello, World!"), Err(Unverified::SignatureMismatch), "{bad}");
    }
    assert_eq!(ask(&["short"], &headers, "Hello, World!"), Err(Unverified::SecretMalformed));
    assert_eq!(ask(&[], &headers, "Hello, World!"), Err(Unverified::SecretMalformed));
}

/// The example of Slack's documentation.
#[test]
fn slack_signs_time_and_body() {
    let secret = ["8f742231b10e8888abcd99yyyzzz85a5"];
    let body = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V\
        &channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=\
        &response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN\
        &trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
    let signature = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503";
    let headers = [("X-Slack-Signature", signature), ("X-Slack-Request-Timestamp", "1531420618")];
    let ask = |headers: Pairs<'_>, body: &str, now| believed(SourceKind::Slack, &secret, headers, body, now);
    assert_eq!(ask(&headers, body, 1_531_420_618), Ok(None));
    assert_eq!(ask(&headers, body, 1_531_420_918), Ok(None));
    assert_eq!(ask(&headers, body, 1_531_420_919), Err(Unverified::TimestampTooOld));
    assert_eq!(ask(&headers, body, 1_531_420_317), Err(Unverified::TimestampTooNew));
    assert_eq!(ask(&headers, &body[1..], 1_531_420_618), Err(Unverified::SignatureMismatch));
    let missing = Err(Unverified::HeaderMissing("x-slack-request-timestamp"));
    assert_eq!(ask(&headers[..1], body, 1_531_420_618), missing);
    assert_eq!(ask(&headers[1..], body, 1_531_420_618), Err(Unverified::HeaderMissing("x-slack-signature")));
    let shifted = [headers[0], ("x-slack-request-timestamp", "1531420619")];
    assert_eq!(ask(&shifted, body, 1_531_420_618), Err(Unverified::SignatureMismatch));
    // The code of this body was computed with Python's hmac.
    let event = r#"{"type":"event_callback","event_id":"Ev0PV52K21"}"#;
    let signed = "v0=5c14e7518d1e3201fbd5331d91305d40e49b5d4a9da4494298b6242395ea229a";
    let headers = [("x-slack-signature", signed), ("x-slack-request-timestamp", "1531420618")];
    assert_eq!(ask(&headers, event, 1_531_420_618), Ok(Some("Ev0PV52K21".into())));
}

/// The codes were computed with Python's hmac, under the whole text of the secret.
#[test]
fn stripe_signs_time_and_body() {
    let secret = ["whsec_5wUnbFDVjwSqBZQMGGXqSQ8jqTvGpVBz"];
    let body = r#"{"id":"evt_1MqqbKLt4dXK03v5qaIbiNCC","type":"charge.succeeded"}"#;
    let (old, good) = (
        "c8d0ed8a0daee218a00ab357d06508e03bc4bf6f630f7ce8f6b36a757fddd52b",
        "f2a2b558b98bc68a1dcfd6c78235f0f56cdabdef91ad8a5b36961da087e35a60",
    );
    let ask = |header: &str, body: &str, now| {
        believed(SourceKind::Stripe, &secret, &[("Stripe-Signature", header)], body, now)
    };
    let now = 1_700_000_000;
    let id = Ok(Some("evt_1MqqbKLt4dXK03v5qaIbiNCC".into()));
    assert_eq!(ask(&format!("t=1700000000,v1={good},v0=abc"), body, now), id);
    assert_eq!(ask(&format!("t=1700000000,v1={old},v1={good}"), body, now), id);
    let mismatch = Err(Unverified::SignatureMismatch);
    assert_eq!(ask(&format!("t=1700000000,v0={good}"), body, now), mismatch);
    assert_eq!(ask(&format!("t=1700000001,v1={good}"), body, now), mismatch);
    assert_eq!(ask(&format!("t=1700000000,v1={old}"), body, now), mismatch);
    assert_eq!(ask(&format!("t=1700000000,v1={good}"), &body.replace("evt_1", "evt_2"), now), mismatch);
    assert_eq!(ask("t=1700000000", body, now), mismatch);
    assert_eq!(ask(&format!("t=1700000000,v1={good}"), body, now + 301), Err(Unverified::TimestampTooOld));
    assert_eq!(ask(&format!("t=1700000000,v1={good}"), body, now - 301), Err(Unverified::TimestampTooNew));
    assert_eq!(ask(&format!("t=soon,v1={good}"), body, now), Err(Unverified::TimestampMalformed));
    let malformed = Err(Unverified::HeaderMalformed("stripe-signature"));
    let many = format!("t=1700000000{}", format!(",v1={good}").repeat(17));
    for bad in [&format!("v1={good}"), &format!("t=1700000000,t=1700000000,v1={good}"), "t", "", &many] {
        assert_eq!(ask(bad, body, now), malformed, "{bad}");
    }
}

#[test]
fn a_bearer_token_is_compared_whole() {
    let secrets = ["0123456789abcdef0123", "fedcba9876543210fedc"];
    let ask = |headers: Pairs<'_>| believed(SourceKind::Bearer, &secrets, headers, "{}", 0);
    assert_eq!(ask(&[("Authorization", "Bearer 0123456789abcdef0123")]), Ok(None));
    assert_eq!(
        ask(&[("authorization", "bearer fedcba9876543210fedc"), ("webhook-id", "7")]),
        Ok(Some("7".into()))
    );
    let with_key = [("authorization", "Bearer 0123456789abcdef0123"), ("idempotency-key", "k")];
    assert_eq!(ask(&with_key), Ok(Some("k".into())));
    for bad in [
        "Bearer 0123456789abcdef012",
        "Bearer 0123456789abcdef01234",
        "Bearer ",
        "Bearer  0123456789abcdef0123",
    ] {
        assert_eq!(ask(&[("authorization", bad)]), Err(Unverified::SignatureMismatch), "{bad}");
    }
    for bad in ["Basic 0123456789abcdef0123", "0123456789abcdef0123", ""] {
        assert_eq!(
            ask(&[("authorization", bad)]),
            Err(Unverified::HeaderMalformed("authorization")),
            "{bad}"
        );
    }
    assert_eq!(ask(&[]), Err(Unverified::HeaderMissing("authorization")));
    let bad_id = [with_key[0], ("webhook-id", "a b")];
    assert_eq!(ask(&bad_id), Err(Unverified::HeaderMalformed("webhook-id")));
}

#[test]
fn nothing_at_all_is_believed_only_where_it_is_allowed() {
    let headers = [("webhook-id", &b"7"[..])];
    let ask =
        |unproven| verify(SourceKind::None, &[], Headers::new(&headers), b"{}", Duration::ZERO, unproven);
    assert_eq!(ask(Unproven::Refused), Err(Unverified::UnsignedNotAllowed));
    assert_eq!(ask(Unproven::Allowed).unwrap().id, Some("7".into()));
}

#[test]
fn an_id_of_a_body_is_a_short_text_or_none() {
    let secret = ["0123456789abcdef0123"];
    for body in ["not json", "[]", r#"{"id":7}"#, r#"{"id":""}"#, r#"{"id":"a b"}"#, r#"{"id":null}"#] {
        let code = hmac_of(secret[0], body);
        let header = format!("t=5,v1={code}");
        let found = believed(SourceKind::Stripe, &secret, &[("stripe-signature", &header)], body, 5);
        assert_eq!(found, Ok(None), "{body}");
    }
}

/// What Stripe would sign at time 5.
fn hmac_of(secret: &str, body: &str) -> String {
    use hmac::{Hmac, KeyInit as _, Mac as _};
    let mut hmac = Hmac::<sha2::Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    hmac.update(format!("5.{body}").as_bytes());
    hmac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_body_beyond_the_limit_is_not_even_looked_at() {
    let body = "a".repeat(IN_BODY_BYTES_MAX + 1);
    for kind in SourceKind::ALL {
        let refused = believed(*kind, &["0123456789abcdef0123"], &[], &body, 0);
        assert_eq!(refused, Err(Unverified::BodyTooLarge));
    }
}

#[test]
fn every_kind_has_its_word() {
    for kind in SourceKind::ALL {
        assert_eq!(SourceKind::from_word(kind.word()), Some(*kind));
    }
    assert_eq!(SourceKind::from_word("GitHub"), None);
    assert!(!SourceKind::None.takes("0123456789abcdef0123"));
    assert!(!SourceKind::StandardWebhooks.takes("0123456789abcdef0123"));
    assert!(!SourceKind::Github.takes(" 0123456789abcdef0123"));
    assert!(SourceKind::Github.takes("0123456789abcdef"));
}
