//! The calls of a gateway: everything is passed on but health, which it answers itself.

use axum::body::Body;
use http::{Request, Response};
use http_body_util::BodyExt as _;
use switchward_api::Effect;
use tokio::time::Instant;
use tonic::Status;

use super::forward::{Passed, Payload, Proxy, ReplyKind};
use super::head::Kind;
use super::need::Need;
use crate::admission::Admission;
use crate::around::{Answer, Answers};
use crate::calls::{method_at, unframe};
use crate::error::{Reason, Refusal};
use crate::guard::deadline;
use crate::hide::HidingServices;

/// See the module. Cheap to clone.
#[derive(Clone)]
pub(crate) struct GatewayCalls {
    pub(crate) proxy: Proxy,
    /// What the gateway answers itself.
    pub(crate) local: HidingServices,
}

impl Answers for GatewayCalls {
    type Future = Answer;

    fn answer(&self, request: Request<Body>) -> Answer {
        if !Admission::guards(request.uri().path()) {
            return Box::pin(self.local.answer(request));
        }
        let proxy = self.proxy.clone();
        Box::pin(async move {
            Ok(pass(&proxy, request).await.unwrap_or_else(|refusal| Status::from(refusal).into_http()))
        })
    }
}

/// Passes a call on: one whole message, or for reflection a stream.
async fn pass(proxy: &Proxy, request: Request<Body>) -> Result<Response<Body>, Refusal> {
    let Some(method) = method_at(request.uri().path()) else {
        let (parts, body) = request.into_parts();
        let (payload, deadline) = (Payload::Stream(Some(body)), until(&parts)?);
        let (need, effect) = (Need::AnyServer, Effect::Reads);
        let call = Passed { parts, payload, kind: Kind::Call, need, effect, deadline };
        return proxy.call(call, ReplyKind::Stream).await;
    };
    let reply = if method.is_server_streaming() { ReplyKind::Stream } else { ReplyKind::One };
    proxy.call(whole(request).await?, reply).await
}

/// A call whose body is one message, which the guard has read and checked.
///
/// # Errors
/// It is not.
pub(super) async fn whole(request: Request<Body>) -> Result<Passed, Refusal> {
    let (parts, body) = request.into_parts();
    let deadline = until(&parts)?;
    let broken = |_| Refusal::field("", "the request's body ended early");
    let bytes = body.collect().await.map_err(broken)?.to_bytes();
    let message = unframe(&bytes)?;
    let (need, effect) = Need::of(parts.uri.path(), Some(&message))
        .ok_or_else(|| Refusal::new(Reason::Unimplemented, "there is no such method"))?;
    Ok(Passed { parts, payload: Payload::Whole(bytes), kind: Kind::Call, need, effect, deadline })
}

fn until(parts: &http::request::Parts) -> Result<Option<Instant>, Refusal> {
    Ok(deadline(&parts.headers)?.map(|left| Instant::now() + left))
}
