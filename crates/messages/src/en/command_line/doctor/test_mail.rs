//! The check with a mail to the server's own reply address, which has a forged `Authentication-Results` field.

use std::fmt::Display;
use std::time::Duration;

/// The server has no address for replies.
pub const NO_REPLY_ADDRESS: &str = "mail.reply is not set, so no mail can arrive";
/// The remedy if the server has no address for replies.
pub const SET_REPLY_ADDRESS: &str = "set mail.reply";
/// The mail would arrive at the server that runs.
pub const HTTP_ONLY: &str = "mail comes in only by HTTP, which doctor cannot watch";
/// The remedy if the mail would arrive at the server that runs.
pub const SEND_YOURSELF: &str = "send a mail with such a field yourself, and check what arrives";
/// The remedy if the mailbox cannot be searched.
pub const CHECK_IMAP: &str = "check mail.in.imap";
/// The remedy if the mail did not arrive in time.
pub const CHECK_DELIVERY: &str = "check the log of the mail server in front, and where it delivers such mail";
/// The remedy if the mail could not be sent.
pub const CHECK_SMTP: &str = "check mail.smtp";
/// The text of the mail.
pub const TEXT: &str = "Sent by switchward doctor --send to test a forged header field.";
/// The remedy if forged fields arrive.
pub const REMOVE_FIELDS: &str = "configure it to remove them, or remove the host from mail.in.trusted_hosts";
/// The remedy if forged fields arrive and are trusted.
pub const DO_NOT_TRUST: &str =
    "remove the host from mail.in.trusted_hosts until the mail server removes them: anybody can approve";
/// The remedy if a server receives the mail.
pub const STOP_SERVER: &str = "stop the server, and run doctor again";
/// The remedy if nobody can listen for the mail.
pub const SET_LMTP: &str = "set mail.in.lmtp to another address";

/// What becomes of forged fields that the mail server in front keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForgedFields {
    /// They are below the mail server's own field, which is the last one that counts.
    Below,
    /// They are believed.
    Trusted,
    /// The server trusts no host.
    Ignored,
}

/// The mail was sent and did not arrive.
#[must_use]
pub fn not_arrived(to: &str, after: Duration) -> String {
    format!("the mail to {to} did not arrive within {} s", after.as_secs())
}

/// The mail arrived without the forged fields.
#[must_use]
pub fn fields_removed(hosts: &[String]) -> String {
    format!("the mail server removes forged Authentication-Results fields of {}", hosts.join(", "))
}

/// The mail arrived with the forged fields.
#[must_use]
pub fn fields_kept(hosts: &[String], fields: ForgedFields) -> String {
    let consequence = match fields {
        ForgedFields::Below => "; below its Received field they are not trusted",
        ForgedFields::Trusted => ", and they are trusted",
        ForgedFields::Ignored => "; no host is trusted, so they are ignored",
    };
    let hosts = hosts.join(", ");
    format!("the mail server keeps forged Authentication-Results fields of {hosts}{consequence}")
}

/// A server listens for the mail already.
#[must_use]
pub fn address_in_use(address: &impl Display) -> String {
    format!("{address} is in use, so the mail cannot be received there")
}
