//! Mail that could not be matched is kept for a person to look at, for a limited time.
//!
//! Chosen: each server keeps the mail that came to it, in a folder of its own that is bounded in number and bytes; the
//! oldest mail goes first. A mail is on disk before it is acknowledged to its sender. How long it is kept is the
//! rule of [`sweep`](mod@super::sweep). Rejected: rows of the replicated state. Anybody may write to a reply address, so
//! strangers would write into the log of every replica and into every snapshot, at the rate that they choose; and no
//! decision of the server depends on it. Only mail that could not be matched is lost with a server's disk; any server of a
//! cluster asks the others for theirs (see [`others`](super::others)).

use switchward_machine::{SessionId, TenantId, Time};

/// A mail that was not accepted. None of its own data is proved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuarantinedMail {
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
    /// The subject that the mail states; empty if it has none or cannot be read.
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
    fn keep(&self, mail: QuarantinedMail, content: &[u8]) -> Result<(), String>;

    /// Returns all that is kept, in no order.
    fn list(&self) -> Vec<QuarantinedMail>;

    /// Returns the stored part of a mail's content; `None` if there is no such mail.
    ///
    /// # Errors
    /// A message if it cannot be read.
    fn content(&self, id: &str) -> Result<Option<Vec<u8>>, String>;

    /// Deletes a mail as it was listed, and returns true if it was there. One that was kept once more since then stays.
    ///
    /// # Errors
    /// A message if it cannot be deleted; then it is still listed.
    fn delete(&self, mail: &QuarantinedMail) -> Result<bool, String>;
}

/// What the servers that answered have said, and those that did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elsewhere<T> {
    /// What was said.
    pub found: T,
    /// The numbers of the servers that did not answer, or not what was asked, in order.
    pub unreachable: Vec<u64>,
}

/// The quarantines of the other servers.
#[tonic::async_trait]
pub trait QuarantineOfOthers: Send + Sync + 'static {
    /// Returns the mails that name this tenant, and those that name none, in no order. A server with more than a message
    /// holds says which are its newest.
    async fn list(&self, tenant: TenantId) -> Elsewhere<Vec<QuarantinedMail>>;

    /// Returns the stored part of a mail's content; `None` if no server that answers has it.
    async fn content(&self, id: &str) -> Elsewhere<Option<Vec<u8>>>;

    /// Deletes a mail of this tenant on each server to which it came no later than `last`.
    async fn delete(&self, tenant: TenantId, id: &str, last: Time) -> Elsewhere<()>;
}

/// Deletes a mail that came no later than `last`, and returns true if it was there.
///
/// # Errors
/// As of [`QuarantineStore::delete`].
pub(crate) fn delete_until(quarantine: &dyn QuarantineStore, id: &str, last: Time) -> Result<bool, String> {
    let copy = quarantine.list().into_iter().find(|mail| mail.id == id && mail.at <= last);
    copy.map_or(Ok(false), |mail| quarantine.delete(&mail))
}
