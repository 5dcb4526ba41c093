//! An OpenID provider on this machine: it publishes its configuration, takes codes, and signs any ID token.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Form, Json, Router};
use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use parking_lot::Mutex;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use switchward_delivery::Secret;
use switchward_delivery::guard::Egress;
use switchward_delivery::http::{Client, Config as HttpConfig};
use switchward_delivery::openid::{self, Problem};
use switchward_gateway::decision::{Attempt, CALLBACK, NotSignedIn, SignIn};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use url::Url;

const CLIENT: &str = "switchward";
const SECRET: &str = "a+secret of/the client";
/// The public address of the pages.
const PAGES: &str = "https://approve.acme.example";

/// How an ID token is signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signing {
    /// Correctly.
    Right,
    /// With a key that the provider does not publish, under the name of one that it does.
    OtherKey,
    /// With the client's secret.
    Secret,
    /// Not at all.
    Nothing,
}

/// A code that the provider has issued: the proof that it requires, and the ID token that it exchanges the code for.
struct Code {
    challenge: String,
    token: String,
}

struct Inside {
    issuer: String,
    /// The key and its name.
    key: Mutex<(EcdsaKeyPair, String)>,
    codes: Mutex<BTreeMap<String, Code>>,
    down: AtomicBool,
    discovered: AtomicUsize,
}

/// See the module. It ends when it is dropped.
pub(crate) struct Provider {
    inside: Arc<Inside>,
    port: u16,
    task: JoinHandle<()>,
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn key() -> EcdsaKeyPair {
    let random = SystemRandom::new();
    let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).expect("a key");
    EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, made.as_ref(), &random).expect("a key")
}

fn base64(bytes: impl AsRef<[u8]>) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

impl Provider {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("the listener is bound").port();
        let inside = Arc::new(Inside {
            issuer: format!("http://127.0.0.1:{port}/realm"),
            key: Mutex::new((key(), "k1".to_owned())),
            codes: Mutex::default(),
            down: AtomicBool::new(false),
            discovered: AtomicUsize::new(0),
        });
        let app = Router::new()
            .route("/realm/.well-known/openid-configuration", get(configuration))
            .route("/keys", get(keys))
            .route("/token", post(token))
            .with_state(Arc::clone(&inside));
        let task =
            tokio::spawn(async move { axum::serve(listener, app).await.expect("the provider serves") });
        Self { inside, port, task }
    }

    /// Returns the sign-in of the server with this provider.
    pub(crate) fn sign_in(&self) -> Arc<dyn SignIn> {
        let egress = Egress {
            allow_loopback: true,
            allow_http: true,
            ports: vec![self.port],
            allow_private: false,
            allowed_hosts: None,
        };
        let config = openid::Config {
            issuer: self.inside.issuer.clone(),
            client_id: CLIENT.to_owned(),
            client_secret: Secret::new(SECRET.to_owned()),
            redirect: format!("{PAGES}{CALLBACK}"),
            egress,
        };
        let nothing = |_: u32| Arc::new(Egress::default());
        let client = Client::new(HttpConfig::new(Arc::new(nothing))).expect("the client can be created");
        Arc::new(Through(openid::Provider::new(client, config).expect("a provider")))
    }

    /// Stops or restarts answering.
    pub(crate) fn set_down(&self, down: bool) {
        self.inside.down.store(down, Ordering::SeqCst);
    }

    /// The number of requests for its configuration.
    pub(crate) fn discovered(&self) -> usize {
        self.inside.discovered.load(Ordering::SeqCst)
    }

    /// Rotates the key: from now on, it signs with another key and publishes only that one.
    pub(crate) fn turn(&self) {
        *self.inside.key.lock() = (key(), "k2".to_owned());
    }

    /// Signs somebody in on the page at this address; returns where their browser is sent back to. The ID token's claims are
    /// Kim's correct ones, changed by `change`.
    pub(crate) fn back(
        &self,
        page: &str,
        now_s: u64,
        signing: Signing,
        change: impl FnOnce(&mut Value),
    ) -> String {
        let page = Url::parse(page).expect("an address");
        let asked: BTreeMap<String, String> = page.query_pairs().into_owned().collect();
        assert!(page.as_str().starts_with(&format!("http://127.0.0.1:{}/authorize?", self.port)), "{page}");
        for (name, value) in [
            ("response_type", "code"),
            ("client_id", CLIENT),
            ("redirect_uri", "https://approve.acme.example/a/oidc/callback"),
            ("scope", "openid email"),
            ("code_challenge_method", "S256"),
            ("login_hint", "kim@acme.example"),
        ] {
            assert_eq!(asked[name], value, "{name} of {page}");
        }
        let mut claims = json!({
            "iss": self.inside.issuer,
            "aud": CLIENT,
            "sub": "4711",
            "exp": now_s + 300,
            "iat": now_s,
            "nonce": asked["nonce"],
            "email": "kim@acme.example",
            "email_verified": true,
        });
        change(&mut claims);
        let code = Code { challenge: asked["code_challenge"].clone(), token: self.token(&claims, signing) };
        let mut codes = self.inside.codes.lock();
        let name = format!("code+{}/of it", codes.len());
        codes.insert(name.clone(), code);
        let query = [("code", name.as_str()), ("state", asked["state"].as_str()), ("session_state", "x")];
        let url = Url::parse_with_params(&format!("{PAGES}{CALLBACK}"), query).expect("an address");
        format!("{}?{}", url.path(), url.query().expect("a query"))
    }

    fn token(&self, claims: &Value, signing: Signing) -> String {
        let keys = self.inside.key.lock();
        let (key, name) = &*keys;
        let algorithm = match signing {
            Signing::Right | Signing::OtherKey => "ES256",
            Signing::Secret => "HS256",
            Signing::Nothing => "none",
        };
        let head = json!({ "alg": algorithm, "typ": "JWT", "kid": name });
        let signed = format!("{}.{}", base64(head.to_string()), base64(claims.to_string()));
        let by = |key: &EcdsaKeyPair| {
            let made = key.sign(&SystemRandom::new(), signed.as_bytes()).expect("a signature");
            base64(made.as_ref())
        };
        let signature = match signing {
            Signing::Right => by(key),
            Signing::OtherKey => by(&self::key()),
            Signing::Secret => {
                let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, SECRET.as_bytes());
                base64(ring::hmac::sign(&key, signed.as_bytes()).as_ref())
            }
            Signing::Nothing => String::new(),
        };
        format!("{signed}.{signature}")
    }
}

type Answer = Result<Json<Value>, Response>;

impl Inside {
    fn up(&self) -> Result<(), Response> {
        let down = self.down.load(Ordering::SeqCst);
        if down { Err((StatusCode::SERVICE_UNAVAILABLE, "<b>down</b>").into_response()) } else { Ok(()) }
    }
}

async fn configuration(State(inside): State<Arc<Inside>>) -> Answer {
    inside.up()?;
    inside.discovered.fetch_add(1, Ordering::SeqCst);
    let base = inside.issuer.trim_end_matches("/realm");
    Ok(Json(json!({
        "issuer": inside.issuer,
        "authorization_endpoint": format!("{base}/authorize"),
        "token_endpoint": format!("{base}/token"),
        "jwks_uri": format!("{base}/keys"),
        "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256", "ES256", "HS256", "none"],
    })))
}

async fn keys(State(inside): State<Arc<Inside>>) -> Answer {
    inside.up()?;
    let keys = inside.key.lock();
    let (key, name) = &*keys;
    let (x, y) = key.public_key().as_ref()[1..].split_at(32);
    let key =
        json!({ "kty": "EC", "crv": "P-256", "use": "sig", "kid": name, "x": base64(x), "y": base64(y) });
    Ok(Json(json!({ "keys": [key] })))
}

async fn token(
    State(inside): State<Arc<Inside>>,
    headers: HeaderMap,
    Form(form): Form<BTreeMap<String, String>>,
) -> Answer {
    inside.up()?;
    let refused = |word: &str| (StatusCode::BAD_REQUEST, Json(json!({ "error": word }))).into_response();
    // RFC 6749, 2.3.1: both are written as in a form before they are joined.
    let written = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let expected = BASE64_STANDARD.encode(format!("{}:{}", written(CLIENT), written(SECRET)));
    if headers["authorization"] != format!("Basic {expected}") {
        return Err(refused("invalid_client"));
    }
    let code = inside.codes.lock().remove(&form["code"]).ok_or_else(|| refused("invalid_grant"))?;
    let proof = base64(ring::digest::digest(&ring::digest::SHA256, form["code_verifier"].as_bytes()));
    let fits = proof == code.challenge && form["redirect_uri"] == format!("{PAGES}{CALLBACK}");
    if !fits || form["grant_type"] != "authorization_code" {
        return Err(refused("invalid_grant"));
    }
    Ok(Json(json!({ "access_token": "x", "token_type": "Bearer", "id_token": code.token })))
}

/// Connects the gateway to the delivery crate's provider, as the server does.
struct Through(openid::Provider);

impl Through {
    fn sign_in(attempt: &Attempt) -> openid::SignIn<'_> {
        let Attempt { state, nonce, verifier, address, now } = attempt;
        openid::SignIn { state, nonce, verifier, address, now_ms: now.0 }
    }
}

fn problem(problem: Problem) -> NotSignedIn {
    if problem == Problem::Unavailable {
        NotSignedIn::Unavailable
    } else {
        NotSignedIn::Refused(problem.code())
    }
}

#[tonic::async_trait]
impl SignIn for Through {
    async fn page(&self, attempt: &Attempt) -> Result<String, NotSignedIn> {
        self.0.page(&Self::sign_in(attempt)).await.map_err(problem)
    }

    async fn address(&self, code: &str, attempt: &Attempt) -> Result<String, NotSignedIn> {
        self.0.address(code, &Self::sign_in(attempt)).await.map_err(problem)
    }
}
