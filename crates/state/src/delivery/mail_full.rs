//! The caps on mails of an hour, and which of them makes a mail wait.

use minicbor::{CborLen, Decode, Encode};
use switchward_machine::Time;

use crate::limits::{
    MAILS_OF_DEFINITION_HOUR_MAX, MAILS_OF_REQUESTER_HOUR_MAX, MAILS_OF_REQUESTER_TO_ADDRESS_HOUR_MAX,
    MAILS_OF_TENANT_HOUR_MAX, MAILS_TO_ADDRESS_HOUR_MAX, MAILS_UNNOTIFIED_PART,
};

/// What mails are counted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Encode, Decode, CborLen)]
pub enum MailCap {
    /// All mails of the tenant.
    #[n(0)]
    Tenant,
    /// All mails of all sessions of one definition.
    #[n(1)]
    Definition,
    /// All mails of one requester: the subject of the key that asked for the gate, or that started the session if a mail
    /// is about no gate.
    #[n(2)]
    Requester,
    /// All mails to one address.
    #[n(3)]
    Address,
    /// All mails of one requester to one address.
    #[n(4)]
    RequesterToAddress,
}

/// Why a mail waits, and until when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode, CborLen)]
pub struct MailFull {
    /// Which cap is reached.
    #[n(0)]
    pub cap: MailCap,
    /// When the next hour begins.
    #[n(1)]
    pub until: Time,
}

impl MailCap {
    /// All caps.
    pub const ALL: [Self; 5] =
        [Self::Tenant, Self::Definition, Self::Requester, Self::Address, Self::RequesterToAddress];

    /// Mails in an hour.
    #[must_use]
    pub fn most(self) -> u32 {
        match self {
            Self::Tenant => MAILS_OF_TENANT_HOUR_MAX,
            Self::Definition => MAILS_OF_DEFINITION_HOUR_MAX,
            Self::Requester => MAILS_OF_REQUESTER_HOUR_MAX,
            Self::Address => MAILS_TO_ADDRESS_HOUR_MAX,
            Self::RequesterToAddress => MAILS_OF_REQUESTER_TO_ADDRESS_HOUR_MAX,
        }
    }

    /// Those of them that any mail may use; the rest is for gates of which nobody has been notified.
    #[must_use]
    pub fn most_of_any(self) -> u32 {
        self.most() - self.most() / MAILS_UNNOTIFIED_PART
    }

    /// The code of a mail that waits for it.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Tenant => "mail_tenant_limit",
            Self::Definition => "mail_definition_limit",
            Self::Requester => "mail_requester_limit",
            Self::Address => "mail_address_limit",
            Self::RequesterToAddress => "mail_requester_address_limit",
        }
    }

    /// The cap of a code; `None` if it is the code of none.
    #[must_use]
    pub fn of_code(code: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cap| cap.code() == code)
    }
}
