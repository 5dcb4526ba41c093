//! A server that passes on what its failed replicas would have answered.

use axum::body::Body;
use http::{Request, Response};
use std::sync::Arc;
use switchward_shard::{Cluster, Shard};
use tonic::Status;

use super::far::PassedOn;
use super::forward::{Payload, Proxy, ReplyKind};
use super::need::Need;
use super::service::whole;
use crate::around::{Answer, Answers, Around};
use crate::calls::method_at;
use crate::error::{Reason, Refusal};

/// What a server passes on. Cheap to clone.
#[derive(Clone)]
pub struct PassOn(Arc<Parts>);

struct Parts {
    cluster: Cluster,
    proxy: Proxy,
}

impl PassOn {
    /// Passes on what this cluster's replicas on this server cannot answer.
    #[must_use]
    pub fn new(cluster: Cluster, proxy: Proxy) -> Self {
        Self(Arc::new(Parts { cluster, proxy }))
    }

    /// Returns true while a replica of this server has failed.
    pub(crate) fn is_needed(&self) -> bool {
        self.0.cluster.failed() > 0
    }

    /// Returns true if this server has what a call needs.
    fn has(&self, need: Need) -> bool {
        let works = |shard: &Shard| shard.group().failed().is_none();
        let cluster = &self.0.cluster;
        match need {
            Need::Bucket(bucket) => works(cluster.shard_of(bucket)),
            Need::Catalogue => works(cluster.catalogue()),
            Need::AllShards => cluster.all().all(works),
            Need::AnyServer => true,
        }
    }
}

impl<S: Answers + Clone + 'static> Around<S> for PassOn {
    fn answer(&self, inner: &S, request: Request<Body>) -> Answer {
        if method_at(request.uri().path()).is_none() {
            return Box::pin(inner.answer(request));
        }
        let (inner, pass_on) = (inner.clone(), self.clone());
        Box::pin(async move {
            let answered = answer(inner, &pass_on, request).await;
            Ok(answered.unwrap_or_else(|refusal| Status::from(refusal).into_http()))
        })
    }
}

/// Answers a call while a replica has failed.
async fn answer(
    inner: impl Answers,
    pass_on: &PassOn,
    request: Request<Body>,
) -> Result<Response<Body>, Refusal> {
    let streams = method_at(request.uri().path()).is_some_and(|method| method.is_server_streaming());
    let reply = if streams { ReplyKind::Stream } else { ReplyKind::One };
    let call = whole(request).await?;
    if !pass_on.has(call.need) {
        if call.parts.extensions.get::<PassedOn>().is_none() {
            return pass_on.0.proxy.call(call, reply).await;
        }
        let message = "this server's replica has failed, and the call was passed on once already";
        return Err(Refusal::new(Reason::ShardStopped, message));
    }
    let body = match call.payload {
        Payload::Whole(bytes) => Body::from(bytes),
        Payload::Stream(body) => body.unwrap_or_default(),
    };
    let Ok(response) = inner.answer(Request::from_parts(call.parts, body)).await;
    Ok(response)
}
