//! A stream of appends to one server. Appends are sent before those ahead of them are answered, over a stream of
//! chunks of their own: an entry does not wait for the answer to the notice that the one before it is committed.

use bytes::Bytes;
use futures::future::OptionFuture;
use futures::{Stream, StreamExt, stream};
use openraft::OptionalSend;
use openraft::base::BoxStream;
use openraft::network::RPCOption;
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse, StreamAppendResult};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::codec::{EncodedAppend, encode_append};
use super::kind::Kind;
use super::network::{Appended, Failed, RaftLink, unexpected};
use super::transport::{PeerError, PeerStream};
use crate::limits::{
    APPEND_STREAM_AGAIN, APPEND_STREAM_IDLE, COMMIT_NOTICE_WAIT, COMMIT_NOTICES_UNHELD, PIPELINE_APPENDS_MAX,
    PIPELINE_BYTES_MAX, PIPELINED_BYTES_MAX,
};
use crate::types::TypeConfig;

/// An answer, or why there is none.
type Answer = Result<StreamAppendResult<TypeConfig>, Failed>;

/// The answers to a stream of appends, in order. Ends after the last answer, or after one that is not a success.
pub(super) fn answers<'s, S>(link: &'s RaftLink, input: S, option: RPCOption) -> BoxStream<'s, Answer>
where
    S: Stream<Item = AppendEntriesRequest<TypeConfig>> + OptionalSend + Unpin + 'static,
{
    let pipeline = Pipeline {
        link,
        option,
        input,
        exhausted: false,
        repeating: None,
        next: None,
        notice: None,
        unheld: 0,
        in_vain: 0,
        route: Route::First,
        sent: VecDeque::new(),
        in_flight: 0,
    };
    Box::pin(stream::unfold(Some(pipeline), |pipeline| async move {
        let mut pipeline = pipeline?;
        let answer = pipeline.answer().await?;
        let more = matches!(answer, Ok(Ok(_)));
        Some((answer, more.then_some(pipeline)))
    }))
}

/// How the next append is sent.
enum Route {
    /// By itself, as the first one is: it may be the only one.
    First,
    /// Over a stream that is not open yet.
    Closed,
    /// Over this stream.
    Open(Open),
    /// By itself until then, since no stream could be opened.
    Single(Instant),
}

struct Open {
    stream: Arc<dyn PeerStream>,
    answers: BoxStream<'static, Result<Bytes, PeerError>>,
    /// When the last append was sent.
    used: Instant,
    /// The last field: fields are dropped in their order, and the stream is closed before another one may be opened.
    _permit: OwnedSemaphorePermit,
}

/// An encoded append that is not sent yet.
struct Next {
    append: Appended,
    bytes: Bytes,
    /// What did not fit into it.
    rest: Option<AppendEntriesRequest<TypeConfig>>,
}

/// A notice that entries are committed: an append without entries. The next append says it, too.
struct Notice {
    append: AppendEntriesRequest<TypeConfig>,
    /// When it is sent by itself if no other append has come.
    until: Instant,
}

/// An append that waits for its answer.
struct Sent {
    append: Appended,
    bytes: usize,
    wait: Duration,
    until: Instant,
}

struct Pipeline<'s, S> {
    link: &'s RaftLink,
    option: RPCOption,
    input: S,
    /// True after the last append of the input.
    exhausted: bool,
    /// An append with entries of earlier terms, which the other server may have.
    repeating: Option<AppendEntriesRequest<TypeConfig>>,
    next: Option<Next>,
    notice: Option<Notice>,
    /// How many more notices are sent at once, since no entries have come after one that waited.
    unheld: u32,
    /// How many of them there were after the last one that waited in vain; 0 once entries have followed one that waited.
    in_vain: u32,
    route: Route,
    sent: VecDeque<Sent>,
    /// The length of what waits for an answer, bytes.
    in_flight: usize,
}

impl<S> Pipeline<'_, S>
where
    S: Stream<Item = AppendEntriesRequest<TypeConfig>> + OptionalSend + Unpin + 'static,
{
    /// The next answer; `None` after the last.
    async fn answer(&mut self) -> Option<Answer> {
        loop {
            if let Some(append) = self.repeating.take() {
                match self.without_repeats(append).await {
                    Ok(None) => continue,
                    Ok(Some(answer)) => return Some(Ok(answer)),
                    Err(failed) => return Some(Err(failed)),
                }
            }
            if let Some(next) = self.next.take_if(|next| may_send(next, &self.sent, self.in_flight)) {
                match self.send(next).await {
                    Ok(None) => continue,
                    Ok(Some(answer)) => return Some(Ok(answer)),
                    Err(failed) => return Some(Err(failed)),
                }
            }
            let takes = self.next.is_none() && !self.exhausted && self.sent.len() < PIPELINE_APPENDS_MAX;
            let notice = self.notice.as_ref().filter(|_| self.next.is_none()).map(|notice| notice.until);
            let notice = OptionFuture::from(notice.map(sleep_until));
            let (Some(first), Route::Open(open)) = (self.sent.front(), &mut self.route) else {
                let come = tokio::select! {
                    biased;
                    append = self.input.next(), if takes => self.take(append),
                    Some(()) = notice => self.end_wait(),
                    else => return None,
                };
                if let Err(failed) = come {
                    return Some(Err(failed));
                }
                continue;
            };
            let come = tokio::select! {
                biased;
                answer = timeout_at(first.until, open.answers.next()) => {
                    let answer = answer.unwrap_or(Some(Err(PeerError::TimedOut)));
                    return Some(self.settle(answer));
                }
                append = self.input.next(), if takes => self.take(append),
                Some(()) = notice => self.end_wait(),
            };
            if let Err(failed) = come {
                return Some(Err(failed));
            }
        }
    }

    /// Takes an append of the input, or its end. A notice waits a moment for the entries that follow it under load: then it
    /// costs no message of its own. If none have followed, there is little load, and the next notices do not wait: one after
    /// a single time, as under load when a batch takes longer for once, and more after several in a row. openraft matches
    /// answers with what it has sent by positions, so none is missed.
    fn take(&mut self, append: Option<AppendEntriesRequest<TypeConfig>>) -> Result<(), Failed> {
        let Some(append) = append else {
            self.exhausted = true;
            return self.take_notice();
        };
        let earlier = self.notice.take();
        let is_notice = append.entries.is_empty();
        if earlier.is_some() && !is_notice {
            self.in_vain = 0;
        }
        if is_notice && self.unheld == 0 && matches!(self.route, Route::Open(_)) {
            let until = earlier.map_or_else(|| Instant::now() + COMMIT_NOTICE_WAIT, |notice| notice.until);
            self.notice = Some(Notice { append, until });
        } else if matches!(self.route, Route::First) && earlier_entries(&append) > 0 {
            self.repeating = Some(append);
        } else {
            self.unheld = self.unheld.saturating_sub(u32::from(is_notice));
            self.next = Some(encoded(append)?);
        }
        Ok(())
    }

    /// Sends an append without its entries of earlier terms. A new leader does not know yet which entries the other server
    /// has, so openraft sends it those from the middle of the log on; it nearly always has them, and confirms that here.
    /// Returns its answer, or `None` if it lacks some of them: then the whole append is the next one.
    async fn without_repeats(
        &mut self,
        append: AppendEntriesRequest<TypeConfig>,
    ) -> Result<Option<StreamAppendResult<TypeConfig>>, Failed> {
        let Next { append: sent, bytes, rest } = encoded(shortened(&append))?;
        let answer = self.link.append(&sent, bytes, &self.option).await?;
        if matches!(answer, AppendEntriesResponse::Conflict) {
            self.next = Some(encoded(append)?);
            return Ok(None);
        }
        self.route = Route::Closed;
        self.next = rest.map(encoded).transpose()?;
        Ok(Some(sent.streamed(answer)))
    }

    /// Takes the notice that has waited in vain.
    fn end_wait(&mut self) -> Result<(), Failed> {
        self.in_vain = (self.in_vain * 2).clamp(1, COMMIT_NOTICES_UNHELD);
        self.unheld = self.in_vain;
        self.take_notice()
    }

    /// Takes the notice that waits, if there is one.
    fn take_notice(&mut self) -> Result<(), Failed> {
        self.next = self.notice.take().map(|notice| encoded(notice.append)).transpose()?;
        Ok(())
    }

    /// Sends an append. Returns its answer if it was sent by itself.
    async fn send(&mut self, next: Next) -> Result<Option<StreamAppendResult<TypeConfig>>, Failed> {
        let Next { append, bytes, rest } = next;
        let pipelined = bytes.len() <= PIPELINED_BYTES_MAX && self.link.pipelines();
        if pipelined && self.opened().await {
            self.over_stream(append, bytes).await?;
            self.next = rest.map(encoded).transpose()?;
            return Ok(None);
        }
        let answer = self.link.append(&append, bytes, &self.option).await?;
        if matches!(self.route, Route::First) {
            self.route = Route::Closed;
        }
        self.next = rest.map(encoded).transpose()?;
        Ok(Some(append.streamed(answer)))
    }

    /// Returns true if the stream is open, after opening it if it is time to.
    async fn opened(&mut self) -> bool {
        if let Route::Open(open) = &self.route
            && self.sent.is_empty()
            && open.used.elapsed() > APPEND_STREAM_IDLE / 2
        {
            // The other server may be about to close it.
            self.route = Route::Closed;
        }
        if let Route::Single(until) = self.route
            && until <= Instant::now()
        {
            self.route = Route::Closed;
        }
        if matches!(self.route, Route::Closed) {
            let opened = Open::to(self.link).await;
            self.route =
                opened.map_or_else(|| Route::Single(Instant::now() + APPEND_STREAM_AGAIN), Route::Open);
        }
        matches!(self.route, Route::Open(_))
    }

    async fn over_stream(&mut self, append: Appended, bytes: Bytes) -> Result<(), Failed> {
        let Route::Open(open) = &mut self.route else {
            return Err(self.link.failed(Kind::AppendStream, Duration::ZERO, PeerError::TimedOut));
        };
        let (length, wait) = (bytes.len(), self.link.append_wait(&self.option, bytes.len()));
        open.used = Instant::now();
        let until = open.used + wait;
        let sent = timeout(wait, open.stream.send(bytes)).await.unwrap_or(Err(PeerError::TimedOut));
        sent.map_err(|error| self.link.failed(Kind::AppendStream, wait, error))?;
        self.in_flight += length;
        self.sent.push_back(Sent { append, bytes: length, wait, until });
        Ok(())
    }

    /// Gives the answer to the first append that waits for one.
    fn settle(&mut self, answer: Option<Result<Bytes, PeerError>>) -> Answer {
        let ended = || PeerError::Unknown("the other server has ended a stream of entries".into());
        let answer = answer.unwrap_or_else(|| Err(ended()));
        let sent = self.sent.pop_front();
        let wait = sent.as_ref().map_or(Duration::ZERO, |sent| sent.wait);
        let failed = |error| self.link.failed(Kind::AppendStream, wait, error);
        let (Some(sent), answer) = (sent, answer.map_err(failed)?) else { return Err(failed(ended())) };
        self.in_flight -= sent.bytes;
        Ok(sent.append.streamed(sent.append.answer(&answer)?))
    }
}

/// Returns true if an append may be sent while others wait for their answers.
fn may_send(next: &Next, sent: &VecDeque<Sent>, in_flight: usize) -> bool {
    let short = next.bytes.len() <= PIPELINED_BYTES_MAX;
    sent.is_empty()
        || (short && sent.len() < PIPELINE_APPENDS_MAX && in_flight + next.bytes.len() <= PIPELINE_BYTES_MAX)
}

/// How many of the first entries of an append are of earlier terms than that of the leader.
fn earlier_entries(append: &AppendEntriesRequest<TypeConfig>) -> usize {
    let term = append.vote.leader_id.term;
    append.entries.iter().take_while(|entry| entry.log_id.leader_id.term < term).count()
}

/// The append without the entries of earlier terms. Its receiver takes it only if it has the last one of those, and then it
/// has all entries before that, too: two logs that have the same entry are the same up to it.
fn shortened(append: &AppendEntriesRequest<TypeConfig>) -> AppendEntriesRequest<TypeConfig> {
    let (earlier, later) = append.entries.split_at(earlier_entries(append));
    AppendEntriesRequest {
        vote: append.vote,
        prev_log_id: earlier.last().map(|last| last.log_id).or(append.prev_log_id),
        leader_commit: append.leader_commit,
        entries: later.to_vec(),
    }
}

/// Encodes an append. What does not fit becomes an append of its own, after it.
fn encoded(mut append: AppendEntriesRequest<TypeConfig>) -> Result<Next, Failed> {
    let EncodedAppend { bytes, entries } = encode_append(&append).map_err(unexpected)?;
    let sent = Appended::of(&append, entries);
    let entries = append.entries.split_off(entries.min(append.entries.len()));
    append.prev_log_id = sent.last;
    let rest = if entries.is_empty() {
        None
    } else {
        append.entries = entries;
        Some(append)
    };
    Ok(Next { append: sent, bytes, rest })
}

impl Open {
    /// Opens a stream; `None` if that is not possible now.
    async fn to(link: &RaftLink) -> Option<Self> {
        let permit = link.peers().stream_permit(link.to())?;
        match link.stream(Kind::AppendStream, Bytes::new()).await {
            Ok(stream) => Some(Self::of(stream, permit)),
            Err(error) => {
                tracing::debug!(%error, "failed to open a stream for entries; they are sent one by one");
                None
            }
        }
    }

    fn of(stream: Arc<dyn PeerStream>, permit: OwnedSemaphorePermit) -> Self {
        let answers = stream::unfold(Arc::clone(&stream), |stream| async move {
            let answer = stream.recv().await.transpose()?;
            Some((answer, stream))
        });
        Self { stream, answers: Box::pin(answers), used: Instant::now(), _permit: permit }
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use parking_lot::Mutex;
    use tokio::sync::Semaphore;

    use super::*;

    /// A stream that notes how many permits are free when it is closed.
    struct Closing {
        permits: Arc<Semaphore>,
        free: Arc<Mutex<Option<usize>>>,
    }

    impl Drop for Closing {
        fn drop(&mut self) {
            *self.free.lock() = Some(self.permits.available_permits());
        }
    }

    #[async_trait]
    impl PeerStream for Closing {
        async fn send(&self, _: Bytes) -> Result<(), PeerError> {
            Ok(())
        }

        async fn finish(&self) -> Result<(), PeerError> {
            Ok(())
        }

        async fn recv(&self) -> Result<Option<Bytes>, PeerError> {
            Ok(None)
        }
    }

    #[test]
    fn a_stream_is_closed_before_its_permit_is_free() {
        let permits = Arc::new(Semaphore::new(1));
        let free: Arc<Mutex<Option<usize>>> = Arc::default();
        let permit = Arc::clone(&permits).try_acquire_owned().unwrap();
        let stream = Closing { permits: Arc::clone(&permits), free: Arc::clone(&free) };
        drop(Open::of(Arc::new(stream), permit));
        assert_eq!((*free.lock(), permits.available_permits()), (Some(0), 1));
    }
}
