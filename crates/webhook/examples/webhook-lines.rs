//! Signs and verifies for programs in other languages: a JSON object a line in, a JSON object a line out.
//!
//! `{"do":"sign","secrets":[..],"id":..,"now":SECONDS,"body":BASE64}` is answered with `{"headers":{..}}`, and
//! `{"do":"verify","kind":..,"secrets":[..],"headers":[[name,value],..],"now":SECONDS,"body":BASE64}` with
//! `{"id":..}` or `{"refused":WORD}`.

#![expect(clippy::disallowed_methods, reason = "a program that talks over its standard streams")]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{BufRead as _, Write as _};
use std::time::Duration;
use switchward_webhook::{Headers, SigningSecret, SourceKind, Unproven, standard, verify};

#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "lowercase")]
enum Ask {
    Sign { secrets: Vec<String>, id: String, now: u64, body: String },
    Verify { kind: String, secrets: Vec<String>, headers: Vec<(String, String)>, now: u64, body: String },
}

fn answer(line: &str) -> Result<Value, Box<dyn std::error::Error>> {
    Ok(match serde_json::from_str(line)? {
        Ask::Sign { secrets, id, now, body } => {
            let secrets: Vec<SigningSecret> =
                secrets.iter().map(|secret| secret.parse()).collect::<Result<_, _>>()?;
            let signed = standard::sign(&secrets, &id, Duration::from_secs(now), &STANDARD.decode(body)?)?;
            let headers: serde_json::Map<String, Value> =
                signed.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
            json!({ "headers": headers })
        }
        Ask::Verify { kind, secrets, headers, now, body } => {
            let kind = SourceKind::from_word(&kind).ok_or("unknown kind")?;
            let secrets: Vec<&str> = secrets.iter().map(String::as_str).collect();
            let pairs: Vec<(&str, &[u8])> =
                headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
            let (headers, now) = (Headers::new(&pairs), Duration::from_secs(now));
            match verify(kind, &secrets, headers, &STANDARD.decode(body)?, now, Unproven::Refused) {
                Ok(verified) => json!({ "id": verified.id }),
                Err(reason) => json!({ "refused": reason.word() }),
            }
        }
    })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        writeln!(out, "{}", answer(&line?)?)?;
        out.flush()?;
    }
    Ok(())
}
