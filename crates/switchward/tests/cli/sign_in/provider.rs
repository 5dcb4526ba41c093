//! An OpenID provider on this machine, which signs by RSA and SHA-256 as most do.

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::attacks::signer::Key;

const CLIENT: &str = "switchward";
/// How long codes are kept back at most.
const HELD: Duration = Duration::from_secs(90);
/// The largest request, head and body, bytes.
const REQUEST_BYTES_MAX: u64 = 64 * 1024;

#[derive(Default)]
struct Inside {
    /// The ID tokens, by the codes that they are given for.
    tokens: Mutex<HashMap<String, String>>,
    /// Whether answers to codes are held back, and how many codes came.
    held: Mutex<(bool, usize)>,
    changed: Condvar,
}

/// See the module. It ends with the process.
pub(crate) struct Provider {
    pub(crate) issuer: String,
    inside: Arc<Inside>,
}

fn base64(bytes: impl AsRef<[u8]>) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// The value of a parameter of an address.
pub(crate) fn parameter(address: &str, name: &str) -> String {
    let query = address.split_once('?').map(|(_, query)| query).unwrap_or_default();
    let value = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    value.unwrap_or_else(|| panic!("{name}: {address}")).to_owned()
}

impl Provider {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let issuer = format!("http://{}", listener.local_addr().expect("it is bound"));
        let inside = Arc::new(Inside::default());
        let (of_all, shared_issuer) = (Arc::clone(&inside), issuer.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (inside, issuer) = (Arc::clone(&of_all), shared_issuer.clone());
                std::thread::spawn(move || inside.answer(&issuer, &stream.expect("a connection")));
            }
        });
        Self { issuer, inside }
    }

    /// Signs a person in on the page of this address. Returns the code and the state that their browser comes back with. The
    /// claims of the ID token are those of the right person, as `change` leaves them; `broken` changes the signature.
    pub(crate) fn back(&self, page: &str, broken: bool, change: &Value) -> (String, String) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
        let mut claims = json!({
            "iss": self.issuer, "aud": CLIENT, "sub": "4711", "exp": now + 300, "iat": now,
            "nonce": parameter(page, "nonce"), "email": "lead@example.com", "email_verified": true,
        });
        for (name, value) in change.as_object().expect("claims") {
            claims[name] = value.clone();
        }
        let head = json!({ "alg": "RS256", "typ": "JWT", "kid": "k1" });
        let signed = format!("{}.{}", base64(head.to_string()), base64(claims.to_string()));
        let mut signature = Key::good().signature(&signed);
        signature[7] ^= u8::from(broken);
        let mut tokens = self.inside.tokens.lock().expect("no test has failed");
        let code = format!("code-{}", signature.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        tokens.insert(code.clone(), format!("{signed}.{}", base64(signature)));
        (code, parameter(page, "state"))
    }

    /// From now on codes are answered no more, or all that wait are.
    pub(crate) fn hold(&self, held: bool) {
        self.inside.held.lock().expect("no test has failed").0 = held;
        self.inside.changed.notify_all();
    }

    /// Waits until this many codes came.
    pub(crate) fn until_came(&self, count: usize) {
        let held = self.inside.held.lock().expect("no test has failed");
        let (held, _) = self
            .inside
            .changed
            .wait_timeout_while(held, HELD, |held| held.1 < count)
            .expect("no test has failed");
        assert_eq!(held.1, count);
    }
}

impl Inside {
    /// Answers one request, and closes the connection. One that is too long, or of which nothing comes for [`HELD`], ends its
    /// thread.
    fn answer(&self, issuer: &str, mut stream: &TcpStream) {
        stream.set_read_timeout(Some(HELD)).expect("a limit");
        let mut reader = BufReader::new(stream.take(REQUEST_BYTES_MAX));
        let (mut line, mut length) = (String::new(), 0);
        reader.read_line(&mut line).expect("a request");
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).expect("a head");
            if let Some(value) = header.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
            if header.trim().is_empty() {
                break;
            }
        }
        let mut body = Vec::new();
        reader.take(length).read_to_end(&mut body).expect("a body");
        let reply = match line.split(' ').nth(1).unwrap_or_default() {
            "/.well-known/openid-configuration" => json!({
                "issuer": issuer,
                "authorization_endpoint": format!("{issuer}/authorize"),
                "token_endpoint": format!("{issuer}/token"),
                "jwks_uri": format!("{issuer}/keys"),
                "response_types_supported": ["code"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["RS256"],
            }),
            "/keys" => {
                let modulus = base64(Key::good().modulus());
                json!({ "keys": [{ "kty": "RSA", "use": "sig", "kid": "k1", "n": modulus, "e": "AQAB" }] })
            }
            _ => self.token(&String::from_utf8_lossy(&body)),
        };
        let reply = reply.to_string();
        let length = reply.len();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
        );
        // The client may be gone.
        let _gone = stream.write_all(format!("{head}{reply}").as_bytes());
    }

    /// The ID token of the code in a form.
    fn token(&self, form: &str) -> Value {
        let mut held = self.held.lock().expect("no test has failed");
        held.1 += 1;
        self.changed.notify_all();
        drop(self.changed.wait_timeout_while(held, HELD, |held| held.0).expect("no test has failed"));
        let code = parameter(&format!("?{form}"), "code");
        let token = self.tokens.lock().expect("no test has failed").remove(&code).expect("a code of ours");
        json!({ "access_token": "x", "token_type": "Bearer", "id_token": token })
    }
}
