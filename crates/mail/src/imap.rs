//! A reader of a mailbox that a mail server keeps for us (IMAP, RFC 3501): what is unseen in one folder is brought to
//! [`Collect`], marked as seen, and moved to where it then belongs.
//!
//! Nothing is remembered of what was taken: a message is taken again where its mark did not come to stand, and whoever
//! takes it knows the same message. So a folder that was made anew, with other numbers for its messages, needs no care but
//! that the count of attempts begins again. What keeps breaking the conversation is moved away unread, so that one message
//! stops no other.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rand::Rng as _;
use tokio::sync::watch;

mod find;
mod link;
mod probe;
mod round;

pub use find::find;
pub use link::{ImapError, ImapTls};
pub use probe::{Found, probe};

use crate::limits::{IMAP_AGAIN_MAX, IMAP_AGAIN_MIN, IMAP_POLL};

/// What became of a message, and so where it belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filed {
    /// It was dealt with.
    Done,
    /// Nobody can say what it means.
    Quarantine,
    /// Not now: it stays as it is, and is brought again.
    Later,
}

/// Who takes messages.
pub trait Collect: Send + Sync + 'static {
    /// Takes a message. Its transport is not known: the mailbox's server has not kept who handed it over.
    fn collect(&self, raw: Vec<u8>) -> impl Future<Output = Filed> + Send;

    /// Is told of a message that was not read: it is larger than [`crate::limits::MESSAGE_BYTES_MAX`], or reading it has
    /// broken the conversation again and again. It is moved to the quarantine; `why` is one stable word.
    fn unread(&self, why: &'static str);
}

/// A mailbox, and how to get there.
#[derive(Clone)]
pub struct Account {
    /// The server's host.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How the way there is hidden.
    pub tls: ImapTls,
    /// Whose mailbox.
    pub user: String,
    /// The password.
    pub password: String,
    /// The folder that mail comes into.
    pub folder: String,
    /// Where to move what was dealt with; nothing: it stays, marked as seen.
    pub done_folder: Option<String>,
    /// Where to move what nobody can say the meaning of; nothing: it stays, marked as seen and flagged.
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
    /// How long nothing is looked at where the server tells of nothing.
    pub poll: Duration,
    /// How long the first wait is after a failure, and after a message that could not be taken.
    pub again_min: Duration,
    /// How long a wait gets while failures go on.
    pub again_max: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self { poll: IMAP_POLL, again_min: IMAP_AGAIN_MIN, again_max: IMAP_AGAIN_MAX }
    }
}

impl Pace {
    /// How long to wait after so many failures in a row: twice as long each time, and each time a part of it that differs.
    fn wait(&self, failures: u32) -> Duration {
        let doubled = self.again_min.saturating_mul(1_u32 << failures.saturating_sub(1).min(16));
        doubled.min(self.again_max).mul_f64(rand::rng().random_range(0.5..1.0))
    }
}

/// How the reading goes, for counters.
#[derive(Debug, Default)]
pub struct Health {
    connected: AtomicBool,
    failures: AtomicU64,
}

impl Health {
    /// Whether the mailbox is being read.
    #[must_use]
    pub fn connected(&self) -> bool {
        self.connected.load(Ordering::Relaxed)
    }

    /// How often a conversation has failed, or did not come about.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }
}

/// Reads a mailbox until `stop` turns true. A message that is being taken then is cut off and brought again the next time.
pub async fn read<C: Collect>(
    account: Account,
    collector: Arc<C>,
    health: Arc<Health>,
    mut stop: watch::Receiver<bool>,
) {
    // Both may be dropped at any time: what is not marked as seen comes again.
    tokio::select! {
        () = reading(&account, &*collector, &health) => {}
        _ = stop.wait_for(|stop| *stop) => {}
    }
    health.connected.store(false, Ordering::Relaxed);
}

async fn reading<C: Collect>(account: &Account, collector: &C, health: &Health) {
    let mut attempts = round::Attempts::default();
    let mut failures = 0_u32;
    loop {
        let error = match link::open(account).await {
            Ok(session) => {
                health.connected.store(true, Ordering::Relaxed);
                tracing::info!(host = %account.host, user = %account.user, "mail comes in by IMAP");
                let (attempts, failures) = (&mut attempts, &mut failures);
                round::Rounds { account, collector, attempts, failures }.go(session).await
            }
            Err(error) => error,
        };
        health.connected.store(false, Ordering::Relaxed);
        health.failures.fetch_add(1, Ordering::Relaxed);
        failures = failures.saturating_add(1);
        let wait = account.pace.wait(failures);
        tracing::warn!(%error, again_in_ms = wait.as_millis(), "mail cannot be read by IMAP");
        tokio::time::sleep(wait).await;
    }
}
