//! How each call finds a server that can answer it: the option `route` of every method, as a table.

use prost::bytes::Buf as _;
use prost::encoding::{DecodeContext, WireType, decode_key, skip_field};

/// How a call finds a server that can answer it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// What the call needs a replica of.
    pub to: RouteTo,
    /// Whether it changes anything.
    pub effect: Effect,
}

/// What a call needs a replica of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouteTo {
    /// The shard of one session.
    Session {
        /// The number of the request's field that names the session, or a gate, an effect or a work item of it.
        field: u32,
    },
    /// The catalogue, which is group 0.
    Catalogue,
    /// All shards: the call is about rows of each.
    AllShards,
    /// Nothing: any server answers.
    AnyServer,
}

/// Whether a call changes anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It only reads, so it can be sent again.
    Reads,
    /// It may change something.
    Changes,
}

/// The routes of all methods, sorted by path. A method without one fails the build.
pub const ROUTES: &[(&str, Route)] = include!(concat!(env!("OUT_DIR"), "/routes.rs"));

/// Returns the route of the method at this path, such as `/switchward.v1.SessionService/GetSession`; `None` if there is no such
/// method.
#[must_use]
pub fn route(path: &str) -> Option<Route> {
    let at = ROUTES.binary_search_by_key(&path, |(path, _)| path).ok()?;
    Some(ROUTES[at].1)
}

/// Returns the text of a top-level field of an encoded message; `None` if it is absent or not text, or if the message cannot
/// be read. If the field occurs several times, the last one counts, as in decoders.
#[must_use]
pub fn text_field(message: &[u8], wanted: u32) -> Option<&str> {
    let mut rest = message;
    let mut found = None;
    while rest.has_remaining() {
        let (tag, wire) = decode_key(&mut rest).ok()?;
        let before = rest;
        skip_field(wire, tag, &mut rest, DecodeContext::default()).ok()?;
        if tag == wanted && wire == WireType::LengthDelimited {
            let whole = &before[..before.len() - rest.len()];
            let mut value = whole;
            prost::encoding::decode_varint(&mut value).ok()?;
            found = std::str::from_utf8(value).ok();
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::descriptor_pool;
    use prost::Message as _;
    use prost_reflect::{DynamicMessage, MethodDescriptor, Value};

    fn methods() -> Vec<(String, MethodDescriptor)> {
        let methods = descriptor_pool().services().flat_map(|service| service.methods().collect::<Vec<_>>());
        let path =
            |method: &MethodDescriptor| format!("/{}/{}", method.parent_service().full_name(), method.name());
        methods.map(|method| (path(&method), method)).collect()
    }

    #[test]
    fn every_method_has_a_route_and_there_are_no_others() {
        let mut paths: Vec<String> = methods().into_iter().map(|(path, _)| path).collect();
        paths.sort();
        let listed: Vec<&str> = ROUTES.iter().map(|(path, _)| *path).collect();
        assert_eq!(listed, paths);
        assert!(paths.iter().all(|path| route(path).is_some()));
        assert_eq!(route("/switchward.v1.SessionService/"), None);
        assert_eq!(route("/grpc.health.v1.Health/Check"), None);
    }

    #[test]
    fn the_session_of_each_call_is_found_in_its_bytes() {
        let mut found = 0;
        for (path, method) in methods() {
            let Some(Route { to: RouteTo::Session { field }, .. }) = route(&path) else { continue };
            let mut request = DynamicMessage::new(method.input());
            for other in method.input().fields() {
                let text = other.kind() == prost_reflect::Kind::String && !other.is_list();
                if text {
                    request.set_field(&other, Value::String(format!("field {}", other.number())));
                }
            }
            assert_eq!(
                text_field(&request.encode_to_vec(), field),
                Some(&*format!("field {field}")),
                "{path}"
            );
            found += 1;
        }
        assert!(found > 20, "{found} methods are about one session");
    }

    #[test]
    fn what_is_about_no_session_goes_to_all_shards_the_catalogue_or_any_server() {
        assert_eq!(
            route("/switchward.v1.SessionService/ListSessions"),
            Some(Route { to: RouteTo::AllShards, effect: Effect::Reads })
        );
        assert_eq!(
            route("/switchward.v1.TenantService/CreateTenant"),
            Some(Route { to: RouteTo::Catalogue, effect: Effect::Changes })
        );
        assert_eq!(
            route("/switchward.v1.ClusterService/GetCluster"),
            Some(Route { to: RouteTo::AnyServer, effect: Effect::Reads })
        );
    }

    #[test]
    fn what_is_no_message_has_no_fields() {
        let request = crate::v1::GetSessionRequest { name: "ses_1".into(), ..Default::default() };
        let bytes = request.encode_to_vec();
        assert_eq!(text_field(&bytes, 1), Some("ses_1"));
        assert_eq!(text_field(&bytes, 2), None);
        let twice = [
            &bytes[..],
            &crate::v1::GetSessionRequest { name: "ses_2".into(), ..Default::default() }.encode_to_vec(),
        ]
        .concat();
        assert_eq!(text_field(&twice, 1), Some("ses_2"), "decoders take the last one");
        for bad in [&b"\xff"[..], b"\x0a\x05ab", b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f"] {
            assert_eq!(text_field(bad, 1), None, "{bad:?}");
        }
        assert_eq!(text_field(b"\x0a\x01\xff", 1), None, "a text is valid UTF-8");
    }
}
