//! What stands before every gRPC service: headers and messages within limits, whole frames, deadlines kept, and every
//! error with its details.
//!
//! tonic answers a cut-off frame or a missing message with `INTERNAL` and knows no deadlines outside its own server.
//! Here a malformed request never gets as far as tonic.

use axum::body::Body;
use http::{HeaderMap, HeaderName, Request, Response, Uri};
use std::convert::Infallible;
use std::pin::pin;
use std::time::Duration;
use tonic::Status;

use crate::admission::{Admission, Hold};
use crate::around::{Answer, Answers, Around};
use crate::beside::Beside;
use crate::body;
use crate::calls::{FRAME_HEADER_BYTES, method_at, unframe};
use crate::error::{Reason, Refusal};
use crate::limits::{HEADERS_BYTES_MAX, MESSAGE_BYTES_MAX, URI_BYTES_MAX};

const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
const GRPC_ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
/// Digits that the gRPC specification allows in a time-out.
const TIMEOUT_DIGITS_MAX: usize = 8;

/// See the module.
#[derive(Clone)]
pub(crate) struct Guard(pub(crate) Admission);

impl<S: Answers + Clone + 'static> Around<S> for Guard {
    fn answer(&self, inner: &S, request: Request<Body>) -> Answer {
        let deadline = match check_headers(&request).and_then(|()| deadline(request.headers())) {
            Ok(deadline) => deadline,
            Err(refusal) => return Box::pin(refused_unread(request, refusal)),
        };
        if deadline.is_some_and(|left| left.is_zero()) {
            let message = "the deadline had passed before the call began; nothing was done";
            return Box::pin(refused_unread(request, Refusal::new(Reason::DeadlineExceeded, message)));
        }
        let (inner, admission) = (inner.clone(), self.0.clone());
        // It is large, and never moves out of its box.
        let answer: Answer =
            Box::pin(async move { Ok(answered(inner, &admission, request).await.unwrap_or_else(refused)) });
        match deadline {
            None => answer,
            Some(left) => Box::pin(in_time(left, answer)),
        }
    }
}

/// Answers a call that its head refuses.
async fn refused_unread(request: Request<Body>, refusal: Refusal) -> Result<Response<Body>, Infallible> {
    body::discard_refused(request.into_body()).await;
    Ok(refused(refusal))
}

/// Answers a call whose head is within its limits.
async fn answered(
    inner: impl Answers,
    admission: &Admission,
    request: Request<Body>,
) -> Result<Response<Body>, Refusal> {
    let path = request.uri().path();
    let method = method_at(path);
    if method.is_none() && !Admission::guards(path) {
        // Health checks have no credential and small bodies.
        let (parts, body) = request.into_parts();
        let bytes = body::read_small(body, FRAME_HEADER_BYTES).await?;
        let request = Request::from_parts(parts, Body::from(bytes));
        let Ok(response) = inner.answer(request).await;
        return Ok(dressed(response));
    }
    let mut hold = match admission.admit(path, request.headers(), request.extensions()).await {
        Ok(hold) => hold,
        Err(refusal) => {
            body::discard_refused(request.into_body()).await;
            return Err(refusal);
        }
    };
    let mut request = request;
    if let Some(key) = hold.key.take() {
        request.extensions_mut().insert(key);
    }
    let (request, bytes) = match method {
        Some(_) => whole(request, &mut hold).await?,
        None => (request, 0),
    };
    let permit = admission.permit(hold.share, bytes).await?;
    let work = pin!(inner.answer(request));
    let Ok(response) = Beside::new(bytes, permit, work).await;
    Ok(dressed(response))
}

/// The answer within the time that the call has left. A stream is let go on: the time-out is over once its headers are sent.
async fn in_time(left: Duration, answer: Answer) -> Result<Response<Body>, Infallible> {
    tokio::time::timeout(left, answer).await.unwrap_or_else(|_| {
        let message = format!(
            "the deadline of {} ms has passed; the call may still have taken effect",
            left.as_millis()
        );
        Ok(refused(Refusal::new(Reason::DeadlineExceeded, message)))
    })
}

/// Refuses a path and query above its limit.
pub(crate) fn check_uri(uri: &Uri) -> Result<(), Refusal> {
    if path_bytes(uri) <= URI_BYTES_MAX {
        return Ok(());
    }
    let message = format!("the request's path and query are larger than {URI_BYTES_MAX} bytes");
    Err(Refusal::new(Reason::QuotaExceeded, message.clone())
        .meta("limit_bytes", URI_BYTES_MAX)
        .quota("uri", message))
}

fn path_bytes(uri: &Uri) -> usize {
    uri.path_and_query().map_or(0, |path| path.as_str().len())
}

/// Refuses a head above its limit, which counts names and values of the headers, the method and the URI: all of them are
/// headers of a request that is passed on.
pub(crate) fn check_headers<B>(request: &Request<B>) -> Result<(), Refusal> {
    let headers = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len());
    let host = request.uri().authority().map_or(0, |host| host.as_str().len());
    let first = request.method().as_str().len() + host + path_bytes(request.uri());
    if headers.sum::<usize>() + first <= HEADERS_BYTES_MAX {
        return Ok(());
    }
    let message = format!("the request's headers are larger than {HEADERS_BYTES_MAX} bytes");
    Err(Refusal::new(Reason::QuotaExceeded, message.clone())
        .meta("limit_bytes", HEADERS_BYTES_MAX)
        .quota("headers", message))
}

/// The request with its body read and checked: one whole frame; and how many bytes it has.
async fn whole(request: Request<Body>, hold: &mut Hold) -> Result<(Request<Body>, usize), Refusal> {
    let (parts, body) = request.into_parts();
    let bytes = body::read(body, MESSAGE_BYTES_MAX, FRAME_HEADER_BYTES, &mut hold.body).await?;
    let message = unframe(&bytes)?;
    let encoding = parts.headers.get(GRPC_ENCODING).map(http::HeaderValue::as_bytes);
    if message.compressed && matches!(encoding, None | Some(b"identity")) {
        return Err(Refusal::field(
            GRPC_ENCODING.as_str(),
            "must name the compression of a compressed message",
        ));
    }
    let length = bytes.len();
    Ok((Request::from_parts(parts, Body::from(bytes)), length))
}

/// How long the call may take: `grpc-timeout`, up to eight digits and a unit.
pub(crate) fn deadline(headers: &HeaderMap) -> Result<Option<Duration>, Refusal> {
    let Some(value) = headers.get(GRPC_TIMEOUT) else { return Ok(None) };
    let bad = || {
        Refusal::field(
            GRPC_TIMEOUT.as_str(),
            "must be one to eight digits followed by one of H, M, S, m, u, n",
        )
    };
    let text = value.to_str().map_err(|_| bad())?;
    let digits = text.len().saturating_sub(1);
    if !(1..=TIMEOUT_DIGITS_MAX).contains(&digits)
        || !text.bytes().take(digits).all(|byte| byte.is_ascii_digit())
    {
        return Err(bad());
    }
    let amount: u64 = text[..digits].parse().map_err(|_| bad())?;
    let duration = match &text[digits..] {
        "H" => Duration::from_secs(amount * 3_600),
        "M" => Duration::from_secs(amount * 60),
        "S" => Duration::from_secs(amount),
        "m" => Duration::from_millis(amount),
        "u" => Duration::from_micros(amount),
        "n" => Duration::from_nanos(amount),
        _ => return Err(bad()),
    };
    Ok(Some(duration))
}

/// Adds details to an error that a layer below gave in words alone.
fn dressed(response: Response<Body>) -> Response<Body> {
    if !response.headers().contains_key(Status::GRPC_STATUS) {
        return response;
    }
    let Some(status) =
        Status::from_header_map(response.headers()).filter(|status| status.details().is_empty())
    else {
        return response;
    };
    match Refusal::dressing(&status) {
        Some(refusal) => {
            let mut better = Status::from(refusal);
            *better.metadata_mut() = status.metadata().clone();
            better.into_http()
        }
        None => response,
    }
}

fn refused(refusal: Refusal) -> Response<Body> {
    Status::from(refusal).into_http()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_method_and_the_uri_count_as_headers() {
        let request = |method: &str, uri: &str, value: usize| {
            let request = Request::builder().method(method).uri(uri).header("x", "v".repeat(value));
            request.body(()).expect("a request")
        };
        let rest = HEADERS_BYTES_MAX - 1;
        assert_eq!(check_headers(&request("GET", "/", rest - 4)), Ok(()));
        assert!(check_headers(&request("GET", "/", rest - 3)).is_err());
        assert!(check_headers(&request("GET", "https://a.example/", rest - 4)).is_err());
        assert!(check_headers(&request(&"M".repeat(HEADERS_BYTES_MAX), "/", 0)).is_err());
        let path = |bytes: usize| format!("/{}", "a".repeat(bytes - 1)).parse::<Uri>().expect("a URI");
        assert_eq!(check_uri(&path(URI_BYTES_MAX)), Ok(()));
        let refusal = check_uri(&path(URI_BYTES_MAX + 1)).expect_err("it is too long");
        assert_eq!((refusal.reason(), refusal.limit()), (Reason::QuotaExceeded, Some("uri")));
    }

    #[test]
    fn timeouts_are_read_as_the_specification_says() {
        let read = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(GRPC_TIMEOUT, text.parse().unwrap());
            deadline(&headers)
        };
        assert_eq!(read("1H").unwrap(), Some(Duration::from_secs(3_600)));
        assert_eq!(read("99999999m").unwrap(), Some(Duration::from_millis(99_999_999)));
        assert_eq!(read("0n").unwrap(), Some(Duration::ZERO));
        assert_eq!(deadline(&HeaderMap::new()).unwrap(), None);
        for bad in ["", "m", "1", "1 m", "-1m", "+1m", "1x", "123456789m", "1.5S", "1mm"] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }
}
