//! The body of an answer that another server gives.

use bytes::Bytes;
use futures::future::BoxFuture;
use http::HeaderMap;
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use switchward_api::Effect;
use tokio::sync::OwnedSemaphorePermit;
use tonic::Status;

use super::forward::{lost, stopping};
use crate::error::Refusal;

/// What follows if the answer to a call does not come to its end.
pub(super) struct CallEnd {
    pub(super) effect: Effect,
    /// Done when this process stops; `None` for a call with one reply, which is waited for.
    pub(super) stop: Option<BoxFuture<'static, ()>>,
}

/// The body: that of the server, and if it is lost, the status that says so.
pub(super) struct Relayed {
    body: Incoming,
    /// What follows if it is lost; `None` for a page, whose connection ends then.
    end: Option<CallEnd>,
    ended: bool,
    _permit: OwnedSemaphorePermit,
}

impl Relayed {
    pub(super) fn new(body: Incoming, end: Option<CallEnd>, permit: OwnedSemaphorePermit) -> Self {
        Self { body, end, ended: false, _permit: permit }
    }

    fn end_with(&mut self, refusal: Refusal) -> Frame<Bytes> {
        self.ended = true;
        Frame::trailers(trailers(refusal))
    }
}

/// The trailers of a call that ends like this.
fn trailers(refusal: Refusal) -> HeaderMap {
    let mut headers = HeaderMap::new();
    // It fails only for a message that no header can contain, and tonic encodes messages.
    let _added = Status::from(refusal).add_header(&mut headers);
    headers
}

impl HttpBody for Relayed {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let stop = self.end.as_mut().and_then(|end| end.stop.as_mut());
        if stop.is_some_and(|stop| stop.as_mut().poll(context).is_ready()) {
            let frame = self.end_with(stopping());
            return Poll::Ready(Some(Ok(frame)));
        }
        let effect = self.end.as_ref().map(|end| end.effect);
        let frame = match (ready!(Pin::new(&mut self.body).poll_frame(context)), effect) {
            (Some(Err(error)), Some(effect)) => {
                tracing::debug!(%error, "lost a server before the end of its answer");
                Ok(self.end_with(lost(effect)))
            }
            (Some(frame), _) => frame.map_err(axum::Error::new),
            (None, _) => return Poll::Ready(None),
        };
        Poll::Ready(Some(frame))
    }

    fn is_end_stream(&self) -> bool {
        self.ended || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        if self.end.is_some() { SizeHint::default() } else { self.body.size_hint() }
    }
}
