//! Readers who wait until the rows of a shard are known to be the newest ones. Those who come together share one
//! question.

use std::future::ready;
use tokio::sync::{mpsc, oneshot};

use crate::failure::Failure;
use crate::limits::READS_WAITING_MAX;
use crate::ready_tasks::after_ready_tasks;

/// What answers a question for all who share it.
type Confirmed<T> = Result<T, Failure>;

type Waiting<T> = oneshot::Sender<Confirmed<T>>;

/// The readers of one shard who wait for a confirmation. A reader is answered by a question that was asked after they
/// came, never by one that was under way.
pub(crate) struct Readers<T>(mpsc::Sender<Waiting<T>>);

impl<T: Clone + Send + 'static> Readers<T> {
    /// Starts the task that asks, each question after the answer to the one before. It ends with this handle.
    pub(crate) fn asking_in_turn<Q, A>(question: Q) -> Self
    where
        Q: Fn() -> A + Send + Sync + 'static,
        A: Future<Output = Confirmed<T>> + Send + 'static,
    {
        Self::start(move |round| answer(round, question()))
    }

    /// As [`asking_in_turn`](Self::asking_in_turn), but a question does not wait for the answers to those before it, so
    /// that its readers wait no longer than if they had asked by themselves.
    pub(crate) fn asking_at_once<Q, A>(question: Q) -> Self
    where
        Q: Fn() -> A + Send + Sync + 'static,
        A: Future<Output = Confirmed<T>> + Send + 'static,
    {
        Self::start(move |round| {
            tokio::spawn(answer(round, question()));
            ready(())
        })
    }

    /// Starts a task that asks a question for those who have come, and waits for what `ask` returns before the next one.
    fn start<D>(ask: impl Fn(Vec<Waiting<T>>) -> D + Send + Sync + 'static) -> Self
    where
        D: Future<Output = ()> + Send + 'static,
    {
        let (sender, mut waiting) = mpsc::channel(READS_WAITING_MAX);
        tokio::spawn(async move {
            while let Some(round) = gather(&mut waiting).await {
                ask(round).await;
            }
        });
        Self(sender)
    }

    /// Returns when this server has applied everything that was acknowledged before the call.
    ///
    /// # Errors
    /// As of the question; [`Failure::Overloaded`] beyond [`READS_WAITING_MAX`] readers.
    pub(crate) async fn confirm(&self) -> Confirmed<T> {
        let (answer, wait) = oneshot::channel();
        self.0.try_send(answer).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Failure::Overloaded,
            mpsc::error::TrySendError::Closed(_) => Failure::Stopped,
        })?;
        wait.await.unwrap_or(Err(Failure::Stopped))
    }
}

/// Waits for the readers of the next question; `None` once no more can come.
async fn gather<T>(waiting: &mut mpsc::Receiver<Waiting<T>>) -> Option<Vec<Waiting<T>>> {
    let mut round = Vec::new();
    if waiting.recv_many(&mut round, READS_WAITING_MAX).await == 0 {
        return None;
    }
    // The first of several readers wakes this task, which may run before the others: those that are ready now share its
    // question, and need no second one.
    after_ready_tasks().await;
    while round.len() < READS_WAITING_MAX
        && let Ok(reader) = waiting.try_recv()
    {
        round.push(reader);
    }
    Some(round)
}

/// Answers the readers with what a question is answered with.
async fn answer<T: Clone>(round: Vec<Waiting<T>>, question: impl Future<Output = Confirmed<T>>) {
    let confirmed = question.await;
    for reader in round {
        // A reader may have gone.
        let _gone = reader.send(confirmed.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;
    use futures::future::BoxFuture;
    use std::pin::pin;
    use std::sync::Arc;
    use tokio::sync::mpsc::UnboundedReceiver;

    /// A question, and what a test answers it with each time that it is asked.
    fn question()
    -> (impl Fn() -> BoxFuture<'static, Confirmed<()>> + Send + Sync, UnboundedReceiver<Waiting<()>>) {
        let (ask, asked) = mpsc::unbounded_channel();
        let question = move || {
            let (answer, wait) = oneshot::channel();
            ask.send(answer).expect("the test goes on");
            async move { wait.await.unwrap_or(Err(Failure::Stopped)) }.boxed()
        };
        (question, asked)
    }

    #[tokio::test]
    async fn readers_that_are_ready_together_share_a_question() {
        let (sender, mut waiting) = mpsc::channel(READS_WAITING_MAX);
        let readers = Arc::new(Readers(sender));
        let reader = || {
            let readers = Arc::clone(&readers);
            tokio::spawn(async move { readers.confirm().await })
        };
        // Tasks run in the order in which they are spawned.
        let first = reader();
        let gathered = tokio::spawn(async move { gather::<()>(&mut waiting).await });
        let others = [reader(), reader()];
        assert_eq!(gathered.await.unwrap().map(|round| round.len()), Some(3));
        drop((first, others));
    }

    #[tokio::test]
    async fn a_reader_is_not_answered_by_a_question_that_was_under_way() {
        let (in_turn, mut asked) = question();
        is_answered_by_the_next_question(&Readers::asking_in_turn(in_turn), &mut asked).await;
        let (at_once, mut asked) = question();
        is_answered_by_the_next_question(&Readers::asking_at_once(at_once), &mut asked).await;
    }

    async fn is_answered_by_the_next_question(
        readers: &Readers<()>,
        asked: &mut UnboundedReceiver<Waiting<()>>,
    ) {
        let mut early = pin!(readers.confirm());
        assert!(early.as_mut().now_or_never().is_none());
        let under_way = asked.recv().await.expect("it is asked");
        let mut late = pin!(readers.confirm());
        assert!(late.as_mut().now_or_never().is_none());
        under_way.send(Ok(())).expect("somebody waits");
        assert_eq!(early.await, Ok(()));
        let next = asked.recv().await.expect("it is asked again");
        next.send(Err(Failure::Electing)).expect("somebody waits");
        assert_eq!(late.await, Err(Failure::Electing));
    }

    #[tokio::test]
    async fn a_question_without_an_answer_holds_up_no_later_one() {
        let (question, mut asked) = question();
        let readers = Readers::asking_at_once(question);
        let mut stuck = pin!(readers.confirm());
        assert!(stuck.as_mut().now_or_never().is_none());
        let _unanswered = asked.recv().await.expect("it is asked");
        let mut next = pin!(readers.confirm());
        assert!(next.as_mut().now_or_never().is_none());
        let answered = asked.recv().await.expect("it is asked again");
        answered.send(Ok(())).expect("somebody waits");
        assert_eq!(next.await, Ok(()));
        assert!(stuck.as_mut().now_or_never().is_none());
    }
}
