//! Checks whether a mailbox can be read, without reading it.

use futures::TryStreamExt as _;

use super::link::{self, Session, within};
use super::{Account, ImapError};
use crate::limits::IMAP_COMMAND_TIME_MAX;

/// The state of a server and a mailbox, which a probe does not change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MailboxState {
    /// Messages in the folder that mail comes into.
    pub messages: u32,
    /// The other folders by name, and whether they exist; missing ones are created on reading.
    pub folders: Vec<(String, bool)>,
    /// Whether the server announces new mail (IDLE); otherwise it is polled.
    pub idle: bool,
}

/// Logs in and looks, without changing anything.
///
/// # Errors
/// The mailbox cannot be read.
pub async fn probe(account: &Account) -> Result<MailboxState, ImapError> {
    let mut session = link::open(account).await?;
    let limit = IMAP_COMMAND_TIME_MAX;
    let able = within(limit, "report its capabilities", session.capabilities()).await?;
    let opened = tokio::time::timeout(limit, session.examine(&account.folder)).await;
    let opened = opened.map_err(|_| ImapError::TooSlow("open the folder"))?;
    let opened = opened.map_err(|error| ImapError::Folder(account.folder.clone(), error))?;
    let mut folders = Vec::new();
    for name in [&account.done_folder, &account.quarantine_folder].into_iter().flatten() {
        folders.push((name.clone(), exists(&mut session, name).await?));
    }
    // A failed logout does not matter.
    let _gone = within(limit, "log out", session.logout()).await;
    Ok(MailboxState { messages: opened.exists, folders, idle: able.has_str("IDLE") })
}

/// Returns true if there is a folder of this name, which must not have wildcards.
pub(super) async fn exists(session: &mut Session, name: &str) -> Result<bool, ImapError> {
    let listed = async {
        let pattern = format!("\"{name}\"");
        session.list(Some(""), Some(&pattern)).await?.try_collect::<Vec<_>>().await
    };
    Ok(!within(IMAP_COMMAND_TIME_MAX, "list folders", listed).await?.is_empty())
}
