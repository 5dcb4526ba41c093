//! Mail that could not be matched is kept for a person to look at, for a limited time.
//!
//! Chosen: each server keeps the mail that came to it, in a folder of its own that is bounded in number and bytes; the
//! oldest mail goes first. A mail is on disk before it is acknowledged to its sender. How long it is kept is the
//! rule of [`sweep`](mod@super::sweep). Rejected: rows of the replicated state. Anybody may write to a reply address, so
//! strangers would write into the log of every replica and into every snapshot, at the rate that they choose; and no
//! decision of the server depends on it. Only mail that could not be matched is lost with a server's disk; the servers of
//! a cluster are queried one by one.

use std::sync::Arc;

use switchward_engine::{Key, MailToken, View as _, tenant_numbered};
use switchward_machine::{Digest, SessionId, TenantId, Time};
use switchward_mail::incoming::{Envelope, head};

use super::{MailIngress, Outcome};
use crate::limits::MAIL_KEPT_BYTES_MAX;

/// Hexadecimal digits of a kept mail's id.
const ID_DIGITS: usize = 20;

/// A mail that was not accepted. None of its own data is proved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Its name: 20 hexadecimal digits, the same for the same mail.
    pub id: String,
    /// When it came.
    pub at: Time,
    /// The tenant that it names, or whose key it was delivered with; `None` if it names none.
    pub tenant: Option<TenantId>,
    /// The session that the first of its tokens of that tenant names; it need not exist. `None` without a tenant.
    pub session: Option<SessionId>,
    /// `quarantined` or `ignored`.
    pub outcome: String,
    /// The reason, as a stable code.
    pub why: String,
    /// The address that bounces go to, if the transport gave it.
    pub sender: Option<String>,
    /// The addresses that it was delivered to, if the transport gave them.
    pub recipients: Vec<String>,
    /// The alleged writer.
    pub from: String,
    /// Its subject.
    pub subject: String,
    /// Its size as it came, bytes; what is kept of it may be less.
    pub bytes: u64,
}

/// The store of such mail. All calls block.
pub trait QuarantineStore: Send + Sync + 'static {
    /// Stores a mail with its content durably and replaces an earlier copy. Deletes the oldest mails if there would be too
    /// many.
    ///
    /// # Errors
    /// A message if it cannot be written.
    fn keep(&self, mail: Kept, content: &[u8]) -> Result<(), String>;

    /// Returns all that is kept, in no order.
    fn list(&self) -> Vec<Kept>;

    /// Returns the stored part of a mail's content; `None` if there is no such mail.
    ///
    /// # Errors
    /// A message if it cannot be read.
    fn content(&self, id: &str) -> Result<Option<Vec<u8>>, String>;

    /// Deletes a mail as it was listed, and returns true if it was there. One that was kept once more since then stays.
    ///
    /// # Errors
    /// A message if it cannot be deleted; then it is still listed.
    fn delete(&self, mail: &Kept) -> Result<bool, String>;
}

impl MailIngress {
    /// Stores a mail that was not accepted. If it cannot be stored, the outcome is that it must be delivered again.
    pub(super) async fn keep(&self, outcome: Outcome, envelope: &Envelope, raw: &[u8]) -> Outcome {
        let (what, why) = outcome.words();
        let Some(quarantine) = self.api.quarantine.get().filter(|_| outcome.is_left()).map(Arc::clone) else {
            return outcome;
        };
        let head = head(raw, envelope, &self.settings);
        let tokens: Vec<MailToken> = head.tokens.iter().filter_map(|token| self.read(token)).collect();
        let tenant = self
            .brought
            .as_ref()
            .map(|(tenant, _)| *tenant)
            .or_else(|| tokens.iter().map(|token| token.tenant).find(|one| self.is_tenant(*one)));
        let session = tokens.iter().find(|token| Some(token.tenant) == tenant).map(|token| token.session);
        let owner = tenant.map_or(0, |tenant| tenant.0).to_be_bytes();
        let mail = Kept {
            id: id_of(&[&owner, raw]),
            at: self.api.cluster.now(),
            tenant,
            session,
            outcome: what.to_owned(),
            why: why.to_owned(),
            sender: envelope.sender.clone(),
            recipients: envelope.recipients.clone(),
            from: head.from,
            subject: head.subject,
            bytes: u64::try_from(raw.len()).unwrap_or(u64::MAX),
        };
        self.api.deleted.forget(&mail.id);
        let content = raw[..raw.len().min(MAIL_KEPT_BYTES_MAX)].to_vec();
        let kept = tokio::task::spawn_blocking(move || quarantine.keep(mail, &content)).await;
        match kept.map_err(|error| error.to_string()).flatten() {
            Ok(()) => outcome,
            Err(error) => {
                tracing::error!(
                    error,
                    "failed to put a mail into quarantine; its transport must deliver it again"
                );
                Outcome::Later
            }
        }
    }

    /// Records a message that its transport did not read.
    pub(super) fn keep_unread(&self, why: &'static str) {
        let Some(quarantine) = self.api.quarantine.get().map(Arc::clone) else { return };
        let at = self.api.cluster.now();
        let mail = Kept {
            id: id_of(&[why.as_bytes(), &at.0.to_be_bytes()]),
            at,
            tenant: None,
            session: None,
            outcome: "quarantined".to_owned(),
            why: why.to_owned(),
            sender: None,
            recipients: Vec::new(),
            from: String::new(),
            subject: String::new(),
            bytes: 0,
        };
        // Not awaited: the transport still holds the message itself.
        tokio::task::spawn_blocking(move || {
            if let Err(error) = quarantine.keep(mail, &[]) {
                tracing::error!(error, "failed to record in quarantine that a mail was not accepted");
            }
        });
    }

    /// Returns true if there is a tenant with this number, or was one that is deleted: mail that names a deleted tenant must
    /// not count as unmatched, because others may see unmatched mail.
    fn is_tenant(&self, id: TenantId) -> bool {
        let rows = self.api.cluster.catalogue().read_stale();
        let record = rows.row(&Key::tenancy_record(id));
        record.is_ok_and(|record| record.is_some())
            || tenant_numbered(&rows, id).is_ok_and(|tenant| tenant.is_some())
    }
}

impl Outcome {
    /// Returns true if people have to look at the message.
    fn is_left(&self) -> bool {
        match self {
            Self::Quarantined(_) | Self::Ignored(_) => true,
            Self::Recorded(_) | Self::Bounced | Self::Later => false,
        }
    }
}

fn id_of(parts: &[&[u8]]) -> String {
    let digest = Digest::of_parts(parts).to_string();
    digest.chars().take(ID_DIGITS).collect()
}
