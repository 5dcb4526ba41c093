//! The reader of a mailbox: one server of a cluster reads it, the one that leads the catalogue's group. The mailbox has no
//! lock, and two readers at one time would move each other's messages; each message would still be recorded once.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use switchward_gateway::mail::{MailIngress, Outcome};
use switchward_mail::imap::{self, Account, Collect, MailOutcome};
use switchward_mail::incoming::Envelope;
use switchward_shard::{LeadershipChanges, Shard};
use tokio::sync::watch;
use tokio::time::timeout;

/// How long a reader may take to stop, once another server may read.
const STOP_MAX: Duration = Duration::from_millis(500);

/// Whether this server is the one that reads.
pub(super) trait Turn: Send {
    /// Returns true if it is now.
    fn is_ours(&self) -> bool;

    /// Waits until that may have changed. Returns false if it cannot change any more.
    ///
    /// Cancel safe.
    fn changed(&mut self) -> impl Future<Output = bool> + Send;
}

/// The leadership of a group.
pub(super) struct Led {
    shard: Shard,
    changes: LeadershipChanges,
}

impl Led {
    /// The leadership of this group.
    pub(super) fn of(shard: &Shard) -> Self {
        Self { shard: shard.clone(), changes: shard.watch_leadership() }
    }
}

impl Turn for Led {
    fn is_ours(&self) -> bool {
        self.shard.leads()
    }

    async fn changed(&mut self) -> bool {
        self.changes.changed().await
    }
}

/// Runs what `begin` starts while it is this server's turn, until `stop` turns true. It is started again if it panics, after
/// `rest`, and is dropped if it does not end soon after its own stop turned true.
pub(super) async fn in_turn<F>(
    mut turn: impl Turn,
    begin: impl Fn(watch::Receiver<bool>) -> F,
    rest: Duration,
    mut stop: watch::Receiver<bool>,
) where
    F: Future<Output = ()> + Send + 'static,
{
    while until(&mut turn, Wanted::Ours, &mut stop).await {
        let (end, ended) = watch::channel(false);
        let mut running = tokio::spawn(begin(ended));
        let panicked = tokio::select! {
            ran = &mut running => ran.is_err(),
            _goes_on = until(&mut turn, Wanted::Others, &mut stop) => false,
        };
        if panicked {
            tracing::error!("the mail reader panicked and is restarted");
            // A stop ends the rest.
            let _stopped = timeout(rest, stop.wait_for(|stop| *stop)).await;
            continue;
        }
        end.send_replace(true);
        if !running.is_finished() && timeout(STOP_MAX, &mut running).await.is_err() {
            running.abort();
        }
        if *stop.borrow() {
            return;
        }
    }
}

/// Whose turn is waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Ours,
    Others,
}

/// Returns true when it is the turn that is wanted, or false if `stop` is true or dropped before.
async fn until(turn: &mut impl Turn, wanted: Wanted, stop: &mut watch::Receiver<bool>) -> bool {
    while turn.is_ours() != (wanted == Wanted::Ours) {
        // Either may be dropped: the next look finds what has changed.
        tokio::select! {
            open = turn.changed() => if !open { return false },
            _ = stop.wait_for(|stop| *stop) => return false,
        }
    }
    !*stop.borrow()
}

/// Reads a mailbox in turn with the other servers of the cluster, until `stop` turns true.
pub(super) async fn read(
    catalogue: Shard,
    account: Account,
    ingress: MailIngress,
    health: Arc<imap::Health>,
    stop: watch::Receiver<bool>,
) {
    let (rest, collector) = (account.pace.again_min, Arc::new(Imap(ingress)));
    let begin = |ended| imap::read(account.clone(), Arc::clone(&collector), Arc::clone(&health), ended);
    in_turn(Led::of(&catalogue), begin, rest, stop).await;
}

/// What comes by IMAP.
struct Imap(MailIngress);

impl Collect for Imap {
    async fn collect(&self, raw: Vec<u8>) -> MailOutcome {
        let ingress = self.0.clone();
        // A task of its own: a message that breaks it does not affect other messages.
        let taken = tokio::spawn(async move { ingress.ingest(&Envelope::default(), &raw).await });
        match taken.await {
            Ok(Outcome::Recorded(_) | Outcome::Bounced | Outcome::Ignored(_)) => MailOutcome::Done,
            Ok(Outcome::Quarantined(_)) => MailOutcome::Quarantine,
            Ok(Outcome::Later) => MailOutcome::Later,
            Err(error) => {
                tracing::error!(%error, "failed to process a message; it goes into quarantine");
                self.unread("broken");
                MailOutcome::Quarantine
            }
        }
    }

    fn unread(&self, why: &'static str) {
        self.0.unread(why);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A turn that a test gives and takes.
    struct Given(watch::Receiver<bool>);

    impl Turn for Given {
        fn is_ours(&self) -> bool {
            *self.0.borrow()
        }

        async fn changed(&mut self) -> bool {
            self.0.changed().await.is_ok()
        }
    }

    /// How many readers there are, and how many there have been.
    #[derive(Default)]
    struct Readers {
        now: AtomicUsize,
        begun: AtomicUsize,
    }

    /// Counts a reader until it is dropped.
    struct Reading(Arc<Readers>);

    impl Reading {
        fn of(readers: &Arc<Readers>) -> Self {
            readers.now.fetch_add(1, Ordering::SeqCst);
            readers.begun.fetch_add(1, Ordering::SeqCst);
            Self(Arc::clone(readers))
        }
    }

    impl Drop for Reading {
        fn drop(&mut self) {
            self.0.now.fetch_sub(1, Ordering::SeqCst);
        }
    }

    async fn until(holds: impl Fn() -> bool) {
        let waiting = async {
            while !holds() {
                tokio::task::yield_now().await;
            }
        };
        timeout(Duration::from_secs(60), waiting).await.expect("it comes soon");
    }

    #[tokio::test]
    async fn one_of_several_servers_reads_and_the_next_begins_when_it_has_lost_its_turn() {
        let readers: [Arc<Readers>; 2] = Default::default();
        let (stop, stopped) = watch::channel(false);
        let turns = [watch::channel(false), watch::channel(false)];
        let mut servers = tokio::task::JoinSet::new();
        for (readers, (_, turn)) in readers.iter().zip(&turns) {
            let (readers, turn, stopped) = (Arc::clone(readers), turn.clone(), stopped.clone());
            servers.spawn(async move {
                let begin = |mut ended: watch::Receiver<bool>| {
                    let reading = Reading::of(&readers);
                    async move {
                        let _stopped = ended.wait_for(|ended| *ended).await;
                        drop(reading);
                    }
                };
                in_turn(Given(turn), begin, Duration::ZERO, stopped).await;
            });
        }
        let now = |server: usize| readers[server].now.load(Ordering::SeqCst);
        for round in 1..=3 {
            for (server, other) in [(0, 1), (1, 0)] {
                turns[server].0.send_replace(true);
                until(|| now(server) == 1).await;
                assert_eq!(now(other), 0);
                turns[server].0.send_replace(false);
                until(|| now(server) == 0).await;
                assert_eq!(readers[server].begun.load(Ordering::SeqCst), round);
            }
        }
        turns[0].0.send_replace(true);
        until(|| now(0) == 1).await;
        stop.send_replace(true);
        servers.join_all().await;
        assert_eq!((now(0), now(1)), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_does_not_stop_is_dropped_within_a_second_and_one_that_panics_begins_again() {
        let readers = Arc::<Readers>::default();
        let (turn, turned) = watch::channel(true);
        let (stop, stopped) = watch::channel(false);
        let counted = Arc::clone(&readers);
        let server = tokio::spawn(async move {
            let begin = |_ended: watch::Receiver<bool>| {
                let reading = Reading::of(&counted);
                async move {
                    assert!(reading.0.begun.load(Ordering::SeqCst) > 1, "the first one panics");
                    std::future::pending::<()>().await;
                }
            };
            in_turn(Given(turned), begin, Duration::from_secs(2), stopped).await;
        });
        let mut ticks = tokio::time::interval(Duration::from_millis(10));
        while readers.begun.load(Ordering::SeqCst) < 2 {
            ticks.tick().await;
        }
        turn.send_replace(false);
        let lost = tokio::time::Instant::now();
        while readers.now.load(Ordering::SeqCst) > 0 {
            ticks.tick().await;
        }
        assert!(lost.elapsed() < Duration::from_secs(1), "{:?}", lost.elapsed());
        stop.send_replace(true);
        server.await.expect("it ends");
    }
}
