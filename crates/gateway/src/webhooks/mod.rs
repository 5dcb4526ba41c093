//! Incoming webhooks: events that other systems send by plain HTTP and JSON.
//!
//! `POST /v1/callbacks/{reply_token}` and `POST /v1/webhook/{session}/{state}` record an event in the session that a reply
//! token is for; both are handled here, and differ in what they answer. The event is recorded as RecordEvent
//! does it, so all that holds there holds here.
//!
//! `POST /v1/in/{tenant}/{source}` takes messages that a source of the tenant's catalogue signs; the source defines which
//! event of which session they are.
//!
//! | Status | When |
//! |---|---|
//! | 202, 200 | The event is recorded, `{"event": name}`; by the second path 200, with the session's state after it. |
//! | 200 | `{"duplicate": true}`: a message of this `webhook-id` or `idempotency-key` was recorded before. |
//! | 400 | The body is no JSON, not of its form, or has no value at the source's pointers. |
//! | 401 | No token, or not one that was made for a session here; no such tenant or source, or nothing proves the message. |
//! | 404 | The session that is named is not the token's, or does not exist. |
//! | 405, 415 | No POST; no JSON, or encoded. |
//! | 408, 413, 431 | The body did not come in time; body or headers are too large, or it has too many values. |
//! | 409 | The session refuses the event: its state was left, it has ended, it is paused. Or it may be recorded, and has no id. |
//! | 429, 503 | Too much, or not now, or it may be recorded, and has an id; `retry-after` says when to send it (again). |
//!
//! Every refusal has the body that other calls in JSON have, with the same reasons.

mod answer;
mod callback;
mod event;
mod rate;
mod request;
mod source;

pub(crate) use rate::{CallbackRates, SourceRates};

use axum::{Router, routing::any};

use crate::api::Api;

/// The paths of webhooks, to stand beside the other pages of [`one_port`](crate::one_port::one_port).
pub fn pages(api: &Api) -> Router {
    Router::new()
        .route("/v1/callbacks/{token}", any(callback::by_path))
        .route("/v1/webhook/{session}/{state}", any(callback::by_state))
        .route("/v1/in/{tenant}/{source}", any(source::receive))
        .with_state(api.clone())
}
