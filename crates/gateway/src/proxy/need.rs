//! What a call needs a replica of: by its method's route and, if that is a session, by the bytes of the request.

use switchward_api::{Effect, Route, RouteTo, route, text_field};
use switchward_machine::{Bucket, SessionId};

use crate::calls::Message;

/// What a call needs a replica of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// The shard that owns a bucket.
    Bucket(Bucket),
    /// The catalogue, which is group 0.
    Catalogue,
    /// All shards: the call is about rows of each.
    AllShards,
    /// Nothing.
    AnyServer,
}

impl Need {
    /// What the call at this path with this message needs, and whether it changes anything; `None` if there is no such
    /// method. A compressed message, a field that is empty, and a session's business key, whose bucket depends on the
    /// caller's tenant, do not say which shard: then any server finds the session.
    pub(crate) fn of(path: &str, message: Option<&Message>) -> Option<(Self, Effect)> {
        let Route { to, effect } = route(path)?;
        let need = match to {
            RouteTo::Session { field } => {
                let readable = message.filter(|message| !message.compressed);
                let name = readable.and_then(|message| text_field(&message.bytes, field));
                name.and_then(session).map_or(Self::AnyServer, |session| Self::Bucket(session.bucket()))
            }
            RouteTo::Catalogue => Self::Catalogue,
            RouteTo::AllShards => Self::AllShards,
            RouteTo::AnyServer => Self::AnyServer,
        };
        Some((need, effect))
    }

    /// What a page at this path needs. Only `/v1/webhook/{session}/{state}` says it.
    pub(crate) fn of_page(path: &str) -> Self {
        let id = path.strip_prefix("/v1/webhook/").and_then(|rest| rest.split('/').next());
        id.and_then(session).map_or(Self::AnyServer, |session| Self::Bucket(session.bucket()))
    }
}

/// Methods of one session or of the catalogue that execute several commands, or act outside the cluster.
const SEVERAL_COMMANDS: [&str; 2] = [
    "/switchward.v1.TenantService/CreateTenant",
    "/switchward.v1.WebhookEndpointService/PingWebhookEndpoint",
];

/// Returns true if the method at this path may have changed something before it failed: it executes several commands, or may
/// do so because it is about all shards or no shard.
pub(super) fn has_several_commands(path: &str) -> bool {
    let Some(Route { to, effect }) = route(path) else { return false };
    let is_one = match to {
        RouteTo::Session { .. } | RouteTo::Catalogue => !SEVERAL_COMMANDS.contains(&path),
        RouteTo::AllShards | RouteTo::AnyServer => false,
    };
    effect == Effect::Changes && !is_one
}

/// The session of a resource name, or of the name of one of its gates, effects or work items; `None` if it contains no id.
fn session(name: &str) -> Option<SessionId> {
    let id = name.rsplit('/').next()?;
    if let Ok(session) = id.parse() {
        return Some(session);
    }
    let (kind, rest) = id.split_once('_')?;
    let part = matches!(kind, "gat" | "eff" | "wrk").then_some(rest)?;
    format!("ses_{}", part.split('_').next()?).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::{frame, unframe};
    use crate::names::{effect_name, gate_name, session_name};
    use prost::Message as _;
    use switchward_api::v1;
    use switchward_machine::OpenId;

    const SESSION: SessionId = SessionId([0xab, 0xcd, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);

    fn need(method: &str, message: &impl prost::Message) -> (Need, Effect) {
        let message = unframe(&frame(&message.encode_to_vec())).unwrap();
        Need::of(&format!("/switchward.v1.{method}"), Some(&message)).unwrap()
    }

    #[test]
    fn a_session_is_found_by_every_name_that_contains_its_id() {
        let bucket = Need::Bucket(SESSION.bucket());
        let get = |name: String| {
            need("SessionService/GetSession", &v1::GetSessionRequest { name, ..Default::default() })
        };
        assert_eq!(get(session_name("acme", SESSION)), (bucket, Effect::Reads));
        assert_eq!(get(SESSION.to_string()), (bucket, Effect::Reads));
        for other in ["order-17".to_owned(), String::new(), "tenants/-/sessions/ses_x".to_owned()] {
            assert_eq!(get(other), (Need::AnyServer, Effect::Reads));
        }
        let gate =
            v1::DecideGateRequest { name: gate_name("acme", SESSION, OpenId(3)), ..Default::default() };
        assert_eq!(need("GateService/DecideGate", &gate), (bucket, Effect::Changes));
        let effect = v1::GetEffectRequest { name: effect_name("acme", SESSION, 7), ..Default::default() };
        assert_eq!(need("EffectService/GetEffect", &effect), (bucket, Effect::Reads));
        let short = SESSION.to_string().replace("ses_", "wrk_");
        let work = v1::CompleteWorkRequest { name: format!("{short}_4"), ..Default::default() };
        assert_eq!(need("WorkerService/CompleteWork", &work), (bucket, Effect::Changes));
        let call = v1::AuthorizeToolCallRequest { session: SESSION.to_string(), ..Default::default() };
        assert_eq!(need("PolicyService/AuthorizeToolCall", &call), (bucket, Effect::Changes));
    }

    #[test]
    fn what_cannot_be_read_goes_to_any_server() {
        let bytes = v1::GetSessionRequest { name: SESSION.to_string(), ..Default::default() }.encode_to_vec();
        let compressed = Message { compressed: true, bytes: bytes.into() };
        let path = "/switchward.v1.SessionService/GetSession";
        assert_eq!(Need::of(path, Some(&compressed)), Some((Need::AnyServer, Effect::Reads)));
        assert_eq!(Need::of(path, None), Some((Need::AnyServer, Effect::Reads)));
        assert_eq!(Need::of("/switchward.v1.SessionService/Nothing", None), None);
    }

    #[test]
    fn what_may_have_begun_is_known_by_its_method() {
        let several = |method: &str| has_several_commands(&format!("/switchward.v1.{method}"));
        for method in [
            "ClusterService/TransferLeaders",
            "WebhookEndpointService/RecoverWebhookEndpoint",
            "TenantService/CreateTenant",
            "WorkerService/PollWork",
        ] {
            assert!(several(method), "{method}");
        }
        for method in ["SessionService/PauseSession", "TenantService/GetTenant", "GateService/DecideGate"] {
            assert!(!several(method), "{method}");
        }
        assert!(SEVERAL_COMMANDS.iter().all(|path| route(path).is_some()), "each is a method");
    }

    #[test]
    fn a_page_says_its_session_or_nothing() {
        let page = format!("/v1/webhook/{SESSION}/review");
        assert_eq!(Need::of_page(&page), Need::Bucket(SESSION.bucket()));
        assert_eq!(Need::of_page("/a/token"), Need::AnyServer);
        assert_eq!(Need::of_page("/v1/webhook/"), Need::AnyServer);
    }
}
