//! The pages of a gateway: decision pages, webhooks, mail by HTTP. All are passed on, as they come.

use axum::{Router, body::Body, extract::State};
use http::{Method, Request, Response, StatusCode, header};
use switchward_api::Effect;

use super::forward::{NotPassed, Passed, Payload, Proxy};
use super::head::{Kind, is_internal};
use super::need::Need;
use crate::error::{Reason, Refusal};
use crate::guard::check_headers;
use crate::transcode;

/// Seconds after which a page that no server could get is worth another attempt.
const AGAIN_S: u16 = 1;

/// The pages at all paths.
pub(crate) fn pages(proxy: &Proxy) -> Router {
    Router::new().fallback(pass).with_state(proxy.clone())
}

async fn pass(State(proxy): State<Proxy>, request: Request<Body>) -> Response<Body> {
    if let Err(refusal) = check_headers(&request) {
        return transcode::refused(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, refusal);
    }
    if is_internal(request.uri().path()) {
        let refusal = Refusal::new(Reason::NotFound, "there is no page at this path");
        return transcode::refused(StatusCode::NOT_FOUND, refusal);
    }
    let (mut parts, body) = request.into_parts();
    let effect = if parts.method.is_safe() { Effect::Reads } else { Effect::Changes };
    let need = Need::of_page(parts.uri.path());
    let is_head = parts.method == Method::HEAD;
    if parts.method.is_safe() {
        // What a page is asked with has no body.
        parts.headers.remove(header::CONTENT_LENGTH);
    }
    let payload = if parts.method.is_safe() {
        Payload::Whole(bytes::Bytes::new())
    } else {
        Payload::Stream(Some(body))
    };
    let page = Passed { parts, payload, kind: Kind::Page, need, effect, deadline: None };
    let mut response = match proxy.page(page).await {
        Ok(response) => return response,
        Err(failed) => refused(failed, effect),
    };
    if is_head {
        *response.body_mut() = Body::empty();
    }
    response
}

fn refused(failed: NotPassed, effect: Effect) -> Response<Body> {
    let status = match (&failed, effect) {
        (NotPassed::Lost, Effect::Changes) => StatusCode::BAD_GATEWAY,
        (NotPassed::Lost, Effect::Reads) | (NotPassed::Unreachable(_), _) => StatusCode::SERVICE_UNAVAILABLE,
        (NotPassed::Full, _) => StatusCode::TOO_MANY_REQUESTS,
    };
    let refusal: Refusal = failed.refusal(effect);
    let mut response = transcode::refused(status, refusal);
    if status != StatusCode::BAD_GATEWAY {
        response.headers_mut().insert(header::RETRY_AFTER, AGAIN_S.into());
    }
    response
}
