//! Why a call is denied or waits.

use minicbor::{CborLen, Decode, Encode};

use crate::catalogue::DefaultSetIn;

/// Why a call is denied or waits.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode, CborLen)]
pub enum CallProblem {
    /// A list of calls that are denied names it.
    #[n(0)]
    Listed {
        /// The call's name.
        #[n(0)]
        capability: String,
    },
    /// A list of calls that a person is asked about names it, and the process asks nobody.
    #[n(1)]
    NobodyToAsk {
        /// The call's name.
        #[n(0)]
        capability: String,
    },
    /// The only list of allowed calls does not name it.
    #[n(2)]
    NotListed,
    /// No rule names it, such calls are asked about, and the process asks nobody.
    #[n(3)]
    UnlistedNobodyToAsk,
    /// No rule names it, and such calls are denied.
    #[n(4)]
    DeniedByDefault {
        /// The policy that says so.
        #[n(0)]
        layer: String,
        /// Where it is set; `None` and a format's own default name nobody.
        #[n(1)]
        set_in: Option<DefaultSetIn>,
    },
    /// The session is paused.
    #[n(5)]
    Paused,
    /// A person reviews the last answer.
    #[n(6)]
    Reviewed,
    /// It is a mail without a sender, and senders are listed.
    #[n(7)]
    NoSender,
    /// It is a mail without a recipient, and recipients are listed.
    #[n(8)]
    NoRecipient,
    /// It is a mail from somebody who is not listed.
    #[n(9)]
    SenderNotListed {
        /// An address that the policy lists nowhere.
        #[n(0)]
        address: String,
    },
    /// It is a mail to somebody who is not listed.
    #[n(10)]
    RecipientNotListed {
        /// The first address that the policy lists nowhere.
        #[n(0)]
        address: String,
    },
    /// A field of a mail holds something else than addresses.
    #[n(11)]
    NoAddress {
        /// The field's name.
        #[n(0)]
        field: String,
    },
    /// The arguments cannot be read.
    #[n(12)]
    Arguments {
        /// What the JSON parser reports.
        #[n(0)]
        diagnostic: String,
    },
}
