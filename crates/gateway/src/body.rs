//! Request bodies, read whole and within limits.

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::StatusCode;
use http_body_util::BodyExt;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use crate::bodies::{BUDGET, Held};
use crate::error::{Reason, Refusal};
use crate::limits::{
    BODY_READ_MS_MAX, DISCARDED_BYTES_MAX, MESSAGE_BYTES_MAX, OPEN_BYTES_MAX, REFUSED_BYTES_MAX,
    REFUSED_MS_MAX,
};

/// Reads a body to its end: at most `limit` bytes, and `around` bytes of framing.
///
/// # Errors
/// A body above the limit, one that breaks off, one that takes longer than [`BODY_READ_MS_MAX`], or one that exceeds a
/// budget.
pub(crate) async fn read(body: Body, limit: usize, around: usize, held: &mut Held) -> Result<Bytes, Refusal> {
    timed(read_frames(body, limit, around, |bytes| held.grow(bytes))).await
}

/// Reads a body of few bytes to its end, which no budget counts.
///
/// # Errors
/// As [`read`].
pub(crate) async fn read_small(body: Body, around: usize) -> Result<Bytes, Refusal> {
    timed(read_frames(body, OPEN_BYTES_MAX, around, |_| Ok(()))).await
}

/// Reads within [`BODY_READ_MS_MAX`].
async fn timed(reading: impl Future<Output = Result<Bytes, Refusal>>) -> Result<Bytes, Refusal> {
    let mut reading = pin!(reading);
    // Most bodies have come by now, and need no timer.
    if let Poll::Ready(read) = futures::poll!(reading.as_mut()) {
        return read;
    }
    let reading = tokio::time::timeout(Duration::from_millis(BODY_READ_MS_MAX), reading);
    reading.await.unwrap_or_else(|_| {
        let message = format!("the request did not arrive within {} s", BODY_READ_MS_MAX / 1_000);
        Err(Refusal::new(Reason::DeadlineExceeded, message))
    })
}

async fn read_frames(
    mut body: Body,
    limit: usize,
    around: usize,
    mut taken: impl FnMut(usize) -> Result<(), Refusal>,
) -> Result<Bytes, Refusal> {
    let Some(first) = next_data(&mut body).await? else { return Ok(Bytes::new()) };
    taken(first.len())?;
    let mut whole = Parts::One(first);
    while whole.len() <= limit + around {
        match next_data(&mut body).await? {
            Some(more) => {
                taken(more.len())?;
                whole = whole.plus(&more);
            }
            None => return Ok(whole.into_bytes()),
        }
    }
    discard(body, whole.len(), DISCARDED_BYTES_MAX).await;
    Err(larger_than(limit))
}

/// The next piece of the body. Trailers are passed over, and so are empty pieces: many clients end a body with one, and a
/// body of one other piece would be copied because of it.
async fn next_data(body: &mut Body) -> Result<Option<Bytes>, Refusal> {
    while let Some(frame) = body.frame().await {
        let frame =
            frame.map_err(|_| Refusal::field("", "the request's body ended early or is badly encoded"))?;
        if let Ok(data) = frame.into_data()
            && !data.is_empty()
        {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

/// Reads and discards the body of a request that is answered without it, at most [`REFUSED_BYTES_MAX`] and for at most
/// [`REFUSED_MS_MAX`]. If it were not read, its stream would be reset, and after a thousand of these resets the HTTP/2 library
/// ends the connection with all calls on it.
pub(crate) async fn discard_refused(body: Body) {
    let reading = discard(body, 0, REFUSED_BYTES_MAX);
    let _longer = tokio::time::timeout(Duration::from_millis(REFUSED_MS_MAX), reading).await;
}

/// Reads and discards more of the body, until about `most` bytes have come: many clients read the answer only after they have
/// sent everything.
async fn discard(mut body: Body, mut read: usize, most: usize) {
    while read <= most {
        match next_data(&mut body).await {
            Ok(Some(data)) => read += data.len(),
            Ok(None) | Err(_) => return,
        }
    }
}

/// The HTTP status of a body that could not be read.
pub(crate) fn status(refusal: &Refusal) -> StatusCode {
    if exceeds_budget(refusal) {
        StatusCode::TOO_MANY_REQUESTS
    } else if refusal.reason() == Reason::QuotaExceeded {
        StatusCode::PAYLOAD_TOO_LARGE
    } else if refusal.reason() == Reason::DeadlineExceeded {
        StatusCode::REQUEST_TIMEOUT
    } else {
        StatusCode::BAD_REQUEST
    }
}

/// Returns true if a body was refused because it exceeds a budget, so that it can be sent again later.
pub(crate) fn exceeds_budget(refusal: &Refusal) -> bool {
    refusal.limit() == Some(BUDGET)
}

/// The refusal of a message above [`MESSAGE_BYTES_MAX`].
pub(crate) fn too_large() -> Refusal {
    larger_than(MESSAGE_BYTES_MAX)
}

fn larger_than(limit: usize) -> Refusal {
    let message = format!("the message is larger than {limit} bytes");
    Refusal::new(Reason::QuotaExceeded, message.clone()).meta("limit_bytes", limit).quota("message", message)
}

/// Pieces that came so far. Most bodies come in one piece, which is then not copied.
enum Parts {
    One(Bytes),
    Many(BytesMut),
}

impl Parts {
    fn len(&self) -> usize {
        match self {
            Self::One(bytes) => bytes.len(),
            Self::Many(bytes) => bytes.len(),
        }
    }

    fn plus(self, more: &[u8]) -> Self {
        let mut bytes = match self {
            Self::One(bytes) => BytesMut::from(&bytes[..]),
            Self::Many(bytes) => bytes,
        };
        bytes.extend_from_slice(more);
        Self::Many(bytes)
    }

    fn into_bytes(self) -> Bytes {
        match self {
            Self::One(bytes) => bytes,
            Self::Many(bytes) => bytes.freeze(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::stream::{self, StreamExt as _};
    use std::convert::Infallible;
    use tokio::time::Instant;

    #[tokio::test]
    async fn a_body_of_one_piece_is_not_copied() {
        let (piece, empty) = (Bytes::from(vec![1; 100]), Bytes::new());
        let read = |pieces: Vec<Bytes>| {
            let body = Body::from_stream(stream::iter(pieces.into_iter().map(Ok::<_, Infallible>)));
            async { read_small(body, 0).await.expect("the body is small") }
        };
        for pieces in [
            vec![piece.clone()],
            vec![piece.clone(), empty.clone()],
            vec![empty.clone(), piece.clone(), empty.clone(), empty.clone()],
        ] {
            assert_eq!(read(pieces).await.as_ptr(), piece.as_ptr());
        }
        assert_eq!(read(vec![piece.clone(), empty.clone(), piece]).await, vec![1; 200]);
        assert!(read(vec![empty]).await.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_end_is_given_up_in_time() {
        let begun = Instant::now();
        let first = stream::once(async { Ok::<_, Infallible>(Bytes::from_static(b"a")) });
        let body = Body::from_stream(first.chain(stream::pending()));
        let refusal = read_small(body, 0).await.expect_err("the body never ends");
        assert_eq!(refusal.reason(), Reason::DeadlineExceeded);
        assert_eq!(status(&refusal), StatusCode::REQUEST_TIMEOUT);
        let took = begun.elapsed().as_millis();
        assert_eq!(took, u128::from(BODY_READ_MS_MAX));
    }
}
