//! Bodies of requests that are answered without being read to their end.

use axum::body::Body;
use bytes::Bytes;
use http::Request;
use http_body::{Body as HttpBody, Frame, SizeHint};
use parking_lot::Mutex;
use std::mem::take;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::body::discard_refused;

/// What is left of a body when its reader is done with it.
#[derive(Default)]
pub(crate) struct Unread(Arc<Mutex<Option<Body>>>);

impl Unread {
    /// The request, and what will be left of its body.
    pub(crate) fn of(request: Request<Body>) -> (Request<Body>, Self) {
        let unread = Self::default();
        if request.body().is_end_stream() {
            return (request, unread);
        }
        let left = Arc::clone(&unread.0);
        (request.map(|body| Body::new(Watched { body, is_read: false, left })), unread)
    }

    /// Reads and discards what is left, as [`discard_refused`] does. Nothing is left while somebody still reads.
    pub(crate) async fn discard(self) {
        let left = self.0.lock().take();
        if let Some(left) = left {
            discard_refused(left).await;
        }
    }
}

/// A body whose rest is left behind when it is dropped.
struct Watched {
    body: Body,
    is_read: bool,
    left: Arc<Mutex<Option<Body>>>,
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        // After an error there is nothing to wait for, either.
        self.is_read |= matches!(polled, Poll::Ready(None | Some(Err(_))));
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if !self.is_read && !self.body.is_end_stream() {
            *self.left.lock() = Some(take(&mut self.body));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::channel::mpsc;
    use futures::poll;
    use http_body_util::BodyExt as _;
    use std::io;
    use std::pin::pin;

    type Piece = io::Result<Bytes>;

    fn request() -> (mpsc::UnboundedSender<Piece>, Request<Body>) {
        let (pieces, body) = mpsc::unbounded();
        (pieces, Request::new(Body::from_stream(body)))
    }

    #[tokio::test]
    async fn what_a_reader_leaves_is_waited_for() {
        let (pieces, sent) = request();
        let (taken, unread) = Unread::of(sent);
        pieces.unbounded_send(Ok("first".into())).expect("it is not closed");
        let mut body = taken.into_body();
        body.frame().await.expect("a piece").expect("no error");
        drop(body);
        let mut discarded = pin!(unread.discard());
        assert!(poll!(discarded.as_mut()).is_pending(), "the rest has not come");
        pieces.unbounded_send(Ok("rest".into())).expect("it is not closed");
        drop(pieces);
        discarded.await;
    }

    #[tokio::test]
    async fn nothing_is_left_of_a_body_that_is_read_or_broken_off_or_still_held() {
        let (pieces, sent) = request();
        let (taken, unread) = Unread::of(sent);
        drop(pieces);
        assert!(taken.into_body().frame().await.is_none());
        assert!(unread.0.lock().is_none(), "it was read to its end");

        let (pieces, sent) = request();
        let (taken, unread) = Unread::of(sent);
        pieces.unbounded_send(Err(io::ErrorKind::BrokenPipe.into())).expect("it is not closed");
        taken.into_body().frame().await.expect("a piece").expect_err("it is broken off");
        assert!(unread.0.lock().is_none(), "it broke off");

        let (_pieces, sent) = request();
        let (held, unread) = Unread::of(sent);
        unread.discard().await;
        drop(held);

        let (_, unread) = Unread::of(Request::new(Body::empty()));
        unread.discard().await;
    }
}
