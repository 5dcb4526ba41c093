//! What happens when data ends.

use minicbor::{CborLen, Decode, Encode, bytes::ByteVec};
use switchward_machine::SessionId;

use crate::session::Removing;

/// A fact about the removal of a session's data. Stored form.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum RemovalFact {
    /// It begins.
    #[n(0)]
    Begun {
        /// Why it is removed, and so what remains.
        #[n(0)]
        how: Removing,
        /// Who requested it.
        #[n(1)]
        by: String,
        /// The request id that it was requested with, and the digest of its body.
        #[n(2)]
        request: Option<(String, switchward_machine::Digest)>,
    },
    /// These rows are gone, or hold only what remains.
    #[n(1)]
    Rows {
        /// The session that the rows are of.
        #[n(0)]
        session: SessionId,
        /// The keys of the rows.
        #[n(1)]
        keys: Vec<ByteVec>,
    },
    /// No row is left.
    #[n(2)]
    Done {
        /// The session that is removed.
        #[n(0)]
        session: SessionId,
    },
    /// What remained of expired sessions is gone.
    #[n(3)]
    Forgotten {
        /// The rows.
        #[n(0)]
        keys: Vec<ByteVec>,
    },
    /// Stands in a history for what was erased there.
    #[n(4)]
    Redacted,
    /// Rows of a tenant that is deleted are gone.
    #[n(5)]
    OfTenant {
        /// The keys of the rows.
        #[n(0)]
        keys: Vec<ByteVec>,
    },
    /// A session was kept long enough, and is gone whole.
    #[n(6)]
    Expired {
        /// The session that is gone.
        #[n(0)]
        session: SessionId,
        /// Who removed it.
        #[n(1)]
        by: String,
        /// The keys of its rows, without its own.
        #[n(2)]
        keys: Vec<ByteVec>,
    },
}

impl RemovalFact {
    /// The number of rows that are removed.
    #[must_use]
    pub fn rows(&self) -> usize {
        match self {
            Self::Rows { keys, .. }
            | Self::Expired { keys, .. }
            | Self::Forgotten { keys }
            | Self::OfTenant { keys } => keys.len(),
            Self::Begun { .. } | Self::Done { .. } | Self::Redacted => 0,
        }
    }

    /// Whether it happens to a session as other events do, and counts in its sequence.
    #[must_use]
    pub fn counts(&self) -> bool {
        match self {
            Self::Begun { .. } => true,
            Self::Rows { .. }
            | Self::Done { .. }
            | Self::Forgotten { .. }
            | Self::Redacted
            | Self::Expired { .. }
            | Self::OfTenant { .. } => false,
        }
    }
}
