//! The method and the headers that a sender may name.

use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use switchward_state::delivery::{HeaderProblem, RequestProblem, SizedPart};

use crate::failed::length;
use crate::limits::{METHOD_BYTES_MAX, REQUEST_HEADERS_BYTES_MAX, REQUEST_HEADERS_MAX};
use crate::{DeliveryDetail, DeliveryReason, Failed};

/// Hop-by-hop headers, and those that the transport sets itself.
const OWN: &[&str] = &[
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Reads a method; `CONNECT` and `TRACE` are for proxies and are refused.
pub(super) fn read_method(text: &str) -> Result<Method, Failed> {
    let refused = || Failed::new(DeliveryReason::RequestInvalid, RequestProblem::Method);
    if text.len() > METHOD_BYTES_MAX {
        return Err(refused());
    }
    let method = Method::from_bytes(text.as_bytes()).map_err(|_| refused())?;
    if method == Method::CONNECT || method == Method::TRACE { Err(refused()) } else { Ok(method) }
}

/// Reads headers in order.
pub(super) fn read_headers(headers: &[(String, String)]) -> Result<HeaderMap, Failed> {
    if headers.len() > REQUEST_HEADERS_MAX {
        let (count, max) = (length(headers.len()), length(REQUEST_HEADERS_MAX));
        let problem = RequestProblem::TooManyHeaders { count, max };
        return Err(Failed::new(DeliveryReason::RequestTooLarge, problem));
    }
    let bytes: usize = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > REQUEST_HEADERS_BYTES_MAX {
        let (part, bytes, max) = (SizedPart::Headers, length(bytes), length(REQUEST_HEADERS_BYTES_MAX));
        let detail = DeliveryDetail::TooLarge { part, bytes, max };
        return Err(Failed::new(DeliveryReason::RequestTooLarge, detail));
    }
    let mut map = HeaderMap::new();
    for (index, (name, value)) in headers.iter().enumerate() {
        let refused = |problem: HeaderProblem| {
            let problem = RequestProblem::Header { number: length(index + 1), problem };
            Failed::new(DeliveryReason::RequestInvalid, problem)
        };
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| refused(HeaderProblem::Name))?;
        if OWN.contains(&name.as_str()) {
            return Err(refused(HeaderProblem::OfServer { name: name.to_string() }));
        }
        if value.chars().any(|char| char.is_control() && char != '\t') {
            return Err(refused(HeaderProblem::ControlCharacter));
        }
        let value = HeaderValue::from_str(value).map_err(|_| refused(HeaderProblem::Value))?;
        map.append(name, value);
    }
    Ok(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason_of(name: &str, value: &str) -> Option<DeliveryReason> {
        read_headers(&[(name.to_owned(), value.to_owned())]).err().map(|error| error.reason)
    }

    #[test]
    fn ordinary_headers_pass_in_order() {
        let headers = [("X-A", "1"), ("x-a", "2"), ("Authorization", "Bearer ä\tb")];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let map = read_headers(&headers).expect("the headers are valid");
        assert_eq!(map.get_all("x-a").iter().collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(map.len(), 3);
    }

    #[test]
    fn what_would_begin_a_line_of_its_own_is_refused() {
        for bad in ["a\rb", "a\nb", "a\r\nHost: b", "a\0b", "a\u{7f}b", "a\u{85}b"] {
            assert_eq!(reason_of("x-a", bad), Some(DeliveryReason::RequestInvalid), "{bad:?}");
            assert_eq!(reason_of(bad, "a"), Some(DeliveryReason::RequestInvalid), "{bad:?}");
        }
        for name in ["", "a b", "a:b", "ä"] {
            assert_eq!(reason_of(name, "a"), Some(DeliveryReason::RequestInvalid), "{name:?}");
        }
    }

    #[test]
    fn what_the_transport_sets_is_refused_in_any_case() {
        for name in OWN {
            assert_eq!(reason_of(name, "a"), Some(DeliveryReason::RequestInvalid), "{name}");
            assert_eq!(reason_of(&name.to_uppercase(), "a"), Some(DeliveryReason::RequestInvalid), "{name}");
        }
    }

    #[test]
    fn there_are_not_more_than_can_be_sent() {
        let many = vec![("a".to_owned(), "b".to_owned()); REQUEST_HEADERS_MAX + 1];
        assert_eq!(read_headers(&many).map_err(|error| error.reason), Err(DeliveryReason::RequestTooLarge));
        assert_eq!(
            reason_of("a", &"b".repeat(REQUEST_HEADERS_BYTES_MAX)),
            Some(DeliveryReason::RequestTooLarge)
        );
        assert_eq!(reason_of("a", &"b".repeat(REQUEST_HEADERS_BYTES_MAX - 1)), None);
    }

    #[test]
    fn methods_are_words_and_not_for_proxies() {
        assert_eq!(read_method("PATCH"), Ok(Method::PATCH));
        for bad in ["", "GET /", "CONNECT", "TRACE", "A\r\nB", &"A".repeat(METHOD_BYTES_MAX + 1)] {
            assert!(read_method(bad).is_err(), "{bad:?}");
        }
    }
}
