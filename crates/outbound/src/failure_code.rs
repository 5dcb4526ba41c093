//! The codes of deferred effects and dead letters that the server writes.

use switchward_delivery::Reason;
use switchward_state::delivery::MailCap;

/// Why the server defers or gives up an effect. It is stored as its word. Workers that deliver effects themselves have words
/// of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureCode {
    /// An attempt failed.
    Attempt(Reason),
    /// An event for an endpoint cannot be sent, or its last attempt failed.
    WebhookFailed,
    /// The message is larger than the bus accepts.
    TooLarge,
    /// The server sends no mail.
    MailNotConfigured,
    /// An hourly cap of mails is reached.
    MailCap(MailCap),
}

impl FailureCode {
    /// The codes that are not those of a reason or a cap.
    const OWN: [Self; 3] = [Self::WebhookFailed, Self::TooLarge, Self::MailNotConfigured];

    /// Returns the word that is stored and shown; it never changes.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Attempt(reason) => reason.code(),
            Self::WebhookFailed => "webhook_failed",
            Self::TooLarge => "too_large",
            Self::MailNotConfigured => "mail.not_configured",
            Self::MailCap(cap) => cap.code(),
        }
    }

    /// Returns the code with this word; `None` if the server writes no such word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        let own = Self::OWN.into_iter().find(|code| code.word() == word);
        own.or_else(|| MailCap::of_code(word).map(Self::MailCap))
            .or_else(|| Reason::from_code(word).map(Self::Attempt))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_code_is_read_from_its_word() {
        let reasons = Reason::ALL.into_iter().map(FailureCode::Attempt);
        let caps = MailCap::ALL.into_iter().map(FailureCode::MailCap);
        let mut words = BTreeSet::new();
        for code in FailureCode::OWN.into_iter().chain(reasons).chain(caps) {
            assert_eq!(FailureCode::from_word(code.word()), Some(code));
            assert!(words.insert(code.word()), "two codes have the word {}", code.word());
        }
        assert_eq!(FailureCode::from_word("carrier_pigeon_lost"), None);
    }
}
