//! What an answer to a command shows of its session beside where it stands. None of it ever changes.

use minicbor::decode::Error as DecodeError;
use minicbor::encode::{Error as EncodeError, Write};
use minicbor::{Decode, Decoder, Encode, Encoder};
use std::sync::Arc;
use switchward_machine::Time;
use switchward_state::SharedRow;
use switchward_state::session::{Assisted, Session};

/// What an answer to a command shows of its session beside where it stands. It is sent between servers with these numbers.
#[derive(Debug, Clone, Copy, PartialEq, Encode)]
pub struct ShownSession<'r> {
    /// The caller's own key for it.
    #[n(0)]
    pub key: Option<&'r str>,
    /// The definition's name.
    #[n(1)]
    pub definition: &'r str,
    /// The definition's version.
    #[n(2)]
    pub version: u32,
    /// The role that it was started with.
    #[n(3)]
    pub role: &'r str,
    /// Whether it runs without its policy.
    #[n(4)]
    pub without_policy: bool,
    /// Free, for the caller's own use; ordered by key.
    #[n(5)]
    pub labels: &'r [(String, String)],
    /// When it began.
    #[n(6)]
    pub created: Time,
    /// The assistant that it is with, if any.
    #[n(7)]
    pub assistant: Option<&'r Assisted>,
}

/// What of a session is at hand for an answer.
#[derive(Debug, Clone)]
pub(crate) enum AnsweredSession {
    /// Its row, where the command was executed.
    Row(SharedRow<Session>),
    /// What another server has sent of it: a row may hold much that no answer shows, as the replies that it remembers.
    Sent(Arc<SentSession>),
}

/// [`ShownSession`] as it comes from another server.
#[derive(Debug, Decode)]
pub(crate) struct SentSession {
    #[n(0)]
    key: Option<String>,
    #[n(1)]
    definition: String,
    #[n(2)]
    version: u32,
    #[n(3)]
    role: String,
    #[n(4)]
    without_policy: bool,
    #[n(5)]
    labels: Vec<(String, String)>,
    #[n(6)]
    created: Time,
    #[n(7)]
    assistant: Option<Assisted>,
}

impl AnsweredSession {
    /// The fields that an answer shows, whichever of the two is at hand.
    pub(crate) fn shown(&self) -> ShownSession<'_> {
        match self {
            Self::Row(row) => ShownSession {
                key: row.key.as_deref(),
                definition: &row.definition,
                version: row.version,
                role: &row.role,
                without_policy: row.without_policy,
                labels: &row.labels,
                created: row.created,
                assistant: row.assistant.as_deref(),
            },
            Self::Sent(sent) => ShownSession {
                key: sent.key.as_deref(),
                definition: &sent.definition,
                version: sent.version,
                role: &sent.role,
                without_policy: sent.without_policy,
                labels: &sent.labels,
                created: sent.created,
                assistant: sent.assistant.as_ref(),
            },
        }
    }
}

impl<C> Encode<C> for AnsweredSession {
    fn encode<W: Write>(&self, e: &mut Encoder<W>, ctx: &mut C) -> Result<(), EncodeError<W::Error>> {
        self.shown().encode(e, ctx)
    }
}

impl<'b, C> Decode<'b, C> for AnsweredSession {
    fn decode(d: &mut Decoder<'b>, ctx: &mut C) -> Result<Self, DecodeError> {
        SentSession::decode(d, ctx).map(|sent| Self::Sent(Arc::new(sent)))
    }
}
