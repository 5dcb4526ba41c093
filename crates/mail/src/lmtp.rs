//! A listener for a mail server of the same organisation that hands over mail for us (LMTP, RFC 2033).
//!
//! It must not face the Internet: the server in front of it has accepted the mail, and keeps it until each recipient has a
//! 2xx reply. The replies come from [`Receive`]; nothing is stored here.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

mod command;
mod lines;
mod session;

pub use session::{Ended, converse};

use crate::incoming::Envelope;
use crate::limits::LMTP_CONNECTIONS_MAX;

/// How long to wait after a failed accept: the usual cause is that the process is out of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The result of handing over a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiveOutcome {
    /// The message is stored, whatever its content, possibly in quarantine.
    Stored,
    /// Not now; the sender tries again.
    Later,
    /// Never; the sending server bounces it to its author.
    Refused,
}

/// Takes messages.
pub trait Receive: Send + Sync + 'static {
    /// Returns true if mail to this address is for us.
    fn knows(&self, recipient: &str) -> bool;

    /// Takes a message. Its envelope has a sender and the known recipients, but no peer: it is not known here who handed the
    /// message to the server in front.
    fn receive(&self, envelope: Envelope, raw: Vec<u8>) -> impl Future<Output = ReceiveOutcome> + Send;
}

/// Serves connections until `stop` turns true; running conversations are then cut, and their senders try again. Serves at
/// most [`LMTP_CONNECTIONS_MAX`] at once; others wait to be accepted. `host` is our name in the greeting.
pub async fn serve<R: Receive>(
    listener: TcpListener,
    host: String,
    receiver: Arc<R>,
    mut stop: watch::Receiver<bool>,
) {
    let permits = Arc::new(Semaphore::new(LMTP_CONNECTIONS_MAX));
    let mut running = JoinSet::new();
    loop {
        while running.try_join_next().is_some() {}
        let next = async {
            let permit = permits.clone().acquire_owned().await.expect("the semaphore is never closed");
            let accepted = listener.accept().await;
            if let Err(error) = &accepted {
                tracing::warn!(%error, "failed to accept a connection of a mail server");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
            (permit, accepted)
        };
        // Both may be dropped at any time: the permit is returned, and no connection was accepted yet.
        let (permit, accepted) = tokio::select! {
            next = next => next,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        let Ok((stream, _)) = accepted else { continue };
        let (host, receiver) = (host.clone(), receiver.clone());
        running.spawn(async move {
            let _permit = permit;
            converse(stream, &host, &*receiver).await
        });
    }
}
