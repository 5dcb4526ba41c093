//! Waits for a message that was sent to a mailbox of ours.

use futures::TryStreamExt as _;

use super::link::{self, Session, within};
use super::probe::exists;
use super::{Account, ImapError};
use crate::limits::{IMAP_COMMAND_TIME_MAX, IMAP_FIND_POLL};

/// Waits for a message of this id, given without angle brackets, and returns its header section. Searches the incoming
/// folder and those that mail is moved to, since a server may read the mailbox meanwhile. Changes nothing. Drop the future
/// to stop waiting.
///
/// # Errors
/// The mailbox cannot be read.
pub async fn find(account: &Account, message_id: &str) -> Result<Vec<u8>, ImapError> {
    let mut session = link::open(account).await?;
    let mut folders = vec![&account.folder];
    folders.extend([&account.done_folder, &account.quarantine_folder].into_iter().flatten());
    loop {
        for folder in &folders {
            if **folder != account.folder && !exists(&mut session, folder).await? {
                continue;
            }
            if let Some(head) = look(&mut session, folder, message_id).await? {
                let _gone = within(IMAP_COMMAND_TIME_MAX, "log out", session.logout()).await;
                return Ok(head);
            }
        }
        tokio::time::sleep(IMAP_FIND_POLL).await;
    }
}

/// Looks into one folder.
async fn look(session: &mut Session, folder: &str, message_id: &str) -> Result<Option<Vec<u8>>, ImapError> {
    let limit = IMAP_COMMAND_TIME_MAX;
    let opened = tokio::time::timeout(limit, session.examine(folder)).await;
    let opened = opened.map_err(|_| ImapError::TooSlow("open the folder"))?;
    opened.map_err(|error| ImapError::Folder(folder.to_owned(), error))?;
    let query = format!("HEADER Message-ID \"{message_id}\"");
    let found = within(limit, "search the folder", session.uid_search(query)).await?;
    let Some(uid) = found.into_iter().next() else { return Ok(None) };
    let fetched = async {
        session.uid_fetch(uid.to_string(), "BODY.PEEK[HEADER]").await?.try_collect::<Vec<_>>().await
    };
    // It may have been moved since.
    let fetched = within(limit, "read a message", fetched).await?;
    Ok(fetched.iter().find_map(|message| message.header()).map(<[u8]>::to_vec))
}
