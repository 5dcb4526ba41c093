//! OpenID providers that publish what they should, too much, or somebody else's.

use serde_json::{Value, json};
use switchward_delivery::Secret;
use switchward_delivery::limits::{OPENID_ANSWER_BYTES_MAX, OPENID_KEYS_MAX};
use switchward_delivery::openid::{Config, Problem, Provider, SignIn};

use super::server::{Act, Server, answer, client, json as answered, open};

const NOW: u64 = 1_782_000_000_000;

fn provider(server: &Server, issuer: String) -> Provider {
    let config = Config {
        issuer,
        client_id: "switchward".to_owned(),
        client_secret: Secret::new("swordfish".to_owned()),
        redirect: "https://approve.example/a/oidc/callback".to_owned(),
        egress: open(&[server.port]),
    };
    Provider::new(client(&[]), config).expect("the provider can be used")
}

fn sign_in(now_ms: u64) -> SignIn<'static> {
    SignIn { state: "s", nonce: &[1; 32], verifier: &[2; 32], address: "kim@acme.example", now_ms }
}

fn document(base: &str) -> Value {
    json!({
        "issuer": base,
        "authorization_endpoint": format!("{base}/authorize"),
        "token_endpoint": format!("{base}/token"),
        "jwks_uri": format!("{base}/keys"),
        "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
    })
}

fn keys(count: usize) -> Value {
    let key = |number: usize| json!({ "kty": "RSA", "use": "sig", "kid": number.to_string(), "n": "AQAB", "e": "AQAB" });
    json!({ "keys": (0..count).map(key).collect::<Vec<_>>() })
}

/// A provider that answers the first request and the second like this, for its own address.
async fn publishing(first: impl Fn(&str) -> Act + Send + Sync + 'static, second: Act) -> (Server, Provider) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let base = format!("http://{}", listener.local_addr().expect("the listener is bound"));
    let announced = base.clone();
    let server =
        Server::at(listener, move |number| if number % 2 == 0 { first(&announced) } else { second.clone() });
    let provider = provider(&server, base);
    (server, provider)
}

#[tokio::test]
async fn a_provider_says_where_people_sign_in() {
    let (server, provider) =
        publishing(|base| answered(200, &document(base)), answered(200, &keys(OPENID_KEYS_MAX))).await;
    let found = provider.published().await.expect("the provider can be used");
    assert_eq!((found.page, found.keys), (server.url("/authorize"), OPENID_KEYS_MAX));
    let page = provider.page(&sign_in(NOW)).await.expect("a page");
    assert!(page.starts_with(&server.url("/authorize?")), "{page}");
    // RFC 7636: the page gets the digest of the verifier, which is kept back.
    assert!(!page.contains("0202") && page.contains("code_challenge="), "{page}");
    let asked: Vec<String> =
        server.seen().into_iter().filter_map(|seen| seen.head.lines().next().map(str::to_owned)).collect();
    let lines = ["get /.well-known/openid-configuration http/1.1", "get /keys http/1.1"];
    assert_eq!(asked, [lines, lines].concat());
}

/// The provider's own address and port, on a private network.
fn elsewhere(document: &Value) -> Value {
    json!(document["issuer"].as_str().expect("an issuer").replace("127.0.0.1", "10.0.0.1"))
}

#[tokio::test]
async fn what_a_provider_may_not_publish_is_not_used() {
    type Change = fn(&mut Value);
    let fine = || answered(200, &keys(1));
    let faults: [(&str, Change, Act, usize); 11] = [
        ("unexpected issuer", |it| it["issuer"] = json!("https://evil.example"), fine(), 1),
        ("not in the public network", |it| it["jwks_uri"] = elsewhere(it), fine(), 1),
        ("port 81", |it| it["jwks_uri"] = json!("http://127.0.0.1:81/keys"), fine(), 1),
        ("failed to prepare request", |it| it["jwks_uri"] = json!("file:///etc/passwd"), fine(), 1),
        (
            "authorization endpoint",
            |it| it["authorization_endpoint"] = json!("javascript:alert(1)"),
            fine(),
            2,
        ),
        ("authorization endpoint", |it| it["authorization_endpoint"] = json!("http://10.0.0.1/"), fine(), 2),
        ("no token endpoint", |it| drop(it.as_object_mut().map(|it| it.remove("token_endpoint"))), fine(), 2),
        ("cannot be read", |it| it["authorization_endpoint"] = json!(7), fine(), 1),
        ("cannot be read", |_| {}, answered(200, &json!({ "keys": 7 })), 2),
        ("too many keys", |_| {}, answered(200, &keys(OPENID_KEYS_MAX + 1)), 2),
        ("302", |_| {}, answer("302 x\r\nlocation: http://10.0.0.1/", b""), 2),
    ];
    for (word, change, second, asked) in faults {
        let document = move |base: &str| {
            let mut document = document(base);
            change(&mut document);
            answered(200, &document)
        };
        let (server, provider) = publishing(document, second).await;
        let unusable = provider.published().await.expect_err(word).to_string();
        assert!(unusable.contains(word), "{word}: {unusable}");
        assert_eq!(server.seen().len(), asked, "{word}");
        assert_eq!(provider.page(&sign_in(NOW)).await, Err(Problem::Unavailable), "{word}");
    }
}

#[tokio::test]
async fn an_answer_that_is_too_large_or_broken_is_not_used() {
    let large = json!({ "issuer": "x".repeat(OPENID_ANSWER_BYTES_MAX) });
    for (word, act) in [
        ("more than 262144 bytes", answered(200, &large)),
        ("the answer was 404", answered(404, &json!({}))),
        ("the answer was 503", answered(503, &json!({}))),
        ("cannot be read", answer("200 x\r\ncontent-type: text/html", b"<html>")),
        ("before the answer was complete", Act::Reset),
    ] {
        let (_server, provider) = publishing(move |_| act.clone(), Act::Reset).await;
        let unusable = provider.published().await.expect_err(word).to_string();
        assert!(unusable.contains(word), "{word}: {unusable}");
    }
}

#[tokio::test]
async fn a_provider_that_fails_is_not_asked_each_time() {
    let (server, provider) = publishing(|_| Act::Reset, Act::Reset).await;
    for (now, asked) in [(NOW, 1), (NOW + 1, 1), (NOW + 4_999, 1), (NOW + 5_000, 2), (NOW + 5_001, 2)] {
        assert_eq!(provider.page(&sign_in(now)).await, Err(Problem::Unavailable));
        assert_eq!(server.seen().len(), asked, "{now}");
    }
}

#[tokio::test]
async fn a_configuration_that_cannot_be_used_is_refused() {
    let server = Server::always(Act::Hang).await;
    let config = |issuer: &str, client_id: &str, secret: &str| Config {
        issuer: issuer.to_owned(),
        client_id: client_id.to_owned(),
        client_secret: Secret::new(secret.to_owned()),
        redirect: "https://approve.example/a/oidc/callback".to_owned(),
        egress: open(&[server.port]),
    };
    let (fine, port) = (server.url(""), server.port);
    for (key, config) in [
        ("issuer", config("", "a", "b")),
        ("issuer", config(&format!("http://10.0.0.1:{port}"), "a", "b")),
        ("issuer", config(&format!("{fine}?x"), "a", "b")),
        ("client_id", config(&fine, "", "b")),
        ("client_secret", config(&fine, "a", "")),
        ("redirect", Config { redirect: "nowhere".to_owned(), ..config(&fine, "a", "b") }),
    ] {
        let error = Provider::new(client(&[]), config).map(drop).expect_err(key);
        assert_eq!(error.key, key, "{error}");
    }
    assert!(Provider::new(client(&[]), config(&fine, "a", "b")).is_ok());
}
