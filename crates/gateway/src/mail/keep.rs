//! Puts mail that was not accepted into quarantine.

use std::sync::Arc;
use switchward_machine::{Digest, TenantId};
use switchward_mail::incoming::{Envelope, head};
use switchward_query::HasTenant;
use switchward_state::approval::MailToken;

use super::{MailIngress, Outcome, QuarantinedMail};
use crate::beside;
use crate::limits::MAIL_KEPT_BYTES_MAX;

/// Hexadecimal digits of a kept mail's id.
const ID_DIGITS: usize = 20;

impl MailIngress {
    /// Stores a mail that was not accepted. If it cannot be stored, the outcome is that it must be delivered again.
    pub(super) async fn keep(&self, outcome: Outcome, envelope: &Envelope, raw: &[u8]) -> Outcome {
        let (what, why) = outcome.words();
        let Some(quarantine) = self.api.quarantine.get().filter(|_| outcome.is_left()).map(Arc::clone) else {
            return outcome;
        };
        let head = beside::run(raw.len(), || head(raw, envelope, &self.settings));
        let tokens: Vec<MailToken> = head.tokens.iter().filter_map(|token| self.read(token)).collect();
        let tenant = self
            .brought
            .as_ref()
            .map(|(tenant, _)| *tenant)
            .or_else(|| tokens.iter().map(|token| token.tenant).find(|one| self.is_tenant(*one)));
        let session = tokens.iter().find(|token| Some(token.tenant) == tenant).map(|token| token.session);
        let owner = tenant.map_or(0, |tenant| tenant.0).to_be_bytes();
        let mail = QuarantinedMail {
            id: beside::run(raw.len(), || id_of(&[&owner, raw])),
            // It is deleted by its age: a server whose clock is behind must not make it old.
            at: self.api.cluster.now_or_median(),
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
        let at = self.api.cluster.now_or_median();
        let mail = QuarantinedMail {
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

    /// Returns true if there is a tenant with this number, or was one that is deleted, or nobody knows at present: mail that
    /// names a deleted tenant must not count as unmatched, because others may see unmatched mail.
    fn is_tenant(&self, id: TenantId) -> bool {
        self.api.ask_stale(&HasTenant { tenant: id }).unwrap_or(true)
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
