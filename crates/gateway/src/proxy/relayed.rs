//! The body of an answer that another server gives.

use bytes::Bytes;
use futures::future::BoxFuture;
use http::HeaderMap;
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper::body::Incoming;
use parking_lot::Mutex;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use switchward_api::Effect;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until};
use tonic::Status;

use super::forward::{lost, stopping};
use super::permits::Permit;
use crate::error::{Reason, Refusal};
use crate::limits::PROXIED_UNREAD_MS_MAX;

/// What follows if the answer to a call does not come to its end.
pub(super) struct CallEnd {
    pub(super) effect: Effect,
    /// Done when this process stops; `None` for a call with one reply, which is waited for.
    pub(super) stop: Option<BoxFuture<'static, ()>>,
}

/// The body: that of the server, and if it is lost, the status that says so.
pub(super) struct Relayed<B = Incoming> {
    answer: Arc<Mutex<Answer<B>>>,
    /// What follows if it is lost; `None` for a page, whose connection ends then.
    end: Option<CallEnd>,
    ended: bool,
    /// Drops an answer that nobody reads; `None` if there is nothing to read.
    watch: Option<AbortHandle>,
}

/// What a server answers, until it was read.
struct Answer<B> {
    /// `None` once nobody has read it for too long.
    body: Option<(B, Permit)>,
    /// Since when there is something to read, as far as is known; `None` while the client waits for the server.
    unread: Option<Instant>,
}

impl<B> Relayed<B>
where
    B: HttpBody<Data = Bytes> + Unpin + Send + 'static,
{
    pub(super) fn new(body: B, end: Option<CallEnd>, permit: Permit) -> Self {
        let is_read = body.is_end_stream();
        let answer = Answer { body: Some((body, permit)), unread: Some(Instant::now()) };
        let answer = Arc::new(Mutex::new(answer));
        let watch = (!is_read).then(|| tokio::spawn(watch(Arc::downgrade(&answer))).abort_handle());
        Self { answer, end, ended: false, watch }
    }
}

impl<B> Relayed<B> {
    fn end_with(&mut self, refusal: Refusal) -> Frame<Bytes> {
        self.ended = true;
        Frame::trailers(trailers(refusal))
    }

    /// The end of an answer that nobody has read for too long.
    fn unread(&mut self) -> Result<Frame<Bytes>, axum::Error> {
        let message = format!("nothing of the answer was read for {PROXIED_UNREAD_MS_MAX} ms");
        if self.end.is_some() {
            return Ok(self.end_with(Refusal::new(Reason::DeadlineExceeded, message)));
        }
        self.ended = true;
        Err(axum::Error::new(io::Error::new(io::ErrorKind::TimedOut, message)))
    }
}

impl<B> Drop for Relayed<B> {
    fn drop(&mut self) {
        if let Some(watch) = &self.watch {
            watch.abort();
        }
    }
}

/// Drops the answer once nothing of it was read for [`PROXIED_UNREAD_MS_MAX`]: a client that does not read polls nothing.
async fn watch<B>(answer: Weak<Mutex<Answer<B>>>) {
    let longest = Duration::from_millis(PROXIED_UNREAD_MS_MAX);
    let mut until = Instant::now() + longest;
    loop {
        sleep_until(until).await;
        let Some(answer) = answer.upgrade() else { return };
        let mut answer = answer.lock();
        until = answer.unread.unwrap_or_else(Instant::now) + longest;
        if until <= Instant::now() {
            tracing::debug!("ended an answer that its client does not read");
            answer.body = None;
            return;
        }
    }
}

/// The trailers of a call that ends like this.
fn trailers(refusal: Refusal) -> HeaderMap {
    let mut headers = HeaderMap::new();
    // It fails only for a message that no header can contain, and tonic encodes messages.
    let _added = Status::from(refusal).add_header(&mut headers);
    headers
}

/// What a poll of a body gives.
type Polled<B> = Poll<Option<Result<Frame<Bytes>, <B as HttpBody>::Error>>>;

impl<B> Answer<B>
where
    B: HttpBody<Data = Bytes> + Unpin,
{
    /// The next frame of the server; `None` if the answer was dropped because nobody has read it.
    fn poll(&mut self, context: &mut Context<'_>) -> Option<Polled<B>> {
        let (body, _) = self.body.as_mut()?;
        let polled = Pin::new(body).poll_frame(context);
        self.unread = polled.is_ready().then(Instant::now);
        Some(polled)
    }
}

impl<B> HttpBody for Relayed<B>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: std::error::Error + Send + Sync + 'static,
{
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
        let Some(polled) = self.answer.lock().poll(context) else {
            return Poll::Ready(Some(self.unread()));
        };
        let frame = match (ready!(polled), effect) {
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
        self.ended || self.answer.lock().body.as_ref().is_some_and(|(body, _)| body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        match (&self.end, &self.answer.lock().body) {
            (None, Some((body, _))) => body.size_hint(),
            (Some(_), _) | (None, None) => SizeHint::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::permits::Permits;
    use futures::{StreamExt as _, stream};
    use http::Extensions;
    use http_body_util::{BodyExt as _, StreamBody};
    use std::convert::Infallible;
    use tokio::time::timeout;

    type Frames = StreamBody<stream::BoxStream<'static, Result<Frame<Bytes>, Infallible>>>;

    /// Lets the paused clock go on for this long.
    async fn passes(time: Duration) {
        timeout(time, std::future::pending::<()>()).await.expect_err("nothing else ends it");
    }

    /// An answer of two frames, the second of which comes after this time.
    fn answer(later: Duration) -> Frames {
        let frames = stream::unfold(0, move |at| async move {
            if at == 1 {
                passes(later).await;
            }
            let frame = Frame::data(Bytes::from_static(b"part"));
            (at < 2).then(|| (Ok::<_, Infallible>(frame), at + 1))
        });
        StreamBody::new(frames.boxed())
    }

    fn relayed(permits: &Permits, later: Duration, end: Option<CallEnd>) -> Relayed<Frames> {
        Relayed::new(
            answer(later),
            end,
            permits.take(&HeaderMap::new(), &Extensions::new()).expect("a permit"),
        )
    }

    fn of_call() -> Option<CallEnd> {
        Some(CallEnd { effect: Effect::Reads, stop: None })
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_nobody_reads_ends() {
        // Two of them are for unproven requests.
        let permits = Permits::new(8);
        let mut call = relayed(&permits, Duration::ZERO, of_call());
        let mut page = relayed(&permits, Duration::ZERO, None);
        assert!(permits.take(&HeaderMap::new(), &Extensions::new()).is_none(), "both have a permit");
        call.frame().await.expect("a frame").expect("no error");
        passes(Duration::from_millis(2 * PROXIED_UNREAD_MS_MAX + 10)).await;
        let end = call.frame().await.expect("a frame").expect("no error");
        let trailers = end.into_trailers().expect("trailers");
        assert_eq!(trailers["grpc-status"], "4");
        assert!(call.frame().await.is_none());
        assert!(page.frame().await.expect("a frame").is_err());
        permits.take(&HeaderMap::new(), &Extensions::new()).expect("the permits are free again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_may_wait_for_its_server() {
        let permits = Permits::new(8);
        let mut call = relayed(&permits, Duration::from_millis(9 * PROXIED_UNREAD_MS_MAX), of_call());
        for _ in 0..2 {
            let frame = call.frame().await.expect("a frame").expect("no error");
            assert_eq!(frame.into_data().expect("data"), "part");
        }
        assert!(call.frame().await.is_none());
    }
}
