//! The answers to senders of webhooks.

use axum::body::Body;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};
use tonic::Code;

use crate::error::Refusal;
use crate::transcode::{self, JSON};

/// What became of a webhook.
pub(super) enum Outcome {
    /// Recorded; the event's name, and the session's state after it, unless the session is gone by now.
    Recorded(String, Option<String>),
    /// Recorded, and the sender wants to know the session's state; the event's name, and the state.
    Moved(String, String),
    /// No event: a greeting from when the sender is set up, with its answer.
    Greeted(Value),
    /// Recorded before.
    Duplicate,
}

impl Outcome {
    /// The same for a sender who wants to know the session's state.
    pub(super) fn with_state(self) -> Self {
        match self {
            Self::Recorded(event, Some(state)) => Self::Moved(event, state),
            other @ (Self::Recorded(..) | Self::Moved(..) | Self::Greeted(_) | Self::Duplicate) => other,
        }
    }
}

/// Why a webhook is refused, with the status that says so.
pub(super) struct Refused {
    status: StatusCode,
    refusal: Refusal,
}

impl Refused {
    /// Refused with a status that does not go with the reason alone.
    pub(super) fn with(status: StatusCode, refusal: Refusal) -> Self {
        Self { status, refusal }
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        let status = match refusal.reason().code() {
            Code::InvalidArgument | Code::OutOfRange => StatusCode::BAD_REQUEST,
            Code::Unauthenticated => StatusCode::UNAUTHORIZED,
            Code::PermissionDenied => StatusCode::FORBIDDEN,
            Code::NotFound => StatusCode::NOT_FOUND,
            Code::AlreadyExists | Code::Aborted | Code::FailedPrecondition => StatusCode::CONFLICT,
            Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
            Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Code::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
            Code::Unimplemented => StatusCode::METHOD_NOT_ALLOWED,
            Code::Ok | Code::Cancelled | Code::Unknown | Code::Internal | Code::DataLoss => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
        };
        Self { status, refusal }
    }
}

/// The answer.
pub(super) fn of(outcome: Result<Outcome, Refused>) -> Response<Body> {
    match outcome {
        Ok(Outcome::Recorded(event, _)) => ok(StatusCode::ACCEPTED, &json!({ "event": event })),
        Ok(Outcome::Moved(event, state)) => ok(StatusCode::OK, &json!({ "event": event, "state": state })),
        Ok(Outcome::Greeted(answer)) => ok(StatusCode::OK, &answer),
        Ok(Outcome::Duplicate) => ok(StatusCode::OK, &json!({ "duplicate": true })),
        Err(Refused { status, refusal }) => {
            // Whole seconds, and never so few that the wait is too short.
            let wait = refusal.retry_delay().map(|delay| delay.as_millis().div_ceil(1_000).max(1));
            let mut response = transcode::refused(status, refusal);
            if let Some(seconds) = wait {
                let seconds =
                    HeaderValue::try_from(seconds.to_string()).expect("digits may stand in a header");
                response.headers_mut().insert(header::RETRY_AFTER, seconds);
            }
            if status == StatusCode::METHOD_NOT_ALLOWED {
                response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
            }
            response
        }
    }
}

fn ok(status: StatusCode, body: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
    response
}
