//! The listeners and readers by which mail comes in, beside the port: each brings it to the mail ingress.

mod reader;

use anyhow::Context as _;
use std::sync::Arc;
use switchward_gateway::mail::{MailIngress, Outcome};
use switchward_mail::{
    imap::{self, Account},
    incoming::Envelope,
    lmtp::{self, Receive, ReceiveOutcome},
};
use switchward_shard::Shard;
use tokio::{net::TcpListener, sync::watch, task::JoinSet};

use crate::mail_config::Incoming;

/// Listeners that are bound and not yet open.
pub(crate) struct MailListeners {
    /// The mail ingress behind all of them.
    pub(crate) ingress: MailIngress,
    /// The health of the IMAP reader, if there is one.
    pub(crate) imap_health: Option<Arc<imap::Health>>,
    host: String,
    lmtp: Option<TcpListener>,
    imap: Option<Account>,
    /// Who leads it reads the mailbox.
    catalogue: Shard,
}

impl MailListeners {
    /// Takes the addresses that are to be listened on.
    ///
    /// # Errors
    /// One of them is not available.
    pub(crate) async fn find(
        mut incoming: Incoming,
        api: switchward_gateway::Api,
        catalogue: Shard,
    ) -> anyhow::Result<Self> {
        let lmtp = match incoming.lmtp {
            Some(at) => {
                let listener = TcpListener::bind(at).await;
                Some(listener.with_context(|| format!("mail.in.lmtp: failed to listen on {at}"))?)
            }
            None => None,
        };
        let imap = incoming.imap.take();
        let imap_health = imap.as_ref().map(|_| Arc::default());
        let (ingress, host) = incoming.ingress(api);
        Ok(Self { ingress, imap_health, host, lmtp, imap, catalogue })
    }

    /// Starts the LMTP server and the IMAP reader that are configured.
    pub(crate) fn open(self) -> Open {
        let (stop, stopped) = watch::channel(false);
        let mut running = JoinSet::new();
        if let Some(listener) = self.lmtp {
            if let Ok(at) = listener.local_addr() {
                tracing::info!(%at, "listening for mail over LMTP");
            }
            let ingress = Arc::new(Lmtp(self.ingress.clone()));
            running.spawn(lmtp::serve(listener, self.host, ingress, stopped.clone()));
        }
        if let (Some(account), Some(health)) = (self.imap, self.imap_health) {
            running.spawn(reader::read(self.catalogue, account, self.ingress, health, stopped));
        }
        Open { stop, running }
    }
}

/// Listeners that are open.
pub(crate) struct Open {
    stop: watch::Sender<bool>,
    running: JoinSet<()>,
}

impl Open {
    /// Closes them. What is in transit is sent again by its mail server.
    pub(crate) async fn close(mut self) {
        self.stop.send_replace(true);
        while let Some(ended) = self.running.join_next().await {
            if let Err(error) = ended {
                tracing::warn!(%error, "a mail listener panicked");
            }
        }
    }
}

/// What comes by LMTP.
struct Lmtp(MailIngress);

impl Receive for Lmtp {
    fn knows(&self, recipient: &str) -> bool {
        self.0.knows(recipient)
    }

    async fn receive(&self, envelope: Envelope, raw: Vec<u8>) -> ReceiveOutcome {
        match self.0.ingest(&envelope, &raw).await {
            Outcome::Later => ReceiveOutcome::Later,
            Outcome::Recorded(_) | Outcome::Bounced | Outcome::Ignored(_) | Outcome::Quarantined(_) => {
                ReceiveOutcome::Stored
            }
        }
    }
}
