//! The heads of requests that are passed on.

use http::{
    HeaderMap, HeaderName, HeaderValue, Request, StatusCode, Uri, Version, header, request::Parts,
    uri::PathAndQuery,
};
use std::time::Duration;
use switchward_machine::TenantId;
use switchward_state::catalogue::MapEpochs;

use super::client_address::ClientAddress;

/// The address of the client, in a request from a gateway or a server.
pub(super) const CLIENT: HeaderName = HeaderName::from_static("switchward-client");
/// The epoch of the map of the cluster: of a server's own in its answers to gateways and servers, and of the one by which
/// it was routed in a request.
pub(super) const EPOCH: HeaderName = HeaderName::from_static("switchward-epoch");
/// The first epoch at which the buckets had the same groups as by the sender's map, in a request beside [`EPOCH`].
const SINCE: HeaderName = HeaderName::from_static("switchward-epoch-since");
/// Set in the answer of a server that has not begun a request because it has another map: the epoch of that one.
pub(super) const OTHER_MAP: HeaderName = HeaderName::from_static("switchward-other-map");
/// Whose API key it is, in a server's answer to a gateway or a server, if the call came with a valid one: see [`keyed`].
pub(super) const KEYED: HeaderName = HeaderName::from_static("switchward-keyed");
/// Where a server answers with the map of the cluster, on connections of the cluster alone.
pub(super) const MAP_PATH: &str = "/-/route-map";
/// Where a server says what is true of it, on connections of the cluster alone.
pub(super) const FACTS_PATH: &str = "/-/facts";
/// The answer of a server that was removed from the cluster to a process that asks for the map.
pub(super) const REMOVED: StatusCode = StatusCode::GONE;
/// Where a server says whose a credential is, on connections of the cluster alone.
pub(super) const CREDENTIAL_PATH: &str = "/-/credential";
const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
/// Milliseconds that still fit into the eight digits of a gRPC time-out.
const GRPC_TIMEOUT_MS_MAX: u128 = 99_999_999;
/// The authority of a request that names none.
const NO_HOST: &str = "switchward";
/// Headers that are about one connection.
const OF_ONE_CONNECTION: [HeaderName; 5] = [
    header::CONNECTION,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// Returns true for a path at which servers answer processes of the cluster, and never clients.
pub(super) fn is_internal(path: &str) -> bool {
    [MAP_PATH, FACTS_PATH, CREDENTIAL_PATH].contains(&path)
}

/// What the names of [`INTERNAL`] begin with.
const INTERNAL_PREFIX: &str = "switchward-";
/// The headers that only processes of the cluster may send each other.
const INTERNAL: [HeaderName; 5] = [CLIENT, EPOCH, SINCE, OTHER_MAP, KEYED];

/// Removes the headers that only processes of the cluster may send each other.
pub(crate) fn strip_internal(headers: &mut HeaderMap) {
    // Clients send none, and one look at all names takes less than five searches.
    if headers.keys().any(|name| name.as_str().starts_with(INTERNAL_PREFIX)) {
        for name in INTERNAL {
            headers.remove(name);
        }
    }
}

/// The value of [`KEYED`] for a call with a valid API key of this tenant.
pub(super) fn keyed(tenant: TenantId) -> HeaderValue {
    HeaderValue::try_from(format!("t{}", tenant.0)).expect("a letter and digits")
}

/// The tenant of a value of [`KEYED`]; `None` if the server is of a version that does not say it.
pub(super) fn tenant_of_key(keyed: &HeaderValue) -> Option<TenantId> {
    keyed.to_str().ok()?.strip_prefix('t')?.parse().ok().map(TenantId)
}

/// Names the epochs of the map by which a request is routed.
pub(super) fn name_epochs(headers: &mut HeaderMap, epochs: MapEpochs) {
    headers.insert(EPOCH, HeaderValue::from(epochs.newest));
    headers.insert(SINCE, HeaderValue::from(epochs.since));
}

/// The epochs of the map by which a request was routed; `None` if it names none.
pub(super) fn epochs_named(headers: &HeaderMap) -> Option<MapEpochs> {
    Some(MapEpochs { since: epoch_at(headers, &SINCE)?, newest: epoch_at(headers, &EPOCH)? })
}

/// The epoch in a header; `None` if the header is missing or not a number.
pub(super) fn epoch_at(headers: &HeaderMap, name: &HeaderName) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.parse().ok()
}

/// What is passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A call of a method. What browsers ask about it, the gateway answers itself.
    Call,
    /// A page, a webhook, a mail.
    Page,
}

/// The request for another server, with the same method, path and headers, and with the time that is left.
pub(super) fn outgoing<B>(parts: &Parts, body: B, kind: Kind, left: Option<Duration>) -> Request<B> {
    let mut request = Request::new(body);
    *request.method_mut() = parts.method.clone();
    *request.version_mut() = Version::HTTP_2;
    *request.uri_mut() = uri(parts);
    let mut headers = parts.headers.clone();
    without_connection(&mut headers);
    strip_internal(&mut headers);
    if kind == Kind::Call {
        headers.remove(header::ORIGIN);
        // It may be that of another form of the message.
        headers.remove(header::CONTENT_LENGTH);
    }
    if headers.get(header::TE).is_some_and(|value| value != "trailers") {
        headers.remove(header::TE);
    }
    if let Some(left) = left {
        let left_ms = left.as_millis().clamp(1, GRPC_TIMEOUT_MS_MAX);
        let value = HeaderValue::try_from(format!("{left_ms}m")).expect("digits and a letter");
        headers.insert(GRPC_TIMEOUT, value);
    }
    if let Some(client) = parts.extensions.get::<ClientAddress>() {
        headers.insert(CLIENT, client.header());
    }
    *request.headers_mut() = headers;
    request
}

/// Removes what is about one connection, also what its `connection` header names.
pub(super) fn without_connection(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&OF_ONE_CONNECTION) {
        headers.remove(name);
    }
}

/// The whole URI, which HTTP/2 needs: with the host that the client has named.
fn uri(parts: &Parts) -> Uri {
    let path = parts.uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
    let host = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let named = parts.uri.authority().map(|authority| authority.as_str()).or(host).unwrap_or(NO_HOST);
    let of = |host: &str| Uri::builder().scheme("https").authority(host).path_and_query(path.clone()).build();
    of(named).or_else(|_| of(NO_HOST)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_says_whose_key_a_call_came_with() {
        for tenant in [TenantId(1), TenantId(u32::MAX)] {
            assert_eq!(tenant_of_key(&keyed(tenant)), Some(tenant));
        }
        for other in ["1", "t", "t-1", "t4294967296"] {
            assert_eq!(tenant_of_key(&HeaderValue::from_static(other)), None, "{other}");
        }
    }

    fn parts(build: impl FnOnce(http::request::Builder) -> http::request::Builder) -> Parts {
        build(Request::builder().method("POST").uri("/a/b?c=d")).body(()).unwrap().into_parts().0
    }

    #[test]
    fn a_client_cannot_say_where_it_comes_from() {
        let mut forged = parts(|it| {
            it.header("switchward-client", "10.0.0.1")
                .header("switchward-epoch", "9")
                .header("switchward-epoch-since", "9")
                .header("switchward-other-map", "9")
                .header("switchward-keyed", "1")
        });
        let sent = outgoing(&forged, (), Kind::Call, None);
        assert!(sent.headers().is_empty(), "{:?}", sent.headers());
        forged.extensions.insert(ClientAddress("192.0.2.7".parse().unwrap()));
        let sent = outgoing(&forged, (), Kind::Call, None);
        let all: Vec<_> = sent.headers().get_all(CLIENT).iter().collect();
        assert_eq!(all, ["192.0.2.7"]);
        assert_eq!(ClientAddress::read(all[0]), forged.extensions.get().copied());
    }

    #[test]
    fn each_internal_header_is_removed_also_alone() {
        for name in INTERNAL {
            let mut headers = HeaderMap::new();
            headers.insert(name.clone(), HeaderValue::from_static("9"));
            strip_internal(&mut headers);
            assert!(headers.is_empty(), "{name}");
        }
    }

    #[test]
    fn the_epochs_of_a_request_are_read_back_and_half_of_them_are_none() {
        let epochs = MapEpochs { since: 3, newest: u64::MAX };
        let mut headers = HeaderMap::new();
        name_epochs(&mut headers, epochs);
        assert_eq!(epochs_named(&headers), Some(epochs));
        headers.insert(SINCE, HeaderValue::from_static("-1"));
        assert_eq!((epochs_named(&headers), epoch_at(&headers, &EPOCH)), (None, Some(u64::MAX)));
        headers.remove(SINCE);
        assert_eq!(epochs_named(&headers), None);
    }

    #[test]
    fn headers_of_a_connection_stay_on_it_and_the_time_is_what_is_left() {
        let given = parts(|it| {
            it.header("host", "api.example:7400")
                .header("connection", "keep-alive, x-hop")
                .header("x-hop", "1")
                .header("transfer-encoding", "chunked")
                .header("grpc-timeout", "10S")
                .header("authorization", "Bearer swk_x")
                .header("te", "trailers")
                .header("origin", "https://a.example")
        });
        let sent = outgoing(&given, (), Kind::Call, Some(Duration::from_millis(1_234)));
        let names: Vec<&str> = sent.headers().keys().map(HeaderName::as_str).collect();
        assert_eq!(names.len(), 4, "{names:?}");
        assert_eq!(sent.headers()["grpc-timeout"], "1234m");
        assert_eq!(sent.headers()["authorization"], "Bearer swk_x");
        assert_eq!(sent.uri(), "https://api.example:7400/a/b?c=d");
        assert!(outgoing(&given, (), Kind::Page, None).headers().contains_key("origin"));
        let none = parts(|it| it.header("host", "not a host"));
        assert_eq!(outgoing(&none, (), Kind::Page, None).uri(), "https://switchward/a/b?c=d");
    }
}
