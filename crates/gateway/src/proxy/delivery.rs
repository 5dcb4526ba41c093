//! What processes that only deliver ask the servers whose jobs they do, on connections of the cluster. Both ends are here;
//! what is asked and answered are bytes, which only the delivery role reads.

use axum::body::Body;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use switchward_machine::Bucket;
use tokio::time::timeout;

use super::follow::Followed;
use super::forward::Proxy;
use super::head::name_epochs;
use super::links::{Links, ServerDialer, uri};
use super::need::Need;
use super::permits::Permits;
use crate::limits::{
    DELIVERY_ANSWER_BYTES_MAX, DELIVERY_ANSWER_MS_MAX, DELIVERY_QUESTION_BYTES_MAX, DELIVERY_QUESTIONS_MAX,
    PROXIED_CALLS_MIN, PROXY_DIAL_MS_MAX, PROXY_DIAL_WAIT_MS, PROXY_TRIES_MAX,
};

/// Where a server answers the questions of delivery processes, on their connections alone.
pub(super) const DELIVERY_PATH: &str = "/-/delivery";

/// Answers what delivery processes ask. Called by many connections at once.
#[tonic::async_trait]
pub trait AnswersDelivery: Send + Sync + 'static {
    /// Answers a question of at most [`DELIVERY_QUESTION_BYTES_MAX`] bytes with at most [`DELIVERY_ANSWER_BYTES_MAX`]. The
    /// same question may come again.
    ///
    /// # Errors
    /// It cannot be read, and nothing was done; the text goes back to the process.
    async fn answer(&self, question: Bytes) -> Result<Bytes, String>;
}

/// Answers one request of a delivery process.
pub(super) async fn answer(delivery: &dyn AnswersDelivery, request: Request<Incoming>) -> Response<Body> {
    if request.method() != Method::POST || request.uri().path() != DELIVERY_PATH {
        return refused(StatusCode::NOT_FOUND, "a delivery process passes no calls on".to_owned());
    }
    let question = Limited::new(request.into_body(), DELIVERY_QUESTION_BYTES_MAX).collect().await;
    let question = match question {
        Ok(question) => question.to_bytes(),
        Err(error) => return refused(StatusCode::BAD_REQUEST, error.to_string()),
    };
    match delivery.answer(question).await {
        Ok(answer) => Response::new(Body::from(answer)),
        Err(why) => refused(StatusCode::BAD_REQUEST, why),
    }
}

fn refused(status: StatusCode, why: String) -> Response<Body> {
    tracing::warn!(%status, why, "refused a request of a delivery process");
    let mut response = Response::new(Body::from(why));
    *response.status_mut() = status;
    response
}

impl Proxy {
    /// Passes nothing on, and asks servers about deliveries. The map is fetched from servers, at first from `seeds`, their
    /// addresses by number, while [`follow`](Self::follow) runs.
    #[must_use]
    pub fn of_delivery(seeds: BTreeMap<u64, String>, dialer: Arc<dyn ServerDialer>) -> Self {
        let followed = Followed::new(seeds);
        let links = Links::new(dialer, DELIVERY_QUESTIONS_MAX);
        Self::new(None, followed.maps(), Some(followed), links, Permits::new(PROXIED_CALLS_MIN))
    }

    /// Asks one server after the other until one answers: first the one that leads the shard of a bucket, or the catalogue
    /// if there is none, as far as the map says.
    ///
    /// # Errors
    /// No server has answered; the text says why the last one did not.
    pub async fn ask_about_delivery(&self, bucket: Option<Bucket>, question: Bytes) -> Result<Bytes, String> {
        let map = self.maps().map().ok_or("the map of the cluster is not known yet")?;
        let mut servers = map.servers_with(bucket.map_or(Need::Catalogue, Need::Bucket), self.next_turn());
        servers.truncate(PROXY_TRIES_MAX);
        let mut last = "no server has what the question is about".to_owned();
        let count = servers.len();
        for (at, server) in servers.into_iter().enumerate() {
            let dial_ms = if at + 1 == count { PROXY_DIAL_MS_MAX } else { PROXY_DIAL_WAIT_MS };
            let request = Request::builder().method(Method::POST).uri(uri(server, DELIVERY_PATH));
            let request = request.body(Body::from(question.clone()));
            let mut request = request.map_err(|error| error.to_string())?;
            name_epochs(request.headers_mut(), map.epochs());
            let dial = Duration::from_millis(dial_ms);
            let asked = self.links().exchange(server, request, dial, DELIVERY_ANSWER_BYTES_MAX);
            let asked = timeout(Duration::from_millis(DELIVERY_ANSWER_MS_MAX), asked).await;
            match asked.unwrap_or_else(|_| Err("no answer in time".to_owned())) {
                Ok(answer) => return Ok(answer),
                Err(why) => last = format!("server {}: {why}", server.number),
            }
        }
        self.maps().outdated();
        Err(last)
    }
}
