//! Why a list names nobody who can be asked or written to.

use minicbor::{CborLen, Decode, Encode};

/// Why a list names nobody who can be asked or written to.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum RecipientsProblem {
    /// It names more than [`RECIPIENTS_MAX`](crate::limits::RECIPIENTS_MAX).
    #[n(0)]
    TooMany,
    /// It names nobody.
    #[n(1)]
    Nobody,
    /// It names more than [`PARTICIPANTS_MAX`](crate::limits::PARTICIPANTS_MAX) to take part in a task.
    #[n(2)]
    TooManyParticipants,
    /// The data hold something else than a list of texts.
    #[n(3)]
    NoList {
        /// The path of the value in the data.
        #[n(0)]
        path: String,
    },
    /// An address is longer than [`RECIPIENT_BYTES_MAX`](crate::limits::RECIPIENT_BYTES_MAX).
    #[n(4)]
    AddressLength,
    /// A value is no address.
    #[n(5)]
    NoAddress {
        /// The value as JSON, or its beginning.
        #[n(0)]
        value: String,
    },
    /// The requests to all participants of a task have more than
    /// [`TASK_BYTES_MAX`](crate::limits::TASK_BYTES_MAX).
    #[n(6)]
    TaskBytes,
}
