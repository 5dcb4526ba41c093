//! The doors by which mail comes in, beside the one on the port: each brings what comes to the mailroom.

use std::sync::Arc;

use anyhow::Context as _;
use switchward_gateway::mail::{Mailroom, Outcome};
use switchward_mail::incoming::Envelope;
use switchward_mail::lmtp::{self, Receive, Taken};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::mail_config::Incoming;

/// Doors that are found and not yet open.
pub(crate) struct Doors {
    /// The room behind all of them.
    pub(crate) room: Mailroom,
    host: String,
    lmtp: Option<TcpListener>,
}

impl Doors {
    /// Takes the addresses that are to be listened on.
    ///
    /// # Errors
    /// One of them is not to be had.
    pub(crate) async fn find(incoming: Incoming, door: switchward_gateway::Door) -> anyhow::Result<Self> {
        let lmtp = match incoming.lmtp {
            Some(at) => {
                let listener = TcpListener::bind(at).await;
                Some(listener.with_context(|| format!("mail.in.lmtp: failed to listen on {at}"))?)
            }
            None => None,
        };
        let (room, host) = incoming.room(door);
        Ok(Self { room, host, lmtp })
    }

    /// Opens them.
    pub(crate) fn open(self) -> Open {
        let (stop, stopped) = watch::channel(false);
        let mut running = JoinSet::new();
        if let Some(listener) = self.lmtp {
            if let Ok(at) = listener.local_addr() {
                tracing::info!(%at, "mail comes in by LMTP");
            }
            running.spawn(lmtp::serve(listener, self.host, Arc::new(Lmtp(self.room)), stopped));
        }
        Open { stop, running }
    }
}

/// Doors that are open.
pub(crate) struct Open {
    stop: watch::Sender<bool>,
    running: JoinSet<()>,
}

impl Open {
    /// Closes them. What is on its way is brought again by whoever brings it.
    pub(crate) async fn close(mut self) {
        self.stop.send_replace(true);
        while let Some(ended) = self.running.join_next().await {
            if let Err(error) = ended {
                tracing::warn!(%error, "a door of mail did not close in order");
            }
        }
    }
}

/// What comes by LMTP.
struct Lmtp(Mailroom);

impl Receive for Lmtp {
    fn knows(&self, recipient: &str) -> bool {
        self.0.knows(recipient)
    }

    async fn receive(&self, envelope: Envelope, raw: Vec<u8>) -> Taken {
        match self.0.ingest(&envelope, &raw).await {
            Outcome::Later => Taken::Later,
            Outcome::Recorded | Outcome::Bounced | Outcome::Ignored(_) | Outcome::Quarantined(_) => {
                Taken::Kept
            }
        }
    }
}
