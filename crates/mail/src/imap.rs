//! A reader of a mailbox on a mail server (IMAP, RFC 3501): hands the unseen messages of one folder to [`Collect`], marks
//! them as seen, and moves them to the folder for the result.
//!
//! The reader does not remember taken messages: a message is taken again if it could not be marked, and the collector must
//! recognise it. So a folder that was created again, with other numbers for its messages, only resets the count of attempts.
//! A message that keeps breaking the conversation is moved away unread, so that it does not block others.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};
use tokio::sync::watch;

mod find;
mod link;
mod probe;
mod round;

pub use find::find;
pub use link::{ImapError, ImapTls};
pub use probe::{MailboxState, probe};

use crate::limits::{IMAP_AGAIN_MAX, IMAP_AGAIN_MIN, IMAP_POLL};

/// The result of taking a message, which decides where it is moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailOutcome {
    /// It was dealt with.
    Done,
    /// It cannot be interpreted.
    Quarantine,
    /// Not now: it stays as it is, and is fetched again.
    Later,
}

/// Takes messages.
pub trait Collect: Send + Sync + 'static {
    /// Takes a message. Its transport is not known: the mailbox does not keep who handed it over.
    fn collect(&self, raw: Vec<u8>) -> impl Future<Output = MailOutcome> + Send;

    /// Reports a message that was not read: it is larger than [`crate::limits::MESSAGE_BYTES_MAX`], or reading it has broken
    /// the conversation repeatedly. It is moved to the quarantine; `why` is one stable word.
    fn unread(&self, why: &'static str);
}

/// A mailbox, and how to get there.
#[derive(Clone)]
pub struct Account {
    /// The server's host.
    pub host: String,
    /// The TCP port of the server.
    pub port: u16,
    /// How the connection is encrypted.
    pub tls: ImapTls,
    /// The user name.
    pub user: String,
    /// The password of that user.
    pub password: String,
    /// The folder that mail comes into.
    pub folder: String,
    /// The folder for handled messages; `None`: they stay, marked as seen.
    pub done_folder: Option<String>,
    /// The folder for messages that cannot be interpreted; `None`: they stay, marked as seen and flagged.
    pub quarantine_folder: Option<String>,
    /// When to look, and when to try again.
    pub pace: Pace,
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account").field("host", &self.host).field("user", &self.user).finish_non_exhaustive()
    }
}

/// When to look, and when to try again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// The interval of polling if the server announces nothing.
    pub poll: Duration,
    /// The first wait after a failure, and after a message that could not be taken.
    pub again_min: Duration,
    /// The longest wait while failures go on.
    pub again_max: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self { poll: IMAP_POLL, again_min: IMAP_AGAIN_MIN, again_max: IMAP_AGAIN_MAX }
    }
}

impl Pace {
    /// The waits after failures in a row, without an end: doubled each time, from half of the wait to the whole one.
    fn waits(&self) -> ExponentialBackoff {
        ExponentialBuilder::new()
            .with_min_delay(self.again_min / 2)
            .with_max_delay(self.again_max / 2)
            .with_jitter()
            .without_max_times()
            .build()
    }

    /// The next of these waits.
    fn wait(&self, waits: &mut ExponentialBackoff) -> Duration {
        waits.next().unwrap_or(self.again_max)
    }
}

/// The health of the reader, for metrics.
#[derive(Debug, Default)]
pub struct Health {
    connected: AtomicBool,
    failures: AtomicU64,
}

impl Health {
    /// Returns true while the mailbox is being read.
    #[must_use]
    pub fn connected(&self) -> bool {
        self.connected.load(Ordering::Relaxed)
    }

    /// The number of conversations that failed, or could not begin.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }
}

/// Reads a mailbox until `stop` turns true. A message that is being taken then is cut off and fetched again the next time.
pub async fn read<C: Collect>(
    account: Account,
    collector: Arc<C>,
    health: Arc<Health>,
    mut stop: watch::Receiver<bool>,
) {
    // Both may be dropped at any time: messages that are not marked as seen are fetched again.
    tokio::select! {
        () = reading(&account, &*collector, &health) => {}
        _ = stop.wait_for(|stop| *stop) => {}
    }
    health.connected.store(false, Ordering::Relaxed);
}

async fn reading<C: Collect>(account: &Account, collector: &C, health: &Health) {
    let mut attempts = round::Attempts::default();
    let mut waits = account.pace.waits();
    loop {
        let error = match link::open(account).await {
            Ok(session) => {
                health.connected.store(true, Ordering::Relaxed);
                tracing::info!(host = %account.host, user = %account.user, "reading mail over IMAP");
                let (attempts, waits) = (&mut attempts, &mut waits);
                round::Rounds { account, collector, attempts, waits }.go(session).await
            }
            Err(error) => error,
        };
        health.connected.store(false, Ordering::Relaxed);
        health.failures.fetch_add(1, Ordering::Relaxed);
        let wait = account.pace.wait(&mut waits);
        tracing::warn!(%error, again_in_ms = wait.as_millis(), "failed to read mail over IMAP");
        tokio::time::sleep(wait).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_doubled_up_to_a_maximum_and_vary() {
        let seconds = Duration::from_secs;
        let pace = Pace { poll: seconds(1), again_min: seconds(2), again_max: seconds(16) };
        let mut waits = pace.waits();
        for longest in [2, 4, 8, 16, 16, 16] {
            let wait = pace.wait(&mut waits);
            assert!(wait >= seconds(longest) / 2 && wait <= seconds(longest), "{longest} s: {wait:?}");
        }
    }
}
