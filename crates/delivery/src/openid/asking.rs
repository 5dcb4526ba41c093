//! Sends requests to a provider with the client of this crate.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use openidconnect::http::{self, HeaderValue};
use openidconnect::{AsyncHttpClient, HttpRequest, HttpResponse};
use serde_json::Value;
use switchward_state::delivery::{ExchangeProblem, RequestProblem};

use crate::failed::length;
use crate::guard::Egress;
use crate::http::{Client, Request};
use crate::limits::{OPENID_ANSWER_BYTES_MAX, OPENID_MS_MAX};
use crate::{DeliveryReason, Failed};

/// An HTTP client for a provider, under its egress rules.
pub(super) struct Asking<'a> {
    pub(super) client: &'a Client,
    pub(super) egress: &'a Egress,
}

impl<'c> AsyncHttpClient<'c> for Asking<'_> {
    type Error = Failed;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, Failed>> + Send + 'c>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(self.ask(request))
    }
}

impl Asking<'_> {
    async fn ask(&self, request: HttpRequest) -> Result<HttpResponse, Failed> {
        let (head, body) = request.into_parts();
        let unsaid = |_| Failed::new(DeliveryReason::RequestInvalid, RequestProblem::HeaderText);
        let header = |(name, value): (&http::HeaderName, &HeaderValue)| {
            Ok((name.as_str().to_owned(), value.to_str().map_err(unsaid)?.to_owned()))
        };
        let body = String::from_utf8(body)
            .map_err(|_| Failed::new(DeliveryReason::RequestInvalid, RequestProblem::BodyText))?;
        let request = Request {
            method: head.method.to_string(),
            url: head.uri.to_string(),
            headers: head.headers.iter().map(header).collect::<Result<_, Failed>>()?,
            body: (!body.is_empty()).then_some(Value::String(body)),
            deadline: Duration::from_millis(OPENID_MS_MAX),
        };
        let answer = self.client.send_under(self.egress, &request).await?;
        let body = match answer.body {
            Value::Null => Vec::new(),
            Value::String(text) => text.into_bytes(),
            json @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                json.to_string().into_bytes()
            }
        };
        if body.len() > OPENID_ANSWER_BYTES_MAX {
            let problem = ExchangeProblem::AnswerSize { max: length(OPENID_ANSWER_BYTES_MAX) };
            return Err(Failed::new(DeliveryReason::AnswerTooLarge, problem));
        }
        if answer.status >= 500 {
            let problem = ExchangeProblem::Status { status: answer.status };
            return Err(Failed::new(DeliveryReason::ReceiverRefused, problem));
        }
        http::Response::builder()
            .status(answer.status)
            .body(body)
            .map_err(|_| Failed::new(DeliveryReason::AnswerBroken, ExchangeProblem::NoStatus))
    }
}
