//! A listener for a mail server of the same house that hands over what came for us (LMTP, RFC 2033).
//!
//! It is no door to the Internet: what stands in front of it has taken the mail, and keeps it until a reply of the second
//! class has come for each recipient. What is answered is what [`Receive`] says; nothing is kept here.

use std::future::Future;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

mod command;
mod lines;
mod session;

pub use session::{Ended, converse};

use crate::incoming::Envelope;
use crate::limits::LMTP_CONNECTIONS_MAX;

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It is kept, whatever it says: also what went into quarantine.
    Kept,
    /// Not now; the sender tries again.
    Later,
    /// Never; the sender tells whoever wrote it.
    Refused,
}

/// Who takes messages.
pub trait Receive: Send + Sync + 'static {
    /// Whether mail to this address is for us at all.
    fn knows(&self, recipient: &str) -> bool;

    /// Takes a message. Its envelope has a sender and the recipients that were known, and no peer: who has handed it to
    /// the server in front is not known here.
    fn receive(&self, envelope: Envelope, raw: Vec<u8>) -> impl Future<Output = Taken> + Send;
}

/// Answers whoever connects until `stop` turns true; conversations that are going on then are cut, and their senders try
/// again. At most [`LMTP_CONNECTIONS_MAX`] at once; others wait to be accepted. `host` is our name in the greeting.
pub async fn serve<R: Receive>(
    listener: TcpListener,
    host: String,
    receiver: Arc<R>,
    mut stop: watch::Receiver<bool>,
) {
    let places = Arc::new(Semaphore::new(LMTP_CONNECTIONS_MAX));
    let mut running = JoinSet::new();
    loop {
        while running.try_join_next().is_some() {}
        let next = async {
            let place = places.clone().acquire_owned().await.expect("the semaphore is never closed");
            (place, listener.accept().await)
        };
        // Both may be dropped at any time: a place is given back, and nobody was accepted yet.
        let (place, accepted) = tokio::select! {
            next = next => next,
            _ = stop.wait_for(|stop| *stop) => break,
        };
        // A connection that broke before it was accepted is nobody's.
        let Ok((stream, _)) = accepted else { continue };
        let (host, receiver) = (host.clone(), receiver.clone());
        running.spawn(async move {
            let _place = place;
            converse(stream, &host, &*receiver).await
        });
    }
}
