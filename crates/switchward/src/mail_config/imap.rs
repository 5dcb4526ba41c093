//! The configuration of a mailbox that replies are read from.

use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;
use switchward_mail::imap::{Account, ImapTls, Pace};

use super::secret;

/// A mailbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ImapSettings {
    /// The server's host.
    pub(crate) host: String,
    /// Its port; absent: 993 for `implicit`, else 143.
    #[serde(default)]
    pub(crate) port: Option<u16>,
    /// How the connection is encrypted.
    #[serde(default)]
    pub(crate) tls: ImapTlsSetting,
    /// Whose mailbox.
    pub(crate) user: String,
    /// A file that holds the password.
    pub(crate) password_file: PathBuf,
    /// The folder that mail comes into.
    #[serde(default = "inbox")]
    pub(crate) folder: String,
    /// Where processed messages are moved to; absent: it stays, marked as seen.
    #[serde(default)]
    pub(crate) done_folder: Option<String>,
    /// Where messages that were not understood are moved to; absent: it stays, marked as seen and flagged.
    #[serde(default)]
    pub(crate) quarantine_folder: Option<String>,
    /// How long to wait before looking again if the server announces nothing, seconds.
    #[serde(default)]
    pub(crate) poll_seconds: Option<u32>,
}

/// How the connection to an IMAP server is encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ImapTlsSetting {
    /// From the first byte on.
    #[default]
    Implicit,
    /// From `STARTTLS` on, without which nobody logs in.
    StartTls,
    /// Not at all: only on this machine.
    None,
}

fn inbox() -> String {
    "INBOX".into()
}

impl ImapSettings {
    /// The mailbox, not connected yet.
    ///
    /// # Errors
    /// The password cannot be read or would be sent in the open, or a folder's name cannot be said.
    pub(crate) fn open(&self) -> anyhow::Result<Account> {
        if self.tls == ImapTlsSetting::None && !is_this_machine(&self.host) {
            anyhow::bail!(
                "mail.in.imap.tls: none is allowed only for a server on this machine; use implicit or starttls"
            );
        }
        let folders = [Some(&self.folder), self.done_folder.as_ref(), self.quarantine_folder.as_ref()];
        for name in folders.into_iter().flatten() {
            let sayable = |char: char| char.is_ascii_graphic() && !"\"\\*%&".contains(char) || char == ' ';
            if name.is_empty() || !name.chars().all(sayable) {
                anyhow::bail!(
                    "mail.in.imap: {name:?} is not a folder name; use ASCII characters other than \" \\ * % &"
                );
            }
        }
        if folders[1..].iter().flatten().any(|name| name.eq_ignore_ascii_case(&self.folder)) {
            anyhow::bail!(
                "mail.in.imap: mail cannot be moved to {}, the folder that it is read from",
                self.folder
            );
        }
        let (tls, port) = match self.tls {
            ImapTlsSetting::Implicit => (ImapTls::Implicit, 993),
            ImapTlsSetting::StartTls => (ImapTls::StartTls, 143),
            ImapTlsSetting::None => (ImapTls::None, 143),
        };
        let poll = self.poll_seconds.map(|seconds| Duration::from_secs(u64::from(seconds.max(1))));
        let pace = Pace { poll: poll.unwrap_or(Pace::default().poll), ..Pace::default() };
        let password = secret("mail.in.imap.password_file", &self.password_file)?.reveal().to_owned();
        Ok(Account {
            host: self.host.clone(),
            port: self.port.unwrap_or(port),
            tls,
            user: self.user.clone(),
            password,
            folder: self.folder.clone(),
            done_folder: self.done_folder.clone(),
            quarantine_folder: self.quarantine_folder.clone(),
            pace,
        })
    }
}

fn is_this_machine(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> (tempfile::TempDir, ImapSettings) {
        use figment::providers::{Format as _, Toml};
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        std::fs::write(&file, "secret\n").unwrap();
        let text = format!("user = \"a\"\npassword_file = {file:?}\n{text}");
        (folder, figment::Figment::from(Toml::string(&text)).extract().unwrap())
    }

    #[test]
    fn a_password_goes_in_the_open_to_this_machine_alone() {
        for (host, fine) in [("127.0.0.1", true), ("localhost", true), ("::1", true), ("imap.example", false)]
        {
            let (_folder, settings) = settings(&format!("host = {host:?}\ntls = \"none\""));
            let opened = settings.open().map_err(|error| error.to_string());
            assert_eq!(opened.is_ok(), fine, "{host}: {opened:?}");
        }
    }

    #[test]
    fn what_is_not_said_is_usual() {
        let (_folder, settings) = settings("host = \"imap.example\"");
        let account = settings.open().unwrap();
        assert_eq!((account.port, account.tls, account.folder.as_str()), (993, ImapTls::Implicit, "INBOX"));
        assert_eq!((account.password.as_str(), account.pace), ("secret", Pace::default()));
        assert!(!format!("{account:?}").contains("secret"));
    }

    #[test]
    fn folders_have_names_that_can_be_said_and_differ() {
        for folder in ["", "a\\\"b", "a*", "\u{e4}", "inbox"] {
            let (_folder, settings) =
                settings(&format!("host = \"imap.example\"\ndone_folder = \"{folder}\""));
            let error = settings.open().err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.starts_with("mail.in.imap: "), "{folder}: {error}");
        }
    }
}
