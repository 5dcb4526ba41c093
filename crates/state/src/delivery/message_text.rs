//! What a message says.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::Content;

use crate::approval::{Notice, RequestSubject};

/// The text of a message, or the facts that it is made of. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum MessageText {
    /// An author, a person or an agent wrote it.
    #[n(0)]
    Written {
        /// One line.
        #[n(0)]
        subject: Option<String>,
        /// The rest, rendered.
        #[n(1)]
        body: String,
        /// What the body is.
        #[n(2)]
        content: Content,
    },
    /// A gate asks somebody, in plain text.
    #[n(2)]
    Request {
        /// What it is about.
        #[n(0)]
        subject: RequestSubject,
        /// The rest, rendered; may be empty.
        #[n(1)]
        body: String,
    },
    /// The server says it; the crate `messages` puts it into words when it is shown or sent.
    #[n(1)]
    Notice {
        /// The subject of the request, or of the mail that it answers.
        #[n(0)]
        about: RequestSubject,
        /// What it says.
        #[n(1)]
        notice: Notice,
    },
}

impl MessageText {
    /// The size of its texts, bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Written { subject, body, .. } => subject.as_ref().map_or(0, String::len) + body.len(),
            Self::Request { subject, body } => subject.bytes() + body.len(),
            Self::Notice { about, notice } => about.bytes() + notice.bytes(),
        }
    }
}
