//! The mailbox of a development server: the mails that it would have sent, and the replies that are typed there.

/// The title of the mailbox, as browsers show it.
pub const TITLE: &str = "Mail";
/// What the page shows.
pub const ABOUT: &str =
    "The mail that this development server would have sent. Open a mail to answer it as its recipient.";
/// Instead of an empty list.
pub const NO_MAIL: &str = "There is no mail yet.";
/// Instead of a mail that was deleted, or never existed.
pub const NO_SUCH_MAIL: &str = "This mail does not exist.";
/// The link to the list.
pub const ALL_MAIL: &str = "← All mail";
/// The heading of what came in.
pub const RECEIVED_MAIL: &str = "Received mail";

/// The label of the time at which a mail was sent.
pub const SENT: &str = "Sent";
/// The label of the time at which a mail came in.
pub const RECEIVED_AT: &str = "At";
/// The label of the sender that a mail shows.
pub const FROM: &str = "From";
/// The label of the address that sends, if a mail shows another one.
pub const SENT_BY: &str = "Sent by";
/// The label of the recipients that a mail shows.
pub const TO: &str = "To";
/// The label of the recipient, if a mail shows others.
pub const DELIVERED_TO: &str = "Delivered to";
/// The label of the address for replies.
pub const REPLY_TO: &str = "Reply to";
/// The label of a subject.
pub const SUBJECT: &str = "Subject";
/// The label of what became of a mail that came in.
pub const OUTCOME: &str = "Outcome";
/// The label of the whole mail, as it would be sent.
pub const RAW_MESSAGE: &str = "Raw message";

/// The label of the field for a reply.
pub const REPLY: &str = "Reply";
/// The label of the field for a reply's sender.
pub const WRITTEN_BY: &str = "Written by";
/// The choice to sign a reply as the sender's mail server would.
pub const PROVE_SENDER: &str = "prove the sender with a DKIM signature";
/// The choice to make a reply one of a machine.
pub const MARK_AUTOMATIC: &str = "mark it as an automatic reply (out of office)";
/// The button that sends a reply.
pub const SEND_REPLY: &str = "Send the reply";

/// What became of a reply. The codes are those of the documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyEnd<'r> {
    /// It is in the history of its session.
    Recorded {
        /// The code of its outcome.
        outcome: &'r str,
    },
    /// It says that a mail was not delivered.
    Bounced,
    /// No person has written it.
    Ignored {
        /// The code of its kind.
        kind: &'r str,
    },
    /// It is kept for inspection.
    Quarantined {
        /// The code of the reason.
        why: &'r str,
    },
    /// It must be sent again.
    Later,
}

/// What became of a reply, in a few words.
#[must_use]
pub fn reply_end(end: ReplyEnd<'_>) -> String {
    match end {
        ReplyEnd::Recorded { outcome } => format!("accepted: {outcome}"),
        ReplyEnd::Bounced => "accepted as a bounce".to_owned(),
        ReplyEnd::Ignored { kind } => format!("ignored: {kind}"),
        ReplyEnd::Quarantined { why } => format!("not accepted: {why}"),
        ReplyEnd::Later => "not accepted now; send it again".to_owned(),
    }
}

/// The heading of a reply that was sent, with what became of it.
#[must_use]
pub fn replied(end: &str) -> String {
    format!("You replied ({end})")
}

/// The line above the text that a reply quotes, as mail programs write it.
#[must_use]
pub fn quoting(time: &str, author: &str) -> String {
    format!("On {time}, {author} wrote:")
}
