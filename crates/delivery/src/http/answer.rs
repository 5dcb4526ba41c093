//! Reads an answer up to its size limit, or only its head.

use std::time::Duration;

use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use serde_json::Value;
use switchward_state::delivery::ExchangeProblem;
use tokio::time::timeout;

use super::Response;
use crate::failed::length;
use crate::limits::{ANSWER_BODY_BYTES_MAX, ANSWER_REST_BYTES_MAX, ANSWER_REST_MS, RETRY_AFTER_MS_MAX};
use crate::{DeliveryReason, Failed};

/// Reads a whole answer.
pub(super) async fn read(mut response: reqwest::Response) -> Result<Response, Failed> {
    check_encoding(response.headers())?;
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(super::client::failed)? {
        if body.len() + chunk.len() > ANSWER_BODY_BYTES_MAX {
            return Err(too_large());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Response {
        status: response.status().as_u16(),
        retry_after: retry_after(response.headers()),
        body: value_of(&body, response.headers()),
    })
}

/// Reads the head of an answer, and drops its body.
pub(super) async fn head(mut response: reqwest::Response) -> Response {
    let (status, retry_after) = (response.status().as_u16(), retry_after(response.headers()));
    // Only a connection whose answer was read to its end can be used for another request. If that takes too long, it is closed.
    let _closed = timeout(Duration::from_millis(ANSWER_REST_MS), drop_short(&mut response)).await;
    Response { status, body: Value::Null, retry_after }
}

/// Reads a body to its end, unless it is long or breaks off.
async fn drop_short(response: &mut reqwest::Response) {
    let mut left = ANSWER_REST_BYTES_MAX;
    while let Ok(Some(chunk)) = response.chunk().await
        && chunk.len() <= left
    {
        left -= chunk.len();
    }
}

fn too_large() -> Failed {
    let problem = ExchangeProblem::AnswerSize { max: length(ANSWER_BODY_BYTES_MAX) };
    Failed::new(DeliveryReason::AnswerTooLarge, problem)
}

/// Nothing is decompressed, so nothing grows while it is read.
fn check_encoding(headers: &HeaderMap) -> Result<(), Failed> {
    let plain = |value: &[u8]| value.is_empty() || value.eq_ignore_ascii_case(b"identity");
    if headers.get_all(CONTENT_ENCODING).iter().all(|value| plain(value.as_bytes())) {
        return Ok(());
    }
    Err(Failed::new(DeliveryReason::EncodingRefused, ExchangeProblem::Compressed))
}

/// How long a receiver asks to wait, in seconds. A date is ignored: its clock may differ from ours.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: u64 = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_millis(seconds.saturating_mul(1_000).min(RETRY_AFTER_MS_MAX)))
}

/// JSON if the content type says so or is missing, or if the body looks like it; else a string.
fn value_of(body: &[u8], headers: &HeaderMap) -> Value {
    if body.is_empty() {
        return Value::Null;
    }
    let name = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let name = name.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
    let called_json = name.is_empty() || name.ends_with("/json") || name.ends_with("+json");
    let looks_so = matches!(body.trim_ascii_start().first(), Some(b'{' | b'['));
    let json = if called_json || looks_so { serde_json::from_slice(body).ok() } else { None };
    json.unwrap_or_else(|| Value::String(String::from_utf8_lossy(body).into_owned()))
}

#[cfg(test)]
mod tests {
    use reqwest::header::HeaderValue;
    use serde_json::json;

    use super::*;

    fn value(content_type: Option<&'static str>, body: &str) -> Value {
        let mut headers = HeaderMap::new();
        if let Some(content_type) = content_type {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        }
        value_of(body.as_bytes(), &headers)
    }

    #[test]
    fn json_is_read_and_everything_else_is_a_text() {
        assert_eq!(value(Some("application/json; charset=utf-8"), "3"), json!(3));
        assert_eq!(value(Some("application/problem+JSON"), "null"), json!(null));
        assert_eq!(value(None, "true"), json!(true));
        assert_eq!(value(Some("text/plain"), "3"), json!("3"));
        assert_eq!(value(Some("text/plain"), " {\"a\":1}"), json!({"a": 1}));
        assert_eq!(value(Some("application/json"), "{\"a\":"), json!("{\"a\":"));
        assert_eq!(value(Some("application/json"), &"[".repeat(100_000)), json!("[".repeat(100_000)));
        assert_eq!(value(Some("application/json"), ""), json!(null));
    }

    #[test]
    fn a_wait_is_believed_within_reason() {
        let wait = |text| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, HeaderValue::from_static(text));
            retry_after(&headers)
        };
        assert_eq!(wait("7"), Some(Duration::from_secs(7)));
        assert_eq!(wait("99999999999999999"), Some(Duration::from_millis(RETRY_AFTER_MS_MAX)));
        assert_eq!(wait("-1"), None);
        assert_eq!(wait("Wed, 21 Oct 2015 07:28:00 GMT"), None);
    }
}
