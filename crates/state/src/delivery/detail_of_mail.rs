//! What goes wrong with outbound mails.

use minicbor::{CborLen, Decode, Encode};
use serde::{Deserialize, Serialize};

/// Why a mail cannot be composed or sent.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MailProblem {
    /// The server that has the job sends no mail.
    #[n(0)]
    NotConfigured,
    /// The configured sender is not an address.
    #[n(1)]
    Sender,
    /// A text is no mail address.
    #[n(2)]
    Address {
        /// The text, cut.
        #[n(0)]
        text: String,
    },
    /// The recipient is an address to which replies come back.
    #[n(3)]
    ReplyAddress {
        /// The recipient.
        #[n(0)]
        to: String,
    },
    /// The configuration does not list the author.
    #[n(4)]
    Author {
        /// The address of the author.
        #[n(0)]
        from: String,
    },
    /// There are too many addresses in the headers.
    #[n(5)]
    TooManyAddresses {
        /// The limit.
        #[n(0)]
        max: u64,
    },
    /// An address, the subject or an id has a character that it may not have.
    #[n(6)]
    Characters,
    /// The subject or the text is too long.
    #[n(7)]
    Length {
        /// The limit of the subject, characters.
        #[n(0)]
        subject_max: u64,
        /// The limit of the text, bytes.
        #[n(1)]
        text_max: u64,
    },
    /// The composed mail has no content type.
    #[n(8)]
    NoContentType,
    /// TLS cannot be set up.
    #[n(9)]
    Tls {
        /// What the library reports.
        #[n(0)]
        diagnostic: String,
    },
    /// The mail server has not answered in time.
    #[n(10)]
    NoReply,
    /// The mail server has not taken the mail in time.
    #[n(11)]
    TooSlow,
}
